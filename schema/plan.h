/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: everything that nxrun needs to know, in one file.
 *
 * Layout: header (128 bytes), section table (64 bytes a section), sections in ascending type order.
 * Little-endian, no pointers, offsets from the start of the file, sections aligned to 64 bytes with zero
 * padding, the last byte of the last section (padding included) is the last byte of the file. Each section is
 * an array of one record type below (NX_SECTION_STRINGS: bytes). Records hold no padding that is not named,
 * and unused fields are 0.
 *
 *   header  magic, version, file size, section count, plan_id, root
 *     plan_id  SHA-256 over (type, size, sha256) of the sections flagged NX_SECTION_MEANING, in file order:
 *     what the training is, wherever its configuration came from. Checkpoints record it.
 *     root     SHA-256 over the header with `root` zeroed, and the section table
 *     file_sha256  SHA-256 of the whole file; ranks compare it. It is not in the file.
 *
 * A string is a u32 offset into NX_SECTION_STRINGS, NUL-terminated; offset 0 is "". What is no part of the
 * meaning (settings, provenance, names of the run) has its strings in NX_SECTION_PROVENANCE_TEXT instead,
 * called a text. Cross references are u32 indices into other sections, NX_NONE where there is none.
 *
 * A plan holds no number that depends on a rank. Where an operator needs one it names a *constant*: base + a
 * term for each set of mesh atoms that matters, evaluated once per rank and chunk (nx_constant_value). So a
 * plan is one file whatever the number of ranks.
 *
 * Programs are lists of operators; an operator's `when` says in which micro-batches of a step it runs (first,
 * middle, last); the schedule says which program runs when. Values are typed boxes of an arena; a view shares
 * the bytes of the value that it is a view of. Values of arena `slot` exist once per slot.
 *
 * A pipeline's stages hold the model's layers in chunks, in model order; neighbouring chunks pass values
 * through their ports. Programs, values and ranges may serve several chunks: a chunk says where its part of
 * each arena lies. */
#ifndef NX_PLAN_H
#define NX_PLAN_H

#include "schema/plan_data.h"
#include "schema/plan_memory.h"
#include "schema/plan_program.h"
#include "schema/plan_run.h"

/* A verified plan. All pointers go into the bytes that were verified; indices need no further checks. */
typedef struct nx_plan {
  const uint8_t *bytes;
  uint64_t n_bytes;
  const nx_header *header;
  const char *strings;
  const nx_run *run;
  const nx_run_names *run_names;
  const nx_atom *atoms;
  const nx_group *groups;
  const nx_constant *constants;
  const nx_term *terms;
  const int64_t *table;
  const nx_arena_record *arenas;
  const nx_value *values;
  const nx_piece *pieces;
  const nx_parameter_group *parameter_groups;
  const nx_range *ranges;
  const nx_operator *operators;
  const uint32_t *arguments;
  const nx_attribute *attributes;
  const nx_route *routes;
  const nx_program *programs;
  const nx_chunk *chunks;
  const nx_item *items;
  const nx_schedule *schedules;
  const nx_phase *phases;
  const nx_measure *measures;
  const nx_evaluation *evaluations;
  const uint64_t *extra_saves;
  const uint64_t *skipped;
  const nx_setting_record *settings;
  const nx_dataset *datasets;
  const nx_source *sources;
  const nx_recipe *recipes;
  const nx_fixed_value *fixed_values;
  const nx_provenance *provenances;
  const char *provenance_text;
  uint32_t n[NX_SECTION_END]; /* records per section, by nx_section_type */
} nx_plan;

/* What is wrong with a plan: one sentence, and where in the file. */
typedef struct nx_fault {
  char text[1024];
  uint64_t offset;
} nx_fault;

/* Verifies everything in one pass: header, hashes, strings, every index, shape and bound of every record, and
 * that no two values that are alive at once overlap where the schema can tell. After it every accessor is
 * unchecked. */
