/* SPDX-License-Identifier: Apache-2.0 */
/* Logical tensors as four ranks hold them: tensor-parallel boxes with padding, ZeRO shards that begin in the
 * middle of a row, copies with one owner. Every element is somewhere, is written by exactly one rank, and is
 * drawn alike. */
#include "runtime/state/init.h"
#include "runtime/state/pieces.h"
#include "tests/unit/cmocka_all.h"

#include "schema/bf16.h"

#include <stdlib.h>
#include <string.h>

/* tensor 2 (atom 0) x data 2 (atom 1). Per rank: an embedding [4 of 7 rows + padding, 6], rows over tensor; a
 * row matrix [5, 4 of 8], columns over tensor; a norm [6], the same on all; in one range of 24 + 6 + 20 + 14
 * elements, sharded over data in the middle of the matrix's first row. */
enum { N_RANKS = 4, N_RANGE = 64, N_SHARD = 32, EMBEDDING = 0, NORM = 24, MATRIX = 30 };
enum { ZERO, ROW_START, COLUMN_START, SHARD_START, ON_FIRST, ON_FIRST_DATA, ID_1, ID_2, ID_3 };

static const char strings[] = "\0embedding\0matrix\0norm\0pad";
static const nx_atom atoms[] = {{0, 2, 1, 0}, {0, 2, 2, 0}};
static const nx_group groups[] = {{0, 2, 2, 0}};
static const int64_t table[] = {1, 0};
static const nx_term terms[] = {{1, 0, 4, NX_TERM_STRIDE, 0},
                                {2, 0, N_SHARD, NX_TERM_STRIDE, 0},
                                {1, 0, 0, NX_TERM_CHOICE, 0},
                                {2, 0, 0, NX_TERM_CHOICE, 0}};
static const nx_constant constants[] = {{0, 0, 0}, {0, 0, 1}, {0, 0, 1}, {0, 1, 1}, {1, 2, 2},
                                        {1, 3, 1}, {11, 0, 0}, {12, 0, 0}, {13, 0, 0}};
static const nx_arena_record arenas[] = {{NX_ARENA_param, 0, 128, 0}, {NX_ARENA_master, 0, 128, 0},
                                         {NX_ARENA_grad, 0, 256, 0}};
static const nx_value values[] = {
    {.dtype = NX_bf16, .n_dims = 1, .arena = NX_ARENA_param, .dims = {N_RANGE, 1, 1, 1}, .bytes = 128,
     .view_of = NX_NONE, .offset_shift = NX_NONE},
    {.dtype = NX_f32, .n_dims = 1, .arena = NX_ARENA_master, .dims = {N_SHARD, 1, 1, 1}, .bytes = 128,
     .view_of = NX_NONE, .offset_shift = NX_NONE},
    {.dtype = NX_f32, .n_dims = 1, .arena = NX_ARENA_grad, .dims = {N_RANGE, 1, 1, 1}, .bytes = 256,
     .view_of = NX_NONE, .offset_shift = NX_NONE},
    {.dtype = NX_bf16, .n_dims = 2, .arena = NX_ARENA_param, .dims = {4, 6, 1, 1}, .offset = 2 * EMBEDDING,
     .bytes = 48, .view_of = 0, .offset_shift = NX_NONE},
    {.dtype = NX_bf16, .n_dims = 2, .arena = NX_ARENA_param, .dims = {5, 4, 1, 1}, .offset = 2 * MATRIX,
     .bytes = 40, .view_of = 0, .offset_shift = NX_NONE},
    {.dtype = NX_bf16, .n_dims = 1, .arena = NX_ARENA_param, .dims = {6, 1, 1, 1}, .offset = 2 * NORM,
     .bytes = 12, .view_of = 0, .offset_shift = NX_NONE},
};
static const nx_range ranges[] = {{.group = 0, .n_elements = N_RANGE, .n_shard = N_SHARD, .shard_group = 0,
                                   .shard_start = SHARD_START, .param = 0, .master = 1, .grad = 2,
                                   .states = {NX_NONE, NX_NONE, NX_NONE, NX_NONE}}};
