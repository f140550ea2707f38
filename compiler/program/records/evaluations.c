/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/evaluations.h"


#include <string.h>

static bool is_named(const nxc_settings *s, const char *name) {
  size_t n;
  if (!nxc_has(s, NX_SETTING_EVALUATE_SETS)) return true;
  const nxc_value *names = nxc_list(s, NX_SETTING_EVALUATE_SETS, &n);
  for (size_t i = 0; i < n; i++)
    if (strcmp(names[i].text, name) == 0) return true;
  return false;
}

static uint32_t flags(const nxc_settings *s) {
  return nxc_flag(s, NX_SETTING_EVALUATE_REPEATS) ? NX_EVALUATION_REPEATS : 0;
}

static bool read_validation(const nxc_settings *s, const char *name, nx_evaluation *e) {
  e->batches = (uint64_t)nxc_int(s, NX_SETTING_EVALUATE_BATCHES);
  e->share = e->batches ? 0 : nxc_number(s, NX_SETTING_EVALUATE_SHARE);
  e->every = (uint64_t)nxc_int_or(s, NX_SETTING_EVALUATE_EVERY_STEPS, 0);
  if (e->every == 0 && nxc_has(s, NX_SETTING_EVALUATE_EVERY_EPOCHS))
    e->every_epochs = nxc_number(s, NX_SETTING_EVALUATE_EVERY_EPOCHS);
  e->first = (uint64_t)nxc_int(s, NX_SETTING_EVALUATE_FIRST_STEP);
  e->sanity_batches = nxc_int(s, NX_SETTING_EVALUATE_SANITY_BATCHES);
  e->flags = flags(s) | (nxc_flag(s, NX_SETTING_EVALUATE_AT_END) ? NX_EVALUATION_AT_END : 0);
  if (e->batches && nxc_flag(s, NX_SETTING_EVALUATE_CONTINUES)) e->flags |= NX_EVALUATION_CONTINUES;
  return (e->batches > 0 || e->share > 0) && is_named(s, name);
}

static bool read_test(const nxc_settings *s, nx_evaluation *e) {
  e->batches = (uint64_t)nxc_int(s, NX_SETTING_EVALUATE_TEST_BATCHES);
  e->flags = flags(s) | NX_EVALUATION_AT_END;
  return e->batches > 0;
}

nxc_evaluations nxc_evaluations_read(const nxc_settings *s, const nxc_datasets *datasets, uint64_t times) {
  nxc_evaluation *at = nxc_arena_array(nxc_settings_arena(s), datasets->n, sizeof *at);
  nxc_evaluations evaluations = {0, at};
  for (uint32_t i = 0; i < datasets->n; i++) {
    const nxc_dataset *set = &datasets->sets[i];
    nxc_evaluation *e = &at[evaluations.n];
    *e = (nxc_evaluation){.name = set->name, .record = {.dataset = i}};
    bool wanted = set->record.role == NX_DATASET_VALIDATION ? read_validation(s, set->name, &e->record)
                                                            : set->record.role == NX_DATASET_TEST &&
                                                                  read_test(s, &e->record);
    e->record.batches *= times;
    if (e->record.sanity_batches > 0) e->record.sanity_batches *= (int64_t)times;
    evaluations.n += wanted;
  }
  return evaluations;
}

double nxc_evaluated_batches(const nx_evaluation *e, uint64_t n_steps) {
  uint64_t left_out = e->every && e->first ? (e->first - 1) / e->every : 0;
  uint64_t n = e->every ? n_steps / e->every : 0;
  n = n > left_out ? n - left_out : 0;
  return (double)(n + (e->flags & NX_EVALUATION_AT_END ? 1 : 0)) * (double)e->batches;
}

bool nxc_best_number(const char *metric, uint32_t *rule) {
  static const struct {
    const char *metric;
    uint32_t rule;
  } rows[] = {{"train", 0},
              {"oldest", NX_RUN_BEST_BY_STEP},
              {"lr", NX_RUN_BEST_BY_RATE},
              {"grad_norm", NX_RUN_BEST_BY_NORM}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(metric, rows[i].metric) != 0) continue;
    *rule = rows[i].rule;
    return true;
  }
  return false;
}

uint32_t nxc_evaluation_named(const nxc_evaluations *evaluations, const char *name) {
  for (uint32_t i = 0; i < evaluations->n; i++)
    if (strcmp(evaluations->at[i].name, name) == 0) return i;
  return NX_NONE;
}

static bool complain(const nxc_settings *s, nxc_sink *sink, nxc_setting_id at, const char *text,
                     const char *name) {
  nxc_report(sink, "NX3024", NXC_SEVERITY_ERROR, nxc_settings_span(s, at),
             "name what there is, or leave it out", "%s: %s%s",
             nxc_setting_name_in_dialect(s, at), text, name);
  return false;
}

bool nxc_evaluations_judge(const nxc_settings *s, nxc_sink *sink, const nxc_evaluations *evaluations) {
  size_t n = 0;
  for (uint32_t i = 0; i < evaluations->n; i++)
    if (evaluations->at[i].record.batches > NX_MAX_BATCHES)
      return complain(s, sink, NX_SETTING_EVALUATE_BATCH, "more batches than a plan can hold make up one of ",
                      evaluations->at[i].name);
  bool asked = nxc_int(s, NX_SETTING_EVALUATE_BATCHES) > 0 || nxc_number(s, NX_SETTING_EVALUATE_SHARE) > 0;
  bool named = asked && nxc_has(s, NX_SETTING_EVALUATE_SETS), good = true;
  const nxc_value *names = named ? nxc_list(s, NX_SETTING_EVALUATE_SETS, &n) : NULL;
  for (size_t i = 0; i < n; i++)
    if (nxc_evaluation_named(evaluations, names[i].text) == NX_NONE)
      good = complain(s, sink, NX_SETTING_EVALUATE_SETS, "there is no validation set ", names[i].text);
  if (nxc_flag(s, NX_SETTING_EVALUATE_ONLY) && evaluations->n == 0)
    good = complain(s, sink, NX_SETTING_EVALUATE_ONLY, "there is nothing to evaluate", "");
  if (nxc_int(s, NX_SETTING_CHECKPOINT_BEST) == 0 || evaluations->n == 0) return good;
  const char *metric = nxc_text(s, NX_SETTING_CHECKPOINT_BEST_METRIC);
  uint32_t rule;
  if (!nxc_best_number(metric, &rule) && nxc_evaluation_named(evaluations, metric) == NX_NONE)
    good = complain(s, sink, NX_SETTING_CHECKPOINT_BEST_METRIC, "no set is evaluated that has the name ",
                    metric);
  return good;
}
