/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers of tokenizer.json. */
#include "tokenizer/open_steps.h"

bool nxt_read_normalizers(nxt_reading *reading, const json_t *step) {
  static const nxt_step_kinds all = {"normalizer", "normalizers", NULL, 0};
  return nxt_read_steps(reading, step, &all);
}
