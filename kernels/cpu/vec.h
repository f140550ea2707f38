/* SPDX-License-Identifier: Apache-2.0 */
/* Vector code that gcc makes from plain loops: chunks of any real type as fp32, logarithms, random words.
 *
 * A kernel walks its rows in chunks of at most VEC_CHUNK elements: vec_read gives a chunk as fp32 (in place
 * where it is stored so, else widened into a buffer of the caller's), vec_target and vec_commit take one back
 * with one rounding. So a kernel is written once, and conversion happens in the first-level cache. The
 * functions are inlined into loops marked `omp simd`; none branches. Included by files that are compiled once
 * per target. */
#ifndef CPU_VEC_H
#define CPU_VEC_H

#include "kernels/cpu/cpu.h"
#include "schema/bf16.h"
#include "schema/f16.h"
#include "schema/philox.h"

#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>

enum { VEC_CHUNK = 1024 };

typedef float vec_buffer[VEC_CHUNK] __attribute__((aligned(64)));

static inline uint32_t vec_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float vec_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* schema/bf16.h without branches. */
static inline uint16_t vec_to_bf16(float x) {
  uint32_t bits = vec_bits(x), size = bits & UINT32_C(0x7FFFFFFF);
  uint32_t rounded = bits + UINT32_C(0x7FFF) + (bits >> 16 & 1);
  rounded = size > UINT32_C(0x7F800000) ? bits | UINT32_C(0x00400000) : rounded;
  rounded = size < UINT32_C(0x00800000) ? bits & UINT32_C(0x80000000) : rounded;
  return (uint16_t)(rounded >> 16);
}

/* A denormal is flushed by the arithmetic that follows (DAZ), or by the store of vec_to_bf16. */
static inline void vec_widen(float *restrict y, const uint16_t *restrict x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = vec_float((uint32_t)x[i] << 16);
}

/* AVX512_BF16 has an instruction for what vec_to_bf16 does, of which gcc knows nothing. */
static inline void vec_narrow(uint16_t *restrict y, const float *restrict x, int64_t n) {
  int64_t i = 0;
#ifdef __AVX512BF16__
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256((void *)(y + i), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x + i)));
#endif
#pragma omp simd
  for (int64_t j = i; j < n; j++) y[j] = vec_to_bf16(x[j]);
}

/* schema/f16.h, eight or sixteen at a time. */
static inline void vec_widen_f16(float *restrict y, const uint16_t *restrict x, int64_t n) {
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#endif
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
  for (; i < n; i++) y[i] = nx_f16_to_float(x[i]);
}

