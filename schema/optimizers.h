/* SPDX-License-Identifier: Apache-2.0 */
/* The table of optimizers.def as rows. */
#ifndef NX_OPTIMIZERS_H
#define NX_OPTIMIZERS_H

#include "schema/ops.h"

enum { NX_MAX_STATES = 4 };

/* Operands of an update: p, its states, then these, counted from behind the states; outputs are p, its states
 * and the copy of p. */
enum { NX_UPDATE_GRADIENT, NX_UPDATE_LR, NX_UPDATE_DECAY, NX_UPDATE_SCALE, NX_UPDATE_STEP, NX_UPDATE_END };

/* As what it keeps a state's shape is, of a parameter's. */
typedef enum nx_state_shape { NX_SAME, NX_ROWS, NX_COLUMNS } nx_state_shape;

typedef struct nx_state_row {
  const char *name, *file; /* of a checkpoint */
  nx_state_shape shape;
} nx_state_row;

typedef enum nx_optimizer_kind { NX_ELEMENT, NX_TENSOR, NX_MATRIX } nx_optimizer_kind;

typedef struct nx_optimizer_row {
  const char *name;
  nx_optimizer_kind kind;
  nx_op op; /* the update */
  const char *meaning;
  const nx_state_row *states; /* what it keeps of each parameter: nx_optimizer_n_states of them */
} nx_optimizer_row;

/* By name, or by the number of the operator; NULL where there is none. */
const nx_optimizer_row *nx_optimizer_find(const char *name);
const nx_optimizer_row *nx_optimizer_of(uint32_t op);
uint32_t nx_optimizer_n_states(const nx_optimizer_row *row);
/* How many of them, the first ones, are of the parameter's shape. */
uint32_t nx_optimizer_n_same(const nx_optimizer_row *row);
/* Another rule that is meant where a setting optimizer.SETTING is set (not 0, or true), or where it is
 * not. */
typedef struct nx_optimizer_variant {
  const char *rule, *setting, *other;
  bool set;
} nx_optimizer_variant;

/* The index-th of all of them; NULL behind the last. */
const nx_optimizer_variant *nx_optimizer_variant_at(uint32_t index);
/* How many numbers of each parameter's shape a rule keeps, one that nxrun does not run too; `otherwise` of an
 * unknown one. */
uint32_t nx_optimizer_keeps(const char *name, uint32_t otherwise);

#endif
