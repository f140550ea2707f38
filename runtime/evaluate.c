/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/evaluate.h"

#include "runtime/files/fault.h"
#include "runtime/world/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- when, and how much ---- */

uint64_t nxr_steps_of_epochs(double epochs, const nxr_data *data, const nx_run *run) {
  uint32_t trained = nxr_data_trained(data);
  double n_samples = trained == NX_NONE ? 0 : (double)nxr_data_samples(data, trained);
  double steps = floor(epochs * n_samples / run->global_batch);
  return steps < 1 ? 1 : steps < 1e18 ? (uint64_t)steps : (uint64_t)1e18;
}

static bool repeats(const nx_evaluation *record) {
  return record->flags & (NX_EVALUATION_REPEATS | NX_EVALUATION_CONTINUES);
}

static uint64_t count_batches(const nx_evaluation *record, uint64_t n_samples, uint64_t global_batch) {
  uint64_t all = (n_samples + global_batch - 1) / global_batch;
  if (all == 0) return 0;
  if (record->batches > 0)
    return record->batches < all || repeats(record) ? record->batches : all;
  uint64_t some = (uint64_t)(record->share * (double)all);
  return some > 0 ? some : 1;
}

static void open_evaluation(nxr_evaluations *evaluations, uint32_t index) {
  const nx_plan *plan = evaluations->exec->machine->plan;
  const nx_evaluation *record = &plan->evaluations[index];
  nxr_evaluation *e = &evaluations->at[index];
  uint64_t n_samples = nxr_data_samples(evaluations->data, record->dataset);
  *e = (nxr_evaluation){.record = record, .name = nx_plan_text(plan, record->name), .every = record->every,
                        .n_batches = count_batches(record, n_samples, nx_plan_evaluated_batch(plan)),
                        .evaluated = UINT64_MAX,
                        .bytes_per_token = nxr_data_bytes_per_token(evaluations->data, record->dataset)};
  if (record->every_epochs > 0 && nxr_data_trained(evaluations->data) != NX_NONE)
    e->every = nxr_steps_of_epochs(record->every_epochs, evaluations->data, plan->run);
  nxr_data_limit(evaluations->data, record->dataset, repeats(record) ? UINT64_MAX : n_samples);
  if (e->n_batches == 0 && evaluations->metrics)
    nxr_print(stderr, "nxrun: the set %s has not one sample, and is not evaluated (data.split)\n", e->name);
}

bool nxr_evaluations_open(nxr_evaluations *evaluations, nxr_fault *fault) {
  evaluations->n = evaluations->exec->machine->plan->n[NX_SECTION_EVALUATIONS];
  evaluations->at = calloc((size_t)evaluations->n + 1, sizeof *evaluations->at);
  if (evaluations->at == NULL) return nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; i < evaluations->n; i++) open_evaluation(evaluations, i);
  const nx_run *run = evaluations->exec->machine->plan->run;
  const nxr_evaluation *followed = nxr_plateau_is_used(run) && run->plateau.evaluation != NX_NONE
                                       ? &evaluations->at[run->plateau.evaluation]
                                       : NULL;
  if (followed && followed->n_batches == 0)
    return nxr_fault_set(fault, "the learning rate follows the loss of the set %s, which has not one sample",
                         followed->name);
  return true;
}

void nxr_evaluations_close(nxr_evaluations *evaluations) {
  free(evaluations->at);
  evaluations->at = NULL, evaluations->n = 0;
}

/* How many evaluations come after steps 1 … `step`. */
static uint64_t count_until(const nxr_evaluation *e, uint64_t step) {
  uint64_t left_out = e->every && e->record->first ? (e->record->first - 1) / e->every : 0;
  uint64_t n = e->every ? step / e->every : 0;
  return n > left_out ? n - left_out : 0;
}

static bool is_due(const nxr_evaluation *e, uint64_t step) {
  return step > 0 && count_until(e, step) > count_until(e, step - 1);
}

/* ---- one evaluation ---- */

static uint64_t samples_of(const nxr_evaluations *evaluations, const nxr_evaluation *e, uint64_t batch) {
  uint64_t global_batch = nx_plan_evaluated_batch(evaluations->exec->machine->plan);
  uint64_t n_samples = nxr_data_samples(evaluations->data, e->record->dataset), first = batch * global_batch;
  if (repeats(e->record)) return global_batch;
  return first >= n_samples ? 0 : n_samples - first < global_batch ? n_samples - first : global_batch;
}

