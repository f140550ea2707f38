/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of fp32 as wide as the target's registers, for kernels that compute much of each element.
 *
 * The loops of vec.h go over a chunk once to widen it, once to compute and once to narrow it, and while one
 * of them runs a core sees little of the next. Here a vector is read, computed with and written before the
 * next, so that memory brings what follows meanwhile. Operators work on lanes as they do on numbers. */
#ifndef CPU_LANES_H
#define CPU_LANES_H

#include "kernels/cpu/vec.h"
#include "schema/inlined.h"

#ifdef __AVX512F__
enum { LANES = 16 };
typedef __m512 lanes;
typedef uint32_t lanes_words __attribute__((vector_size(64)));

static inline lanes lanes_of(float x) {
  return _mm512_set1_ps(x);
}

/* a > b ? a : b, so b where one is NaN. */
static inline lanes lanes_max(lanes a, lanes b) {
  return _mm512_max_ps(a, b);
}

static inline bool lanes_any_above(lanes x, lanes y) {
  return _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ) != 0;
}

/* x < y ? a : b */
static inline lanes lanes_below(lanes x, lanes y, lanes a, lanes b) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a);
}

/* x <= y ? a : b */
static inline lanes lanes_at_most(lanes_words x, lanes_words y, lanes a, lanes b) {
  return _mm512_mask_blend_ps(_mm512_cmple_epu32_mask((__m512i)x, (__m512i)y), b, a);
}

/* The bits of a that `bits` has, and the other ones of b. */
static inline lanes lanes_bits(uint32_t bits, lanes a, lanes b) {
  return (lanes)_mm512_ternarylogic_epi32(_mm512_set1_epi32((int)bits), (__m512i)a, (__m512i)b, 0xCA);
}

/* x y - z, rounded once */
static inline lanes lanes_less(lanes x, lanes y, lanes z) {
  return _mm512_fmsub_ps(x, y, z);
}

/* What x stands above the whole number below it. */
static inline lanes lanes_fraction(lanes x) {
  return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF);
}

/* p 2^n, n being the whole number below x; 0 and infinity for infinite ones, whatever p is. */
static inline lanes lanes_scaled(lanes p, lanes x) {
  return _mm512_scalef_ps(p, x);
}

/* x; where it is beyond 1, or none, 1 with its sign. */
static inline lanes lanes_small(lanes x) {
  enum { NEARER_TO_0_SIGN_OF_FIRST = 0x2 };
  return _mm512_range_ps(x, lanes_of(1), NEARER_TO_0_SIGN_OF_FIRST);
}

static inline lanes lanes_read_f32(const float *x) {
  return _mm512_loadu_ps(x);
}

static inline lanes lanes_read_bf16(const uint16_t *x) {
  return (lanes)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)x)), 16);
}

static inline void lanes_write_f32(float *y, lanes x) {
  _mm512_storeu_ps(y, x);
}

/* Halves are added, and halves of the sum. */
static inline float lanes_sum(lanes x) {
  return _mm512_reduce_add_ps(x);
}
#else
enum { LANES = 8 };
typedef __m256 lanes;
typedef uint32_t lanes_words __attribute__((vector_size(32)));

static inline lanes lanes_of(float x) {
  return _mm256_set1_ps(x);
}

static inline lanes lanes_max(lanes a, lanes b) {
  return _mm256_max_ps(a, b);
}

static inline bool lanes_any_above(lanes x, lanes y) {
  return _mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_GT_OQ)) != 0;
}

static inline lanes lanes_below(lanes x, lanes y, lanes a, lanes b) {
  return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}

static inline lanes lanes_at_most(lanes_words x, lanes_words y, lanes a, lanes b) {
  __m256i most = _mm256_max_epu32((__m256i)x, (__m256i)y);
  return _mm256_blendv_ps(b, a, (lanes)_mm256_cmpeq_epi32(most, (__m256i)y));
}

static inline lanes lanes_bits(uint32_t bits, lanes a, lanes b) {
  lanes mask = (lanes)_mm256_set1_epi32((int)bits);
  return _mm256_or_ps(_mm256_and_ps(mask, a), _mm256_andnot_ps(mask, b));
}

static inline lanes lanes_less(lanes x, lanes y, lanes z) {
  return _mm256_fmsub_ps(x, y, z);
}

static inline lanes lanes_fraction(lanes x) {
  return x - _mm256_floor_ps(x);
}