static const nx_piece pieces[] = {
    {.name = 1, .value = 3, .logical_rows = 7, .logical_columns = 6, .rows = 4, .columns = 6,
     .row_start = ROW_START, .range_offset = EMBEDDING, .owner = ON_FIRST_DATA, .init = NX_INIT_NORMAL,
     .init_std = 0.5, .tensor_id = ID_1, .n_dims = 2},
    {.name = 11, .value = 4, .logical_rows = 5, .logical_columns = 8, .rows = 5, .columns = 4,
     .column_start = COLUMN_START, .range_offset = MATRIX, .owner = ON_FIRST_DATA, .init = NX_INIT_NORMAL,
     .init_std = 2, .tensor_id = ID_2, .n_dims = 2},
    {.name = 18, .value = 5, .logical_rows = 1, .logical_columns = 6, .rows = 1, .columns = 6,
     .range_offset = NORM, .owner = ON_FIRST, .init = NX_INIT_ONES, .tensor_id = ID_3, .n_dims = 1},
};
static const nx_chunk chunks[] = {{.forward = NX_NONE, .n_slots = 1}};
static const nx_run run = {.n_ranks = N_RANKS, .seed = 42, .n_slots = 1};
enum { N_PIECES = sizeof pieces / sizeof *pieces };

static void copy_in(nxk_device *device, void *to, const void *from, uint64_t n_bytes) {
  (void)device;
  memcpy(to, from, n_bytes);
}

static void copy_out(nxk_device *device, void *to, const void *from, uint64_t n_bytes) {
  (void)device;
  memcpy(to, from, n_bytes);
}

static const nxk_backend backend = {.name = "host", .copy_in = copy_in, .copy_out = copy_out};

typedef struct holder {
  uint16_t param[N_RANGE];
  float master[N_SHARD], grad[N_RANGE];
  nx_plan plan;
  nxr_pieces pieces;
} holder;

static holder *hold(uint32_t rank) {
  holder *at = calloc(1, sizeof *at);
  assert_non_null(at);
  at->plan = (nx_plan){.strings = strings, .run = &run, .atoms = atoms, .groups = groups,
                       .constants = constants, .terms = terms, .table = table, .arenas = arenas,
                       .values = values, .pieces = pieces, .ranges = ranges, .chunks = chunks};
  at->plan.n[NX_SECTION_ATOMS] = 2;
  at->plan.n[NX_SECTION_PIECES] = N_PIECES;
  at->pieces = (nxr_pieces){.plan = &at->plan, .rank = rank, .backend = &backend};
  at->pieces.base[NX_ARENA_param] = at->param;
  at->pieces.base[NX_ARENA_master] = at->master;
  at->pieces.base[NX_ARENA_grad] = at->grad;
  return at;
}

static void test_one_writer(void **state) {
  (void)state;
  static const nxr_kind kinds[] = {NXR_PARAM, NXR_MASTER, NXR_GRAD};
  for (size_t k = 0; k < 3; k++) {
    int written[N_PIECES][8][8] = {{{0}}};
    for (uint32_t rank = 0; rank < N_RANKS; rank++) {
      holder *at = hold(rank);
      for (uint32_t piece = 0; piece < N_PIECES; piece++) {
        for (int64_t row = 0; row < pieces[piece].rows; row++) {
          nxr_span span = nxr_pieces_row(&at->pieces, kinds[k], piece, row);
          assert_true(span.n == 0 || (span.row < pieces[piece].logical_rows &&
                                      span.column + span.n <= pieces[piece].logical_columns));
          if (nxr_pieces_writes(&at->pieces, kinds[k], piece))
            for (int64_t i = 0; i < span.n; i++) written[piece][span.row][span.column + i]++;
        }
      }
      free(at);
    }
    for (uint32_t piece = 0; piece < N_PIECES; piece++)
      for (int64_t row = 0; row < pieces[piece].logical_rows; row++)
        for (int64_t column = 0; column < pieces[piece].logical_columns; column++)
          assert_int_equal(written[piece][row][column], 1);
  }
}

