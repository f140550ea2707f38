/* SPDX-License-Identifier: Apache-2.0 */
/* A thread has a rectangle of c to itself and packs what it reads (product_pack.h), then takes the next one;
 * so nobody waits but for the end. What is summed over several blocks of k to a narrow c lies in scratch
 * until the last. */
#include "kernels/cpu/product.h"
#include "kernels/cpu/product_pack.h"

#include <omp.h>

enum {
  ROWS = 8, /* of a tile of sums */
  WIDTH = CPU_PRODUCT_WIDTH,
  VECTORS = WIDTH / LANES,
  BLOCK_M = 256,        /* packed rows, in the second cache */
  BLOCK_N = 32 * WIDTH, /* packed columns, in the third */
  BLOCK_WORDS = 512,
  PASS_M = 4 * BLOCK_M, /* rows whose sums are kept */
  UNIT = 1024 * 768     /* elements of c that are worth a part */
};

/* Below these oneDNN is the faster. It is slow in bf16 where few rows read a right side. */
typedef struct least {
  int64_t m, n, k;
} least;
static const least LEAST_WIDE = {128, 128, 128}, LEAST_NARROW = {16, WIDTH, 32};

/* Numbers in rows of WIDTH columns, the next WIDTH of them `panel` elements apart. */
typedef struct place {
  char *data; /* NULL: none */
  int64_t stride, panel;
  bool narrow; /* bf16 */
} place;

typedef struct product_thread {
  const cpu_gemm_form *form;
  product_side a, b;
  place c, bias;
  uint32_t *a_panels, *b_panels;
  float *sums;
} product_thread;

/* A tile of c: what it begins with, what is added at the end, where it goes. */
typedef struct tile {
  const uint32_t *a, *b;
  int64_t n_words, n_rows, n_columns;
  place from, bias, to;
} tile;

/* `column` is a multiple of WIDTH. */
static place place_at(place p, int64_t row, int64_t column) {
  if (p.data) p.data += (row * p.stride + column / WIDTH * p.panel) * (p.narrow ? 2 : 4);
  return p;
}

static inline __attribute__((always_inline)) __m512 read_lanes(const place *p, int64_t row, int v,
                                                               __mmask16 there) {
  const char *at = p->data + (row * p->stride + v * LANES) * (p->narrow ? 2 : 4);
  if (!p->narrow) return _mm512_maskz_loadu_ps(there, at);
  return _mm512_castsi512_ps(
    _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, at)), 16));
}

static inline __attribute__((always_inline)) void write_lanes(const place *p, int64_t row, int v,
                                                              __mmask16 there, __m512 x) {
  char *at = p->data + (row * p->stride + v * LANES) * (p->narrow ? 2 : 4);
  if (p->narrow) _mm256_mask_storeu_epi16(at, there, (__m256i)_mm512_cvtneps_pbh(x));
  else _mm512_mask_storeu_ps(at, there, x);
}

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
  const uint32_t *a = t->a, *b = t->b;
  for (int64_t row = 0; row < t->n_rows; row++)
    for (int v = 0; v < n_vectors; v++)
      __builtin_prefetch(t->to.data + (row * t->to.stride + v * LANES) * (t->to.narrow ? 2 : 4), 1);
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

/* The packed rows by the packed columns; `whole` begins where they do. */
static void block_run(const product_thread *t, const tile *whole) {
  for (int64_t column = 0; column < whole->n_columns; column += WIDTH)
    for (int64_t row = 0; row < whole->n_rows; row += ROWS) {
      tile one = {.a = whole->a + row / LANES * LANES * whole->n_words + row % LANES,
                  .b = whole->b + column * whole->n_words,
                  .n_words = whole->n_words,
                  .n_rows = at_most(whole->n_rows - row, ROWS),
                  .n_columns = at_most(whole->n_columns - column, WIDTH),
                  .from = place_at(whole->from, row, column),
                  .bias = place_at(whole->bias, 0, column),
                  .to = place_at(whole->to, row, column)};
      tile_form(&one, t->a.narrow);
    }
}

static int64_t n_words_of(const cpu_gemm_form *form) {
  return form->type == NX_bf16 ? (form->k + 1) / 2 : form->k;
}

/* Blocks of k, as even as whole squares of words allow. */
static int64_t block_words(const cpu_gemm_form *form) {
  int64_t n_words = n_words_of(form), n_blocks = (n_words + BLOCK_WORDS - 1) / BLOCK_WORDS;
  return ((n_words + n_blocks - 1) / n_blocks + LANES - 1) / LANES * LANES;
}

static bool keeps_sums(const cpu_gemm_form *form) {
  return form->c_type != NX_f32 && block_words(form) < n_words_of(form);
}

