/* SPDX-License-Identifier: Apache-2.0 */
/* A small model cut up over a mesh, its ranks as threads: what tests of checkpoints save and load.
 *
 * The mesh has two atoms, tensor (varies fastest) and shard (ZeRO, over which range 0 is cut). The model:
 *   rows       [7, 5]  rows cut by tensor, padded to 8
 *   columns    [4, 6]  columns cut by tensor, transposed in the file
 *   fused      [6, 5]  three pieces (query, key, value) that stand below each other in one parameter,
 *                      each with its rows cut by tensor; transposed in the file
 *   bias       [6]     three pieces likewise, of a vector
 *   norm       [5]     whole on every rank, in range 1, which is not cut
 * A piece's own value is not used: what a rank holds are the ranges' values. The runtime's world is replaced
 * by one whose ranks are threads. */
#ifndef TESTS_UNIT_MESH_PLAN_H
#define TESTS_UNIT_MESH_PLAN_H

#include "kernels/backend.h"
#include "runtime/state/pieces.h"
#include "runtime/world/world.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESH_MAX_RANKS = 4, MESH_ARENA_BYTES = 1 << 14, MESH_PIECES = 9 };

typedef struct mesh_shape {
  uint32_t tensor, shard;
  bool bf16;    /* parameters in bf16, with fp32 masters; else fp32 alone */
  bool moments; /* AdamW, else SGD */
  bool divided; /* parameters and gradients of range 0 are shards too (ZeRO 3) */
} mesh_shape;

typedef struct mesh_plan {
  mesh_shape shape;
  nx_plan plan;
  nx_header header;
  nx_run run;
  nx_run_names run_names;
  nx_atom atoms[2];
  nx_group groups[1];
  nx_constant constants[32];
  nx_term terms[64];
  int64_t table[8];
  nx_value values[32];
  nx_piece pieces[MESH_PIECES];
  nx_parameter_group group;
  nx_range ranges[2];
  nx_setting_record settings[4];
  char strings[1024];
  uint32_t zero, first_of_shard; /* constants: 0; owner among the ranks of a shard group */
  uint32_t n_strings, n_constants, n_terms, n_values;
  uint64_t n_used[NX_N_ARENAS];
} mesh_plan;

static const nx_chunk mesh_chunk = {.n_slots = 1};

static inline uint32_t mesh_string(mesh_plan *mesh, const char *text) {
  uint32_t at = mesh->n_strings;
  strcpy(mesh->strings + at, text);
  mesh->n_strings += (uint32_t)strlen(text) + 1;
  return at;
}

/* base + stride x the coordinate on an atom */
static inline uint32_t mesh_constant(mesh_plan *mesh, int64_t base, uint32_t atom, int64_t stride) {
  mesh->terms[mesh->n_terms] = (nx_term){.atoms = 1u << atom, .stride = stride, .kind = NX_TERM_STRIDE};
  mesh->constants[mesh->n_constants] = (nx_constant){base, mesh->n_terms++, 1};
  return mesh->n_constants++;
}

/* 1 on the ranks whose coordinate is 0 on the atoms, else 0 */
static inline uint32_t mesh_owner(mesh_plan *mesh, uint32_t atoms) {
  nx_constant *owner = &mesh->constants[mesh->n_constants];
  *owner = (nx_constant){1, mesh->n_terms, atoms != 0};
  if (atoms) mesh->terms[mesh->n_terms++] = (nx_term){.atoms = atoms, .kind = NX_TERM_FIRST};
  return mesh->n_constants++;
}

