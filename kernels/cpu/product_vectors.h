/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a product by vectors: tiles of sums in registers, 8 rows by 3 vectors, fp32 or bf16. Rows along
 * which k lies are read where they are; all else is packed (product_pack.h). */
#ifndef CPU_PRODUCT_VECTORS_H
#define CPU_PRODUCT_VECTORS_H

#include "kernels/cpu/product_pack.h"

enum {
  ROWS = 8, /* of a tile of sums */
  WIDTH = 48,
  VECTORS = WIDTH / LANES,
  BLOCK_WORDS = 1024,           /* along k */
  BLOCK_M = 128,                /* rows, in the second cache */
  BLOCK_N = 8 * WIDTH,          /* packed columns, in the third */
  BLOCK_N_PACKED = 4 * BLOCK_N, /* where rows are packed for each of their blocks, and */
  PANEL_WORDS = 16 * 1024,      /* no more words than these for each column of a tile */
  A_ROWS = BLOCK_M,             /* packed at once */
  LONGEST_PASS = 1024,          /* rows */
  UNIT = 1024 * 360,            /* elements of c that are worth a part, */
  UNIT_PACKED = 1024 * 768,     /* and where rows are packed */
  TILE_SUMS = 0,
  WIDE = 1 /* has fp32 */
};

#include "kernels/cpu/product_block.h"

/* Below these oneDNN is the faster. It is slow in bf16 where few rows read a right side. */
static const cpu_product_least LEAST_WIDE = {128, 128, 128}, LEAST_NARROW = {16, WIDTH, 32};

static const product_words *words_of(const cpu_gemm_form *form) {
  static const product_words wide = {1, 1, BLOCK_WORDS}, narrow = {2, 1, BLOCK_WORDS};
  return form->type == NX_bf16 ? &narrow : &wide;
}

/* A tile of c: what it begins with, what is added at the end, where it goes. */
typedef struct tile {
  const uint32_t *a, *b;
  int64_t a_row, a_word; /* words from one row and word of a to the next */
  int64_t n_words, n_rows, n_columns;
  place from, bias, to;
  ahead *next; /* is asked for meanwhile */
} tile;

static inline __attribute__((always_inline)) __m512 multiply_add(__m512 sum, uint32_t left, __m512i right,
                                                                 const bool narrow) {
  __m512i all = _mm512_set1_epi32((int)left);
  if (narrow) return _mm512_dpbf16_ps(sum, (__m512bh)all, (__m512bh)right);
  return _mm512_fmadd_ps(_mm512_castsi512_ps(all), _mm512_castsi512_ps(right), sum);
}

static inline __attribute__((always_inline)) void tile_write(const tile *t, __m512 sum[ROWS][VECTORS],
                                                             const __mmask16 *there, const int n_vectors,
                                                             const bool narrow) {
  const place to = {t->to.data, t->to.stride, 0, narrow};
#pragma GCC unroll 8
  for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 3
    for (int v = 0; v < n_vectors; v++)
      if (row < t->n_rows) write_lanes(&to, row, v, there[v], sum[row][v]);
}

/* The branches stand outside the loops: within them they cost 2 % of a product. */
static inline __attribute__((always_inline)) void tile_end(const tile *t, __m512 sum[ROWS][VECTORS],
                                                           const int n_vectors) {
  const place from = t->from, bias = t->bias, to = t->to;
  __mmask16 there[VECTORS];
#pragma GCC unroll 3
  for (int v = 0; v < n_vectors; v++) {
    int64_t left = t->n_columns - v * LANES;
    there[v] = left >= LANES ? 0xFFFF : (__mmask16)((1U << left) - 1);
  }
  if (from.data)
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 3
      for (int v = 0; v < n_vectors; v++)
        if (row < t->n_rows) sum[row][v] = _mm512_add_ps(sum[row][v], read_lanes(&from, row, v, there[v]));
  if (bias.data)
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 3
      for (int v = 0; v < n_vectors; v++)
        sum[row][v] = _mm512_add_ps(sum[row][v], read_lanes(&bias, 0, v, there[v]));
  if (to.narrow) tile_write(t, sum, there, n_vectors, true);
  else tile_write(t, sum, there, n_vectors, false);
}

