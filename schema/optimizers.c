/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/optimizers.h"

#include <string.h>

enum {
#define OPTIMIZER(number, name, kind, n_states, meaning) ROW_##name,
#include "schema/optimizers.def"
  N_ROWS
};

static const nx_state_row states[N_ROWS][NX_MAX_STATES] = {
#define STATE(optimizer, index, name, shape, type) \
  [ROW_##optimizer][index] = {#name, #name ".safetensors", NX_##shape},
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

uint32_t nx_optimizer_n_same(const nx_optimizer_row *row) {
  uint32_t n = 0;
  while (n < nx_optimizer_n_states(row) && row->states[n].shape == NX_SAME) n++;
  return n;
}

const nx_optimizer_variant *nx_optimizer_variant_at(uint32_t index) {
  static const nx_optimizer_variant variants[] = {
#define SET true
#define UNSET false
#define VARIANT(rule, setting, value, other) {#rule, #setting, #other, value},
#include "schema/optimizers.def"
#undef SET
#undef UNSET
  };
  return index < sizeof variants / sizeof *variants ? &variants[index] : NULL;
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
  return row != NULL ? nx_optimizer_n_same(row) : otherwise;
}
