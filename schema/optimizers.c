/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/optimizers.h"

#include <string.h>

enum {
#define OPTIMIZER(number, name, kind, n_states, meaning) ROW_##name,
#include "schema/optimizers.def"
  N_ROWS
};

static const nx_state_row states[N_ROWS][NX_MAX_STATES] = {
#define STATE(optimizer, index, name, shape, type) [ROW_##optimizer][index] = {#name, #name ".safetensors"},
#include "schema/optimizers.def"
};

static const nx_optimizer_row rows[N_ROWS] = {
#define OPTIMIZER(number, name, kind, n_states, meaning) \
  [ROW_##name] = {#name, NX_##kind, NX_OP_##name, meaning, states[ROW_##name]},
#include "schema/optimizers.def"
};

const nx_optimizer_row *nx_optimizer_find(const char *name) {
  for (size_t i = 0; i < N_ROWS; i++)
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  return NULL;
}

const nx_optimizer_row *nx_optimizer_of(uint32_t op) {
  for (size_t i = 0; i < N_ROWS; i++)
    if ((uint32_t)rows[i].op == op) return &rows[i];
  return NULL;
}

uint32_t nx_optimizer_n_states(const nx_optimizer_row *row) {
  uint32_t n = 0;
  while (row != NULL && n < NX_MAX_STATES && row->states[n].name != NULL) n++;
  return n;
}

const nx_optimizer_row *nx_optimizer_with(const char *name, bool momentum) {
  static const struct {
    const char *name, *other;
  } pairs[] = {
#define MOMENTUM(rule, other) {#rule, #other},
#include "schema/optimizers.def"
  };
  for (size_t i = 0; momentum && i < sizeof pairs / sizeof *pairs; i++)
    if (strcmp(pairs[i].name, name) == 0) return nx_optimizer_find(pairs[i].other);
  return nx_optimizer_find(name);
}

uint32_t nx_optimizer_keeps(const char *name, uint32_t otherwise) {
  static const struct {
    const char *name;
    uint32_t n_states;
  } foreign[] = {
#define FOREIGN(name, n_states) {#name, n_states},
#include "schema/optimizers.def"
  };
  const nx_optimizer_row *row = nx_optimizer_find(name);
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    if (strcmp(foreign[i].name, name) == 0) return foreign[i].n_states;
  return row != NULL ? nx_optimizer_n_states(row) : otherwise;
}