static inline uint32_t mesh_value(mesh_plan *mesh, nx_arena_kind arena, nx_dtype dtype, int64_t rows,
                                  int64_t columns) {
  nx_value *value = &mesh->values[mesh->n_values];
  uint64_t n_bytes = (uint64_t)(rows * columns) * nx_dtype_bits(dtype) / 8;
  *value = (nx_value){.dtype = (uint16_t)dtype,
                      .n_dims = rows == 1 ? 1 : 2,
                      .arena = (uint8_t)arena,
                      .dims = {rows == 1 ? columns : rows, rows == 1 ? 1 : columns, 1, 1},
                      .offset = mesh->n_used[arena],
                      .bytes = n_bytes,
                      .view_of = NX_NONE,
                      .offset_shift = NX_NONE};
  mesh->n_used[arena] += (n_bytes + 63) / 64 * 64;
  assert(mesh->n_used[arena] <= MESH_ARENA_BYTES);
  return mesh->n_values++;
}

static inline void mesh_add_range(mesh_plan *mesh, uint32_t index, int64_t n_elements, bool cut) {
  int64_t n_shard = cut ? (n_elements / mesh->shape.shard + 15) / 16 * 16 : n_elements;
  if (cut) n_elements = n_shard * mesh->shape.shard;
  nx_range *range = &mesh->ranges[index];
  *range = (nx_range){.group = 0, .n_elements = (uint64_t)n_elements, .n_shard = (uint64_t)n_shard,
                      .shard_group = cut ? 0 : NX_NONE,
                      .shard_start = mesh_constant(mesh, 0, 1, cut ? n_shard : 0), .master = NX_NONE,
                      .states = {NX_NONE, NX_NONE, NX_NONE, NX_NONE}};
  mesh->group = (nx_parameter_group){.optimizer = mesh->shape.moments ? NX_OP_adamw : NX_OP_sgd};
  int64_t n_held = mesh->shape.divided ? n_shard : n_elements;
  range->param = mesh_value(mesh, NX_ARENA_param, mesh->shape.bf16 ? NX_bf16 : NX_f32, 1, n_held);
  range->grad = mesh_value(mesh, NX_ARENA_grad, NX_f32, 1, n_held);
  if (mesh->shape.bf16) range->master = mesh_value(mesh, NX_ARENA_master, NX_f32, 1, n_shard);
  if (mesh->shape.moments) {
    range->states[0] = mesh_value(mesh, NX_ARENA_state, NX_f32, 1, n_shard);
    range->states[1] = mesh_value(mesh, NX_ARENA_state, NX_f32, 1, n_shard);
  }
}

/* A parameter of `rows` x `columns` in a range, from element `offset` of it on. */
static inline uint32_t mesh_parameter(mesh_plan *mesh, uint32_t range, uint64_t offset, int64_t rows,
                                      int64_t columns) {
  const nx_value *whole = &mesh->values[mesh->ranges[range].param];
  uint32_t index = mesh->n_values++;
  uint64_t size = nx_dtype_bits(whole->dtype) / 8;
  mesh->values[index] = *whole;
  mesh->values[index].n_dims = rows == 1 ? 1 : 2;
  mesh->values[index].dims[0] = rows == 1 ? columns : rows;
  mesh->values[index].dims[1] = rows == 1 ? 1 : columns;
  mesh->values[index].offset += offset * size;
  mesh->values[index].bytes = (uint64_t)(rows * columns) * size;
  return index;
}

/* rows and columns, from the start of range 0 on; returns how many elements they take. */
static inline uint64_t mesh_add_matrices(mesh_plan *mesh) {
  const int64_t t = mesh->shape.tensor;
  const uint64_t n_rows = (uint64_t)(8 / t * 5);
  mesh->pieces[0] = (nx_piece){.name = mesh_string(mesh, "rows"),
                               .value = mesh_parameter(mesh, 0, 0, 8 / t, 5),
                               .logical_rows = 7,
                               .logical_columns = 5,
                               .rows = 8 / t,
                               .columns = 5,
                               .row_start = mesh_constant(mesh, 0, 0, 8 / t),
                               .column_start = mesh->zero,
                               .owner = mesh->first_of_shard,
                               .n_dims = 2};
  mesh->pieces[1] = (nx_piece){.name = mesh_string(mesh, "columns"),
                               .value = mesh_parameter(mesh, 0, n_rows, 4, 6 / t),
                               .flags = NX_PIECE_TRANSPOSED,
                               .logical_rows = 4,
                               .logical_columns = 6,
                               .rows = 4,
                               .columns = 6 / t,
                               .row_start = mesh->zero,
                               .column_start = mesh_constant(mesh, 0, 0, 6 / t),
                               .range_offset = n_rows,
                               .owner = mesh->first_of_shard,
                               .n_dims = 2};
  return n_rows + (uint64_t)(24 / t);
}

