/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check_record.h"

#include <float.h>
#include <math.h>

bool nx_check_evaluation(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_evaluation *evaluation = &plan->evaluations[index];
  bool counted =
      evaluation->batches > 0 ? evaluation->share == 0 : evaluation->share > 0 && evaluation->share <= 1;
  if (!nx_is_provenance_text(plan, evaluation->name) || evaluation->flags > NX_EVALUATION_FLAGS ||
      evaluation->reserved != 0 || !nx_is_index(plan, evaluation->dataset, NX_SECTION_DATASETS) || !counted ||
      evaluation->sanity_batches < -1 || evaluation->batches > NX_MAX_BATCHES ||
      !(evaluation->every_epochs >= 0 && evaluation->every_epochs <= DBL_MAX))
    return nx_flaw(check, evaluation, "evaluation %u is malformed", index);
  if (nx_plan_schedule(plan, NX_SCHEDULE_EVALUATE) == NULL)
    return nx_flaw(check, evaluation, "evaluation %u has no schedule", index);
  return true;
}

bool nx_check_measure(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_measure *measure = &plan->measures[index];
  const nx_value *value =
      nx_is_index(plan, measure->value, NX_SECTION_VALUES) ? &plan->values[measure->value] : NULL;
  if (index >= NX_MAX_MEASURES || !nx_is_string(plan, measure->name) || measure->flags > NX_MEASURE_FLAGS ||
      !isfinite(measure->factor) || !isfinite(measure->offset) || value == NULL || value->dtype != NX_f64 ||
      value->arena != NX_ARENA_scalar || value->n_dims != 1 || measure->element >= value->dims[0])
    return nx_flaw(check, measure, "measure %u is malformed", index);
  return true;
}

bool nx_check_extra_save(const nx_checker *check, uint32_t index) {
  const uint64_t *step = &check->plan->extra_saves[index];
  if (index > 0 && step[-1] >= *step)
    return nx_flaw(check, step, "the extra steps of checkpoints are out of order");
  return true;
}

bool nx_check_skipped(const nx_checker *check, uint32_t index) {
  const uint64_t *step = &check->plan->skipped[index];
  if (*step == 0 || (index > 0 && step[-1] >= *step))
    return nx_flaw(check, step, "the steps that are left out are out of order");
  return true;
}

bool nx_check_setting(const nx_checker *check, uint32_t index) {
  const nx_setting_record *setting = &check->plan->settings[index];
  if (!nx_is_provenance_text(check->plan, setting->path) ||
      !nx_is_provenance_text(check->plan, setting->value) || setting->bound > 1)
    return nx_flaw(check, setting, "setting %u is malformed", index);
  return true;
}

bool nx_check_provenance(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_provenance *from = &plan->provenances[index];
  if (!nx_is_index(plan, from->setting, NX_SECTION_SETTINGS) || !nx_is_provenance_text(plan, from->kind) ||
      !nx_is_provenance_text(plan, from->file) || !nx_is_provenance_text(plan, from->option))
    return nx_flaw(check, from, "provenance %u is malformed", index);
  return true;
}

static bool has_texts(const nx_plan *plan, const uint32_t *texts, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!nx_is_provenance_text(plan, texts[i])) return false;
  return true;
}

static bool has_wandb_names(const nx_plan *plan) {
  const nx_run_names *names = plan->run_names;
  const uint32_t texts[] = {names->wandb,      names->wandb_project, names->wandb_entity,
                            names->wandb_name, names->wandb_group,   names->wandb_tags};
  return has_texts(plan, texts, sizeof texts / sizeof *texts) && names->wandb_every > 0;
}

static bool has_tokenizer_names(const nx_plan *plan) {
  const nx_run_names *names = plan->run_names;
  const uint32_t texts[] = {names->tokenizer, names->tokenizer_merges, names->tokenizer_pattern,
                            names->tokenizer_special};
  return has_texts(plan, texts, sizeof texts / sizeof *texts);
}

