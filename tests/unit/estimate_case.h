/* SPDX-License-Identifier: Apache-2.0 */
/* A training's sizes as its own system has them, from a model of 1.3 billion parameters and changes. */
#ifndef NX_TESTS_ESTIMATE_CASE_H
#define NX_TESTS_ESTIMATE_CASE_H

#include "compiler/estimate/memory.h"
#include "compiler/estimate/system.h"
#include "tests/unit/program_case.h"

#include <math.h>

#define MODEL                                                                                                \
  "model.layers=24 model.hidden=2048 model.heads=16 model.kv_heads=16 model.head_dim=128 "                   \
  "model.ffn_hidden=8192 "                                                                                   \
  "model.vocab=50304 model.sequence=2048 model.activation=gelu model.tied_embeddings=true batch.micro=1 "    \
  "batch.global=64 precision.preset=manual precision.param=bf16 precision.compute=bf16 "                     \
  "precision.master_weights=true precision.grad_accumulation=fp32 "

typedef struct estimate {
  program_case c;
  nxc_training training;
  nxc_sizes sizes;
  const nxc_system *system;
} estimate;

static inline estimate estimate_of(const char *system, const char *changes) {
  estimate e = {.c = program_settings(changes)};
  e.system = nxc_system_open(e.c.arena, system);
  assert_non_null(e.system);
  bool read = nxc_training_read(e.c.settings, e.c.sink, &e.training);
  if (!read) fail_msg("%s: %s", changes, nxc_sink_finding(e.c.sink, 0)->message);
  e.sizes = nxc_sizes_read(&e.training, e.c.settings);
  return e;
}

static inline nxc_own_memory first_stage(const estimate *e) {
  return nxc_own_memory_of_stage(e->system, &e->sizes, &e->training, 0, e->c.arena);
}

static inline void near_to(const char *what, double found, double wanted, double share) {
  if (fabs(found - wanted) > share * wanted)
    fail_msg("%s: %.4g bytes, wanted %.4g within %.2g", what, found, wanted, share);
}

#endif