/* 0 below 2^-126, infinity from 2^128 on, whatever p is; NaN of NaN. */
static inline lanes lanes_scaled(lanes p, lanes x) {
  __m256i n = _mm256_cvttps_epi32(_mm256_floor_ps(x));
  lanes y = (lanes)_mm256_add_epi32((__m256i)p, _mm256_slli_epi32(n, 23));
  y = _mm256_blendv_ps(y, x + lanes_of(INFINITY), _mm256_cmp_ps(x, lanes_of(128), _CMP_NLT_UQ));
  return _mm256_andnot_ps(_mm256_cmp_ps(x, lanes_of(-126), _CMP_LT_OQ), y);
}

/* What is beyond 1 here does lanes_scaled no harm. */
static inline lanes lanes_small(lanes x) {
  return x;
}

static inline lanes lanes_read_f32(const float *x) {
  return _mm256_loadu_ps(x);
}

static inline lanes lanes_read_bf16(const uint16_t *x) {
  return (lanes)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)x)), 16);
}

static inline void lanes_write_f32(float *y, lanes x) {
  _mm256_storeu_ps(y, x);
}

static inline float lanes_sum(lanes x) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return half[0] + half[1];
}
#endif

/* As many words as a vector has numbers. */
static inline lanes_words lanes_words_read(const void *x) {
  lanes_words words;
  memcpy(&words, x, sizeof words);
  return words;
}

static inline lanes_words lanes_words_of(uint32_t x) {
  return (lanes_words){0} + x;
}

/* LANES elements of f32 or bf16 from i on. */
INLINED lanes lanes_read(const void *x, const nx_dtype type, int64_t i) {
  if (type == NX_f32) return lanes_read_f32((const float *)x + i);
  return lanes_read_bf16((const uint16_t *)x + i);
}

INLINED void lanes_write(void *y, const nx_dtype type, int64_t i, lanes x) {
  if (type == NX_f32) {
    lanes_write_f32((float *)y + i, x);
    return;
  }
#ifdef __AVX512BF16__
  _mm256_storeu_si256((void *)((uint16_t *)y + i), (__m256i)_mm512_cvtneps_pbh(x));
#else
  float room[LANES];
  lanes_write_f32(room, x);
  vec_narrow((uint16_t *)y + i, room, LANES);
#endif
}

static inline uintptr_t lanes_address(const void *x, nx_dtype type, int64_t i) {
  return (uintptr_t)x + (uintptr_t)i * (type == NX_f32 ? 4 : 2);
}

/* Asks memory for an element that will be read, or written; there may be none. */
INLINED void ask_at(const void *x, const nx_dtype type, int64_t i) {
  __builtin_prefetch((const void *)lanes_address(x, type, i));
}

INLINED void ask_to_write(const void *y, nx_dtype type, int64_t i) {
  __builtin_prefetch((const void *)lanes_address(y, type, i), 1);
}

/* Whether lanes_write rounds to that type by an instruction. Where none does, rounding many elements at once
 * takes fewer instructions (vec_narrow_to). */
static inline bool lanes_round_to(nx_dtype type) {
#ifdef __AVX512BF16__
  return type == NX_bf16;
#else
  (void)type;
  return false;
#endif
}

/* The first n of them, where that is fewer, and `rest` behind them. */
INLINED lanes lanes_first(const void *x, const nx_dtype type, int64_t i, int64_t n, float rest) {
  if (n >= LANES) return lanes_read(x, type, i);
  float room[LANES];
  for (int64_t k = n; k < LANES; k++) room[k] = rest;
  vec_copy(room, NX_f32, 0, x, type, i, n);
  return lanes_read_f32(room);
}

/* Writes the first n. */
INLINED void lanes_keep(void *y, const nx_dtype type, int64_t i, int64_t n, lanes x) {
  float room[LANES];
  if (n >= LANES) {
    lanes_write(y, type, i, x);
    return;
  }
  lanes_write_f32(room, x);
  vec_copy(y, type, i, room, NX_f32, 0, n);
}

static inline int64_t lanes_whole(int64_t n) {
  return n / LANES * LANES;
}

static inline float lanes_most(lanes x) {
  float room[LANES], most = -INFINITY;
  lanes_write_f32(room, x);
  for (int i = 0; i < LANES; i++) most = room[i] > most ? room[i] : most;
  return most;
}

static inline lanes lanes_abs(lanes x) {
  return lanes_bits(UINT32_C(0x80000000), lanes_of(0), x);
}