bool nx_check_run_counts(const nx_checker *check) {
  const nx_plan *plan = check->plan;
  const nx_run *run = plan->run;
  if (plan->n[NX_SECTION_RUN] != 1 || plan->n[NX_SECTION_RUN_NAMES] != 1)
    return nx_flaw(check, run, "a plan has one run");
  if (run->n_ranks == 0 || run->n_ranks > NX_MAX_RANKS || run->n_threads > NX_MAX_THREADS ||
      run->n_hosts == 0 || run->n_ranks % run->n_hosts != 0 || run->n_threads == 0 || run->n_slots == 0 ||
      run->n_slots > plan->n[NX_SECTION_ITEMS] || run->n_micro_batches == 0 || run->micro_batch == 0 ||
      run->sequence == 0 || run->sequence > INT32_MAX || run->data_size == 0 || run->n_steps == 0 ||
      run->stochastic > 1 || run->pair_atoms >= (UINT64_C(1) << plan->n[NX_SECTION_ATOMS]) ||
      run->counts_voters > (run->gradient_factor != NX_NONE) ||
      (run->seen_late > 0 && run->seen == NX_NONE) || !nx_is_string(plan, run->tensor_parts) ||
      !nx_is_string(plan, run->init_from))
    return nx_flaw(check, run, "the run is malformed");
  if (!nx_target_find(run->target))
    return nx_flaw(check, run,
                   "target %u of the run is not known here, where run.target may be%s", run->target,
                   nx_target_names);
  if (plan->n[NX_SECTION_ATOMS] == 0 && run->n_ranks != 1)
    return nx_flaw(check, run, "the run has %u ranks and no mesh", run->n_ranks);
  if ((uint64_t)run->global_batch != (uint64_t)run->micro_batch * run->n_micro_batches * run->data_size)
    return nx_flaw(check, run, "the run's batch sizes contradict each other");
  if (run->tokens_per_step != (uint64_t)run->global_batch * run->sequence)
    return nx_flaw(check, run, "a step has another number of tokens than its sequences");
  const nx_run_names *names = plan->run_names;
  if (!nx_is_provenance_text(plan, names->name) || !nx_is_provenance_text(plan, names->directory) ||
      names->log_every == 0 || names->resume > 1 || !(names->deadline_s > 0) ||
      !isfinite(names->deadline_s) || !nx_is_provenance_text(plan, names->tensorboard) ||
      names->tensorboard_every == 0 || names->tensorboard_shows > NX_SHOWS_ALL ||
      names->rules > NX_RUN_RULES || names->best < -1 ||
      !nx_is_index_or_none(plan, names->best_evaluation, NX_SECTION_EVALUATIONS) ||
      !nx_is_provenance_text(plan, names->load) || names->load_weights > 1 || names->load_required > 1 ||
      names->schedule > NX_SCHEDULE_OF_CHECKPOINT || names->save_optimizer > 1 ||
      !(names->stop_after_s >= 0) || !isfinite(names->stop_after_s) ||
      !nx_is_provenance_text(plan, names->profile_ranks) ||
      !nx_is_provenance_text(plan, names->profile_directory) || !has_tokenizer_names(plan) ||
      names->load_states > 1 || names->profile_first > names->profile_last ||
      (names->profile_first == 0) != (names->profile_last == 0))
    return nx_flaw(check, names, "the run's names are malformed");
  if (!(names->save_after_s >= 0) || !isfinite(names->save_after_s) || !(names->save_epochs >= 0) ||
      !isfinite(names->save_epochs) || !nx_is_provenance_text(plan, names->temporary) ||
      !nx_is_provenance_text(plan, names->link_name) || !nx_is_provenance_text(plan, names->checkpoints) ||
      names->strictness >= NX_STRICT_END ||
      !(names->peak_flops >= 0) || !isfinite(names->peak_flops) || names->timers > 2 ||
      names->timers_over >= NX_TIMERS_END || !has_wandb_names(plan))
    return nx_flaw(check, names, "what the run writes is malformed");
  return true;
}

static bool check_rank(const nx_checker *check, uint32_t constant, uint32_t size, const char *axis) {
  const nx_plan *plan = check->plan;
  int64_t least, greatest;
  if (!nx_is_index(plan, constant, NX_SECTION_CONSTANTS))
    return nx_flaw(check, plan->run, "the run names no %s rank", axis);
  nx_constant_range(plan, constant, &least, &greatest);
  if (least < 0 || greatest >= size)
    return nx_flaw(check, plan->run, "the %s rank is not below %u", axis, size);
  return true;
}

/* Of a stream a token says what is not predicted, and the rest unless its index does. */
static bool has_document_ends(const nx_plan *plan) {
  const nx_run *run = plan->run;
  bool by_token = run->documents != 0 && (run->documents & NX_DOCUMENTS_LOSS || !(run->documents & NX_DOCUMENTS_INDEX));
  if (run->documents == NX_DOCUMENTS_INDEX) return false;
  if (run->end_of_document != NX_NONE) return run->documents != 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_DATASETS]; i++)
    if (by_token && plan->datasets[i].sampler == NX_SAMPLER_STREAM) return false;
  return run->documents == 0 || plan->n[NX_SECTION_DATASETS] > 0;
}