/* The lines that will be written are asked for before the sums are made. */
static inline __attribute__((always_inline)) void tile_run(const tile *t, const int n_vectors,
                                                           const bool narrow) {
  __m512 sum[ROWS][VECTORS];
  const int64_t a_row = t->a_row, a_word = t->a_word;
  const uint32_t *a = t->a, *a3 = a + 3 * a_row, *a6 = a + 6 * a_row, *b = t->b;
  for (int64_t row = 0; row < t->n_rows; row++)
    for (int v = 0; v < n_vectors; v++)
      __builtin_prefetch(t->to.data + (row * t->to.stride + v * LANES) * (t->to.narrow ? 2 : 4), 1);
#pragma GCC unroll 8
  for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 3
    for (int v = 0; v < n_vectors; v++) sum[row][v] = _mm512_setzero_ps();
  for (int64_t left = t->n_words; left > 0; left -= LANES) {
    const uint32_t *end = b + at_most(left, LANES) * WIDTH;
    ahead_ask(t->next, 4);
    for (; b < end; a += a_word, a3 += a_word, a6 += a_word, b += WIDTH) {
      const uint32_t left_words[ROWS] = {a[0],      a[a_row],      a[2 * a_row], a3[0],
                                         a3[a_row], a3[2 * a_row], a6[0],        a6[a_row]};
      __m512i right[VECTORS];
#pragma GCC unroll 3
      for (int v = 0; v < n_vectors; v++) right[v] = _mm512_loadu_si512(b + v * LANES);
#pragma GCC unroll 8
      for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 3
        for (int v = 0; v < n_vectors; v++)
          sum[row][v] = multiply_add(sum[row][v], left_words[row], right[v], narrow);
    }
  }
  tile_end(t, sum, n_vectors);
}

static void tile_form(const tile *t, bool narrow) {
  switch ((t->n_columns - 1) / LANES * 2 + narrow) {
  case 0: tile_run(t, 1, false); break;
  case 1: tile_run(t, 1, true); break;
  case 2: tile_run(t, 2, false); break;
  case 3: tile_run(t, 2, true); break;
  case 4: tile_run(t, 3, false); break;
  default: tile_run(t, 3, true);
  }
}

/* Whether rows of a are read where they lie, but for those that fill no tile. */
static bool reads_rows(const cpu_gemm_form *form) {
  return !form->trans_a && (form->type == NX_f32 || form->k % 2 == 0);
}

/* Where a tile reads its rows. */
static void tile_rows(const block *b, int64_t row, tile *one) {
  const product_side *a = &b->thread->a;
  bool there = reads_rows(b->thread->form);
  one->a = b->thread->a_panels + (there ? 0 : row / LANES * LANES * one->n_words + row % LANES);
  one->a_row = 1;
  one->a_word = LANES;
  if (!there || one->n_rows < ROWS) return;
  one->a = (const uint32_t *)(const void *)side_at(a, b->i + row, b->k);
  one->a_row = a->stride / (a->narrow ? 2 : 1);
  one->a_word = 1;
}

/* The rows by WIDTH columns from `column` on; `next` is asked for meanwhile. */
static void panel_run(const block *b, int64_t column, ahead *next) {
  const place sums = b->kept.data ? b->kept : b->c, to = b->last ? b->c : sums, none = {0},
              from = !b->first                     ? sums
                     : b->thread->form->accumulate ? b->c
                                                   : none,
              bias = b->last ? b->bias : none;
  for (int64_t row = 0; row < b->n_rows; row += ROWS) {
    tile one = {.b = b->thread->b_panels + column * b->n_words,
                .n_words = b->n_words,
                .n_rows = at_most(b->n_rows - row, ROWS),
                .n_columns = at_most(b->n_columns - column, WIDTH),
                .from = place_at(from, row, column),
                .bias = place_at(bias, 0, column),
                .to = place_at(to, row, column),
                .next = next};
    tile_rows(b, row, &one);
    tile_form(&one, b->thread->a.narrow);
  }
}

/* Some of its rows. Columns are packed as the first rows come to them, and are in the caches then. */
static void rows_run(const block *b, bool first) {
  const product_thread *t = b->thread;
  int64_t n_rows = b->n_rows, n_columns = b->n_columns;
  int64_t packed = reads_rows(t->form) ? n_rows / ROWS * ROWS : 0;
  if (packed < n_rows) pack(&t->a, b->i + packed, n_rows - packed, b->k, b->n_k, t->a_panels, LANES);
  for (int64_t column = 0; column < n_columns; column += WIDTH) {
    int64_t left = n_columns - column;
    ahead next = {0};
    if (first) {
      pack(&t->b, b->j + column, at_most(left, WIDTH), b->k, b->n_k, t->b_panels + column * b->n_words,
           WIDTH);
      int64_t j = b->j + column + WIDTH;
      next = ahead_of(&t->b, j, at_most(t->end - j, WIDTH), b->k, b->n_k);
    }
    panel_run(b, column, &next);
  }
}

static void block_run(const block *b) {
  for (int64_t row = 0; row < b->n_rows; row += BLOCK_M) {
    block rows = *b;
    rows.i += row;
    rows.n_rows = at_most(b->n_rows - row, BLOCK_M);
    rows.c = place_at(b->c, row, 0);
    rows.kept = place_at(b->kept, row, 0);
    rows_run(&rows, row == 0);
  }
}

#endif
