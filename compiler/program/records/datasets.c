/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/datasets.h"

#include "compiler/program/records/read.h"
#include "schema/pairwise_sum.h"

#include <math.h>

/* What a dataset is made of: paths of its own, or a part of those of training. */
typedef struct part {
  const char *name;
  nx_dataset_role role;
  nxc_setting_id path, weights, labels, rejected, rejected_labels, rewards;
} part;

static const part parts[NX_PARTS] = {
    {"train", NX_DATASET_TRAIN, NX_SETTING_DATA_PATH, NX_SETTING_DATA_WEIGHTS, NX_SETTING_DATA_LABEL_PATH,
     NX_SETTING_DATA_REJECTED_PATH, NX_SETTING_DATA_REJECTED_LABEL_PATH, NX_SETTING_DATA_REWARD_PATH},
    {"validation", NX_DATASET_VALIDATION, NX_SETTING_DATA_VALIDATION_PATH,
     NX_SETTING_DATA_VALIDATION_WEIGHTS, NX_SETTING_DATA_VALIDATION_LABEL_PATH,
     NX_SETTING_DATA_VALIDATION_REJECTED_PATH, NX_SETTING_DATA_VALIDATION_REJECTED_LABEL_PATH,
     NX_SETTING_DATA_VALIDATION_REWARD_PATH},
    {"test", NX_DATASET_TEST, NX_SETTING_DATA_TEST_PATH, NX_SETTING_DATA_TEST_WEIGHTS,
     NX_SETTING_DATA_TEST_LABEL_PATH, NX_SETTING_DATA_TEST_REJECTED_PATH,
     NX_SETTING_DATA_TEST_REJECTED_LABEL_PATH, NX_SETTING_DATA_TEST_REWARD_PATH}};

static const nxc_value *list_or_none(const nxc_settings *s, nxc_setting_id id, size_t *n) {
  *n = 0;
  return nxc_has(s, id) ? nxc_list(s, id, n) : NULL;
}

static nx_split split_of(const nxc_settings *s) {
  return nxc_is(s, NX_SETTING_DATA_SPLIT_ROUNDING, "each")   ? NX_SPLIT_EACH
         : nxc_is(s, NX_SETTING_DATA_SPLIT_ROUNDING, "last") ? NX_SPLIT_LAST
                                                             : NX_SPLIT_SUMS;
}

/* How the documents of data.path are divided: shares are 1 together, and all is trained on where nothing is
 * divided off. */
static nx_source read_split(const nxc_settings *s) {
  size_t n;
  double sum = 0;
  nx_source split = {.split = split_of(s),
                     .n_last = (uint32_t)nxc_int_or(s, NX_SETTING_DATA_VALIDATION_DOCUMENTS, 0)};
  const nxc_value *given = list_or_none(s, NX_SETTING_DATA_SPLIT, &n);
  for (size_t i = 0; i < n && i < NX_PARTS; i++) sum += given[i].number;
  for (size_t i = 0; i < n && i < NX_PARTS; i++) split.shares[i] = sum > 0 ? given[i].number / sum : 0;
  if (!(sum > 0)) split.shares[0] = 1;
  if (split.n_last > 0) split.split = NX_SPLIT_LAST;
  return split;
}

static const nx_source undivided = {.split = NX_SPLIT_SUMS, .shares = {1}};

static nx_order order_of(const nxc_settings *s) {
  return nxc_is(s, NX_SETTING_DATA_ORDER, "megatron") ? NX_ORDER_MEGATRON
         : nxc_is(s, NX_SETTING_DATA_ORDER, "neox")   ? NX_ORDER_NEOX
                                                      : NX_ORDER_EPOCHS;
}

/* Each order has its system's rule of what a single dataset is: Megatron blends it where it has a weight and
 * is divided, GPT-NeoX where each part has paths of its own. */
static bool is_blend(const nxc_settings *s, size_t n, bool weighed) {
  bool apart = nxc_has(s, NX_SETTING_DATA_VALIDATION_PATH) || nxc_has(s, NX_SETTING_DATA_TEST_PATH);
  return n > 1 || (order_of(s) == NX_ORDER_NEOX ? apart : weighed && !apart);
}