/* Sequences are cut into whole pieces, two for each ring rank. */
static bool check_sequence(const nx_checker *check) {
  const nx_run *run = check->plan->run;
  uint64_t n_parts = (uint64_t)run->ring_size * run->ulysses_size;
  if (n_parts == 0 || run->sequence % n_parts != 0 ||
      (run->ring_size > 1 && run->sequence % (2 * (uint64_t)run->ring_size) != 0))
    return nx_flaw(check, run, "%llu ranks do not divide a sequence of %u tokens",
                   (unsigned long long)n_parts, run->sequence);
  if (run->documents >= 2 * NX_DOCUMENTS_INDEX ||
      !nx_is_string(check->plan, run->model_config) || !nx_is_string(check->plan, run->adapter_config) ||
      !nx_is_string(check->plan, run->adapter_from) || run->save_base > 1 ||
      !has_document_ends(check->plan) || run->loss_mean > NX_MEAN_STEP ||
      (run->loss_mean == NX_MEAN_STEP && run->weights == NX_NONE))
    return nx_flaw(check, run, "the run's documents are malformed");
  return true;
}

/* What adapters add is a number, and goes to weights that checkpoints have. */
static bool check_merging(const nx_checker *check) {
  const nx_run *run = check->plan->run;
  bool good = isfinite(run->merge_scale) && (run->merge_every == 0 || run->save_base == 1) &&
              (run->updates == NX_NONE || run->merge_every > 0 || check->plan->run_names->load_states == 0);
  return good || nx_flaw(check, run, "the run's adapters are merged in a way that is malformed");
}

static bool check_loss_scale(const nx_checker *check) {
  const nx_run *run = check->plan->run;
  const uint32_t rules =
      NX_LOSS_SCALE_DYNAMIC | NX_LOSS_SCALE_RENEWS | NX_LOSS_SCALE_ENDS | NX_LOSS_SCALE_PLAIN;
  bool used = run->loss_scale != NX_NONE;
  if ((run->loss_scale_rules & ~rules) != 0 ||
      (used &&
        !(run->loss_scale_initial > 0 && run->loss_scale_initial <= DBL_MAX && run->loss_scale_least >= 0)))
    return nx_flaw(check, run, "the run's loss scale is malformed");
  return true;
}

/* A metric is followed by a count of reductions, which the host writes. */
static bool check_plateau(const nx_checker *check) {
  const nx_plan *plan = check->plan;
  const nx_plateau *plateau = &plan->run->plateau;
  if (plan->run->reductions == NX_NONE) return true;
  if (!(plateau->factor > 0 && plateau->factor <= 1) || !(plateau->least >= 0 && plateau->least <= DBL_MAX) ||
      !(plateau->threshold >= 0 && plateau->threshold <= DBL_MAX) || plateau->rules > NX_PLATEAU_RULES ||
      !(plateau->least_change >= 0 && plateau->least_change <= DBL_MAX) ||
      !nx_is_index_or_none(plan, plateau->evaluation, NX_SECTION_EVALUATIONS))
    return nx_flaw(check, plan->run, "the run's plateau is malformed");
  return true;
}

/* Both have the shape of the labels, as often as there are later ones. */
static bool check_later(const nx_checker *check, int64_t batch, int64_t sequence) {
  const nx_plan *plan = check->plan;
  const nx_run *run = plan->run;
  const uint32_t values[] = {run->later_labels, run->later_weights};
  const nx_dtype types[] = {NX_i32, NX_f32};
  bool used = run->later_labels != NX_NONE;
  if (used != (run->later_weights != NX_NONE) || !(run->later_factor >= 0) || !isfinite(run->later_factor) ||
      (!used && run->later_factor != 0))
    return nx_flaw(check, run, "the run's later labels are malformed");
  for (int i = 0; used && i < 2; i++) {
    if (!nx_is_index(plan, values[i], NX_SECTION_VALUES))
      return nx_flaw(check, run, "the run names a value that does not exist");
    const nx_value *value = &plan->values[values[i]];
    if (value->dtype != types[i] || value->arena != NX_ARENA_input || value->n_dims != 3 ||
        value->dims[0] != plan->values[run->later_labels].dims[0] || value->dims[0] >= run->sequence ||
        value->dims[1] != batch || value->dims[2] != sequence)
      return nx_flaw(check, value, "a value that the host writes has the wrong shape");
  }
  return true;
}

/* What an objective reads its samples by, where it is particular. */
static bool is_read_by(const nx_objective_row *objective, uint32_t sampler) {
  if (objective->has_rewards) return sampler == NX_SAMPLER_DOCUMENT;
  return (sampler == NX_SAMPLER_PAIRS) == (objective->rows == 2);
}

static bool check_rewards(const nx_checker *check, bool wanted) {
  const nx_plan *plan = check->plan;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SOURCES]; i++)
    if (!nx_is_string(plan, plan->sources[i].rewards) ||
        (!wanted && plan->strings[plan->sources[i].rewards] != '\0'))
      return nx_flaw(check, &plan->sources[i], "source %u has rewards, which nothing reads", i);
  return true;
}

