/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit/emit.h"

static void emit_mesh(nxc_emitter *e) {
  const nxc_mesh *mesh = &e->graph->mesh;
  for (uint32_t atom = 0; atom < mesh->n_atoms; atom++) {
    uint32_t name = nxc_emit_string(e, mesh->name[atom]);
    uint32_t flags = nxc_axis(mesh, NXC_AXIS_PIPELINE) == 1u << atom ? NX_ATOM_PIPELINE : 0;
    nxc_emit_record(e, NX_SECTION_ATOMS, &(nx_atom){name, mesh->size[atom], mesh->stride[atom], flags});
  }
}

static void emit_groups(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->tables->n_groups; i++) {
    const nxc_group_node *group = &e->graph->tables->groups[i];
    nx_group record = {.name = nxc_emit_string(e, group->name),
                       .atoms = group->atoms,
                       .size = nxc_group_size(e->graph, group->atoms, group->stages)};
    if (group->stages) {
      record.n_stages = group->stages->n;
      record.stages = e->sections[NX_SECTION_TABLE].n_records;
      for (uint32_t s = 0; s < group->stages->n; s++)
        nxc_emit_record(e, NX_SECTION_TABLE, &(int64_t){group->stages->at[s]});
    }
    nxc_emit_record(e, NX_SECTION_GROUPS, &record);
  }
}

static nx_term describe_term(nxc_emitter *e, const nxc_term *term) {
  nx_term record = {.atoms = term->atoms, .stride = term->stride, .kind = NX_TERM_STRIDE};
  if (term->first) return (nx_term){.atoms = term->atoms, .kind = NX_TERM_FIRST};
  if (term->table == NULL) return record;
  uint32_t n = term->atoms == NX_NONE ? e->pipeline->n_chunks : nxc_mesh_size(&e->graph->mesh, term->atoms);
  record = (nx_term){.atoms = term->atoms, .kind = term->multiply ? NX_TERM_CHOICE : NX_TERM_ENTRY};
  record.table = e->sections[NX_SECTION_TABLE].n_records;
  for (uint32_t i = 0; i < n; i++) nxc_emit_record(e, NX_SECTION_TABLE, &term->table[i]);
  return record;
}

static void emit_constants(nxc_emitter *e) {
  for (size_t i = 0; i < e->graph->tables->n_constants; i++) {
    const nxc_rank_number *number = &e->graph->tables->constants[i];
    uint32_t first = e->sections[NX_SECTION_TERMS].n_records;
    for (uint32_t t = 0; t < number->n_terms; t++) {
      nx_term record = describe_term(e, &number->terms[t]);
      nxc_emit_record(e, NX_SECTION_TERMS, &record);
    }
    nxc_emit_record(e, NX_SECTION_CONSTANTS, &(nx_constant){number->base, first, number->n_terms});
  }
}

/* Values, ranges and programs, one graph after another. */
static void emit_graphs(nxc_emitter *e) {
  nxc_pipeline *p = e->pipeline;
  e->value_indices = nxc_arena_array(e->arena, p->n_graphs, sizeof *e->value_indices);
  e->first_range = nxc_arena_array(e->arena, p->n_graphs, sizeof *e->first_range);
  for (uint32_t i = 0; i < p->n_graphs; i++) {
    e->value_indices[i] = nxc_arena_array(e->arena, p->graphs[i]->n_values, sizeof **e->value_indices);
    nxc_emit_enter(e, i);
    nxc_emit_values(e);
    e->first_range[i] = e->sections[NX_SECTION_RANGES].n_records;
    nxc_emit_ranges(e);
    nxc_emit_programs(e);
  }
}

const uint8_t *nxc_emit(nxc_pipeline *pipeline, const nxc_training *training, const nxc_settings *settings,
                        uint64_t *n_bytes) {
  nxc_emitter e = {
      .arena = pipeline->arena, .pipeline = pipeline, .training = training, .settings = settings};
  e.graph = pipeline->graphs[0];
  nxc_emit_strings_begin(&e, &e.strings, NX_SECTION_STRINGS);
  nxc_emit_strings_begin(&e, &e.provenance, NX_SECTION_PROVENANCE_TEXT);
  emit_mesh(&e);
  emit_graphs(&e);
  nxc_emit_arenas(&e);
  nxc_emit_pieces(&e);
  nxc_emit_schedule(&e);
  nxc_emit_enter(&e, 0);
  nxc_emit_fixed_values(&e);
  nxc_emit_parameter_groups(&e);
  nxc_emit_run(&e);
  nxc_emit_measures(&e);
  nxc_emit_datasets(&e);
  nxc_emit_evaluations(&e);
  emit_groups(&e);
  emit_constants(&e);
  nxc_emit_run_names(&e);
  nxc_emit_settings(&e);
  return nxc_emit_file(&e, n_bytes);
}
