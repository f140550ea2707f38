/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/hash.h"
#include "compiler/program/pipeline/pipeline.h"

#include <assert.h>
#include <string.h>

nx_attribute nxc_integer(int64_t integer) {
  return (nx_attribute){.kind = NX_ATTRIBUTE_INT, .integer = integer};
}

nx_attribute nxc_real(double real) {
  return (nx_attribute){.kind = NX_ATTRIBUTE_REAL, .real = real};
}

nx_attribute nxc_attribute(nxc_graph *graph, const nxc_rank_number *number) {
  if (number->n_terms == 0) return nxc_integer(number->base);
  return (nx_attribute){.kind = NX_ATTRIBUTE_CONSTANT, .constant = nxc_constant(graph, number)};
}

nxc_rank_number nxc_rank_number_of(int64_t base) {
  return (nxc_rank_number){.base = base};
}

static void push_term(nxc_rank_number *number, const nxc_term *term) {
  assert(number->n_terms < NXC_MAX_TERMS);
  number->terms[number->n_terms++] = *term;
}

void nxc_rank_number_stride(nxc_rank_number *number, uint32_t atoms, int64_t stride) {
  if (atoms == 0 || stride == 0) return;
  push_term(number, &(nxc_term){.atoms = atoms, .stride = stride});
}

void nxc_rank_number_table(nxc_graph *graph, nxc_rank_number *number, uint32_t atoms, const int64_t *table,
                           bool multiply) {
  uint32_t size = nxc_mesh_size(&graph->mesh, atoms);
  if (atoms == 0) {
    bool neutral = table[0] == (multiply ? 1 : 0);
    assert(number->n_terms == 0 || neutral);
    if (!neutral) number->base = multiply ? number->base * table[0] : number->base + table[0];
    return;
  }
  int64_t *copy = nxc_arena_array(graph->arena, size, sizeof *copy);
  memcpy(copy, table, size * sizeof *copy);
  push_term(number, &(nxc_term){.atoms = atoms, .multiply = multiply, .table = copy});
}

void nxc_rank_number_chunk(const nxc_graph *graph, nxc_rank_number *number, const int64_t *table) {
  if (graph->pipeline->n_chunks == 1)
    number->base += table[0];
  else
    push_term(number, &(nxc_term){.atoms = NX_NONE, .table = table});
}

nxc_rank_number nxc_rank_number_layer(nxc_graph *graph, int64_t base, int64_t factor, int32_t layer) {
  const nxc_pipeline *pipeline = graph->pipeline;
  nxc_rank_number number = nxc_rank_number_of(base + factor * layer);
  if (pipeline->n_chunks == 1 || factor == 0) return number;
  int64_t *table = nxc_arena_array(graph->arena, pipeline->n_chunks, sizeof *table);
  for (uint32_t i = 0; i < pipeline->n_chunks; i++)
    table[i] = factor * (pipeline->first_layers[i] - graph->first_layer);
  nxc_rank_number_chunk(graph, &number, table);
  return number;
}

nxc_rank_number nxc_rank_number_tensor(const nxc_graph *graph, int64_t base, int64_t unit) {
  nxc_rank_number number = nxc_rank_number_of(base);
  nxc_rank_number_stride(&number, nxc_axis(&graph->mesh, NXC_AXIS_TENSOR), unit);
  return number;
}

nxc_rank_number nxc_rank_number_first(uint32_t atoms) {
  nxc_rank_number number = nxc_rank_number_of(1);
  if (atoms) push_term(&number, &(nxc_term){.atoms = atoms, .first = true, .multiply = true});
  return number;
}

static bool term_equal(const nxc_graph *graph, const nxc_term *a, const nxc_term *b) {
  if (a->atoms != b->atoms || a->multiply != b->multiply || a->first != b->first || a->stride != b->stride ||
      !a->table != !b->table)
    return false;
  if (a->atoms == NX_NONE) return a->table == b->table;
  size_t bytes = nxc_mesh_size(&graph->mesh, a->atoms) * sizeof *a->table;
  return a->table == NULL || memcmp(a->table, b->table, bytes) == 0;
}

