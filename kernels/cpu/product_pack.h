/* SPDX-License-Identifier: Apache-2.0 */
/* Panels of product.c. A side of a product is read as 32-bit words along k: one fp32, or two neighbours in
 * bf16. A panel has `lanes` of its rows or columns for each word: [words][lanes], zero where the side ends.
 */
#ifndef CPU_PRODUCT_PACK_H
#define CPU_PRODUCT_PACK_H

#include "kernels/cpu/tile16.h"

enum {
  LANES = 16,
  STRIP = 32, /* rows of k that are read over all panels before the next */
  AHEAD = 32, /* rows that packing asks for before it reads them */
  SQUARES = 4 /* squares of words, likewise */
};

/* How a loop keeps a type. */
typedef struct product_words {
  int64_t n_elements; /* of k in a word */
  int64_t n_kept;     /* words for it in a panel */
  int64_t n_block;    /* words of k that are taken at once */
} product_words;

typedef struct product_side {
  const char *data;
  int64_t stride; /* elements */
  bool narrow;    /* bf16 */
  bool along;     /* k lies along a stored row, else from row to row */
} product_side;

/* Element k of a row or column. */
static inline const char *side_at(const product_side *x, int64_t lane, int64_t k) {
  return x->data + (x->along ? lane * x->stride + k : k * x->stride + lane) * (x->narrow ? 2 : 4);
}

static inline int64_t at_most(int64_t n, int64_t limit) {
  return n < limit ? n : limit;
}

/* k from row to row: up to LANES columns for each word of n_k elements of k. */
static inline void pack_columns(const product_side *x, const char *from, int64_t n_lanes, int64_t n_k,
                                uint32_t *y, int64_t lanes) {
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

/* A square of words that the side does not fill. */
static inline void pack_edge(const char *from, int64_t row_bytes, int64_t n_lanes, int64_t n_bytes,
                             uint32_t *y, int64_t lanes) {
  uint32_t square[LANES * LANES] = {0}, turned[LANES * LANES];
  for (int64_t lane = 0; lane < n_lanes; lane++)
    memcpy(square + lane * LANES, from + lane * row_bytes, (size_t)n_bytes);
  tile16_transpose(square, LANES, turned, LANES);
  for (int64_t word = 0; 4 * word < n_bytes; word++)
    memcpy(y + word * lanes, turned + word * LANES, sizeof(uint32_t) * LANES);
}

/* k along rows: up to LANES rows of n_k elements of k. What comes next, there or in the next rows, is asked
 * for before it is read. */
static inline void pack_rows(const product_side *x, const char *from, int64_t n_lanes, int64_t n_k,
                             uint32_t *y, int64_t lanes) {
  int64_t size = x->narrow ? 2 : 4, row = x->stride * size, n_bytes = n_k * size;
  for (int64_t at = 0; at < n_bytes; at += 4 * LANES, y += LANES * lanes) {
    int64_t next = at + 4 * LANES * SQUARES;
    if (next >= n_bytes) next += LANES * row - n_bytes;
    for (int64_t lane = 0; lane < LANES; lane++) __builtin_prefetch(from + next + lane * row);
    if (n_lanes < LANES || at + 4 * LANES > n_bytes)
      pack_edge(from + at, row, n_lanes, at_most(n_bytes - at, 4 * LANES), y, lanes);
    else tile16_transpose((const uint32_t *)(const void *)(from + at), row / 4, y, lanes);
  }
}

/* Rows or columns [first, first + n) of elements [k, k + n_k), in panels of `lanes`. */
static inline void pack(const product_side *x, int64_t first, int64_t n, int64_t k, int64_t n_k, uint32_t *y,
                        int64_t lanes) {
  int64_t n_words = x->narrow ? (n_k + 1) / 2 : n_k;
  int64_t strip = x->along ? n_k : STRIP;
  for (int64_t at = 0; at < n_k; at += strip)
    for (int64_t lane = 0; lane < (n + lanes - 1) / lanes * lanes; lane += LANES) {
      int64_t there = lane < n ? at_most(n - lane, LANES) : 0, i = lane < n ? first + lane : first;
      uint32_t *to = y + lane / lanes * lanes * n_words + lane % lanes + (x->narrow ? at / 2 : at) * lanes;
      (x->along ? pack_rows : pack_columns)(x, side_at(x, i, k + at), there, at_most(n_k - at, strip), to,
                                            lanes);
    }
}

/* Lines that will be read. */
typedef struct ahead {
  const char *row;
  int64_t row_bytes, n_rows, n_bytes, at;
} ahead;

static inline ahead ahead_of(const product_side *x, int64_t first, int64_t n, int64_t k, int64_t n_k) {
  int64_t size = x->narrow ? 2 : 4;
  if (n <= 0) return (ahead){0};
  return (ahead){side_at(x, first, k), x->stride * size, x->along ? n : n_k, (x->along ? n_k : n) * size, 0};
}

/* The next few of them. */
static inline __attribute__((always_inline)) void ahead_ask(ahead *a, int64_t n_lines) {
  for (int64_t i = 0; i < n_lines && a->n_rows > 0; i++) {
    __builtin_prefetch(a->row + a->at);
    a->at += 4 * LANES;
    if (a->at < a->n_bytes) continue;
    a->at = 0;
    a->row += a->row_bytes;
    a->n_rows--;
  }
}

#endif
