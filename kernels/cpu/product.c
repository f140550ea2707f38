/* SPDX-License-Identifier: Apache-2.0 */
/* A thread has a rectangle of c to itself and packs what it reads (product_pack.h), but for rows along which
 * k lies, then takes the next one; so nobody waits but for the end. What is summed over several blocks of k
 * to a narrow c lies in scratch until the last. */
#include "kernels/cpu/product.h"
#include "kernels/cpu/product_pack.h"

#include <omp.h>

enum {
  ROWS = 8, /* of a tile of sums */
  WIDTH = CPU_PRODUCT_WIDTH,
  VECTORS = WIDTH / LANES,
  BLOCK_M = 128,       /* rows, in the second cache */
  BLOCK_N = 8 * WIDTH, /* packed columns, in the third */
  BLOCK_N_PACKED = 4 * BLOCK_N, /* where rows are packed for each of their blocks, and */
  PANEL_WORDS = 16 * 1024,      /* no more words than these for each column of a tile */
  BLOCK_WORDS = 1024,
  MOST_WORDS = 3 * BLOCK_WORDS / 2, /* that are no two blocks */
  PASS_M = 1024,                    /* rows whose sums are kept */
  UNIT = 1024 * 360,                /* elements of c that are worth a part */
  UNIT_PACKED = 1024 * 768
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
  int64_t end; /* of its columns */
} product_thread;

/* A tile of c: what it begins with, what is added at the end, where it goes. */
typedef struct tile {
  const uint32_t *a, *b;
  int64_t a_row, a_word; /* words from one row and word of a to the next */
  int64_t n_words, n_rows, n_columns;
  place from, bias, to;
  ahead *next; /* is asked for meanwhile */
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
    ahead_ask(t->next);
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

static int64_t n_words_of(const cpu_gemm_form *form) {
  return form->type == NX_bf16 ? (form->k + 1) / 2 : form->k;
}

/* Blocks of k, as even as whole squares of words allow. */
static int64_t block_words(const cpu_gemm_form *form) {
  int64_t n_words = n_words_of(form),
          n_blocks = n_words <= MOST_WORDS ? 1 : (n_words + BLOCK_WORDS - 1) / BLOCK_WORDS;
  return ((n_words + n_blocks - 1) / n_blocks + LANES - 1) / LANES * LANES;
}

static bool keeps_sums(const cpu_gemm_form *form) {
  return form->c_type != NX_f32 && block_words(form) < n_words_of(form);
}

/* Whether rows of a are read where they lie, but for those that fill no tile. */
static bool reads_rows(const cpu_gemm_form *form) {
  return !form->trans_a && (form->type == NX_f32 || form->k % 2 == 0);
}

static int64_t block_columns(const cpu_gemm_form *form) {
  return reads_rows(form) ? BLOCK_N : at_most(BLOCK_N_PACKED, PANEL_WORDS / block_words(form) * WIDTH);
}

/* A block of rows by one of columns, over one of k. */
typedef struct block {
  const product_thread *thread;
  int64_t i, j, k, n_k; /* where it begins in c and along k */
  bool first;           /* of those of its columns */
  tile whole;
} block;

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
  const tile *whole = &b->whole;
  for (int64_t row = 0; row < whole->n_rows; row += ROWS) {
    tile one = {.b = whole->b + column * whole->n_words,
                .n_words = whole->n_words,
                .n_rows = at_most(whole->n_rows - row, ROWS),
                .n_columns = at_most(whole->n_columns - column, WIDTH),
                .from = place_at(whole->from, row, column),
                .bias = place_at(whole->bias, 0, column),
                .to = place_at(whole->to, row, column),
                .next = next};
    tile_rows(b, row, &one);
    tile_form(&one, b->thread->a.narrow);
  }
}

