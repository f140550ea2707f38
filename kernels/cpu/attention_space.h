/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's memory. What stands there is the form's: before this is included, it defines attention_space. */
#ifndef CPU_ATTENTION_SPACE_H
#define CPU_ATTENTION_SPACE_H

#include "kernels/cpu/attention_tiles.h"

/* The form's: divides a thread's memory; with base 0 it measures it. */
static uint64_t space_divide(const attention_shape *s, char *base, attention_space *space);
/* The same: around all that a thread does. */
static void share_begin(const attention_shape *s, const attention_space *space);
static void share_end(void);

static uint64_t space_bytes(const attention_shape *s) {
  attention_space space;
  return space_divide(s, NULL, &space);
}

/* Where a thread's begins in what all have. */
static char *space_start(const attention_shape *s, char *scratch, int64_t thread) {
  return scratch + (uint64_t)thread * space_bytes(s);
}

static attention_space space_at(const attention_shape *s, char *scratch, int64_t thread) {
  attention_space space;
  space_divide(s, space_start(s, scratch, thread), &space);
  return space;
}

static bool space_reserve(const nxk_kernel *kernel, const attention_shape *s, const char *name,
                          nxk_fault *fault) {
  return cpu_reserve(kernel->device, space_bytes(s) * kernel->device->n_threads, name, fault);
}

#endif