static void pass_run(const product_thread *t, cpu_span rows, int64_t j, int64_t n_columns) {
  const cpu_gemm_form *form = t->form;
  int64_t step = block_words(form) * (t->a.narrow ? 2 : 1);
  place sums = keeps_sums(form) ? (place){(char *)t->sums, WIDTH, PASS_M * WIDTH, false}
                                : place_at(t->c, rows.begin, j);
  for (int64_t k = 0; k < form->k; k += step) {
    int64_t n_k = at_most(form->k - k, step), n_words = t->a.narrow ? (n_k + 1) / 2 : n_k;
    bool last = k + n_k == form->k;
    place c = place_at(t->c, rows.begin, j), from = k > 0 ? sums : form->accumulate ? c : (place){0};
    pack(&t->b, j, n_columns, k, n_k, t->b_panels, WIDTH);
    for (int64_t i = rows.begin; i < rows.end; i += BLOCK_M) {
      tile whole = {.a = t->a_panels,
                    .b = t->b_panels,
                    .n_words = n_words,
                    .n_rows = at_most(rows.end - i, BLOCK_M),
                    .n_columns = n_columns,
                    .from = place_at(from, i - rows.begin, 0),
                    .bias = last ? place_at(t->bias, 0, j) : (place){0},
                    .to = place_at(last ? c : sums, i - rows.begin, 0)};
      pack(&t->a, i, whole.n_rows, k, n_k, t->a_panels, LANES);
      block_run(t, &whole);
    }
  }
}

/* Parts of c that threads take as they come to them: one for each, and more where they stay large. */
typedef struct grid {
  int64_t rows, columns;
} grid;

static grid grid_of(const cpu_gemm_form *form, int64_t n_threads) {
  int64_t each = form->m * form->n / (n_threads * UNIT), n = n_threads * (each > 1 ? each : 1), best = 1;
  for (int64_t rows = 1; rows <= n; rows++) /* the parts read least */
    if (n % rows == 0 && form->m / rows + form->n * rows / n < form->m / best + form->n * best / n)
      best = rows;
  return (grid){best, n / best};
}

cpu_product_room cpu_product_room_of(const cpu_gemm_form *form, int64_t n_columns) {
  uint64_t words = 4 * (uint64_t)at_most((n_words_of(form) + LANES - 1) / LANES * LANES, BLOCK_WORDS);
  int64_t columns = at_most((n_columns + WIDTH - 1) / WIDTH * WIDTH, BLOCK_N);
  return (cpu_product_room){BLOCK_M * words, cpu_align((uint64_t)columns * words),
                            keeps_sums(form) ? (uint64_t)columns * PASS_M * 4 : 0};
}

/* What each of the threads needs. */
static cpu_product_room thread_room(const nxk_device *device, const cpu_gemm_form *form) {
  return cpu_product_room_of(form, form->n / grid_of(form, device->n_threads).columns + WIDTH);
}

static bool type_fits(nx_dtype type) {
  return type == NX_f32 || type == NX_bf16;
}

/* Where k lies along rows, words begin at even elements. */
static bool side_fits(const cpu_gemm_form *form, int64_t stride, bool along) {
  return form->type == NX_f32 || !along || stride % 2 == 0;
}

bool cpu_product_knows(const nxk_device *device, const cpu_gemm_form *form) {
  return device->own_products && type_fits(form->type) && type_fits(form->c_type) &&
         (!form->bias_type || type_fits(form->bias_type)) &&
         side_fits(form, form->a_stride, !form->trans_a) && side_fits(form, form->b_stride, form->trans_b);
}

bool cpu_product_takes(const nxk_device *device, const cpu_gemm_form *form) {
  const least *at_least = form->type == NX_bf16 ? &LEAST_NARROW : &LEAST_WIDE;
  return cpu_product_knows(device, form) && form->m >= at_least->m && form->n >= at_least->n &&
         form->k >= at_least->k;
}

uint64_t cpu_product_scratch_bytes(const nxk_device *device, const cpu_gemm_form *form) {
  cpu_product_room one = thread_room(device, form);
  return device->n_threads * cpu_product_room_bytes(&one);
}

void cpu_product_part(const cpu_gemm_form *form, const cpu_product_operands *operands, cpu_span rows,
                      cpu_span columns, const cpu_product_room *room, char *at) {
  bool narrow = form->type == NX_bf16;
  const product_thread t = {.form = form,
                            .a = {operands->a, form->a_stride, narrow, !form->trans_a},
                            .b = {operands->b, form->b_stride, narrow, form->trans_b},
                            .c = {operands->c, form->c_stride, WIDTH, form->c_type == NX_bf16},
                            .bias = {form->bias_type ? (char *)operands->bias : NULL, 0, WIDTH,
                                     form->bias_type == NX_bf16},
                            .a_panels = (uint32_t *)(void *)at,
                            .b_panels = (uint32_t *)(void *)(at + room->a_bytes),
                            .sums = (float *)(void *)(at + room->a_bytes + room->b_bytes)};
  for (int64_t i = rows.begin; i < rows.end; i += PASS_M)
    for (int64_t j = columns.begin; j < columns.end; j += BLOCK_N)
      pass_run(&t, (cpu_span){i, at_most(rows.end, i + PASS_M)}, j, at_most(columns.end - j, BLOCK_N));
}

void cpu_product_run(const nxk_device *device, const cpu_gemm_form *form,
                     const cpu_product_operands *operands, char *scratch) {
  const grid parts = grid_of(form, device->n_threads);
  const cpu_product_room room = thread_room(device, form);
  int64_t next = 0;
#pragma omp parallel num_threads(device->n_threads)
  {
    char *own = scratch + (uint64_t)omp_get_thread_num() * cpu_product_room_bytes(&room);
    for (int64_t part; (part = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < parts.rows * parts.columns;)
      cpu_product_part(form, operands, cpu_share(form->m, LANES, part % parts.rows, parts.rows),
                       cpu_share(form->n, WIDTH, part / parts.rows, parts.columns), &room, own);
  }
}