static void test_drawn_alike(void **state) {
  (void)state;
  float whole[N_PIECES][8][8] = {{{0}}};
  nxr_fault fault = {""};
  int n_seen[N_PIECES] = {0};
  for (uint32_t rank = 0; rank < N_RANKS; rank++) {
    holder *at = hold(rank);
    assert_true(nxr_init_weights(&at->pieces, &fault));
    for (uint32_t piece = 0; piece < N_PIECES; piece++)
      for (int64_t row = 0; row < pieces[piece].rows; row++) {
        nxr_span span = nxr_pieces_row(&at->pieces, NXR_MASTER, piece, row);
        for (int64_t i = 0; i < span.n; i++) {
          float value, *known = &whole[piece][span.row][span.column + i];
          memcpy(&value, (float *)span.address + i, sizeof value);
          assert_true(value != 0);
          if (*known != 0) assert_true(value == *known);
          else n_seen[piece]++;
          *known = value;
        }
      }
    free(at);
  }
  for (uint32_t piece = 0; piece < N_PIECES; piece++)
    assert_int_equal(n_seen[piece], pieces[piece].logical_rows * pieces[piece].logical_columns);
  /* Parameters are the same numbers, rounded; padding stays zero. */
  for (uint32_t rank = 0; rank < N_RANKS; rank++) {
    holder *at = hold(rank);
    assert_true(nxr_init_weights(&at->pieces, &fault));
    uint32_t tensor = rank % 2;
    for (int64_t row = 0; row < 4; row++)
      for (int64_t column = 0; column < 6; column++) {
        float want = 4 * tensor + row < 7 ? whole[0][4 * tensor + row][column] : 0;
        assert_int_equal(at->param[EMBEDDING + 6 * row + column], nx_bf16_from_float(want));
      }
    for (int64_t row = 0; row < 5; row++)
      for (int64_t column = 0; column < 4; column++)
        assert_int_equal(at->param[MATRIX + 4 * row + column],
                         nx_bf16_from_float(whole[1][row][4 * tensor + column]));
    for (int64_t column = 0; column < 6; column++)
      assert_int_equal(at->param[NORM + column], nx_bf16_from_float(1));
    free(at);
  }
}

static void test_shards_meet_in_a_row(void **state) {
  (void)state;
  holder *first = hold(0), *second = hold(2); /* data coordinates 0 and 1 */
  nxr_span a = nxr_pieces_row(&first->pieces, NXR_MASTER, 1, 0),
           b = nxr_pieces_row(&second->pieces, NXR_MASTER, 1, 0);
  assert_int_equal(a.n, 2); /* the row is elements 30 to 33 of the range */
  assert_int_equal(b.n, 2);
  assert_int_equal(a.column, 0);
  assert_int_equal(b.column, 2);
  assert_ptr_equal(a.address, first->master + 30);
  assert_ptr_equal(b.address, second->master);
  a = nxr_pieces_row(&first->pieces, NXR_GRAD, 1, 0), b = nxr_pieces_row(&second->pieces, NXR_GRAD, 1, 0);
  assert_ptr_equal(a.address, first->grad + 30);
  assert_ptr_equal(b.address, second->grad + 32);
  a = nxr_pieces_row(&first->pieces, NXR_MASTER, 1, 1);
  assert_int_equal(a.n, 0);
  free(first);
  free(second);
}

static void test_set_splits(void **state) {
  (void)state;
  const float row[] = {1, 2, 3, 4, 5, 6};
  char room[64];
  holder *at = hold(1); /* tensor 1: rows 4 to 6, then padding */
  nxr_pieces_set(&at->pieces, 0, 2, row, &(nxr_greatest){.all = 1}, room);
  for (int i = 0; i < 6; i++) {
    assert_int_equal(at->param[12 + i], nx_bf16_from_float(row[i]));
    assert_true(at->master[12 + i] == row[i]);
  }
  nxr_pieces_set(&at->pieces, 0, 3, row, &(nxr_greatest){.all = 1}, room);
  for (int i = 0; i < 6; i++) assert_int_equal(at->param[18 + i], 0);
  free(at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_writer),
      cmocka_unit_test(test_drawn_alike),
      cmocka_unit_test(test_shards_meet_in_a_row),
      cmocka_unit_test(test_set_splits),
  };
  return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
