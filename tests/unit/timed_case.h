/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration of a system, changed in one thing, with the time of its step. */
#ifndef NX_TIMED_CASE_H
#define NX_TIMED_CASE_H

#include "compiler/estimate/time.h"
#include "tests/unit/estimate_case.h"

/* A mixture of 64 balanced experts over 8 ranks. */
#define EXPERTS                                                                                              \
  MODEL "model.activation=swiglu moe.experts=64 moe.top_k=8 moe.ffn_hidden=1024 mesh.world=8 mesh.expert=8 " \
        "mesh.expert_tensor=1 optimizer.zero_stage=1 batch.micro=4 moe.random_logits=true "

typedef struct timed {
  estimate e;
  nxc_own_time t;
} timed;

static inline timed time_of(const char *system, const char *machine, const char *changes) {
  timed made = {.e = estimate_of(system, changes)};
  const nxc_machine *m = nxc_machine_read(made.e.c.arena, machine, made.e.c.sink);
  assert_non_null(m);
  made.t = nxc_own_time_of(made.e.system, &made.e.sizes, &made.e.training, m, made.e.c.arena);
  return made;
}

/* Seconds of one part of a step. */
static inline double spent(const char *system, const char *machine, const char *changes, nxc_spent part) {
  timed made = time_of(system, machine, changes);
  double seconds = made.t.parts[part];
  program_end(&made.e.c);
  return seconds;
}

#endif
