/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides lie with k from row to row. They are read as 32-bit words along k: one fp32, or two neighbours
 * in bf16 (tile16.h). A panel has `lanes` columns of a side for each word of k: [words][lanes], zero where
 * the side ends. Each thread has a rectangle of c to itself and packs what it reads; so nobody waits but for
 * the end. */
#include "kernels/cpu/product.h"
#include "kernels/cpu/tile16.h"

#include <omp.h>

enum {
  LANES = 16,
  ROWS = 8,    /* of a tile of sums */
  VECTORS = 3, /* of a tile's row */
  WIDTH = VECTORS * LANES,
  BLOCK_M = 192,        /* packed rows, in the second cache */
  BLOCK_N = 32 * WIDTH, /* packed columns, in the third */
  BLOCK_WORDS = 512,
  LEAST_M = 128,
  LEAST_N = WIDTH,
  LEAST_K = 128,
  AHEAD = 32 /* rows that packing asks for before it reads them */
};

typedef struct operand {
  const char *data;
  int64_t stride; /* elements */
  bool narrow;    /* bf16 */
} operand;

typedef struct product_thread {
  const cpu_gemm_form *form;
  operand a, b;
  float *c;
  cpu_span rows, columns;
  uint32_t *a_panels, *b_panels;
} product_thread;

static int64_t at_most(int64_t n, int64_t limit) {
  return n < limit ? n : limit;
}

/* Up to LANES columns for each word of n_k elements of k. */
static void pack_lanes(const operand *x, const char *from, int64_t n_lanes, int64_t n_k, uint32_t *y,
                       int64_t lanes) {
  int64_t step = x->narrow ? 2 : 1, row = x->stride * (x->narrow ? 2 : 4);
  __mmask16 there = (__mmask16)((1U << n_lanes) - 1);
  for (int64_t k = 0; k < n_k; k += step, from += step * row, y += lanes) {
    for (int64_t i = 0; i < step; i++) __builtin_prefetch(from + (AHEAD + i) * row);
    __m512i words;
    if (x->narrow)
      words = tile16_pair(_mm256_maskz_loadu_epi16(there, from),
                          _mm256_maskz_loadu_epi16(k + 1 < n_k ? there : 0, from + row));
    else words = _mm512_maskz_loadu_epi32(there, from);
    _mm512_storeu_si512(y, words);
  }
}

/* Columns [first, first + n) of rows [k, k + n_k), in panels of `lanes`. */
static void pack(const operand *x, int64_t first, int64_t n, int64_t k, int64_t n_k, uint32_t *y,
                 int64_t lanes) {
  int64_t n_words = x->narrow ? (n_k + 1) / 2 : n_k, size = x->narrow ? 2 : 4;
  for (int64_t panel = 0; panel < n; panel += lanes, y += n_words * lanes)
    for (int64_t lane = 0; lane < lanes; lane += LANES) {
      int64_t left = n - panel - lane, column = left > 0 ? first + panel + lane : first;
      pack_lanes(x, x->data + (k * x->stride + column) * size, left > 0 ? at_most(left, LANES) : 0, n_k,
                 y + lane, lanes);
    }
}

static inline __attribute__((always_inline)) __m512 multiply_add(__m512 sum, uint32_t left, __m512i right,
                                                                 const bool narrow) {
  __m512i all = _mm512_set1_epi32((int)left);
  if (narrow) return _mm512_dpbf16_ps(sum, (__m512bh)all, (__m512bh)right);
  return _mm512_fmadd_ps(_mm512_castsi512_ps(all), _mm512_castsi512_ps(right), sum);
}

/* A tile of c, which is asked for before it is added to. */
typedef struct tile {
  const uint32_t *a, *b;
  int64_t n_words;
  float *c;
  int64_t c_row, n_rows, n_columns;
  bool accumulate;
} tile;

