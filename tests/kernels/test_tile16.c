/* SPDX-License-Identifier: Apache-2.0 */
/* The AMX product of tile16.h on machines without AMX: its instructions are replaced by loops that do what
 * Intel's manual says of them (LDTILECFG, TILELOADD, TILESTORED, TDPBF16PS), so tiles, strides and layouts
 * are tested. Small whole numbers make every product and sum exact. */
#include <immintrin.h>

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 16, TILE_BYTES = 64 };

static uint8_t tiles[8][TILE_ROWS][TILE_BYTES];
static bool tiles_ready;

static void emulated_loadconfig(const void *config) {
  const uint8_t *bytes = config;
  assert(bytes[0] == 1 && bytes[1] == 0);
  for (int tile = 0; tile < 8; tile++) {
    assert(bytes[16 + 2 * tile] == TILE_BYTES && bytes[17 + 2 * tile] == 0);
    assert(bytes[48 + tile] == TILE_ROWS);
  }
  tiles_ready = true;
}

static void emulated_release(void) {
  tiles_ready = false;
}

static void emulated_zero(int tile) {
  assert(tiles_ready);
  memset(tiles[tile], 0, sizeof tiles[tile]);
}

static void emulated_load(int tile, const void *base, long stride) {
  assert(tiles_ready);
  for (int row = 0; row < TILE_ROWS; row++)
    memcpy(tiles[tile][row], (const char *)base + row * stride, TILE_BYTES);
}

static void emulated_store(int tile, void *base, long stride) {
  assert(tiles_ready);
  for (int row = 0; row < TILE_ROWS; row++) memcpy((char *)base + row * stride, tiles[tile][row], TILE_BYTES);
}

static float half_at(const uint8_t *row, int index) {
  uint32_t bits = (uint32_t)row[2 * index] << 16 | (uint32_t)row[2 * index + 1] << 24;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void emulated_multiply(int c, int a, int b) {
  for (int m = 0; m < TILE_ROWS; m++)
    for (int n = 0; n < TILE_BYTES / 4; n++) {
      float sum;
      memcpy(&sum, &tiles[c][m][4 * n], sizeof sum);
      for (int k = 0; k < TILE_BYTES / 4; k++)
        for (int half = 0; half < 2; half++)
          sum += half_at(tiles[a][m], 2 * k + half) * half_at(tiles[b][k], 2 * n + half);
      memcpy(&tiles[c][m][4 * n], &sum, sizeof sum);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) emulated_loadconfig(config)
#define _tile_release() emulated_release()
#define _tile_zero(tile) emulated_zero(tile)
#define _tile_loadd(tile, base, stride) emulated_load(tile, base, stride)
#define _tile_stored(tile, base, stride) emulated_store(tile, base, stride)
#define _tile_dpbf16ps(c, a, b) emulated_multiply(c, a, b)
#define CPU_AMX
#include "kernels/cpu/tile16.h"
#include "tests/tap.h"
#include "tests/unit/cmocka_all.h"

static int drawn(void) {
  static uint32_t state = 1;
  state = state * 1664525U + 1013904223U;
  return (int)(state >> 24 & 15) - 7;
}

static uint16_t bf16_of(int value) {
  float exact = (float)value;
  uint32_t bits;
  memcpy(&bits, &exact, sizeof bits);
  return (uint16_t)(bits >> 16);
}

/* Fills a and b as whole numbers and in the layouts of tile16.h, multiplies both ways, and compares. */
static void check_product(int64_t m, int64_t n, int64_t k, int64_t slack, bool accumulate) {
  int64_t a_row = k / 2 + slack, b_row = n + slack, c_row = n + 2 * slack;
  int *a = calloc((size_t)(m * k), sizeof *a), *b = calloc((size_t)(k * n), sizeof *b);
  uint16_t *a_words = calloc((size_t)(m * a_row), 4), *b_words = calloc((size_t)(k / 2 * b_row), 4);
  float *c = calloc((size_t)(m * c_row), sizeof *c);
  for (int64_t i = 0; i < m * k; i++) a_words[i / k * a_row * 2 + i % k] = bf16_of(a[i] = drawn());
  for (int64_t i = 0; i < k * n; i++)
    b_words[(i / n / 2 * b_row + i % n) * 2 + i / n % 2] = bf16_of(b[i] = drawn());
  for (int64_t i = 0; i < m * c_row; i++) c[i] = 5;
  tile16_begin();
  tile16_multiply((tile16_product){m, n, k / 2, (const uint32_t *)(const void *)a_words, a_row,
                                   (const uint32_t *)(const void *)b_words, b_row, c, c_row, accumulate});
  tile16_end();
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < c_row; j++) {
      int sum = accumulate || j >= n ? 5 : 0;
      for (int64_t p = 0; p < k && j < n; p++) sum += a[i * k + p] * b[p * n + j];
      assert_true(c[i * c_row + j] == (float)sum);
    }
  free(a);
  free(b);
  free(a_words);
  free(b_words);
  free(c);
}

static void test_products_are_exact(void **state) {
  (void)state;
  check_product(64, 64, 64, 0, false);
  check_product(64, 64, 64, 0, true);
  check_product(64, 96, 128, 3, false);
  check_product(128, 64, 64, 16, true);
  check_product(32, 32, 32, 1, true);
  assert_false(tiles_ready);
}

int main(void) {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw"))
    return tap_skip_all("the rest of tile16.h is compiled for AVX-512");
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products_are_exact)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
