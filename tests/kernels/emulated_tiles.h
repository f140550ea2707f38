/* SPDX-License-Identifier: Apache-2.0 */
/* AMX on machines without it: its instructions are replaced by loops that do what Intel's manual says of them
 * (LDTILECFG, TILELOADD, TILELOADDT1, TILESTORED, TDPBF16PS). What is included behind it uses them. */
#ifndef EMULATED_TILES_H
#define EMULATED_TILES_H

#include <immintrin.h>

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 16, TILE_BYTES = 64 };

static _Thread_local uint8_t tiles[8][TILE_ROWS][TILE_BYTES];
static _Thread_local bool tiles_ready;

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
      float sum, halves[2] = {0};
      memcpy(&sum, &tiles[c][m][4 * n], sizeof sum);
      for (int k = 0; k < TILE_BYTES / 4; k++)
        for (int half = 0; half < 2; half++)
          halves[half] += half_at(tiles[a][m], 2 * k + half) * half_at(tiles[b][k], 2 * n + half);
      sum += halves[0] + halves[1];
      memcpy(&tiles[c][m][4 * n], &sum, sizeof sum);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) emulated_loadconfig(config)
#define _tile_release() emulated_release()
#define _tile_zero(tile) emulated_zero(tile)
#define _tile_loadd(tile, base, stride) emulated_load(tile, base, stride)
#define _tile_stream_loadd(tile, base, stride) emulated_load(tile, base, stride)
#define _tile_stored(tile, base, stride) emulated_store(tile, base, stride)
#define _tile_dpbf16ps(c, a, b) emulated_multiply(c, a, b)

#endif
