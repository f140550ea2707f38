/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/init.h"

#include "runtime/state/orthogonal.h"
#include "runtime/world/world.h"
#include "schema/inlined.h"
#include "schema/normal.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#include <stdlib.h>
#include <string.h>

enum { BEAT_ROWS = 4096 /* between two signs of life */ };

/* Numbers of a row of a tensor from column 4 x column4 on, n4 times four. The bits are the same whatever
 * vectors they are made in (schema/normal.h). */
typedef struct drawing {
  uint64_t seed, row;
  uint32_t tensor_id, column4;
  bool uniform;
} drawing;

/* One draw after the other would be made of whole registers: so their words lie apart first. */
INLINED void draw_words(const drawing *d, int64_t n4, uint32_t *words) {
  uint32_t apart[4][NX_NORMALS / 4];
  for (uint32_t i = 0; i < (uint32_t)n4; i++) {
    nx_philox bits = nx_normal_bits(d->seed, d->tensor_id, d->row, d->column4 + i);
    for (int word = 0; word < 4; word++) apart[word][i] = bits.word[word];
  }
  for (int64_t i = 0; i < n4; i++)
    for (int word = 0; word < 4; word++) words[4 * i + word] = apart[word][i];
}

INLINED void draw_as(const drawing *d, int64_t n4, double *values) {
  uint32_t words[NX_NORMALS];
  draw_words(d, n4, words);
  if (!d->uniform) nx_normals(words, 4 * n4, values);
  for (int64_t i = 0; d->uniform && i < 4 * n4; i++) values[i] = nx_uniform(words[i]);
}

static void draw_plain(const drawing *d, int64_t n4, double *values) {
  draw_as(d, n4, values);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void draw_avx2(const drawing *d, int64_t n4, double *values) {
  draw_as(d, n4, values);
}

__attribute__((target("avx512f,avx512bw,avx512dq"))) static void draw_avx512(const drawing *d, int64_t n4,
                                                                             double *values) {
  draw_as(d, n4, values);
}

static void draw(const drawing *d, int64_t n4, double *values) {
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) draw_avx512(d, n4, values);
  else if (__builtin_cpu_supports("avx2")) draw_avx2(d, n4, values);
  else draw_plain(d, n4, values);
}
#else
static void draw(const drawing *d, int64_t n4, double *values) {
  draw_plain(d, n4, values);
}
#endif

static void draw_row(uint64_t seed, uint32_t tensor_id, const nx_piece *piece, const nxr_span *span,
                     float *values) {
  drawing d = {.seed = seed,
               .row = (uint64_t)span->row,
               .tensor_id = tensor_id,
               .uniform = piece->init == NX_INIT_UNIFORM};
  double drawn[NX_NORMALS];
  for (int64_t from = 0, n; from < span->n; from += n) {
    int64_t column = span->column + from, lead = column % 4;
    n = span->n - from < NX_NORMALS - lead ? span->n - from : NX_NORMALS - lead;
    d.column4 = (uint32_t)(column / 4);
    draw(&d, (lead + n + 3) / 4, drawn);
    for (int64_t i = 0; i < n; i++) values[from + i] = (float)(piece->init_std * drawn[lead + i]);
  }
}

static void take_row(const nxr_orthogonal *matrix, const nx_piece *piece, const nxr_span *span,
                     float *values) {
  for (int64_t i = 0; i < span->n; i++)
    values[i] = (float)(piece->init_std * nxr_orthogonal_at(matrix, span->row, span->column + i));
}

/* No number that is drawn is larger. */
static nxr_greatest greatest(const nx_piece *piece) {
  double most = piece->init == NX_INIT_NORMAL ? 6.5 : piece->init == NX_INIT_UNIFORM ? 1.75 : 1;
  return (nxr_greatest){.all = (float)(piece->init_std * most)};
}

/* Whether there is anything of the piece on this rank. */
static bool is_held(const nxr_pieces *pieces, uint32_t index) {
  for (int64_t row = 0; row < pieces->plan->pieces[index].rows; row++)
    if (nxr_pieces_row(pieces, NXR_PARAM, index, row).n > 0) return true;
  return false;
}

/* What a thread writes a row in. */
typedef struct row_room {
  float *values;
  void *room;
} row_room;

/* A piece whose rows are made one by one, in any order. */
typedef struct making {
  const nxr_pieces *pieces;
  uint32_t index, tensor_id;
  const nxr_orthogonal *matrix; /* NULL: not made of one */
} making;

