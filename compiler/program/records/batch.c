/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/batch.h"


#include <errno.h>
#include <stdlib.h>

static const char *read_count(const char *text, int64_t least, int64_t *number) {
  char *end;
  errno = 0;
  *number = strtoll(text, &end, 10);
  return end == text || errno != 0 || *number < least ? NULL : end;
}

/* One entry of batch.growth, "BATCH@SAMPLES"; what is wrong with it, or NULL. */
static const char *read_growth(const char *text, int64_t *samples, int64_t *batch) {
  const char *behind = read_count(text, 1, batch);
  if (behind && *behind == '@') behind = read_count(behind + 1, 0, samples);
  else behind = NULL;
  return behind && *behind == '\0' ? NULL : "an entry is BATCH@SAMPLES, as 64@100000";
}

const char *nxc_growth_fault(const nxc_settings *s, const nxc_batch *of, const nxc_layout *layout) {
  size_t n;
  const nxc_value *texts = nxc_list(s, NX_SETTING_BATCH_GROWTH, &n);
  int64_t last_samples = -1, last_batch = 0;
  for (size_t i = 0; i < n; i++) {
    int64_t samples, batch;
    const char *wrong = read_growth(texts[i].text, &samples, &batch);
    if (wrong) return wrong;
    samples *= of->rows, batch *= of->rows;
    if (i == 0 && samples != 0) return "the first size holds from 0 sequences on";
    if (samples <= last_samples) return "numbers of sequences ascend from entry to entry";
    if (batch <= last_batch) return "nxrun's batches grow from entry to entry";
    if (layout->data && batch % (of->micro * layout->data) != 0)
      return "each size is a multiple of the micro-batch times the data-parallel ranks";
    last_samples = samples, last_batch = batch;
  }
  return n == 0 || last_batch == of->global ? NULL : "the last size is batch.global";
}

/* The phases of the steps that there are; entries that are no sizes are left to nxc_growth_fault. */
static void read_phases(const nxc_settings *s, const nxc_layout *layout, nxc_batch *of) {
  size_t n;
  const nxc_value *texts = nxc_list(s, NX_SETTING_BATCH_GROWTH, &n);
  nxc_batch_phase *phases = nxc_arena_array(nxc_settings_arena(s), n + 1, sizeof *phases);
  int64_t step = 0, seen = 0, samples, batch, max_steps = nxc_int_or(s, NX_SETTING_SCHEDULE_MAX_STEPS, 0);
  if (layout->data == 0 || nxc_growth_fault(s, of, layout) != NULL) return;
  for (size_t i = 0; i < n && step < max_steps; i++) {
    read_growth(texts[i].text, &samples, &batch);
    samples *= of->rows, batch *= of->rows;
    nxc_batch_phase *last = of->n_phases > 0 ? &phases[of->n_phases - 1] : NULL;
    int64_t steps = last && samples > seen ? (samples - seen + last->global - 1) / last->global : 0;
    step += steps, seen += last ? steps * last->global : 0;
    if (last && steps == 0) of->n_phases--; /* the batches before it came past this number already */
    if (step < max_steps)
      phases[of->n_phases++] = (nxc_batch_phase){step, seen, batch, batch / (of->micro * layout->data)};
  }
  of->phases = phases;
}

/* Batches of evaluations are cut so that no more micro-batches are under way than in a step: their loss is
 * that of all their tokens. */
static void read_evaluated(const nxc_settings *s, const nxc_layout *layout, nxc_batch *of) {
  int64_t wanted = of->rows * nxc_int_or(s, NX_SETTING_EVALUATE_BATCH, 0);
  int64_t n = layout->data ? wanted / (of->micro * layout->data) : 0;
  of->n_evaluated = n > 0 && n < of->n_micro ? n : of->n_micro;
  while (n > 0 && n % of->n_evaluated != 0) of->n_evaluated--;
  of->times_evaluated = n > 0 ? n / of->n_evaluated : 1;
}

nxc_batch nxc_batch_read(const nxc_settings *s, const nxc_layout *layout, int64_t rows) {
  nxc_batch batch = {.rows = rows, .micro = rows * nxc_int(s, NX_SETTING_BATCH_MICRO),
                     .global = rows * nxc_int(s, NX_SETTING_BATCH_GLOBAL)};
  if (layout->data) batch.n_micro = batch.global / (batch.micro * layout->data);
  read_evaluated(s, layout, &batch);
  read_phases(s, layout, &batch);
  return batch;
}

static nxc_batch_phase phase_at(const nxc_batch *batch, size_t index) {
  return batch->n_phases > 0 ? batch->phases[index] : (nxc_batch_phase){.global = batch->global};
}

int64_t nxc_batch_samples_before(const nxc_batch *batch, int64_t step) {
  nxc_batch_phase of = phase_at(batch, 0);
  for (size_t i = 1; i < batch->n_phases && batch->phases[i].first_step <= step; i++) of = batch->phases[i];
  int64_t samples;
  bool many = __builtin_mul_overflow(step - of.first_step, of.global, &samples) ||
              __builtin_add_overflow(samples, of.first_sample, &samples);
  return many ? INT64_MAX : samples;
}

int64_t nxc_batch_step_behind(const nxc_batch *batch, int64_t samples) {
  nxc_batch_phase of = phase_at(batch, 0);
  for (size_t i = 1; i < batch->n_phases && batch->phases[i].first_sample <= samples; i++)
    of = batch->phases[i];
  return of.first_step + (samples - of.first_sample + of.global - 1) / of.global;
}