static inline __attribute__((always_inline)) void tile_run(const tile *t, const int n_vectors,
                                                           const bool narrow) {
  __m512 sum[ROWS][VECTORS];
  const uint32_t *a = t->a, *b = t->b;
  for (int64_t row = 0; row < t->n_rows; row++)
    for (int v = 0; v < n_vectors; v++) __builtin_prefetch(t->c + row * t->c_row + v * LANES, 1);
#pragma GCC unroll 8
  for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 3
    for (int v = 0; v < n_vectors; v++) sum[row][v] = _mm512_setzero_ps();
  for (int64_t k = 0; k < t->n_words; k++, a += LANES, b += WIDTH) {
    __m512i right[VECTORS];
#pragma GCC unroll 3
    for (int v = 0; v < n_vectors; v++) right[v] = _mm512_loadu_si512(b + v * LANES);
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 3
      for (int v = 0; v < n_vectors; v++) sum[row][v] = multiply_add(sum[row][v], a[row], right[v], narrow);
  }
#pragma GCC unroll 8
  for (int row = 0; row < ROWS; row++) {
    if (row >= t->n_rows) break;
#pragma GCC unroll 3
    for (int v = 0; v < n_vectors; v++) {
      int64_t left = t->n_columns - v * LANES;
      __mmask16 there = left >= LANES ? 0xFFFF : (__mmask16)((1U << left) - 1);
      float *c = t->c + row * t->c_row + v * LANES;
      if (t->accumulate) sum[row][v] = _mm512_add_ps(sum[row][v], _mm512_maskz_loadu_ps(there, c));
      _mm512_mask_storeu_ps(c, there, sum[row][v]);
    }
  }
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

/* The packed rows by the packed columns: c from its row i and column j on. */
static void block_run(const product_thread *t, int64_t i, int64_t n_rows, int64_t j, int64_t n_columns,
                      int64_t n_words, bool accumulate) {
  for (int64_t column = 0; column < n_columns; column += WIDTH)
    for (int64_t row = 0; row < n_rows; row += ROWS) {
      tile one = {.a = t->a_panels + row / LANES * LANES * n_words + row % LANES,
                  .b = t->b_panels + column * n_words,
                  .n_words = n_words,
                  .c = t->c + (i + row) * t->form->c_stride + j + column,
                  .c_row = t->form->c_stride,
                  .n_rows = at_most(n_rows - row, ROWS),
                  .n_columns = at_most(n_columns - column, WIDTH),
                  .accumulate = accumulate};
      tile_form(&one, t->a.narrow);
    }
}

static void columns_run(const product_thread *t, int64_t j, int64_t n_columns) {
  int64_t per_word = t->a.narrow ? 2 : 1, step = per_word * BLOCK_WORDS;
  for (int64_t k = 0; k < t->form->k; k += step) {
    int64_t n_k = at_most(t->form->k - k, step), n_words = (n_k + per_word - 1) / per_word;
    pack(&t->b, j, n_columns, k, n_k, t->b_panels, WIDTH);
    for (int64_t i = t->rows.begin; i < t->rows.end; i += BLOCK_M) {
      int64_t n_rows = at_most(t->rows.end - i, BLOCK_M);
      pack(&t->a, i, n_rows, k, n_k, t->a_panels, LANES);
      block_run(t, i, n_rows, j, n_columns, n_words, k > 0 || t->form->accumulate);
    }
  }
}

/* Threads along m; the others lie along n. The grid whose threads read least. */
static int64_t grid_rows(int64_t m, int64_t n, int64_t n_threads) {
  int64_t best = 1;
  for (int64_t rows = 1; rows <= n_threads; rows++)
    if (n_threads % rows == 0 && m / rows + n * rows / n_threads < m / best + n * best / n_threads)
      best = rows;
  return best;
}

enum { A_BYTES = BLOCK_M * BLOCK_WORDS * 4, ROOM_BYTES = A_BYTES + BLOCK_N * BLOCK_WORDS * 4 };

bool cpu_product_takes(const nxk_device *device, const cpu_gemm_form *form) {
  return device->own_products && form->trans_a && !form->trans_b && !form->bias_type &&
         form->c_type == NX_f32 && form->m >= LEAST_M && form->n >= LEAST_N && form->k >= LEAST_K;
}

uint64_t cpu_product_scratch_bytes(const nxk_device *device) {
  return (uint64_t)device->n_threads * ROOM_BYTES;
}

void cpu_product_run(const nxk_device *device, const cpu_gemm_form *form, const void *a, const void *b,
                     void *c, char *scratch) {
  int64_t n_threads = device->n_threads, n_rows = grid_rows(form->m, form->n, n_threads);
#pragma omp parallel num_threads(n_threads)
  {
    int64_t thread = omp_get_thread_num();
    char *room = scratch + thread * ROOM_BYTES;
    product_thread t = {.form = form,
                        .a = {a, form->a_stride, form->type == NX_bf16},
                        .b = {b, form->b_stride, form->type == NX_bf16},
                        .c = c,
                        .rows = cpu_share(form->m, LANES, thread % n_rows, n_rows),
                        .columns = cpu_share(form->n, WIDTH, thread / n_rows, n_threads / n_rows),
                        .a_panels = (uint32_t *)(void *)room,
                        .b_panels = (uint32_t *)(void *)(room + A_BYTES)};
    for (int64_t j = t.columns.begin; j < t.columns.end; j += BLOCK_N)
      columns_run(&t, j, at_most(t.columns.end - j, BLOCK_N));
  }
}