/* fused and bias, from element `at` of range 0 on. */
static inline void mesh_add_fused(mesh_plan *mesh, uint64_t at) {
  const int64_t t = mesh->shape.tensor;
  const uint64_t bias_at = at + (uint64_t)(30 / t);
  const nx_piece fused = {.name = mesh_string(mesh, "fused"),
                          .value = mesh_parameter(mesh, 0, at, 6 / t, 5),
                          .flags = NX_PIECE_TRANSPOSED,
                          .logical_rows = 6,
                          .logical_columns = 5,
                          .rows = 2 / t,
                          .columns = 5,
                          .column_start = mesh->zero,
                          .owner = mesh->first_of_shard,
                          .n_dims = 2};
  const nx_piece bias = {.name = mesh_string(mesh, "bias"),
                         .value = mesh_parameter(mesh, 0, bias_at, 1, 6 / t),
                         .logical_rows = 1,
                         .logical_columns = 6,
                         .rows = 1,
                         .columns = 2 / t,
                         .row_start = mesh->zero,
                         .owner = mesh->first_of_shard,
                         .n_dims = 1};
  for (int64_t i = 0; i < 3; i++) {
    nx_piece *matrix = &mesh->pieces[2 + i], *vector = &mesh->pieces[5 + i];
    *matrix = fused, *vector = bias;
    matrix->row = vector->row = i * (2 / t);
    matrix->row_start = vector->column_start = mesh_constant(mesh, 2 * i, 0, 2 / t);
    matrix->range_offset = at + (uint64_t)matrix->row * 5;
    vector->range_offset = bias_at + (uint64_t)vector->row;
  }
}

static inline void mesh_add_norm(mesh_plan *mesh) {
  mesh->pieces[8] = (nx_piece){.name = mesh_string(mesh, "norm"),
                               .value = mesh_parameter(mesh, 1, 0, 1, 5),
                               .range = 1,
                               .logical_rows = 1,
                               .logical_columns = 5,
                               .rows = 1,
                               .columns = 5,
                               .row_start = mesh->zero,
                               .column_start = mesh->zero,
                               .owner = mesh_owner(mesh, 3),
                               .n_dims = 1};
}

/* A setting that binds no run. */
static inline void mesh_set(mesh_plan *mesh, uint32_t index, const char *path, uint32_t value) {
  char text[16];
  snprintf(text, sizeof text, "%u", value);
  mesh->settings[index] = (nx_setting_record){mesh_string(mesh, path), mesh_string(mesh, text), 0};
}

