/* SPDX-License-Identifier: Apache-2.0 */
/* The graph as the bytes of a plan (schema/plan.h): sections are filled one after another, then hashed and
 * put together. Deterministic: no time, no path of this machine, no pointer, no order of a hash table. */
#ifndef NXC_EMIT_H
#define NXC_EMIT_H

#include "compiler/program/pipeline/pipeline.h"
#include "schema/workspace.h"

/* A plan that is complete, checked and read. */
typedef struct nxc_plan_bytes {
  const uint8_t *bytes;
  uint64_t n_bytes;
  nx_plan plan;
} nxc_plan_bytes;

/* A section under construction. */
typedef struct nxc_section {
  uint8_t *bytes;
  uint32_t n_records;
  size_t n_bytes, room;
} nxc_section;

typedef struct nxc_strings {
  nxc_section *section;
  uint32_t *slots; /* open addressing: offset of a string, 0: free */
  size_t n_slots, n_used;
} nxc_strings;

typedef struct nxc_emitter {
  nxc_arena *arena;
  nxc_pipeline *pipeline;
  nxc_graph *graph; /* whose records are written */
  const nxc_training *training;
  const nxc_settings *settings;
  nxc_section sections[NX_SECTION_END];
  nxc_strings strings, provenance;
  uint32_t **value_indices; /* per graph and value: in the plan, NX_NONE: not in it */
  uint32_t *value_index;    /* of `graph` */
  uint32_t *first_range;    /* per graph */
} nxc_emitter;

/* emit_file.c: an empty section of texts. */
void nxc_emit_strings_begin(nxc_emitter *emitter, nxc_strings *strings, nx_section_type type);
/* All sections, hashed and put together; in the emitter's arena. */
const uint8_t *nxc_emit_file(nxc_emitter *emitter, uint64_t *n_bytes);
/* Appends one record and returns its index. */
uint32_t nxc_emit_record(nxc_emitter *emitter, nx_section_type type, const void *record);
uint32_t nxc_emit_string(nxc_emitter *emitter, const char *text);
uint32_t nxc_emit_provenance_text(nxc_emitter *emitter, const char *text);

/* emit.c: the graph whose records are written from now on; a value of it in the plan, NX_NONE for none. */
void nxc_emit_enter(nxc_emitter *emitter, uint32_t graph);
uint32_t nxc_emit_value_of(const nxc_emitter *emitter, nxc_id id);

/* emit_values.c: of the graph that is entered; arenas are those of all. */
void nxc_emit_values(nxc_emitter *emitter);
void nxc_emit_ranges(nxc_emitter *emitter);
void nxc_emit_arenas(nxc_emitter *emitter);

/* emit_pieces.c */
void nxc_emit_pieces(nxc_emitter *emitter);
void nxc_emit_parameter_groups(nxc_emitter *emitter);
void nxc_emit_fixed_values(nxc_emitter *emitter);

/* emit_programs.c */
void nxc_emit_programs(nxc_emitter *emitter);
void nxc_emit_schedule(nxc_emitter *emitter);

/* emit_run.c */
void nxc_emit_run(nxc_emitter *emitter);

/* emit_workspace.c: of all operators, and the one that cannot do with less than any other. */
typedef struct nxc_workspace {
  nx_workspace bytes;
  const nx_operator *op;
} nxc_workspace;

nxc_workspace nxc_workspace_of(const nx_plan *plan, nx_target target, uint32_t n_threads);
/* The ceiling of what is emitted. */
uint64_t nxc_emit_workspace(const nxc_emitter *emitter, nx_target target, uint32_t n_threads);

/* emit_settings.c: settings, provenance, names of the run. */
void nxc_emit_settings(nxc_emitter *emitter);
void nxc_emit_run_names(nxc_emitter *emitter);
void nxc_emit_datasets(nxc_emitter *emitter);
void nxc_emit_evaluations(nxc_emitter *emitter);

void nxc_emit_measures(nxc_emitter *emitter);

/* emit_model_config.c: the text of a config.json of the family; "": transformers has no class for it. */
const char *nxc_adapter_config_text(nxc_arena *arena, const nxc_settings *settings,
                                    const nxc_training *training);
const char *nxc_model_config_text(nxc_arena *arena, const nxc_settings *settings, const nxc_model *model);
/* emit_tensor_parts.c: JSON. */
const char *nxc_tensor_parts_text(nxc_arena *arena, const nxc_training *training);

/* The whole file, in the pipeline's arena. */
const uint8_t *nxc_emit(nxc_pipeline *pipeline, const nxc_training *training, const nxc_settings *settings,
                        uint64_t *n_bytes);

#endif
