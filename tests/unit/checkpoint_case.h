/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks in threads with a small model, filled with numbers that tell where they belong, and their
 * checkpoints. */
#ifndef TESTS_UNIT_CHECKPOINT_CASE_H
#define TESTS_UNIT_CHECKPOINT_CASE_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/files/safetensors.h"
#include "schema/bf16.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/mesh_plan.h"
#include "tests/unit/temporary.h"

static const mesh_shape one_rank = {1, 1, false, true};
static const mesh_shape shapes[] = {{1, 1, true, true}, {2, 1, true, true},  {1, 2, true, true},
                                    {2, 2, true, true}, {1, 4, true, true},  {2, 2, false, true},
                                    {1, 2, false, true}, {2, 2, true, false}, {1, 1, false, false},
                                    {2, 2, true, true, true}, {1, 4, false, true, true}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* The number at a place of a logical tensor; `salt` tells storages and steps apart. */
static inline float number(const char *tensor, int64_t row, int64_t column, uint32_t salt) {
  uint32_t mixed =
      (uint32_t)(unsigned char)tensor[0] * 7919u + (uint32_t)row * 104729u + (uint32_t)column * 1299709u;
  mixed = (mixed ^ salt * 15485863u) * 2654435761u;
  return (float)(mixed >> 4) * 0x1p-28f + 0.1f;
}

/* Fills all that a rank holds; parameters are rounded from the same numbers as their masters. */
static inline bool fill(mesh_rank *rank, void *data) {
  const uint32_t *salt = data;
  const nxr_pieces *pieces = &rank->pieces;
  memset(rank->arenas, 0, (size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
  for (uint32_t piece = 0; piece < MESH_PIECES; piece++) {
    const nx_piece *at = &pieces->plan->pieces[piece];
    const char *name = nx_plan_string(pieces->plan, at->name);
    for (int64_t row = 0; row < at->rows; row++) {
      float values[16], room[16];
      nxr_span whole = nxr_pieces_row(pieces, NXR_PARAM, piece, row);
      for (int64_t i = 0; i < whole.n; i++) values[i] = number(name, whole.row, whole.column + i, *salt);
      if (whole.n) nxr_pieces_set(pieces, piece, row, values, &(nxr_greatest){.all = 1}, room);
      for (nxr_kind kind = NXR_GRAD; kind < NXR_N_KINDS; kind++) {
        if (!nxr_pieces_has(pieces, kind, piece)) continue;
        nxr_span span = nxr_pieces_row(pieces, kind, piece, row);
        for (int64_t i = 0; i < span.n; i++)
          values[i] = number(name, span.row, span.column + i, *salt + 100 * kind);
        nxr_pieces_put(pieces, NX_f32, &span, values);
      }
    }
  }
  return true;
}

typedef struct request {
  uint64_t step;
  bool resume;
  const char *path;
} request;

static const nxr_fingerprint *trained_on;
static bool welcomes_another;

static inline nxr_checkpoint checkpoint_of(mesh_rank *rank) {
  static char directory[512];
  if (rank->world.rank == 0) snprintf(directory, sizeof directory, "%s/run", temporary_folder);
  uint64_t meet = 0;
  nxr_world_max(&rank->world, &meet, 1);
  const nxr_manifest_run run = {&rank->all->mesh->plan, trained_on, welcomes_another};
  return (nxr_checkpoint){run, &rank->world, &rank->pieces, directory};
}

static inline bool prepare(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  return nxr_checkpoint_prepare(&checkpoint, ((request *)data)->resume, &rank->fault);
}

static inline bool save(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  return nxr_checkpoint_save(&checkpoint, ((request *)data)->step, &rank->fault);
}

static inline bool resume(mesh_rank *rank, void *data) {
  uint64_t step = UINT64_MAX;
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  const nxr_resume own = {.directory = checkpoint.directory};
  bool good = nxr_checkpoint_resume(&checkpoint, &own, &step, &rank->fault);
  if (rank->world.rank == 0) ((request *)data)->step = step;
  return good;
}

static inline bool import(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  return nxr_checkpoint_import(&checkpoint, ((request *)data)->path, &rank->fault);
}

static inline bool gradients(mesh_rank *rank, void *data) {
  nxr_checkpoint checkpoint = checkpoint_of(rank);
  return nxr_checkpoint_gradients(&checkpoint, ((request *)data)->path, &rank->fault);
}

static inline void remove_run(void) {
  char command[600];
  snprintf(command, sizeof command, "rm -rf %s/run", temporary_folder);
  assert_int_equal(system(command), 0);
}

static mesh_plan mesh;

static inline mesh_ranks *open_mesh(const mesh_shape *shape, uint32_t salt) {
  mesh_make(&mesh, shape);
  mesh_ranks *all = mesh_ranks_open(&mesh);
  mesh_run(all, fill, &salt);
  return all;
}

static inline void must(mesh_ranks *all, bool (*work)(mesh_rank *, void *), request *with) {
  if (!mesh_run(all, work, with)) fail_msg("%s", mesh_fault(all));
}

static inline void must_fail(mesh_ranks *all, bool (*work)(mesh_rank *, void *), request *with,
                      const char *because) {
  if (mesh_run(all, work, with)) fail_msg("succeeded, expected: %s", because);
  if (strstr(mesh_fault(all), because) == NULL) fail_msg("expected \"%s\" in: %s", because, mesh_fault(all));
}

/* A run with checkpoints of steps 1 … n, filled with the step as salt. */
static inline mesh_ranks *make_run(const mesh_shape *shape, uint32_t n) {
  remove_run();
  mesh_ranks *all = open_mesh(shape, 1);
  must(all, prepare, &(request){0});
  for (uint32_t step = 1; step <= n; step++) {
    mesh_run(all, fill, &step);
    must(all, save, &(request){.step = step});
  }
  return all;
}

/* Whether everything but gradients is as `fill` with that salt leaves it. */
static inline void holds(mesh_ranks *all, uint32_t salt) {
  for (uint32_t i = 0; i < all->n; i++) {
    mesh_rank *rank = &all->ranks[i];
    uint8_t *was = malloc((size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
    memcpy(was, rank->arenas, (size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
    fill(rank, &salt);
    memset(rank->pieces.base[NX_ARENA_grad], 0, MESH_ARENA_BYTES);
    memset(was + (size_t)NX_ARENA_grad * MESH_ARENA_BYTES, 0, MESH_ARENA_BYTES);
    assert_memory_equal(rank->arenas, was, (size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
    free(was);
  }
}

static inline void check_tensor(const char *path, const char *name, int64_t rows, int64_t columns,
                                bool transposed, uint32_t salt) {
  nxr_safetensors file;
  nxr_fault fault = {""};
  if (!nxr_safetensors_open(path, &file, &fault)) fail_msg("%s", fault.text);
  const nxr_safetensor *tensor = nxr_safetensors_find(&file, name);
  assert_non_null(tensor);
  assert_int_equal(tensor->dtype, NX_f32);
  assert_int_equal(tensor->n_dims, rows == 1 ? 1 : 2);
  assert_int_equal(tensor->dims[0], rows == 1 || transposed ? columns : rows);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t column = 0; column < columns; column++) {
      float value;
      nxr_safetensor_floats(tensor, (uint64_t)(transposed ? column * rows + row : row * columns + column), 1,
                            &value);
      assert_true(value == number(name, row, column, salt));
    }
  nxr_safetensors_close(&file);
}

static inline void check_file(const char *path, uint32_t salt) {
  check_tensor(path, "rows", 7, 5, false, salt);
  check_tensor(path, "columns", 4, 6, true, salt);
  check_tensor(path, "fused", 6, 5, true, salt);
  check_tensor(path, "bias", 1, 6, false, salt);
  check_tensor(path, "norm", 1, 5, false, salt);
}

#endif