static inline void mesh_make(mesh_plan *mesh, const mesh_shape *shape) {
  *mesh = (mesh_plan){.shape = *shape, .n_strings = 1};
  mesh->atoms[0] = (nx_atom){.name = mesh_string(mesh, "tensor"), .size = shape->tensor, .stride = 1};
  mesh->atoms[1] =
      (nx_atom){.name = mesh_string(mesh, "shard"), .size = shape->shard, .stride = shape->tensor};
  mesh->groups[0] = (nx_group){.name = mesh_string(mesh, "data"), .atoms = 2, .size = shape->shard};
  mesh->table[0] = 1;
  mesh->zero = mesh_constant(mesh, 0, 0, 0);
  mesh->first_of_shard = mesh_owner(mesh, 2);
  mesh_add_range(mesh, 0, (8 * 5 + 4 * 6 + 6 * 5 + 6) / shape->tensor, true);
  mesh_add_range(mesh, 1, 5, false);
  mesh_add_fused(mesh, mesh_add_matrices(mesh));
  mesh_add_norm(mesh);
  mesh->run = (nx_run){.n_ranks = shape->tensor * shape->shard};
  mesh->run_names = (nx_run_names){.keep = -1, .save_optimizer = 1};
  mesh_set(mesh, 0, "mesh.tensor", shape->tensor);
  mesh_set(mesh, 1, "mesh.world", shape->tensor * shape->shard);
  mesh_set(mesh, 2, "optimizer.zero_stage", shape->divided ? 3 : 1);
  mesh->settings[3] = (nx_setting_record){mesh_string(mesh, "optimizer.name"),
                                          mesh_string(mesh, shape->moments ? "\"adamw\"" : "\"sgd\""), 1};
  memcpy(mesh->header.plan_id, shape, sizeof *shape);
  mesh->plan = (nx_plan){.header = &mesh->header,
                         .strings = mesh->strings,
                         .provenance_text = mesh->strings,
                         .run = &mesh->run,
                         .run_names = &mesh->run_names,
                         .atoms = mesh->atoms,
                         .groups = mesh->groups,
                         .constants = mesh->constants,
                         .terms = mesh->terms,
                         .table = mesh->table,
                         .values = mesh->values,
                         .pieces = mesh->pieces,
                         .parameter_groups = &mesh->group,
                         .ranges = mesh->ranges,
                         .chunks = &mesh_chunk,
                         .settings = mesh->settings};
  mesh->plan.n[NX_SECTION_ATOMS] = 2, mesh->plan.n[NX_SECTION_GROUPS] = 1;
  mesh->plan.n[NX_SECTION_CONSTANTS] = mesh->n_constants, mesh->plan.n[NX_SECTION_VALUES] = mesh->n_values;
  mesh->plan.n[NX_SECTION_PIECES] = MESH_PIECES, mesh->plan.n[NX_SECTION_RANGES] = 2;
  mesh->plan.n[NX_SECTION_PARAMETER_GROUPS] = 1;
  mesh->plan.n[NX_SECTION_SETTINGS] = 4;
}

/* ---- ranks ---- */

typedef struct mesh_ranks mesh_ranks;

typedef struct mesh_rank {
  mesh_ranks *all;
  nxr_world world;
  nxr_pieces pieces;
  uint8_t *arenas; /* [NX_N_ARENAS, MESH_ARENA_BYTES] */
  nxr_fault fault;
  bool good;
} mesh_rank;

struct mesh_ranks {
  mesh_plan *mesh;
  uint32_t n;
  pthread_barrier_t barrier;
  uint64_t meeting[512];
  mesh_rank ranks[MESH_MAX_RANKS];
  bool (*work)(mesh_rank *rank, void *data);
  void *data;
};

static inline void mesh_copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes) {
  (void)device;
  memcpy(destination, host, n_bytes);
}

static inline void mesh_copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes) {
  (void)device;
  memcpy(host, source, n_bytes);
}

static const nxk_backend mesh_backend = {.name = "copy", .copy_in = mesh_copy_in, .copy_out = mesh_copy_out};

static inline mesh_ranks *mesh_ranks_open(mesh_plan *mesh) {
  mesh_ranks *all = calloc(1, sizeof *all);
  assert(all != NULL);
  all->mesh = mesh;
  all->n = mesh->run.n_ranks;
  pthread_barrier_init(&all->barrier, NULL, all->n);
  for (uint32_t i = 0; i < all->n; i++) {
    mesh_rank *rank = &all->ranks[i];
    rank->all = all;
    rank->world = (nxr_world){.rank = i, .size = all->n, .deadline_s = 300};
    rank->world.hosts = (uint32_t *)all; /* the way from a world to its ranks */
    rank->arenas = calloc(NX_N_ARENAS, MESH_ARENA_BYTES);
    rank->pieces = (nxr_pieces){.plan = &mesh->plan, .rank = i, .backend = &mesh_backend};
    for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++)
      rank->pieces.base[kind] = rank->arenas + (size_t)kind * MESH_ARENA_BYTES;
  }
  return all;
}

