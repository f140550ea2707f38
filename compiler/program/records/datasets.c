/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/datasets.h"

static const char *const names[NX_PARTS] = {"train", "validation", "test"};
static const uint32_t roles[NX_PARTS] = {NX_DATASET_TRAIN, NX_DATASET_VALIDATION, NX_DATASET_TEST};

static const nxc_value *list_or_none(const nxc_settings *s, nxc_setting_id id, size_t *n) {
  *n = 0;
  return nxc_has(s, id) ? nxc_list(s, id, n) : NULL;
}

/* 1 together; all is trained on where nothing is divided off. */
static void read_shares(const nxc_settings *s, double shares[NX_PARTS]) {
  size_t n;
  double sum = 0;
  const nxc_value *given = list_or_none(s, NX_SETTING_DATA_SPLIT, &n);
  for (size_t i = 0; i < n && i < NX_PARTS; i++) sum += given[i].number;
  for (size_t i = 0; i < NX_PARTS; i++) shares[i] = sum > 0 && i < n ? given[i].number / sum : 0;
  if (!(sum > 0)) shares[0] = 1;
}

static nxc_dataset_source *read_sources(const nxc_settings *s, uint32_t part, const double shares[NX_PARTS],
                                        uint32_t *n_sources) {
  size_t n, n_weights;
  double sum = 0;
  const nxc_value *paths = list_or_none(s, NX_SETTING_DATA_PATH, &n);
  const nxc_value *weights = list_or_none(s, NX_SETTING_DATA_WEIGHTS, &n_weights);
  nxc_dataset_source *sources = nxc_arena_array(nxc_settings_arena(s), n, sizeof *sources);
  for (size_t i = 0; i < n; i++) sum += i < n_weights ? weights[i].number : 1;
  for (size_t i = 0; i < n; i++) {
    sources[i] = (nxc_dataset_source){.prefix = paths[i].text,
                                      .record = {.part = part, .split = NX_SPLIT_SUMS,
                                                 .weight = (i < n_weights ? weights[i].number : 1) / sum}};
    for (int at = 0; at < NX_PARTS; at++) sources[i].record.shares[at] = shares[at];
  }
  *n_sources = (uint32_t)n;
  return sources;
}

nxc_datasets nxc_datasets_read(const nxc_settings *s) {
  double shares[NX_PARTS];
  nxc_datasets datasets = {0};
  nxc_dataset *sets = nxc_arena_array(nxc_settings_arena(s), NX_PARTS, sizeof *sets);
  read_shares(s, shares);
  for (uint32_t part = 0; part < NX_PARTS; part++) {
    if (part > 0 && shares[part] == 0) continue;
    nxc_dataset *set = &sets[datasets.n];
    *set = (nxc_dataset){.name = names[part],
                         .record = {.role = roles[part],
                                    .sampler = NX_SAMPLER_STREAM,
                                    .blend = NX_BLEND_WEIGHTS,
                                    .shuffle = nxc_flag(s, NX_SETTING_DATA_SHUFFLE)}};
    set->sources = read_sources(s, part, shares, &set->record.n_sources);
    datasets.n += set->record.n_sources > 0;
  }
  datasets.sets = sets;
  return datasets;
}