/* A loss of answers is no logarithm of a perplexity. */
static void report(const nxr_evaluations *evaluations, const nxr_evaluation *e, uint64_t n_batches,
                   uint64_t n_tokens, const double *answers, double seconds) {
  const nx_plan *plan = evaluations->exec->machine->plan;
  if (evaluations->metrics == NULL) return;
  nxr_metrics_row row = {.step = e->evaluated, .set = e->name, .seconds = seconds};
  nxr_metrics_add(&row, "loss", e->loss);
  if (plan->run->objective == NX_OBJECTIVE_TOKENS) {
    nxr_metrics_add(&row, "perplexity", exp(e->loss));
    if (e->bytes_per_token > 0) nxr_metrics_add(&row, "bits_per_byte", e->loss / M_LN2 / e->bytes_per_token);
  }
  nxr_metrics_add_answers(&row, plan->run->objective, answers, n_tokens / plan->run->sequence);
  nxr_metrics_add(&row, "batches", (double)n_batches);
  nxr_metrics_add(&row, "tokens_per_s", (double)n_tokens / seconds);
  nxr_metrics_report(evaluations->metrics, &row);
}

/* Batches [first, first + n) of the set, after so many steps of training. */
static bool evaluate(nxr_evaluations *evaluations, nxr_evaluation *e, uint64_t first, uint64_t n,
                     uint64_t step, nxr_fault *fault) {
  double start = nxr_clock_s(), sum = 0, answers[NX_N_ANSWER_METRICS] = {0};
  nxr_evaluated one = {0};
  uint64_t n_tokens = 0, sequence = evaluations->exec->machine->plan->run->sequence;
  for (uint64_t batch = first; batch < first + n; batch++) {
    evaluations->given_up = evaluations->stops(evaluations->context);
    if (evaluations->given_up) return true;
    if (!nxr_exec_evaluate(evaluations->exec, e->record->dataset, batch, step, &one, fault)) return false;
    sum += one.loss;
    for (int i = 0; i < NX_N_ANSWER_METRICS; i++) answers[i] += one.answers[i];
    n_tokens += samples_of(evaluations, e, batch) * sequence;
  }
  if (n_tokens == 0) return true;
  e->evaluated = step, e->loss = sum / (double)n_tokens;
  report(evaluations, e, n, n_tokens, answers, nxr_clock_s() - start);
  return true;
}

/* Where the one after so many steps begins. */
static uint64_t first_batch(const nxr_evaluation *e, uint64_t n_before) {
  return e->record->flags & NX_EVALUATION_CONTINUES ? n_before * e->n_batches : 0;
}

bool nxr_evaluate_step(nxr_evaluations *evaluations, uint64_t step, nxr_fault *fault) {
  for (uint32_t i = 0; i < evaluations->n; i++) {
    nxr_evaluation *e = &evaluations->at[i];
    if (!is_due(e, step)) continue;
    uint64_t first = first_batch(e, count_until(e, step - 1));
    if (!evaluate(evaluations, e, first, e->n_batches, step, fault)) return false;
  }
  return true;
}

bool nxr_evaluate_sanity(nxr_evaluations *evaluations, uint64_t step, nxr_fault *fault) {
  for (uint32_t i = 0; i < evaluations->n; i++) {
    nxr_evaluation *e = &evaluations->at[i];
    uint64_t n = (uint64_t)e->record->sanity_batches;
    if (n > e->n_batches) n = e->n_batches; /* -1 too */
    if (n > 0 && !evaluate(evaluations, e, 0, n, step, fault)) return false;
  }
  return true;
}

/* One that reads the same batches again would find the same. */
bool nxr_evaluate_end(nxr_evaluations *evaluations, uint64_t step, nxr_fault *fault) {
  for (uint32_t i = 0; i < evaluations->n; i++) {
    nxr_evaluation *e = &evaluations->at[i];
    bool again = e->evaluated != step || e->record->flags & NX_EVALUATION_CONTINUES;
    if (!(e->record->flags & NX_EVALUATION_AT_END) || !again) continue;
    if (!evaluate(evaluations, e, first_batch(e, count_until(e, step)), e->n_batches, step, fault))
      return false;
  }
  return true;
}

bool nxr_evaluate_all(nxr_evaluations *evaluations, uint64_t step, nxr_fault *fault) {
  for (uint32_t i = 0; i < evaluations->n; i++)
    if (!evaluate(evaluations, &evaluations->at[i], 0, evaluations->at[i].n_batches, step, fault))
      return false;
  return true;
}