static inline void vec_narrow_f16(uint16_t *restrict y, const float *restrict x, int64_t n) {
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256((__m256i *)(y + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; i++) y[i] = nx_f16_from_float(x[i]);
}

/* A number as it is when it has been stored in fp16, without branches: below the least that is normal all are
 * 2^-24 apart, as numbers of fp32 between 0.5 and 1 are. */
static inline float vec_round_f16(float x) {
  const uint32_t infinite = UINT32_C(0x7F800000);
  uint32_t bits = vec_bits(x), size = bits & UINT32_C(0x7FFFFFFF);
  uint32_t rounded = (size + UINT32_C(0xFFF) + (size >> 13 & 1)) & ~UINT32_C(0x1FFF);
  rounded = size >= UINT32_C(0x477FF000) ? infinite : rounded; /* from 65520 on */
  rounded = size < UINT32_C(0x38800000) ? vec_bits(vec_float(size) + 0.5F - 0.5F) : rounded;
  rounded = size > infinite ? size | UINT32_C(0x00400000) : rounded;
  return vec_float((bits & UINT32_C(0x80000000)) | rounded);
}

/* Between fp32 and a type of half its size. */
static inline void vec_widen_from(nx_dtype dtype, float *y, const uint16_t *x, int64_t n) {
  (dtype == NX_f16 ? vec_widen_f16 : vec_widen)(y, x, n);
}

static inline void vec_narrow_to(nx_dtype dtype, uint16_t *y, const float *x, int64_t n) {
  (dtype == NX_f16 ? vec_narrow_f16 : vec_narrow)(y, x, n);
}

/* Elements [start, start + n) of an array of a real type; n <= VEC_CHUNK. */
static inline const float *vec_read(const void *x, nx_dtype dtype, int64_t start, int64_t n, float *buffer) {
  if (dtype == NX_f32) return (const float *)x + start;
  vec_widen_from(dtype, buffer, (const uint16_t *)x + start, n);
  return buffer;
}

/* Where to write the chunk; vec_commit finishes it. */
static inline float *vec_target(void *y, nx_dtype dtype, int64_t start, float *buffer) {
  return dtype == NX_f32 ? (float *)y + start : buffer;
}

static inline void vec_commit(void *y, nx_dtype dtype, int64_t start, int64_t n, const float *written) {
  if (dtype != NX_f32) vec_narrow_to(dtype, (uint16_t *)y + start, written, n);
}

static inline void *vec_at(const void *x, nx_dtype dtype, int64_t index) {
  return (char *)x + index * (dtype == NX_f32 ? 4 : 2);
}

/* Copies any number of elements, from one real type to another. */
static inline void vec_copy(void *y, nx_dtype y_type, int64_t y_start, const void *x, nx_dtype x_type,
                            int64_t x_start, int64_t n) {
  if (x_type == y_type) {
    memcpy(vec_at(y, y_type, y_start), vec_at(x, x_type, x_start), (size_t)n * (x_type == NX_f32 ? 4 : 2));
  } else if (x_type == NX_f32) {
    vec_narrow_to(y_type, (uint16_t *)y + y_start, (const float *)x + x_start, n);
  } else if (y_type == NX_f32) {
    vec_widen_from(x_type, (float *)y + y_start, (const uint16_t *)x + x_start, n);
  } else {
    vec_buffer buffer;
    for (int64_t done = 0; done < n; done += VEC_CHUNK) {
      int64_t count = n - done < VEC_CHUNK ? n - done : VEC_CHUNK;
      vec_widen_from(x_type, buffer, (const uint16_t *)x + x_start + done, count);
      vec_narrow_to(y_type, (uint16_t *)y + y_start + done, buffer, count);
    }
  }
}

static inline int64_t vec_chunk_of(int64_t start, int64_t end) {
  return end - start < VEC_CHUNK ? end - start : VEC_CHUNK;
}

/* ln x within 1 ulp (Cephes' polynomial for ln(1 + f), sqrt(1/2) <= 1 + f < sqrt(2)); minus infinity of 0 and
 * of denormals, NaN of what is negative and of NaN. */
static inline float vec_log(float x) {
  const uint32_t root = UINT32_C(0x3F3504F3);
  uint32_t bits = vec_bits(x) - root;
  float n = (float)((int32_t)bits >> 23), f = vec_float((bits & UINT32_C(0x007FFFFF)) + root) - 1.0F,
        z = f * f;
  float p = 7.0376836292e-2F;
  p = p * f - 1.1514610310e-1F;
  p = p * f + 1.1676998740e-1F;
  p = p * f - 1.2420140846e-1F;
  p = p * f + 1.4249322787e-1F;
  p = p * f - 1.6668057665e-1F;
  p = p * f + 2.0000714765e-1F;
  p = p * f - 2.4999993993e-1F;
  p = p * f + 3.3333331174e-1F;
  float y = f + (p * f * z - n * 2.12194440e-4F - 0.5F * z) + n * 0.693359375F;
  y = x < INFINITY ? y : x; /* NaN of NaN */
  y = x < 1.17549435e-38F ? -INFINITY : y;
  return x < 0.0F ? NAN : y;
}

/* The cube root of x >= 0 within 2.1 ulp; NaN of NaN. It is x r^2 (1 - e)^(-2/3), where r, a third of x's
 * exponent, is within 3.5 % of the inverse root, and e = 1 - x r^3: a polynomial for |e| < 0.103, and no
 * division. */
static inline float vec_cbrt(float x) {
  float r = vec_float(UINT32_C(0x54A20000) - (uint32_t)(int32_t)((float)(int32_t)vec_bits(x) * (1.0F / 3)));
  float rx = r * x, e = __builtin_fmaf(-(r * r), rx, 1.0F), y = r * rx;
  float high = __builtin_fmaf(e * e, 4.2727813e-1F, __builtin_fmaf(e, 4.5852774e-1F, 4.9381500e-1F));
  float all = __builtin_fmaf(e * e, high, __builtin_fmaf(e, 5.5553663e-1F, 6.6666669e-1F));
  y = __builtin_fmaf(y * e, all, y);
  y = x < INFINITY ? y : x;
  return x > 0.0F ? y : x;
}

enum { PHILOX_BLOCK = 64 };

typedef struct vec_counters {
  uint32_t c[4][PHILOX_BLOCK] __attribute__((aligned(64)));
} vec_counters;

/* nx_philox_draw of PHILOX_BLOCK counters, a round at a time: that is what gcc makes vectors of. */
static inline void vec_philox_rounds(vec_counters *v, uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; round++) {
#pragma omp simd
    for (int i = 0; i < PHILOX_BLOCK; i++) {
      uint64_t p0 = (uint64_t)UINT32_C(0xD2511F53) * v->c[0][i],
               p1 = (uint64_t)UINT32_C(0xCD9E8D57) * v->c[2][i];
      v->c[0][i] = (uint32_t)(p1 >> 32) ^ v->c[1][i] ^ k0;
      v->c[2][i] = (uint32_t)(p0 >> 32) ^ v->c[3][i] ^ k1;
      v->c[1][i] = (uint32_t)p1;
      v->c[3][i] = (uint32_t)p0;
    }
    k0 += UINT32_C(0x9E3779B9);
    k1 += UINT32_C(0xBB67AE85);
  }
}

/* Words of counters (first, c1, c2, c3), (first + 1, ...), ...: 4 n of them, in the order of
 * schema/philox.h's masks. */
static inline void vec_philox(uint32_t *restrict words, int64_t n, uint64_t seed, uint32_t tensor_id,
                              uint32_t first, uint32_t c1, uint32_t c2, uint32_t c3) {
  uint32_t k0 = (uint32_t)seed ^ (tensor_id * UINT32_C(0x9E3779B1)), k1 = (uint32_t)(seed >> 32) ^ tensor_id;
  vec_counters v;
  for (int64_t start = 0; start < n; start += PHILOX_BLOCK) {
    int64_t count = n - start < PHILOX_BLOCK ? n - start : PHILOX_BLOCK;
#pragma omp simd
    for (int i = 0; i < PHILOX_BLOCK; i++) {
      v.c[0][i] = first + (uint32_t)start + (uint32_t)i;
      v.c[1][i] = c1;
      v.c[2][i] = c2;
      v.c[3][i] = c3;
    }
    vec_philox_rounds(&v, k0, k1);
    for (int64_t i = 0; i < count; i++)
      for (int word = 0; word < 4; word++) words[4 * (start + i) + word] = v.c[word][i];
  }
}

#endif
