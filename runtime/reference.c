/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/reference.h"

#include "runtime/files/fault.h"
#include "runtime/reference_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const nx_plan *plan_of(const nxr_reference *reference) {
  return reference->exec->machine->plan;
}

static uint32_t n_sets(const nxr_reference *reference) {
  return plan_of(reference)->n[NX_SECTION_DATASETS];
}

static void give(nxr_reference *reference) {
  const double *at = reference->sums;
  for (uint32_t set = 0; set < n_sets(reference); set++) {
    nxr_data_refer(reference->data, set, at);
    at += nxr_data_documents(reference->data, set);
  }
}

bool nxr_reference_open(nxr_reference *reference, bool *found, nxr_fault *fault) {
  *found = false;
  for (uint32_t set = 0; set < n_sets(reference); set++)
    reference->n += nxr_data_documents(reference->data, set);
  reference->sums = calloc(reference->n + 1, sizeof *reference->sums);
  if (reference->sums == NULL) nxr_fault_set(fault, "out of memory for the reference of %llu answers",
                                             (unsigned long long)reference->n);
  if (!nxr_world_agree(reference->world, fault)) return false;
  uint8_t key[NXR_REFERENCE_KEY_BYTES];
  nxr_reference_key(plan_of(reference), nxr_data_everything(reference->data), key);
  if (reference->world->rank == 0)
    *found = nxr_reference_read(reference->directory, key, reference->sums, reference->n);
  nxr_world_broadcast(reference->world, found, sizeof *found);
  if (*found) nxr_world_broadcast(reference->world, reference->sums, reference->n * sizeof *reference->sums);
  give(reference);
  return true;
}

void nxr_reference_close(nxr_reference *reference) {
  free(reference->sums);
  reference->sums = NULL;
}

/* ---- the pass ---- */

/* Of all ranks that find the same sums, the first says them. */
static bool speaks(const nx_plan *plan, uint32_t rank) {
  uint32_t last = plan->chunks[plan->n[NX_SECTION_CHUNKS] - 1].stage;
  int64_t share = nx_constant_value(plan, plan->run->data_rank, rank, 0);
  if (nx_plan_stage(plan, rank) != last) return false;
  for (uint32_t other = 0; other < rank; other++)
    if (nx_plan_stage(plan, other) == last &&
        nx_constant_value(plan, plan->run->data_rank, other, 0) == share)
      return false;
  return true;
}

/* Where the sums of this rank's rows of a batch belong. */
static void place(const nxr_reference *reference, const double *found, uint64_t batch, double *sums,
                  uint64_t n) {
  const nx_plan *plan = plan_of(reference);
  const nx_run *run = plan->run;
  uint64_t share = nx_plan_evaluated_batch(plan) / run->data_size;
  uint64_t rank = (uint64_t)nx_constant_value(plan, run->data_rank, reference->world->rank, 0);
  uint64_t first = batch * nx_plan_evaluated_batch(plan) + rank * share;
  for (uint64_t i = 0; i < share && first + i < n; i++) sums[first + i] = found[i];
}

static bool ask_set(nxr_reference *reference, uint32_t set, bool says, double *sums, nxr_fault *fault) {
  uint64_t n = nxr_data_documents(reference->data, set);
  nxr_evaluated evaluated;
  bool good = true;
  nxr_data_refer(reference->data, set, NULL);
  nxr_data_in_order(reference->data, set, true);
  for (uint64_t batch = 0; good && batch * nx_plan_evaluated_batch(plan_of(reference)) < n; batch++) {
    good = nxr_exec_evaluate(reference->exec, set, batch, 0, &evaluated, fault);
    if (good && says) place(reference, reference->exec->sequence_sums, batch, sums, n);
    nxr_world_beat();
  }
  reference->exec->loaded = NX_NONE;
  nxr_data_in_order(reference->data, set, false);
  return good;
}

/* What a rank cannot read ends the run: others wait for it. */
static void ask(nxr_reference *reference, bool says, nxr_fault *fault) {
  double *sums = reference->sums;
  for (uint32_t set = 0; set < n_sets(reference); set++) {
    if (!ask_set(reference, set, says, sums, fault)) {
      nxr_print(stderr, "nxrun: rank %u, the reference of set %u: %s\n", reference->world->rank, set,
              fault->text);
      nxr_world_abort(1);
    }
    sums += nxr_data_documents(reference->data, set);
  }
}

bool nxr_reference_make(nxr_reference *reference, nxr_fault *fault) {
  const nx_run *run = plan_of(reference)->run;
  bool first = reference->world->rank == 0;
  double *found = calloc((size_t)run->n_micro_batches * run->micro_batch, sizeof *found);
  if (found == NULL) nxr_fault_set(fault, "out of memory for the reference");
  if (!nxr_world_agree(reference->world, fault)) {
    free(found);
    return false;
  }
  if (first)
    nxr_print(stderr,
            "nxrun: reference: the log-probabilities of %llu answers before the training are computed\n",
            (unsigned long long)reference->n);
  reference->exec->sequence_sums = found;
  ask(reference, speaks(plan_of(reference), reference->world->rank), fault);
  reference->exec->sequence_sums = NULL;
  free(found);
  nxr_world_sum(reference->world, reference->sums, reference->n);
  uint8_t key[NXR_REFERENCE_KEY_BYTES];
  nxr_reference_key(plan_of(reference), nxr_data_everything(reference->data), key);
  if (first && reference->writes)
    nxr_reference_write(reference->directory, key, reference->sums, reference->n, fault);
  give(reference);
  return nxr_world_agree(reference->world, fault);
}