/* 2^r for 0 <= r <= 1: the polynomial of degree 6 that is nearest to it there, and 1 of 0. */
static inline lanes lanes_power(lanes r) {
  lanes p = lanes_of(2.16129294e-4F);
  p = lanes_less(p, r, lanes_of(-1.24678423e-3F));
  p = lanes_less(p, r, lanes_of(-9.67545155e-3F));
  p = lanes_less(p, r, lanes_of(-5.54852821e-2F));
  p = lanes_less(p, r, lanes_of(-2.40229309e-1F));
  p = lanes_less(p, r, lanes_of(-6.93147063e-1F));
  return lanes_less(p, r, lanes_of(-1));
}

/* 2^x within 1.5 ulp; 0 below 2^-126, infinity from 2^128 on, NaN of NaN. */
static inline lanes lanes_exp2(lanes x) {
  return lanes_scaled(lanes_power(lanes_fraction(x)), x);
}

/* e^x within 1.5 ulp, and so on as for 2^x. What rounding took from x log2(e) is added to its fraction; it is
 * small but where the result is 0 or infinity. */
static inline lanes lanes_exp(lanes x) {
  const lanes log2e = lanes_of(1.44269504F), rest = lanes_of(1.92596299e-8F);
  lanes t = x * log2e, lost = lanes_small(x * rest + lanes_less(x, log2e, t));
  return lanes_scaled(lanes_power(lanes_fraction(t) + lost), t);
}

static inline float one_exp(float x) {
  return lanes_exp(lanes_of(x))[0];
}

/* erf(x) within 1.1 ulp (after N. Juffa): an odd polynomial below 0.93, 1 - e^polynomial above. */
static inline lanes lanes_erf(lanes x) {
  lanes t = lanes_abs(x), s = x * x;
  lanes high = t * lanes_of(-1.72853470e-5F) + lanes_of(3.83197126e-4F);
  high = high * s + (t * lanes_of(-3.88396438e-3F) + lanes_of(2.42546219e-2F));
  high = high * t - lanes_of(1.06777877e-1F);
  high = high * t - lanes_of(6.34846687e-1F);
  high = high * t - lanes_of(1.28717512e-1F);
  high = high * t - t;
  high = lanes_of(1) - lanes_exp(lanes_below(lanes_of(4), t, lanes_of(-20), high));
  lanes low = lanes_of(-5.96761703e-4F);
  low = low * s + lanes_of(4.99119423e-3F);
  low = low * s - lanes_of(2.67681349e-2F);
  low = low * s + lanes_of(1.12819925e-1F);
  low = low * s - lanes_of(3.76125336e-1F);
  low = low * s + lanes_of(1.28379166e-1F);
  low = low * x + x;
  return lanes_below(lanes_of(0.927734375F), t, lanes_bits(UINT32_C(0x80000000), x, high), low);
}

static inline lanes lanes_sigmoid(lanes x) {
  return lanes_of(1) / (lanes_of(1) + lanes_exp(lanes_of(0) - x));
}

/* tanh within 3 ulp (after Cephes): an odd polynomial below 0.625, where 1 - 2 / (e^2x + 1) would cancel. */
static inline lanes lanes_tanh(lanes x) {
  lanes t = lanes_abs(x), s = x * x;
  lanes high = lanes_of(1) - lanes_of(2) / (lanes_exp(t + t) + lanes_of(1));
  lanes low = lanes_of(-5.70498872745e-3F);
  low = low * s + lanes_of(2.06390887954e-2F);
  low = low * s - lanes_of(5.37397155531e-2F);
  low = low * s + lanes_of(1.33314422036e-1F);
  low = low * s - lanes_of(3.33332819422e-1F);
  low = low * s * x + x;
  return lanes_below(t, lanes_of(0.625F), low, lanes_bits(UINT32_C(0x80000000), x, high));
}

static inline lanes lanes_capped(lanes x, float cap) {
  return lanes_of(cap) * lanes_tanh(x * lanes_of(1 / cap));
}

/* n numbers bent so that none is beyond the cap. */
static inline void lanes_cap(float *x, int64_t n, float cap) {
  int64_t whole = lanes_whole(n);
  for (int64_t i = 0; i < whole; i += LANES) lanes_write_f32(x + i, lanes_capped(lanes_read_f32(x + i), cap));
  if (whole < n)
    lanes_keep(x, NX_f32, whole, n - whole, lanes_capped(lanes_first(x, NX_f32, whole, n - whole, 0), cap));
}

#endif
