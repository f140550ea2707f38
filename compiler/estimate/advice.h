/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a rank fits into the memory that there is, and what would make it smaller.
 *
 * What a rank of nxrun needs is exact: the plan's arenas, and its ceiling of workspace. What one of another
 * system needs is what the caller says. Advice is made alike for both: the same training with one setting
 * changed is compiled, and its need is told. A change with which there is none is no advice. */
#ifndef NXC_ADVICE_H
#define NXC_ADVICE_H

#include "compiler/program/emit/emit.h"

typedef struct nxc_change {
  nxc_setting_id setting;
  nxc_value value;
} nxc_change;

/* What a rank would need after some changes. */
typedef struct nxc_after {
  uint64_t bytes;         /* 0: the system does not accept them */
  double step_s;          /* 0: not told */
  const char *said, *fix; /* the changes in the file's own options, and how to make them; NULL: as settings */
} nxc_after;

typedef nxc_after nxc_need_after(void *context, const nxc_change *changes, size_t n_changes);

/* A rank's need, and what it is held against. */
typedef struct nxc_memory_need {
  const char *whose; /* the system */
  uint64_t bytes, limit_bytes;
  uint64_t least_bytes;     /* without what an allocator need not hold; 0: as `bytes` */
  double step_s;            /* of a step as it is; 0: not told */
  const char *limit_source; /* "--memory", the name of a machine */
  const char *parts;        /* of which the bytes consist, in words */
  const char *unjudged;     /* what else might be asked after, and why it is not told; NULL: nothing */
  const char *const *largest;
  size_t n_largest;
  nxc_need_after *after;
  void *context;
} nxc_memory_need;

/* A note where a rank fits; else false, with what is largest and what would help: an error, or a warning
 * where it fits in case the allocator holds nothing more. */
bool nxc_memory_judge(const nxc_memory_need *need, const nxc_settings *settings, nxc_arena *arena,
                      nxc_sink *sink);
/* Arenas, all slots, and workspace; of the stage that needs most. */
uint64_t nxc_memory_of_plan(const nx_plan *plan);
/* The same of a rank of nxrun. */
bool nxc_memory_check(const nxc_settings *settings, const nx_plan *plan, uint64_t limit_bytes,
                      const char *source, nxc_arena *arena, nxc_sink *sink);
/* A note: why the memory cannot be judged. */
void nxc_memory_skip(const char *why, nxc_sink *sink);
/* The first findings of a sink, and how many more there are. */
const char *nxc_obstacles_show(const nxc_sink *obstacles, nxc_arena *arena);

#endif