/* All that is read is pairs, or nothing is; both rows of a pair are in one micro-batch. */
static bool check_objective(const nx_checker *check) {
  const nx_plan *plan = check->plan;
  const nx_run *run = plan->run;
  const nx_objective_row *is = nx_objective_find(run->objective);
  bool compares = run->objective != NX_OBJECTIVE_TOKENS, refers = run->reference != NX_NONE;
  if (is == NULL || (refers && !is->may_refer) || (!refers && is->must_refer) ||
      (refers && nx_plan_schedule(plan, NX_SCHEDULE_EVALUATE) == NULL) ||
      (run->rewards != NX_NONE) != is->has_rewards || (run->sequence_sums != NX_NONE) != compares ||
      (run->metrics != NX_NONE) != compares || (compares && run->weights == NX_NONE) ||
      ((is->rows == 2 || is->even) && run->micro_batch % 2 != 0))
    return nx_flaw(check, run, "the run's objective is malformed");
  for (uint32_t i = 0; i < plan->n[NX_SECTION_DATASETS]; i++)
    if (!is_read_by(is, plan->datasets[i].sampler))
      return nx_flaw(check, &plan->datasets[i], "dataset %u is not what the objective reads", i);
  return check_rewards(check, is->has_rewards);
}

bool nx_check_run_values(const nx_checker *check) {
  const nx_plan *plan = check->plan;
  const nx_run *run = plan->run;
  if (!check_sequence(check) || !check_loss_scale(check) || !check_objective(check) ||
      !check_merging(check) || !check_plateau(check))
    return false;
  int64_t batch = run->micro_batch, part = run->sequence / run->ring_size,
          sequence = part / run->ulysses_size;
  const struct {
    uint32_t value;
    nx_dtype dtype;
    nx_arena_kind arena;
    int64_t rows, columns;
    bool optional;
  } wanted[] = {
      {run->tokens, NX_i32, NX_ARENA_input, batch, sequence},
      {run->labels, NX_i32, NX_ARENA_input, batch, sequence},
      {run->positions, NX_i32, NX_ARENA_input, batch, sequence},
      {run->samples, NX_i64, NX_ARENA_input, batch, 1},
      {run->step, NX_i64, NX_ARENA_input, 1, 1},
      {run->loss, NX_f64, NX_ARENA_scalar, 1, 1},
      {run->loss_total, NX_f64, NX_ARENA_scalar, 1, 1},
      {run->grad_norm, NX_f64, NX_ARENA_scalar, 1, 1},
      {run->lr, NX_f64, NX_ARENA_scalar, 1, 1},
      {run->places, NX_i32, NX_ARENA_input, run->ring_size, part, true},
      {run->starts, NX_i32, NX_ARENA_input, batch, part, true},
      {run->weights, NX_f32, NX_ARENA_input, batch, sequence, true},
      {run->loss_scale, NX_f64, NX_ARENA_input, 1, 1, true},
      {run->gradient_factor, NX_f64, NX_ARENA_input, 1, 1, true},
      {run->seen, NX_i64, NX_ARENA_input, 1, 1, true},
      {run->reference, NX_f64, NX_ARENA_input, batch, 1, true},
      {run->sequence_sums, NX_f64, NX_ARENA_scalar, batch, 1, true},
      {run->rewards, NX_f64, NX_ARENA_input, batch, 2, true},
      {run->metrics, NX_f64, NX_ARENA_scalar, NX_N_ANSWER_METRICS, 1, true},
      {run->updates, NX_i64, NX_ARENA_input, 1, 1, true},
      {run->reductions, NX_i64, NX_ARENA_input, 1, 1, true},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    if (wanted[i].optional && wanted[i].value == NX_NONE) continue;
    if (!nx_is_index(plan, wanted[i].value, NX_SECTION_VALUES))
      return nx_flaw(check, run, "the run names a value that does not exist");
    const nx_value *value = &plan->values[wanted[i].value];
    if (value->dtype != wanted[i].dtype || value->arena != wanted[i].arena ||
        value->dims[0] != wanted[i].rows || value->dims[1] != wanted[i].columns || value->n_dims > 2)
      return nx_flaw(check, value, "a value that the host reads or writes has the wrong shape");
  }
  uint32_t n_slots = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_CHUNKS]; i++)
    if (plan->chunks[i].n_slots > n_slots) n_slots = plan->chunks[i].n_slots;
  if (n_slots != run->n_slots) return nx_flaw(check, run, "no chunk has as many slots as the run");
  return check_later(check, batch, sequence) && check_rank(check, run->data_rank, run->data_size, "data") &&
         check_rank(check, run->ring_rank, run->ring_size, "ring") &&
         check_rank(check, run->ulysses_rank, run->ulysses_size, "ulysses");
}
