/* SPDX-License-Identifier: Apache-2.0 */
/* Products by AMX: sums of 32 rows by 32 columns in four tiles. Both sides are packed (tiles_pack.h).
 *
 * Tiles multiply bf16. A product in fp32 is six of the nine that the parts of its sides have
 * (tiles_split.h): the other three are smaller than what fp32 rounds off. It is 1.5 times as fast as one by
 * vectors, and its errors are half as large, since 32 products are summed before their sum is added.
 *
 * A loop that reads both sides from the second cache is half as fast as the tiles. So k is taken in chunks:
 * that of WIDTH columns stays in the first cache while all rows of a block pass, and their sums wait. Rows
 * are read but once for each chunk, and so that they do not push the columns out (TILELOADDT1). Sums
 * that are whole go to c step by step while the next are made, for a core holds no more than some hundred
 * stores back. Packing between the tiles' products was slower than before them: what it reads comes late, and
 * tiles wait for the same buffers. */
#ifndef CPU_PRODUCT_TILES_H
#define CPU_PRODUCT_TILES_H

#include "kernels/cpu/product_pack.h"

enum {
  WIDTH = 32,
  ROWS = 32,
  STEP = 16,                /* words along k of a tile */
  STEP_WORDS = ROWS * STEP, /* of a panel of either side */
  CHUNK_STEPS = 16,
  BLOCK_WORDS = 512,    /* along k */
  CHUNK_STEPS_WIDE = 4, /* of fp32 */
  BLOCK_WORDS_WIDE = 256,
  BLOCK_M = 256, /* rows, in the second cache */
  A_ROWS = BLOCK_M,
  ASKED = 2,      /* panels of c for which memory is asked at once */
  TOGETHER = 16,  /* panels of columns, packed at once */
  BLOCK_N = 1536, /* packed columns, in the second cache if they can be, and */
  BLOCK_N_PACKED = BLOCK_N,
  PANEL_WORDS = 12 * 1024,  /* no more words than these for each column of a tile */
  LONGEST_PASS = INT32_MAX, /* rows */
  UNIT = 1024 * 2048,       /* elements of c that are worth a part */
  UNIT_PACKED = UNIT,
  TILE_SUMS = BLOCK_M * WIDTH,
  WIDE = 1 /* has fp32 */
};

#include "kernels/cpu/product_block.h"
#include "kernels/cpu/tiles_pack.h"

/* Below these oneDNN is the faster. */
static const cpu_product_least LEAST_WIDE = {96, 64, 32}, LEAST_NARROW = {1, 32, 32};

static bool reads_rows(const cpu_gemm_form *form) {
  (void)form;
  return false;
}

static const product_words *words_of(const cpu_gemm_form *form) {
  static const product_words wide = {2, SPLIT, BLOCK_WORDS_WIDE}, narrow = {2, 1, BLOCK_WORDS};
  return form->type == NX_bf16 ? &narrow : &wide;
}

/* ---- the end of sums: even columns lie in one tile, odd ones in the other ---- */

typedef struct pair {
  __m512 even, odd;
} pair;

typedef struct those_there {
  __mmask32 narrow; /* those that there are */
  __mmask16 wide[2];
} those_there;

static inline those_there columns_there(int64_t n) {
  uint32_t all = n >= WIDTH ? UINT32_MAX : (1U << n) - 1;
  return (those_there){all, {(__mmask16)all, (__mmask16)(all >> LANES)}};
}

static inline __m512i interleaved(int first) {
  return _mm512_add_epi32(_mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                          _mm512_set1_epi32(first));
}

static inline __attribute__((always_inline)) pair read_pair(const char *at, those_there there,
                                                            const bool narrow) {
  if (narrow) {
    __m512i both = _mm512_maskz_loadu_epi16(there.narrow, at);
    return (pair){_mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
                  _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32((int)0xFFFF0000)))};
  }
  __m512 low = _mm512_maskz_loadu_ps(there.wide[0], at), high = _mm512_maskz_loadu_ps(there.wide[1], at + 64);
  return (pair){_mm512_permutex2var_ps(low, every_second(0), high),
                _mm512_permutex2var_ps(low, every_second(1), high)};
}

static inline __attribute__((always_inline)) void write_pair(char *at, those_there there, pair x,
                                                             const bool narrow, bool streams) {
  if (narrow) {
    __m512i even = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(x.even)),
            odd = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(x.odd));
    __m512i both = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
    if (streams) _mm512_stream_si512((__m512i *)(void *)at, both);
    else _mm512_mask_storeu_epi16(at, there.narrow, both);
    return;
  }
  __m512 low = _mm512_permutex2var_ps(x.even, interleaved(0), x.odd),
         high = _mm512_permutex2var_ps(x.even, interleaved(8), x.odd);
  if (streams) {
    _mm512_stream_ps((float *)(void *)at, low);
    _mm512_stream_ps((float *)(void *)(at + 64), high);
  } else {
    _mm512_mask_storeu_ps(at, there.wide[0], low);
    _mm512_mask_storeu_ps(at + 64, there.wide[1], high);
  }
}

