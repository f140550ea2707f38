/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/merge.h"
#include "schema/plan_check_record.h"

#include <math.h>

static bool fail(const nx_plan *plan, const void *record, nx_fault *fault, const char *what, uint32_t index,
                 const char *why) {
  uint64_t offset = (uint64_t)((const uint8_t *)record - plan->bytes);
  return nx_fault_set(fault, offset, "%s %u %s", what, index, why);
}

static bool is_one(double sum) {
  return fabs(sum - 1) < 1e-9;
}

/* Whether one before has its name, or trains as it does. */
static bool is_second(const nx_plan *plan, const nx_dataset *dataset) {
  bool trains = dataset->role == NX_DATASET_TRAIN;
  for (const nx_dataset *other = plan->datasets; other < dataset; other++)
    if (other->name == dataset->name || (trains && other->role == NX_DATASET_TRAIN)) return true;
  return false;
}

static bool check_kinds(const nx_plan *plan, const nx_dataset *dataset) {
  double alpha = dataset->blend_alpha;
  bool evened = dataset->blend == NX_BLEND_DOCUMENTS;
  bool packed = dataset->sampler == NX_SAMPLER_PACKED, pairs = dataset->sampler == NX_SAMPLER_PAIRS;
  bool by_document = dataset->sampler == NX_SAMPLER_DOCUMENT;
  uint32_t rule = dataset->long_samples;
  bool has_rule = rule >= NX_LONG_SAMPLES_FAIL && rule <= NX_LONG_SAMPLES_DROP;
  bool packs = dataset->packing >= NX_PACKING_IN_ORDER && dataset->packing <= NX_PACKING_DECREASING;
  return nx_is_string(plan, dataset->name) && dataset->shuffle <= 1 &&
         (packed ? packs : dataset->packing == 0 && dataset->packing_group == 0) &&
         (pairs ? has_rule : rule == 0 || (by_document && has_rule)) && dataset->walk <= NX_WALK_DEALT &&
         dataset->order >= NX_ORDER_EPOCHS && dataset->order <= NX_ORDER_NEOX &&
         dataset->role >= NX_DATASET_TRAIN && dataset->role <= NX_DATASET_TEST &&
         dataset->sampler >= NX_SAMPLER_STREAM && dataset->sampler <= NX_SAMPLER_PAIRS &&
         dataset->blend >= NX_BLEND_WEIGHTS && dataset->blend <= NX_BLEND_EPOCHS &&
         (evened ? alpha >= 0 && alpha <= NX_MAX_ALPHA : alpha == 0);
}

/* Those of other blends have no weights. */
static bool check_weights(const nx_plan *plan, const nx_dataset *dataset) {
  double sum = 0;
  bool weighed = dataset->blend == NX_BLEND_WEIGHTS;
  for (uint32_t i = 0; i < dataset->n_sources; i++) {
    double weight = plan->sources[dataset->first_source + i].weight;
    if (weighed ? !(weight > 0) : weight != 0) return false;
    sum += weight;
  }
  return !weighed || is_one(sum);
}

/* The sources of datasets stand one after another, and together are all. */
static bool check_dataset(const nx_plan *plan, uint32_t index, nx_fault *fault) {
  const nx_dataset *dataset = &plan->datasets[index];
  uint64_t first = index ? (uint64_t)dataset[-1].first_source + dataset[-1].n_sources : 0;
  uint64_t end = first + dataset->n_sources, n_sources = plan->n[NX_SECTION_SOURCES];
  bool last = index + 1 == plan->n[NX_SECTION_DATASETS];
  if (dataset->first_source != first || dataset->n_sources == 0 ||
      (last ? end != n_sources : end > n_sources))
    return fail(plan, dataset, fault, "dataset", index, "has not the sources that follow");
  if (!check_kinds(plan, dataset) || is_second(plan, dataset))
    return fail(plan, dataset, fault, "dataset", index, "is malformed");
  return check_weights(plan, dataset) ||
         fail(plan, dataset, fault, "dataset", index, "has sources whose weights are not 1 together");
}