bool nx_plan_check(const void *bytes, uint64_t n_bytes, nx_plan *plan, nx_fault *fault);
/* Proves that the schedule ends: every send meets its receive with zero buffering, every collective is met by
 * its whole group in the same order, every wait has its start, values are written before they are read. */
bool nx_plan_prove(const nx_plan *plan, nx_fault *fault);
/* The part of the proof that is about the stages' items: those of a schedule are walked together, a
 * transfer completes only when both of its ends have been started. Where `seconds` says how long each
 * item takes on its own, `begin` and `end` say when it runs; all three may be NULL, and are indexed as
 * all items are. Takes O(items). */
bool nx_schedule_walk(const nx_plan *plan, const nx_schedule *schedule, const double *seconds, double *begin,
                      double *end, nx_fault *fault);
/* The first, of a training that of a full batch; NULL where the plan has none of the kind. */
/* NX_WHEN_FIRST, _MIDDLE and _LAST: the phases of a step's item, of either kind. */
uint8_t nx_step_phases(const nx_item *item);
/* Bytes that each rank of a stage receives by collectives in a batch of the schedule. */
uint64_t nx_schedule_received(const nx_plan *plan, const nx_schedule *schedule, uint32_t stage);
const nx_schedule *nx_plan_schedule(const nx_plan *plan, nx_schedule_kind kind);
/* "backward of chunk 1, micro-batch 3", ... */
void nx_item_describe(const nx_plan *plan, const nx_item *item, char *text, size_t room);

const char *nx_plan_string(const nx_plan *plan, uint32_t string);
/* Of settings, provenance and names of the run. */
const char *nx_plan_text(const nx_plan *plan, uint32_t text);
/* Those of a list, which line feeds part, and NULL behind the last; one block to free. NULL: no memory. */
char **nx_plan_texts(const nx_plan *plan, uint32_t text, size_t *n);
/* The coordinate of a rank on a set of atoms, the first varying fastest, and how many there are. */
uint32_t nx_set_coordinate(const nx_plan *plan, uint32_t rank, uint32_t atoms);
uint64_t nx_set_size(const nx_plan *plan, uint32_t atoms);
/* How many coordinates a term tells apart. */
uint64_t nx_term_coordinates(const nx_plan *plan, const nx_term *term);
int64_t nx_constant_value(const nx_plan *plan, uint32_t constant, uint32_t rank, uint32_t chunk);
/* Bounds of it over all ranks and chunks; no number lies between the least and the greatest that it has and
 * these. */
void nx_constant_range(const nx_plan *plan, uint32_t constant, int64_t *least, int64_t *greatest);
/* The `index`-th member of the group that `rank` (or the rank of another stage with its coordinates) belongs
 * to, and the position of `rank` in it: NX_NONE where its stage takes no part. */
uint32_t nx_group_member(const nx_plan *plan, uint32_t group, uint32_t rank, uint32_t index);
uint32_t nx_group_position(const nx_plan *plan, uint32_t group, uint32_t rank);
/* Whether a collective over the group needs several stages, and a stage is among them. */
bool nx_group_crosses_stages(const nx_plan *plan, uint32_t group);
bool nx_group_has_stage(const nx_plan *plan, uint32_t group, uint32_t stage);
/* Whether it is a multiple of `unit` on every rank and chunk. */
bool nx_constant_is_multiple(const nx_plan *plan, uint32_t constant, uint64_t unit);
/* Rows of a sample: 2 where two answers are compared. */
uint32_t nx_plan_sample_rows(const nx_plan *plan);
/* The dataset that is trained on; NULL where the plan has none. */
const nx_dataset *nx_plan_train_set(const nx_plan *plan);
/* How the dataset of a source is made; NULL: it is there already. */
const nx_recipe *nx_source_recipe(const nx_plan *plan, const nx_source *source);
const nx_form_row *nx_form_find(uint32_t form);
/* Elements that an entry stands for. */
int64_t nx_form_elements(uint32_t form);
/* Whether entries are scales of what other pieces have codes for. */
bool nx_form_is_scale(uint32_t form);
/* The rule that updates a range; NULL where it is frozen. */
const nx_optimizer_row *nx_range_rule(const nx_plan *plan, const nx_range *range);
const nx_arena_record *nx_plan_arena(const nx_plan *plan, uint32_t kind); /* NULL where the plan has none */
/* How many bytes of an arena the ranks of a stage have. */
uint64_t nx_plan_stage_bytes(const nx_plan *plan, uint32_t stage, uint32_t kind);
/* At most, beside the arenas: what they copy of a checkpoint that is written while the training goes on. */
uint64_t nx_plan_copy_bytes(const nx_plan *plan, uint32_t stage);
/* And of their host, where the arenas are memory of a device: what collectives and transfers are copied to
 * and from. */
