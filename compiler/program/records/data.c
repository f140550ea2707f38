/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/data.h"

#include "compiler/program/records/read.h"
#include "schema/packing.h"

static nx_sampler sampler_of(const nxc_settings *s, const nxc_objective *objective) {
  if (nxc_objective_compares(objective))
    return objective->row->rows == 2 ? NX_SAMPLER_PAIRS : NX_SAMPLER_DOCUMENT;
  return nxc_is(s, NX_SETTING_DATA_SAMPLER, "packed")     ? NX_SAMPLER_PACKED
         : nxc_is(s, NX_SETTING_DATA_SAMPLER, "document") ? NX_SAMPLER_DOCUMENT
                                                          : NX_SAMPLER_STREAM;
}

static nx_long_samples long_samples_of(const nxc_settings *s) {
  return nxc_is(s, NX_SETTING_DATA_LONG_SAMPLES, "cut")    ? NX_LONG_SAMPLES_CUT
         : nxc_is(s, NX_SETTING_DATA_LONG_SAMPLES, "drop") ? NX_LONG_SAMPLES_DROP
                                                         : NX_LONG_SAMPLES_FAIL;
}

static bool has_labels(const nxc_settings *s) {
  return nxc_has(s, NX_SETTING_DATA_LABELS) || nxc_has(s, NX_SETTING_DATA_LABEL_PATH) ||
         nxc_has(s, NX_SETTING_DATA_VALIDATION_LABEL_PATH) || nxc_has(s, NX_SETTING_DATA_TEST_LABEL_PATH) ||
         nxc_is(s, NX_SETTING_DATA_KIND, "dialogues") || nxc_is(s, NX_SETTING_DATA_KIND, "completions");
}

nxc_data nxc_data_read(const nxc_settings *s, const nxc_objective *objective) {
  bool compares = nxc_objective_compares(objective);
  nxc_data data = {.separate_documents = nxc_flag(s, NX_SETTING_DATA_RESET_ATTENTION_MASK),
                   .restart_positions = nxc_flag(s, NX_SETTING_DATA_RESET_POSITION_IDS),
                   .mask_document_ends = nxc_flag(s, NX_SETTING_DATA_EOD_MASK_LOSS),
                   .indexed_documents = nxc_is(s, NX_SETTING_DATA_DOCUMENT_BORDERS, "index"),
                   .end_of_document = nxc_int_or(s, NX_SETTING_DATA_END_OF_DOCUMENT, -1),
                   .sampler = sampler_of(s, objective)};
  bool step = nxc_is(s, NX_SETTING_LOSS_MEAN, "step");
  data.weighs_tokens = has_labels(s) || data.mask_document_ends || data.sampler != NX_SAMPLER_STREAM;
  if (step && data.weighs_tokens && !compares)
    data.loss_mean = NX_MEAN_STEP; /* of equal weights both means are one */
  if (compares) data.long_samples = long_samples_of(s);
  else if (data.sampler == NX_SAMPLER_DOCUMENT && long_samples_of(s) != NX_LONG_SAMPLES_FAIL)
    data.long_samples = long_samples_of(s);
  if (data.sampler != NX_SAMPLER_PACKED) return data;
  data.packing = nx_packing_named(nxc_text(s, NX_SETTING_DATA_PACKING));
  data.packing_group = (uint64_t)nxc_int_or(s, NX_SETTING_DATA_PACKING_GROUP, 0);
  return data;
}

static bool has_documents(const nxc_data *data) {
  return data->separate_documents || data->restart_positions || data->mask_document_ends;
}

bool nxc_data_needs_document_ends(const nxc_data *data) {
  if (data->sampler != NX_SAMPLER_STREAM) return false;
  return data->mask_document_ends || (has_documents(data) && !data->indexed_documents);
}
