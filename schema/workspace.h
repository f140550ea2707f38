/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of a plan work in, beside its arenas: known before any is bound, so that a plan allows it.
 *
 * Of each operator it is as much as its kernels reserve on a target, from their shapes; what products pack
 * and what a kernel keeps for good are small or may be done without, and NX_WORKSPACE_SPARE is for them. */
#ifndef NX_WORKSPACE_H
#define NX_WORKSPACE_H

#include "schema/ops.h"
#include "schema/targets.h"

enum { NX_WORKSPACE_USUAL = 64 << 20, NX_WORKSPACE_SPARE = 32 << 20 };
/* Elements that are summed together, and on a device rows of them. */
enum { NX_CPU_BLOCK = 16384, NX_DEVICE_BLOCK = 4096, NX_DEVICE_ROWS = 64 };

/* An operand, or what an attribute has where it is a number of the plan. */
typedef struct nx_sized_operand {
  uint32_t dtype, n_dims;
  int64_t dims[NX_MAX_DIMS];
} nx_sized_operand;

typedef struct nx_sized_operator {
  uint32_t op, n_in, n_out;
  nx_sized_operand args[NX_MAX_ARGS]; /* inputs, then outputs */
  int64_t attrs[NX_MAX_ATTRS];        /* 0 where it is none */
} nx_sized_operator;

/* Bytes: without `least` an operator cannot run, with `most` it runs in its fastest form. */
typedef struct nx_workspace {
  uint64_t least, most;
} nx_workspace;

nx_workspace nx_workspace_of(const nx_sized_operator *op, nx_target target, uint32_t n_threads);

#endif
