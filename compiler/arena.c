/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 8, FIRST_BLOCK_BYTES = 64 * 1024, HUGE_PAGE_BYTES = 2 * 1024 * 1024 };

typedef struct block {
  struct block *previous;
  size_t capacity;
  size_t used;
  _Alignas(ALIGNMENT) unsigned char bytes[];
} block;

struct nxc_arena {
  block *last;
};

static void *require(void *memory) {
  if (memory == NULL) {
    fputs("nxcfg: out of memory\n", stderr);
    exit(3);
  }
  return memory;
}

/* Large blocks lie in huge pages where the system has them: thousands of small ones take longer to get than
 * most commands to run. */
static void *block_memory(size_t n_bytes) {
  if (n_bytes < HUGE_PAGE_BYTES) return require(malloc(n_bytes));
  void *memory = require(aligned_alloc(HUGE_PAGE_BYTES, n_bytes));
  madvise(memory, n_bytes, MADV_HUGEPAGE);
  return memory;
}

static void add_block(nxc_arena *arena, size_t at_least) {
  size_t n_bytes = arena->last ? (sizeof(block) + arena->last->capacity) * 2 : FIRST_BLOCK_BYTES;
  while (n_bytes - sizeof(block) < at_least) n_bytes *= 2;
  block *fresh = block_memory(n_bytes);
  *fresh = (block){.previous = arena->last, .capacity = n_bytes - sizeof *fresh};
  arena->last = fresh;
}

nxc_arena *nxc_arena_new(void) {
  return require(calloc(1, sizeof(nxc_arena)));
}

void nxc_arena_free(nxc_arena *arena) {
  if (arena == NULL) return;
  nxc_arena_rewind(arena, (nxc_arena_mark){0});
  free(arena);
}

static size_t round_up(size_t n_bytes) {
  return (n_bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

void *nxc_arena_alloc(nxc_arena *arena, size_t n_bytes) {
  if (n_bytes > SIZE_MAX / 4) require(NULL);
  n_bytes = round_up(n_bytes);
  if (arena->last == NULL || arena->last->capacity - arena->last->used < n_bytes) add_block(arena, n_bytes);
  void *memory = arena->last->bytes + arena->last->used;
  arena->last->used += n_bytes;
  return memset(memory, 0, n_bytes);
}

void *nxc_arena_array(nxc_arena *arena, size_t n_items, size_t item_bytes) {
  size_t n_bytes;
  if (__builtin_mul_overflow(n_items, item_bytes, &n_bytes)) require(NULL);
  return nxc_arena_alloc(arena, n_bytes);
}

/* What was allocated last grows where it lies. */
static bool extend(nxc_arena *arena, const void *items, size_t n_bytes) {
  block *last = arena->last;
  size_t n_rounded = round_up(n_bytes), begin = last->used - n_rounded;
  if (last->used < n_rounded || items != last->bytes + begin) return false;
  if (last->capacity - last->used < n_rounded) return false;
  nxc_arena_alloc(arena, round_up(2 * n_bytes) - n_rounded);
  return true;
}

void *nxc_arena_grow(nxc_arena *arena, void *items, size_t n_items, size_t item_bytes) {
  if (n_items == 0) return nxc_arena_array(arena, 1, item_bytes);
  if ((n_items & (n_items - 1)) != 0 || extend(arena, items, n_items * item_bytes)) return items;
  void *larger = nxc_arena_array(arena, 2 * n_items, item_bytes);
  return memcpy(larger, items, n_items * item_bytes);
}

char *nxc_arena_strndup(nxc_arena *arena, const char *text, size_t n_bytes) {
  char *copy = nxc_arena_alloc(arena, n_bytes + 1);
  memcpy(copy, text, n_bytes);
  return copy;
}

char *nxc_arena_strdup(nxc_arena *arena, const char *text) {
  return nxc_arena_strndup(arena, text, strlen(text));
}

char *nxc_arena_vprintf(nxc_arena *arena, const char *format, va_list args) {
  char usual[256]; /* nearly every text fits, and is then made once */
  va_list again;
  va_copy(again, args);
  int n_bytes = vsnprintf(usual, sizeof usual, format, again);
  va_end(again);
  if (n_bytes < 0) require(NULL);
  if ((size_t)n_bytes < sizeof usual) return nxc_arena_strndup(arena, usual, (size_t)n_bytes);
  char *text = nxc_arena_alloc(arena, (size_t)n_bytes + 1);
  vsnprintf(text, (size_t)n_bytes + 1, format, args);
  return text;
}

char *nxc_arena_printf(nxc_arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = nxc_arena_vprintf(arena, format, args);
  va_end(args);
  return text;
}

nxc_arena_mark nxc_arena_mark_now(nxc_arena *arena) {
  return (nxc_arena_mark){.block = arena->last, .used = arena->last ? arena->last->used : 0};
}

void nxc_arena_rewind(nxc_arena *arena, nxc_arena_mark mark) {
  while (arena->last != mark.block) {
    block *previous = arena->last->previous;
    free(arena->last);
    arena->last = previous;
  }
  if (arena->last) arena->last->used = mark.used;
}