static inline pair pair_add(pair x, pair y) {
  return (pair){_mm512_add_ps(x.even, y.even), _mm512_add_ps(x.odd, y.odd)};
}

/* Sums of ROWS by WIDTH that are whole, on their way to c. */
typedef struct ending {
  const float *sums;
  int64_t row, column, n_rows, n_done;
} ending;

typedef struct work {
  const block *b;
  bool adds;          /* to c as it is */
  bool wide;          /* fp32 */
  int64_t n_steps;    /* of k, and */
  int64_t step_words; /* of each in a panel */
  ending ending;
  ahead asked;     /* of c */
  int64_t n_asked; /* lines in a step */
} work;

static inline __attribute__((always_inline)) void rows_end(const work *w, int64_t end, const bool adds,
                                                           const bool narrow) {
  const block *b = w->b;
  const ending *e = &w->ending;
  const place c = place_at(b->c, e->row, e->column), bias = place_at(b->bias, 0, e->column);
  const those_there there = columns_there(b->n_columns - e->column);
  const bool streams = b->thread->streams && there.narrow == UINT32_MAX;
  pair added = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  if (b->last && bias.data) added = read_pair(bias.data, there, bias.narrow);
  for (int64_t i = e->n_done; i < end; i++) {
    const float *sums = e->sums + i * WIDTH;
    char *at = c.data + i * c.stride * (narrow ? 2 : 4);
    pair sum = pair_add((pair){_mm512_load_ps(sums), _mm512_load_ps(sums + LANES)}, added);
    if (adds) sum = pair_add(sum, read_pair(at, there, narrow));
    write_pair(at, there, sum, narrow, streams);
  }
}

static void end_some(work *w, int64_t n_rows) {
  ending *e = &w->ending;
  int64_t end = at_most(e->n_done + n_rows, e->n_rows);
  if (end == e->n_done) return;
  switch (w->adds * 2 + w->b->c.narrow) {
  case 0: rows_end(w, end, false, false); break;
  case 1: rows_end(w, end, false, true); break;
  case 2: rows_end(w, end, true, false); break;
  default: rows_end(w, end, true, true);
  }
  e->n_done = end;
}

/* The lines of c that the sums after these will go to. They come from memory, so they are asked for as evenly
 * as steps are: what is asked at once or late keeps the buffers that tiles are loaded through. */
static void ask_later(work *w, int64_t row, int64_t end, int64_t column) {
  const block *b = w->b;
  if (b->thread->streams || (b->kept.data && !b->last)) return;
  column += ASKED * WIDTH;
  if (column >= b->n_columns) {
    column = 0;
    row = end;
    end = at_most(b->n_rows, end + BLOCK_M);
  }
  int64_t size = b->c.narrow ? 2 : 4, n_columns = at_most(b->n_columns - column, ASKED * WIDTH);
  w->asked = (ahead){place_at(b->c, row, column).data, b->c.stride * size, end - row, n_columns * size, 0};
  w->n_asked = (ROWS * WIDTH * size / 64 + w->n_steps - 1) / w->n_steps;
}

/* ---- blocks ---- */

static inline void sums_begin(const float *sums, bool first) {
  enum { ROW = WIDTH * 4 };
  const float *below = sums + ROWS / 2 * WIDTH;
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, ROW);
    _tile_loadd(1, sums + LANES, ROW);
    _tile_loadd(2, below, ROW);
    _tile_loadd(3, below + LANES, ROW);
  }
}

static inline void sums_store(float *sums) {
  enum { ROW = WIDTH * 4 };
  float *below = sums + ROWS / 2 * WIDTH;
  _tile_stored(0, sums, ROW);
  _tile_stored(1, sums + LANES, ROW);
  _tile_stored(2, below, ROW);
  _tile_stored(3, below + LANES, ROW);
}

