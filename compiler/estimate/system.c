/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/system.h"

#include "compiler/expression/expression.h"

#include <string.h>

const char *const nxc_memory_part_names[NXC_N_MEMORY_PARTS] = {"parameters", "gradients", "optimizer",
                                                               "activations", "buffers"};

/* A row with its expressions parsed, and for each of their names its place in nxc_sizes. */
typedef struct formula {
  const nxc_expression *expression; /* NULL: none */
  int *sizes;
} formula;

typedef struct open_row {
  const nxc_system_row *row;
  formula when, amount; /* bytes, or the value of a trait */
} open_row;

struct nxc_system {
  const char *name;
  open_row *rows;
  size_t n_rows;
};

/* ---- opening ---- */

static formula parse(nxc_arena *arena, const char *text) {
  formula f = {nxc_expression_of(arena, text), NULL};
  if (text == NULL) return f;
  f.sizes = nxc_arena_array(arena, f.expression->n_names + 1, sizeof *f.sizes);
  for (size_t i = 0; i < f.expression->n_names; i++) f.sizes[i] = nxc_size_find(f.expression->names[i].path);
  return f;
}

const nxc_system *nxc_system_open(nxc_arena *arena, const char *name) {
  for (size_t i = 0; i < nxc_n_system_tables; i++) {
    const nxc_system_table *table = &nxc_system_tables[i];
    if (strcmp(table->name, name) != 0) continue;
    nxc_system *system = nxc_arena_alloc(arena, sizeof *system);
    *system = (nxc_system){name, nxc_arena_array(arena, table->n_rows, sizeof *system->rows), table->n_rows};
    for (size_t row = 0; row < table->n_rows; row++) {
      const nxc_system_row *r = &table->rows[row];
      system->rows[row] = (open_row){r, parse(arena, r->when), parse(arena, r->bytes ? r->bytes : r->value)};
    }
    return system;
  }
  return NULL;
}

/* ---- evaluating ---- */

typedef struct scope {
  const formula *formula;
  nxc_value *values; /* of the formula's names, in their order */
} scope;

static const nxc_value *look_up(void *context, const nxc_name *name) {
  const scope *s = context;
  return &s->values[name - s->formula->expression->names];
}

static bool is_given(void *context, const nxc_name *name) {
  (void)context, (void)name;
  return true;
}

/* 0 where a formula divides by zero, as by the experts of a dense model. */
static double evaluate(nxc_arena *arena, const formula *f, const nxc_sizes *sizes) {
  const double *all = (const double *)sizes;
  scope s = {f, nxc_arena_array(arena, f->expression->n_names + 1, sizeof *s.values)};
  for (size_t i = 0; i < f->expression->n_names; i++)
    s.values[i] = (nxc_value){.kind = NXC_FLOAT, .number = all[f->sizes[i]]};
  const char *error;
  const nxc_scope names = {look_up, is_given, &s};
  const nxc_value *value = nxc_expression_evaluate(arena, f->expression, &names, &error);
  if (value == NULL) return 0;
  if (value->kind == NXC_FLOAT) return value->number;
  return value->kind == NXC_INT ? (double)value->integer : nxc_value_is_true(value);
}

static bool applies(nxc_arena *arena, const open_row *row, const nxc_sizes *sizes) {
  return row->when.expression == NULL || evaluate(arena, &row->when, sizes) != 0;
}

nxc_traits nxc_system_traits(const nxc_system *system, const nxc_sizes *sizes, nxc_arena *arena) {
  static const char *const names[] = {
#define TRAIT(name, otherwise, meaning) #name,
      NXC_TRAITS(TRAIT)
#undef TRAIT
  };
  nxc_traits traits = {
#define TRAIT(name, otherwise, meaning) .name = otherwise,
      NXC_TRAITS(TRAIT)
#undef TRAIT
  };
  double *all = (double *)&traits;
  for (size_t i = 0; i < system->n_rows; i++)
    for (size_t t = 0; system->rows[i].row->trait != NULL && t < sizeof names / sizeof *names; t++)
      if (strcmp(system->rows[i].row->trait, names[t]) == 0 && applies(arena, &system->rows[i], sizes))
        all[t] = evaluate(arena, &system->rows[i].amount, sizes);
  return traits;
}

bool nxc_computes_again(const nxc_training *training, const char *module) {
  const nxc_recomputation *r = &training->recomputation;
  for (size_t i = 0; module != NULL && i < r->n_modules; i++)
    if (r->modules[i].kind == NXC_STRING && strcmp(r->modules[i].text, module) == 0) return true;
  return module != NULL && r->modules != NULL && r->n_modules == 0 && strcmp(module, "core_attn") == 0;
}

/* Nor is anything kept of a module within one that is. */
static bool is_left_out(const nxc_training *training, const char *module) {
  static const struct {
    const char *module, *around;
  } within[] = {{"core_attn", "attention"},
                {"mla_up_proj", "attention"},
                {"layernorm", "second_products"},
                {"mlp", "second_products"},
                {"mlp_act", "second_products"},
                {"moe", "second_products"},
                {"moe_act", "second_products"},
                {"shared_experts", "second_products"},
                {"mlp_act", "mlp"},
                {"mlp_act", "moe_act"}, /* which names that of either in nx and NxDT */
                {"moe_act", "moe"},
                {"shared_experts", "moe"}};
  if (module == NULL || nxc_computes_again(training, module)) return module != NULL;
  for (size_t i = 0; i < sizeof within / sizeof *within; i++)
    if (strcmp(within[i].module, module) == 0 && nxc_computes_again(training, within[i].around)) return true;
  return false;
}

nxc_kept *nxc_system_keeps(const nxc_system *system, const nxc_sizes *sizes, const nxc_training *training,
                           nxc_arena *arena, size_t *n_kept) {
  nxc_kept *kept = nxc_arena_array(arena, system->n_rows, sizeof *kept);
  *n_kept = 0;
  for (size_t i = 0; i < system->n_rows; i++) {
    const open_row *row = &system->rows[i];
    if (row->row->trait != NULL || is_left_out(training, row->row->module)) continue;
    if (applies(arena, row, sizes))
      kept[(*n_kept)++] = (nxc_kept){row->row, evaluate(arena, &row->amount, sizes)};
  }
  return kept;
}