static bool check_source(const nx_plan *plan, uint32_t index, nx_fault *fault) {
  const nx_source *source = &plan->sources[index];
  double sum = 0;
  for (int i = 0; i < NX_PARTS; i++) {
    if (!(source->shares[i] >= 0)) return fail(plan, source, fault, "source", index, "has a share below 0");
    sum += source->shares[i];
  }
  bool counted = source->n_last != 0;
  if (!nx_is_string(plan, source->rejected) || !nx_is_string(plan, source->labels) ||
      !nx_is_string(plan, source->rejected_labels) || !nx_is_string(plan, source->rewards))
    return fail(plan, source, fault, "source", index, "is malformed");
  if (!nx_is_string(plan, source->prefix) || source->part >= NX_PARTS || source->split < NX_SPLIT_SUMS ||
      source->split > NX_SPLIT_LAST || (counted && source->split != NX_SPLIT_LAST) || !is_one(sum))
    return fail(plan, source, fault, "source", index, "is malformed");
  return true;
}

static bool has_strings(const nx_plan *plan, const nx_recipe *recipe) {
  const uint32_t strings[] = {recipe->prefix, recipe->input,     recipe->field, recipe->labels,
                              recipe->part,   recipe->tokenizer, recipe->template, recipe->rejected,
                              recipe->reward};
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
    if (!nx_is_string(plan, strings[i])) return false;
  return true;
}

/* Whether each line of what a merge reads is a part of it. */
static bool merges_well(const nx_plan *plan, const nx_recipe *recipe) {
  nx_merge_part part;
  const char *text = nx_plan_string(plan, recipe->input);
  while (recipe->kind == NX_RECIPE_MERGE && nx_merge_next(&text, &part)) continue;
  return recipe->kind != NX_RECIPE_MERGE || *text == '\0';
}

static bool check_recipe(const nx_plan *plan, uint32_t index, nx_fault *fault) {
  const nx_recipe *recipe = &plan->recipes[index];
  const uint32_t flags = NX_RECIPE_APPEND_EOD | NX_RECIPE_CUT | NX_RECIPE_ALL_TOKENS | NX_RECIPE_KEEP_END |
                         NX_RECIPE_LAST_COUNTS | NX_RECIPE_WHOLE | NX_RECIPE_SHUFFLE_EACH |
                         NX_RECIPE_SHUFFLE_ALL;
  bool made_up = recipe->kind == NX_RECIPE_COUNTING;
  bool answers = recipe->kind == NX_RECIPE_DIALOGUES || recipe->kind == NX_RECIPE_COMPLETIONS;
  if (!has_strings(plan, recipe) || recipe->reserved != 0 ||
      (!answers && plan->strings[recipe->reward] != '\0') || recipe->kind < NX_RECIPE_TEXTS ||
      recipe->kind > NX_RECIPE_MERGE || !merges_well(plan, recipe) || (recipe->flags & ~flags) != 0 ||
      recipe->prompt_tokens > INT32_MAX || recipe->vocab == 0 || recipe->vocab > INT32_MAX ||
      recipe->tokens > INT32_MAX || recipe->records > INT64_MAX ||
      (made_up && (recipe->tokens == 0 || recipe->records == 0)) ||
      (recipe->pieces ? recipe->piece >= recipe->pieces || made_up : recipe->piece != 0) ||
      made_up != (plan->strings[recipe->input] == '\0'))
    return fail(plan, recipe, fault, "recipe", index, "is malformed");
  return index == 0 || recipe[-1].prefix < recipe->prefix ||
         fail(plan, recipe, fault, "recipe", index, "does not stand behind those of lesser prefixes");
}

bool nx_plan_check_datasets(const nx_plan *plan, nx_fault *fault) {
  uint32_t n_datasets = plan->n[NX_SECTION_DATASETS], n_sources = plan->n[NX_SECTION_SOURCES];
  if (n_datasets > NX_MAX_DATASETS || n_sources > NX_MAX_SOURCES || (n_datasets == 0 && n_sources > 0))
    return nx_fault_set(fault, 0, "the plan has %u datasets of %u sources: more than %d, or of %d, or none",
                        n_datasets, n_sources, NX_MAX_DATASETS, NX_MAX_SOURCES);
  for (uint32_t i = 0; i < n_sources; i++)
    if (!check_source(plan, i, fault)) return false;
  for (uint32_t i = 0; i < n_datasets; i++)
    if (!check_dataset(plan, i, fault)) return false;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RECIPES]; i++)
    if (!check_recipe(plan, i, fault)) return false;
  return true;
}