static nx_blend blend_of(const nxc_settings *s, size_t n, bool weighed) {
  if (order_of(s) == NX_ORDER_NEOX && nxc_has(s, NX_SETTING_SCHEDULE_EPOCHS)) return NX_BLEND_EPOCHS;
  if (!is_blend(s, n, weighed)) return NX_BLEND_SAMPLES;
  if (n == 1 || weighed || nxc_is(s, NX_SETTING_DATA_BLEND, "equal")) return NX_BLEND_WEIGHTS;
  return nxc_is(s, NX_SETTING_DATA_BLEND, "samples") ? NX_BLEND_SAMPLES : NX_BLEND_DOCUMENTS;
}

/* Entry i of a list beside the paths; "": none. */
static const char *beside(const nxc_settings *s, nxc_setting_id list, size_t i) {
  size_t n;
  const nxc_value *texts = list_or_none(s, list, &n);
  return i < n ? texts[i].text : "";
}

/* As the order's system adds them up: Megatron by numpy, GPT-NeoX one after another. */
static double sum_of_weights(const nxc_settings *s, const nxc_value *weights, size_t n) {
  double *all = nxc_arena_array(nxc_settings_arena(s), n, sizeof *all), sum = 0;
  for (size_t i = 0; i < n; i++) sum += all[i] = weights ? fmax(weights[i].number, 0) : 1;
  return order_of(s) == NX_ORDER_MEGATRON ? nx_pairwise_sum(all, (uint32_t)n) : sum;
}

/* The only source of paths that are merged. */
static nxc_dataset_source *merged_source(const nxc_settings *s, const nxc_recipe *recipe,
                                         const nx_source *like, nx_dataset *record) {
  nxc_dataset_source *source = nxc_arena_array(nxc_settings_arena(s), 1, sizeof *source);
  *source = (nxc_dataset_source){.prefix = recipe->prefix,
                                 .rejected = "",
                                 .labels = "",
                                 .rejected_labels = "",
                                 .rewards = "",
                                 .recipe = recipe,
                                 .record = *like};
  record->blend = NX_BLEND_SAMPLES, record->n_sources = 1;
  return source;
}

/* A source of each path; what has a weight of 0 is none. */
static nxc_dataset_source *read_sources(const nxc_settings *s, const part *of, const nx_source *like,
                                        nx_dataset *record) {
  size_t n, n_weights;
  const nxc_value *paths = list_or_none(s, of->path, &n);
  const nxc_value *weights = list_or_none(s, of->weights, &n_weights);
  bool weighed = n_weights > 0 && n_weights == n;
  const nxc_recipe *merged = nxc_recipe_merged(s, paths, n);
  if (merged) return merged_source(s, merged, like, record);
  nxc_dataset_source *sources = nxc_arena_array(nxc_settings_arena(s), n, sizeof *sources);
  record->blend = blend_of(s, n, weighed);
  record->blend_alpha =
      record->blend == NX_BLEND_DOCUMENTS ? nxc_number_or(s, NX_SETTING_DATA_BLEND_ALPHA, 1) : 0;
  double sum = sum_of_weights(s, weighed ? weights : NULL, n);
  for (size_t i = 0; i < n; i++) {
    double weight = weighed ? weights[i].number : 1;
    if (!(weight > 0)) continue;
    const nxc_recipe *recipe = nxc_recipe_read(s, paths[i].text, i);
    nxc_dataset_source *source = &sources[record->n_sources++];
    *source = (nxc_dataset_source){.prefix = recipe ? recipe->prefix : paths[i].text,
                                   .rejected = beside(s, of->rejected, i),
                                   .labels = beside(s, of->labels, i),
                                   .rejected_labels = beside(s, of->rejected_labels, i),
                                   .rewards = beside(s, of->rewards, i),
                                   .recipe = recipe,
                                   .record = *like};
    source->record.weight = record->blend == NX_BLEND_WEIGHTS ? weight / sum : 0;
  }
  return sources;
}

/* Its sampler shuffles, and the dataset is left as it is. */
static bool is_torchs(const nxc_settings *s, const char *order) {
  return nxc_flag(s, NX_SETTING_DATA_SHUFFLE) && nxc_is(s, NX_SETTING_DATA_ORDER, order);
}