static void init_row(const making *m, int64_t row, const row_room *room) {
  const nx_piece *piece = &m->pieces->plan->pieces[m->index];
  const nxr_greatest most = greatest(piece);
  nxr_span span = nxr_pieces_row(m->pieces, NXR_PARAM, m->index, row);
  if (span.n == 0) return;
  span = nxr_pieces_elements(m->pieces, m->index, &span);
  if (piece->init == NX_INIT_NORMAL || piece->init == NX_INIT_UNIFORM)
    draw_row(m->pieces->plan->run->seed, m->tensor_id, piece, &span, room->values);
  else if (m->matrix) take_row(m->matrix, piece, &span, room->values);
  else
    for (int64_t i = 0; i < span.n; i++) room->values[i] = piece->init == NX_INIT_ONES ? 1.0f : 0.0f;
  nxr_pieces_set(m->pieces, m->index, row, room->values, &most, room->room);
}

/* By as many threads as there are rooms. */
static bool init_piece(const nxr_pieces *pieces, uint32_t index, nxr_orthogonal *matrix,
                       const row_room *rooms, uint32_t n_rooms) {
  const nx_piece *piece = &pieces->plan->pieces[index];
  making m = {.pieces = pieces,
              .index = index,
              .tensor_id =
                  (uint32_t)nx_constant_value(pieces->plan, piece->tensor_id, pieces->rank, piece->chunk)};
  if (piece->init == NX_INIT_ORTHOGONAL && is_held(pieces, index)) {
    if (!nxr_orthogonal_make(matrix, pieces->plan->run->seed, m.tensor_id, piece->logical_rows,
                             piece->logical_columns))
      return false;
    m.matrix = matrix;
  }
  for (int64_t first = 0; first < piece->rows; first += BEAT_ROWS) {
    int64_t end = piece->rows - first < BEAT_ROWS ? piece->rows : first + BEAT_ROWS;
    nxr_world_beat();
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_rooms) schedule(static)
    for (int64_t row = first; row < end; row++) init_row(&m, row, &rooms[omp_get_thread_num()]);
#else
    (void)n_rooms;
    for (int64_t row = first; row < end; row++) init_row(&m, row, rooms);
#endif
  }
  return true;
}

void nxr_init_adapter(const nxr_pieces *pieces, uint32_t index, bool first, uint64_t seed, float *values,
                      void *room) {
  const nx_piece *piece = &pieces->plan->pieces[index];
  uint32_t tensor_id =
      (uint32_t)nx_constant_value(pieces->plan, piece->tensor_id, pieces->rank, piece->chunk);
  for (int64_t row = 0; row < piece->rows; row++) {
    const nxr_span span = nxr_pieces_row(pieces, NXR_PARAM, index, row);
    if (first) draw_row(seed, tensor_id, piece, &span, values);
    for (int64_t i = 0; !first && i < span.n; i++) values[i] = 0;
    if (span.n) nxr_pieces_set(pieces, index, row, values, &(nxr_greatest){0}, room);
  }
}

static void rooms_free(row_room *rooms, uint32_t n_rooms) {
  for (uint32_t i = 0; rooms && i < n_rooms; i++) {
    free(rooms[i].values);
    free(rooms[i].room);
  }
  free(rooms);
}

static row_room *rooms_new(const nx_plan *plan, uint32_t n_rooms) {
  size_t widest = nxr_pieces_widest(plan);
  row_room *rooms = calloc(n_rooms, sizeof *rooms);
  bool enough = rooms != NULL;
  for (uint32_t i = 0; enough && i < n_rooms; i++) {
    rooms[i] = (row_room){malloc(widest * sizeof(float)), malloc(widest * sizeof(float))};
    enough = rooms[i].values && rooms[i].room;
  }
  if (enough) return rooms;
  rooms_free(rooms, n_rooms);
  return NULL;
}

bool nxr_init_weights(const nxr_pieces *pieces, nxr_fault *fault) {
  const nx_plan *plan = pieces->plan;
  uint32_t n_rooms = pieces->backend->host_addressable ? plan->run->n_threads : 1;
  row_room *rooms = rooms_new(plan, n_rooms);
  nxr_orthogonal matrix = {0};
  bool enough = rooms != NULL;
  for (uint32_t i = 0; enough && i < plan->n[NX_SECTION_PIECES]; i++)
    enough = init_piece(pieces, i, &matrix, rooms, n_rooms);
  nxr_orthogonal_free(&matrix);
  rooms_free(rooms, n_rooms);
  return enough || nxr_fault_set(fault, "out of memory");
}
