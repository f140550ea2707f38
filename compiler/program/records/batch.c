/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/batch.h"

nxc_batch nxc_batch_read(const nxc_settings *s, const nxc_layout *layout) {
  nxc_batch batch = {.micro = nxc_int(s, NX_SETTING_BATCH_MICRO),
                     .global = nxc_int(s, NX_SETTING_BATCH_GLOBAL)};
  if (layout->data) batch.n_micro = batch.global / (batch.micro * layout->data);
  return batch;
}