/* An evaluation ends within an epoch, which may have no whole batch. */
static nx_walk walk_of(const nxc_settings *s, nx_dataset_role role) {
  bool trains = role == NX_DATASET_TRAIN, again = trains && nxc_is(s, NX_SETTING_DATA_WALK, "again");
  return is_torchs(s, "torch")                              ? NX_WALK_DISTRIBUTED
         : is_torchs(s, "torch_dealt")                      ? trains ? NX_WALK_DEALT : NX_WALK_STRAIGHT
         : nxc_is(s, NX_SETTING_DATA_WALK, "cyclic")        ? NX_WALK_CYCLIC
         : nxc_is(s, NX_SETTING_DATA_WALK, "cyclic_shards") ? NX_WALK_CYCLIC_SHARDS
         : again                                            ? NX_WALK_AGAIN
                                                            : NX_WALK_STRAIGHT;
}

static nxc_dataset make_set(const nxc_settings *s, const part *of, const char *name) {
  return (nxc_dataset){.name = name,
                       .record = {.role = of->role,
                                  .order = order_of(s),
                                  .blend = NX_BLEND_WEIGHTS,
                                  .walk = walk_of(s, of->role),
                                  .shuffle = nxc_flag(s, NX_SETTING_DATA_SHUFFLE) && !is_torchs(s, "torch") &&
                                             !is_torchs(s, "torch_dealt")}};
}

static void add_set(nxc_datasets *datasets, const nxc_dataset *set) {
  if (set->record.n_sources > 0) datasets->sets[datasets->n++] = *set;
}

/* Each source of a set as a set of its own. */
static void add_apart(nxc_datasets *datasets, nxc_arena *arena, const nxc_dataset *all) {
  for (uint32_t i = 0; i < all->record.n_sources; i++) {
    nxc_dataset set = *all;
    nxc_dataset_source *source = nxc_arena_array(arena, 1, sizeof *source);
    *source = all->sources[i];
    source->record.weight = 0;
    set.name = nxc_arena_printf(arena, "%s-%u", all->name, i);
    set.record.n_sources = 1, set.record.blend = NX_BLEND_SAMPLES, set.record.blend_alpha = 0;
    set.sources = source;
    add_set(datasets, &set);
  }
}

/* Made-up tokens: a third of the documents for each part. */
static nxc_datasets read_synthetic(const nxc_settings *s, nxc_datasets datasets) {
  nxc_dataset_source *sources = nxc_arena_array(nxc_settings_arena(s), NX_PARTS, sizeof *sources);
  for (uint32_t i = 0; i < NX_PARTS; i++) {
    nxc_dataset set = make_set(s, &parts[i], parts[i].name);
    sources[i] = (nxc_dataset_source){
        .prefix = "", .rejected = "", .labels = "", .rejected_labels = "", .rewards = "",
        .record = {.part = i, .split = NX_SPLIT_SUMS, .weight = 1, .shares = {1 / 3.0, 1 / 3.0, 1 / 3.0}}};
    set.record.n_sources = 1, set.sources = &sources[i];
    add_set(&datasets, &set);
  }
  return datasets;
}

nxc_datasets nxc_datasets_read(const nxc_settings *s) {
  size_t n_apart;
  nxc_arena *arena = nxc_settings_arena(s);
  list_or_none(s, NX_SETTING_DATA_VALIDATION_PATH, &n_apart);
  nxc_datasets datasets = {.sets = nxc_arena_array(arena, NX_PARTS + n_apart, sizeof *datasets.sets)};
  bool apart = nxc_settings_known(s, NX_SETTING_DATA_VALIDATION_APART) &&
               nxc_flag(s, NX_SETTING_DATA_VALIDATION_APART);
  if (nxc_settings_known(s, NX_SETTING_DATA_SYNTHETIC) && nxc_flag(s, NX_SETTING_DATA_SYNTHETIC))
    return read_synthetic(s, datasets);
  nx_source split = read_split(s);
  for (; split.part < NX_PARTS; split.part++) {
    part of = parts[split.part];
    nxc_dataset set = make_set(s, &of, of.name);
    bool own = split.part > 0 && nxc_has(s, of.path);
    bool held_out = split.part == 0 || split.shares[split.part] > 0 || (split.part == 1 && split.n_last > 0);
    if (!own && !held_out) continue;
    if (!own)
      of = (part){of.name,         of.role,           parts[0].path,           parts[0].weights,
                  parts[0].labels, parts[0].rejected, parts[0].rejected_labels,
                  parts[0].rewards};
    set.sources = read_sources(s, &of, own ? &undivided : &split, &set.record);
    if (own && apart && split.part == 1) add_apart(&datasets, arena, &set);
    else add_set(&datasets, &set);
  }
  return datasets;
}