static bool number_equal(const nxc_graph *graph, const nxc_rank_number *a, const nxc_rank_number *b) {
  if (a->base != b->base || a->n_terms != b->n_terms) return false;
  for (uint32_t i = 0; i < a->n_terms; i++)
    if (!term_equal(graph, &a->terms[i], &b->terms[i])) return false;
  return true;
}

/* Numbers that differ in their tables alone may share one. */
static uint64_t number_hash(const nxc_rank_number *number) {
  uint64_t hash = nxc_hash_mixed(number->n_terms, (uint64_t)number->base);
  for (uint32_t i = 0; i < number->n_terms; i++) {
    const nxc_term *term = &number->terms[i];
    uint64_t first = (uint64_t)(term->table != NULL ? term->table[0] : term->stride);
    hash = nxc_hash_mixed(nxc_hash_mixed(hash, term->atoms), first);
  }
  return hash;
}

/* Where the number stands, or may be put. */
static nxc_id *constant_slot(const nxc_graph *graph, const nxc_rank_number *number) {
  const nxc_tables *tables = graph->tables;
  size_t at = number_hash(number) % tables->n_constant_slots;
  while (tables->constant_slots[at] != NX_NONE &&
         !number_equal(graph, &tables->constants[tables->constant_slots[at]], number))
    at = (at + 1) % tables->n_constant_slots;
  return &tables->constant_slots[at];
}

static void widen_slots(nxc_graph *graph) {
  nxc_tables *tables = graph->tables;
  tables->n_constant_slots = 4 * tables->n_constants + 64;
  tables->constant_slots =
      nxc_arena_array(graph->arena, tables->n_constant_slots, sizeof *tables->constant_slots);
  for (size_t i = 0; i < tables->n_constant_slots; i++) tables->constant_slots[i] = NX_NONE;
  for (size_t i = 0; i < tables->n_constants; i++) *constant_slot(graph, &tables->constants[i]) = (nxc_id)i;
}

nxc_id nxc_constant(nxc_graph *graph, const nxc_rank_number *number) {
  nxc_tables *tables = graph->tables;
  if (2 * tables->n_constants >= tables->n_constant_slots) widen_slots(graph);
  nxc_id *slot = constant_slot(graph, number);
  if (*slot != NX_NONE) return *slot;
  *slot = (nxc_id)tables->n_constants;
  tables->constants =
      nxc_arena_grow(graph->arena, tables->constants, tables->n_constants, sizeof *tables->constants);
  tables->constants[tables->n_constants] = *number;
  return (nxc_id)tables->n_constants++;
}

uint32_t nxc_group_size(const nxc_graph *graph, uint32_t atoms, const nxc_stages *stages) {
  if (stages == NULL) return nxc_mesh_size(&graph->mesh, atoms);
  return nxc_mesh_size(&graph->mesh, atoms & ~nxc_axis(&graph->mesh, NXC_AXIS_PIPELINE)) * stages->n;
}

/* "data", "pipeline", or, of some stages, "stages 0, 3". */
static const char *group_name(const nxc_graph *graph, uint32_t atoms, const nxc_stages *stages) {
  const char *name = nxc_mesh_set_name(graph->arena, &graph->mesh, atoms);
  for (uint32_t i = 0; stages != NULL && i < stages->n; i++)
    name = nxc_arena_printf(graph->arena, "%s%s%u", i ? name : "stages", i ? ", " : " ", stages->at[i]);
  return name;
}

nxc_id nxc_group(nxc_graph *graph, uint32_t atoms, const nxc_stages *stages) {
  nxc_tables *tables = graph->tables;
  assert(atoms != 0);
  for (size_t i = 0; i < tables->n_groups; i++)
    if (tables->groups[i].atoms == atoms && tables->groups[i].stages == stages) return (nxc_id)i;
  tables->groups = nxc_arena_grow(graph->arena, tables->groups, tables->n_groups, sizeof *tables->groups);
  tables->groups[tables->n_groups] = (nxc_group_node){atoms, stages, group_name(graph, atoms, stages)};
  return (nxc_id)tables->n_groups++;
}
