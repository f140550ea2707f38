/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/data.h"

#include "compiler/program/records/read.h"

nxc_data nxc_data_read(const nxc_settings *s) {
  return (nxc_data){.separate_documents = nxc_flag(s, NX_SETTING_DATA_RESET_ATTENTION_MASK),
                    .restart_positions = nxc_flag(s, NX_SETTING_DATA_RESET_POSITION_IDS),
                    .mask_document_ends = nxc_flag(s, NX_SETTING_DATA_EOD_MASK_LOSS),
                    .labelled = nxc_has(s, NX_SETTING_DATA_LABELS),
                    .end_of_document = nxc_int_or(s, NX_SETTING_DATA_END_OF_DOCUMENT, -1)};
}

bool nxc_data_has_documents(const nxc_data *data) {
  return data->separate_documents || data->restart_positions || data->mask_document_ends;
}
