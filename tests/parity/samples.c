/* SPDX-License-Identifier: Apache-2.0 */
/* The samples that a plan's sets give, for check_blends.py: `samples PLAN STEPS` writes a line for each set,
 * its name and a hash of each row, inputs and last label, of as many steps of training and as many batches of
 * an evaluation. For plans of one rank. */
#include "runtime/data/data.h"
#include "runtime/files/file.h"
#include "schema/plan_check.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct reading {
  const nx_plan *plan;
  nxr_data *data;
  nxr_batch batch;
  uint64_t n_steps;
} reading;

static void *room(const reading *r, size_t bytes) {
  void *made = calloc((size_t)r->plan->run->micro_batch * r->plan->run->sequence, bytes);
  if (made == NULL) exit(1);
  return made;
}

static uint32_t row_hash(const int32_t *tokens, int32_t last_label, uint32_t n) {
  uint32_t hash = 0;
  for (uint32_t i = 0; i < n; i++) hash = hash * 31 + (uint32_t)tokens[i] + 1;
  return hash * 31 + (uint32_t)last_label + 1;
}

static void write_step(reading *r, uint32_t set, uint64_t step, uint32_t n_rows, nxr_fault *fault) {
  const nx_run *run = r->plan->run;
  for (uint32_t micro = 0; micro < n_rows / run->micro_batch && fault->text[0] == '\0'; micro++) {
    if (!nxr_data_read(r->data, set, step, micro, &r->batch, fault)) return;
    for (size_t i = 0; i < run->micro_batch; i++) {
      size_t first = i * run->sequence;
      printf(" %u",
             row_hash(&r->batch.tokens[first], r->batch.labels[first + run->sequence - 1], run->sequence));
    }
  }
}

static void write_set(reading *r, uint32_t set) {
  const nx_dataset *record = &r->plan->datasets[set];
  nxr_fault fault = {""};
  printf("%s", r->plan->strings + record->name);
  for (uint64_t step = 0; step < r->n_steps && fault.text[0] == '\0'; step++) {
    bool trains = record->role == NX_DATASET_TRAIN;
    uint32_t n = trains ? nx_plan_phase(r->plan, step).global_batch : nx_plan_evaluated_batch(r->plan);
    write_step(r, set, step, n, &fault);
  }
  printf("%s%s\n", fault.text[0] ? " ! " : "", fault.text);
}

int main(int n, char **arguments) {
  reading r = {0};
  nxr_file file;
  nxr_fault fault = {""};
  if (n != 3 || !nxr_file_open(arguments[1], NULL, &file, &fault)) {
    fprintf(stderr, "samples PLAN STEPS: %s\n", fault.text);
    return 2;
  }
  r.plan = &file.plan, r.n_steps = strtoull(arguments[2], NULL, 10);
  r.batch = (nxr_batch){.tokens = room(&r, 4),
                        .labels = room(&r, 4),
                        .positions = room(&r, 4),
                        .samples = room(&r, 8),
                        .starts = room(&r, 4),
                        .weights = room(&r, 4)};
  if (!nxr_data_open(r.plan, 0, NXR_READS_ALL, &r.data, &fault)) {
    printf("! %s\n", fault.text);
    return 1;
  }
  for (uint32_t set = 0; set < r.plan->n[NX_SECTION_DATASETS]; set++)
    if (nxr_data_samples(r.data, set) > 0) write_set(&r, set);
  nxr_data_close(r.data);
  nxr_file_close(&file);
  return 0;
}