static inline void mesh_ranks_close(mesh_ranks *all) {
  for (uint32_t i = 0; i < all->n; i++) free(all->ranks[i].arenas);
  pthread_barrier_destroy(&all->barrier);
  free(all);
}

static inline void *mesh_thread(void *argument) {
  mesh_rank *rank = argument;
  rank->fault = (nxr_fault){""};
  rank->good = rank->all->work(rank, rank->all->data);
  return NULL;
}

/* Does the work on every rank at once. True where all return true; they must agree. */
static inline bool mesh_run(mesh_ranks *all, bool (*work)(mesh_rank *rank, void *data), void *data) {
  pthread_t threads[MESH_MAX_RANKS];
  all->work = work, all->data = data;
  for (uint32_t i = 0; i < all->n; i++) pthread_create(&threads[i], NULL, mesh_thread, &all->ranks[i]);
  for (uint32_t i = 0; i < all->n; i++) pthread_join(threads[i], NULL);
  for (uint32_t i = 1; i < all->n; i++) assert(all->ranks[i].good == all->ranks[0].good);
  return all->ranks[0].good;
}

/* What the first rank that has something to say says. */
static inline const char *mesh_fault(const mesh_ranks *all) {
  for (uint32_t i = 0; i < all->n; i++)
    if (all->ranks[i].fault.text[0] != '\0') return all->ranks[i].fault.text;
  return "";
}

static inline void mesh_keep_largest(void *all, const void *one) {
  if (*(const uint64_t *)one > *(uint64_t *)all) *(uint64_t *)all = *(const uint64_t *)one;
}

static inline void mesh_add(void *all, const void *one) {
  double sum, number;
  memcpy(&sum, all, sizeof sum);
  memcpy(&number, one, sizeof number);
  sum += number;
  memcpy(all, &sum, sizeof sum);
}

/* All bits of what begins with 0 are 0. */
static inline void mesh_combine(nxr_world *world, void *values, size_t n,
                                void (*combine)(void *, const void *)) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  mesh_ranks *all = (mesh_ranks *)world->hosts;
  assert(n <= sizeof all->meeting / sizeof *all->meeting);
  if (pthread_barrier_wait(&all->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
    memset(all->meeting, 0, sizeof all->meeting);
  pthread_barrier_wait(&all->barrier);
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < n; i++) combine(&all->meeting[i], (uint8_t *)values + i * sizeof(uint64_t));
  pthread_mutex_unlock(&lock);
  pthread_barrier_wait(&all->barrier);
  memcpy(values, all->meeting, n * sizeof(uint64_t));
}

void nxr_world_max(nxr_world *world, uint64_t *values, size_t n) {
  mesh_combine(world, values, n, mesh_keep_largest);
}

void nxr_world_sum(nxr_world *world, double *values, size_t n) {
  mesh_combine(world, values, n, mesh_add);
}

void nxr_world_beat(void) {}
void nxr_world_roam(void) {}

void nxr_world_abort(int status) {
  exit(status);
}

void nxr_world_broadcast(nxr_world *world, void *bytes, size_t n_bytes) {
  mesh_ranks *all = (mesh_ranks *)world->hosts;
  assert(n_bytes <= sizeof all->meeting);
  pthread_barrier_wait(&all->barrier);
  if (world->rank == 0) memcpy(all->meeting, bytes, n_bytes);
  pthread_barrier_wait(&all->barrier);
  memcpy(bytes, all->meeting, n_bytes);
}

#endif