/* Columns are packed as the first rows come to them, and are in the caches then. */
static void block_run(const block *b) {
  const product_thread *t = b->thread;
  int64_t n_rows = b->whole.n_rows, n_columns = b->whole.n_columns;
  int64_t packed = reads_rows(t->form) ? n_rows / ROWS * ROWS : 0;
  if (packed < n_rows) pack(&t->a, b->i + packed, n_rows - packed, b->k, b->n_k, t->a_panels, LANES);
  for (int64_t column = 0; column < n_columns; column += WIDTH) {
    int64_t left = n_columns - column;
    ahead next = {0};
    if (b->first) {
      pack(&t->b, b->j + column, at_most(left, WIDTH), b->k, b->n_k,
           t->b_panels + column * b->whole.n_words, WIDTH);
      int64_t j = b->j + column + WIDTH;
      next = ahead_of(&t->b, j, at_most(t->end - j, WIDTH), b->k, b->n_k);
    }
    panel_run(b, column, &next);
  }
}

static void pass_run(const product_thread *t, cpu_span rows, int64_t j, int64_t n_columns) {
  const cpu_gemm_form *form = t->form;
  int64_t step = block_words(form) * (t->a.narrow ? 2 : 1);
  place c = place_at(t->c, rows.begin, j), sums = c;
  if (keeps_sums(form)) sums = (place){(char *)t->sums, WIDTH, PASS_M * WIDTH, false};
  for (int64_t k = 0; k < form->k; k += step) {
    int64_t n_k = at_most(form->k - k, step), n_words = t->a.narrow ? (n_k + 1) / 2 : n_k;
    bool last = k + n_k == form->k;
    place from = k > 0 ? sums : form->accumulate ? c : (place){0};
    for (int64_t i = rows.begin; i < rows.end; i += BLOCK_M)
      block_run(&(block){t, i, j, k, n_k, i == rows.begin,
                         {.b = t->b_panels,
                          .n_words = n_words,
                          .n_rows = at_most(rows.end - i, BLOCK_M),
                          .n_columns = n_columns,
                          .from = place_at(from, i - rows.begin, 0),
                          .bias = last ? place_at(t->bias, 0, j) : (place){0},
                          .to = place_at(last ? c : sums, i - rows.begin, 0)}});
  }
}

/* Parts of c that threads take as they come to them: one for each, and more where they stay large. */
typedef struct grid {
  int64_t rows, columns;
} grid;

/* Where only columns are packed, one costs more than a row. */
static grid grid_of(const cpu_gemm_form *form, int64_t n_threads) {
  int64_t unit = reads_rows(form) ? UNIT : UNIT_PACKED, weight = reads_rows(form) ? 8 : 1;
  int64_t each = form->m * form->n / (n_threads * unit), n = n_threads * (each > 1 ? each : 1), best = 1;
  for (int64_t rows = 1; rows <= n; rows++) /* the parts read least */
    if (n % rows == 0 &&
        form->m / rows + weight * form->n * rows / n < form->m / best + weight * form->n * best / n)
      best = rows;
  return (grid){best, n / best};
}

cpu_product_room cpu_product_room_of(const cpu_gemm_form *form, int64_t n_columns) {
  int64_t words = at_most((n_words_of(form) + LANES - 1) / LANES * LANES, MOST_WORDS),
          columns =
              at_most((n_columns + WIDTH - 1) / WIDTH * WIDTH, reads_rows(form) ? BLOCK_N : BLOCK_N_PACKED),
          summed = at_most(columns, PANEL_WORDS / (MOST_WORDS / 2) * WIDTH);
  return (cpu_product_room){4 * (uint64_t)((reads_rows(form) ? LANES : BLOCK_M) * words),
                            cpu_align(4 * (uint64_t)at_most(columns * words, WIDTH * PANEL_WORDS)),
                            keeps_sums(form) ? 4 * (uint64_t)(summed * PASS_M) : 0};
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
                            .sums = (float *)(void *)(at + room->a_bytes + room->b_bytes),
                            .end = columns.end};
  for (int64_t i = rows.begin; i < rows.end; i += PASS_M)
    for (int64_t j = columns.begin; j < columns.end; j += block_columns(form))
      pass_run(&t, (cpu_span){i, at_most(rows.end, i + PASS_M)}, j,
               at_most(columns.end - j, block_columns(form)));
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