static inline void square_multiply(void) {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

static inline void rows_load(const uint32_t *a) {
  _tile_stream_loadd(4, a, 64);
  _tile_stream_loadd(5, a + SQUARE_WORDS / 2, 64);
}

static inline void columns_load(const uint32_t *b) {
  enum { ROW = WIDTH * 4 };
  _tile_loadd(6, b, ROW);
  _tile_loadd(7, b + LANES, ROW);
}

/* Some steps of k. Meanwhile sums that are whole go to c. */
static inline void chunk_narrow(work *w, const uint32_t *a, const uint32_t *b, int64_t n_steps) {
  for (int64_t step = 0; step < n_steps; step++, a += STEP_WORDS, b += STEP_WORDS) {
    _tile_stream_loadd(4, a, 64);
    columns_load(b);
    _tile_dpbf16ps(0, 4, 6);
    _tile_stream_loadd(5, a + STEP_WORDS / 2, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    ahead_ask(&w->asked, w->n_asked);
    end_some(w, ROWS / CHUNK_STEPS);
  }
}

/* As many, in fp32. Each product of parts has a side of the one before it. */
static inline void chunk_wide(work *w, const uint32_t *a, const uint32_t *b, int64_t n_steps) {
  enum { SECOND = SQUARE_WORDS, THIRD = 2 * SQUARE_WORDS, STEP_PARTS = SPLIT * SQUARE_WORDS, SOME = 2 };
  for (int64_t step = 0; step < n_steps; step++, a += STEP_PARTS, b += STEP_PARTS) {
    rows_load(a);
    columns_load(b + THIRD);
    square_multiply();
    end_some(w, SOME);
    columns_load(b + SECOND);
    square_multiply();
    end_some(w, SOME);
    rows_load(a + SECOND);
    square_multiply();
    end_some(w, SOME);
    columns_load(b);
    square_multiply();
    ahead_ask(&w->asked, w->n_asked);
    end_some(w, SOME);
    rows_load(a + THIRD);
    square_multiply();
    end_some(w, SOME);
    rows_load(a);
    square_multiply();
    end_some(w, SOME);
  }
}

/* ROWS by WIDTH sums over some steps of k. */
static inline void chunk_run(work *w, const uint32_t *a, const uint32_t *b, int64_t n_steps, float *sums,
                             bool first) {
  sums_begin(sums, first);
  if (w->wide) chunk_wide(w, a, b, n_steps);
  else chunk_narrow(w, a, b, n_steps);
  sums_store(sums);
}

/* Rows [row, end) by WIDTH columns from `column` on. The last rows' sums go to c in the next panel. */
static void panel_run(work *w, int64_t row, int64_t end, int64_t column) {
  const block *b = w->b;
  const product_thread *t = b->thread;
  const uint32_t *right = t->b_panels + column / WIDTH * w->n_steps * w->step_words;
  float *sums = b->kept.data ? (float *)(void *)place_at(b->kept, row, column).data : t->tiles;
  bool ends = !b->kept.data || b->last, begins = !b->kept.data || b->first;
  const int64_t chunk = w->wide ? CHUNK_STEPS_WIDE : CHUNK_STEPS;
  for (int64_t step = 0; step < w->n_steps; step += chunk) {
    int64_t n_steps = at_most(w->n_steps - step, chunk);
    bool last = step + chunk >= w->n_steps;
    for (int64_t i = row; i < end; i += ROWS) {
      int64_t at = i - row, n_rows = at_most(end - i, ROWS);
      chunk_run(w, t->a_panels + (at / ROWS * w->n_steps + step) * w->step_words,
                right + step * w->step_words, n_steps, sums + at * WIDTH, begins && step == 0);
      end_some(w, ROWS);
      if (last && ends) w->ending = (ending){sums + at * WIDTH, i, column, n_rows, 0};
    }
  }
  if (end - row <= ROWS) end_some(w, ROWS); /* the next panel's sums lie there */
}

static void block_run(const block *b) {
  const product_thread *t = b->thread;
  int64_t n_steps = (b->n_words + STEP - 1) / STEP;
  work w = {.b = b,
            .adds = t->form->accumulate || !(b->first || b->kept.data),
            .wide = !t->a.narrow,
            .n_steps = n_steps,
            .step_words = words_of(t->form)->n_kept * STEP_WORDS};
  tile16_begin();
  for (int64_t row = 0; row < b->n_rows; row += BLOCK_M) {
    int64_t end = at_most(b->n_rows, row + BLOCK_M);
    tiles_pack(&t->a, false, b->i + row, end - row, b->k, b->n_k, t->a_panels);
    for (int64_t column = 0; column < b->n_columns; column += WIDTH) {
      if (row == 0 && column % (TOGETHER * WIDTH) == 0)
        tiles_pack(&t->b, true, b->j + column, at_most(b->n_columns - column, TOGETHER * WIDTH), b->k, b->n_k,
                   t->b_panels + column / WIDTH * n_steps * w.step_words);
      if (column % (ASKED * WIDTH) == 0) ask_later(&w, row, end, column);
      panel_run(&w, row, end, column);
    }
    end_some(&w, ROWS);
  }
  tile16_end();
  if (t->streams) _mm_sfence(); /* what went past the caches is there before other threads read it */
}

#endif