uint64_t nx_plan_staging_bytes(const nx_plan *plan, uint32_t stage);
/* A size of an operator by its letter in the signature; 0 where no operand has it as a dimension of its own.
 */
int64_t nx_op_size(const nx_plan *plan, const nx_operator *op, char letter);
uint32_t nx_plan_n_stages(const nx_plan *plan);
/* The shape of a piece's tensor in a checkpoint; returns how many dimensions. */
uint32_t nx_piece_shape(const nx_piece *piece, int64_t dims[3]);
/* NX_NONE where the mesh has no pipeline. */
uint32_t nx_plan_pipeline_atom(const nx_plan *plan);
/* The stage of a rank. */
uint32_t nx_plan_stage(const nx_plan *plan, uint32_t rank);
/* Which operators the passes of a micro-batch run, as a mask of `when`. `most` is how many micro-batches a
 * step of the plan has at most. */
uint8_t nx_pass_when(uint32_t micro_batch, uint32_t n_micro_batches, uint32_t most);
/* The same of the part of a backward pass that is cut off, and the parts of a mask: what is of the pass
 * itself, what is cut off. */
uint8_t nx_when_later(uint8_t when);
uint8_t nx_when_now(uint8_t when);
/* Whether a chunk's backward passes are cut. */
bool nx_chunk_is_cut(const nx_plan *plan, const nx_chunk *chunk);
/* The phase that a step is in, also of a plan whose batches have one size. */
nx_phase nx_plan_phase(const nx_plan *plan, uint64_t step);
/* Sequences that are trained on before a step. */
uint64_t nx_plan_samples_before(const nx_plan *plan, uint64_t step);
/* Sequences of an evaluation's batch. */
uint32_t nx_plan_evaluated_batch(const nx_plan *plan);
/* Whether this step, from 0, is left out. */
bool nx_plan_skips(const nx_plan *plan, uint64_t step);
/* How many steps are left out before this one, and the sequences of their batches. */
uint64_t nx_plan_skipped_before(const nx_plan *plan, uint64_t step, uint64_t *samples);
/* That of an operator; NULL: it has none. */
const nx_route *nx_plan_route(const nx_plan *plan, uint32_t operator);
const char *nx_way_name(nx_way way);
bool nx_op_has_way(nx_op op, nx_way way);
/* The program that an item runs, or NX_NONE. */
uint32_t nx_item_program(const nx_plan *plan, const nx_item *item);
/* The other end of a transfer: a chunk and its port. */
uint32_t nx_port_peer(uint32_t chunk, nx_port port);
nx_port nx_port_opposite(nx_port port);
const char *nx_port_name(nx_port port);
/* 32 bytes, or the SHA-256 of some, in lower-case hexadecimal: 64 characters and a NUL. */
void nx_hex(const uint8_t bytes[32], char hex[65]);
void nx_sha256_hex(const void *bytes, uint64_t n_bytes, char hex[65]);

#endif
