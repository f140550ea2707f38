/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16 << 10, ALIGNMENT = 16, TEXT_BYTES = 600, MOST_DEPTH = 500 };

struct nxj_block {
  nxj_block *before;
  uint64_t unused; /* keeps what follows aligned */
};

void nxj_fail(nxj_pool *pool, const char *format, ...) {
  char text[TEXT_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (pool->line == 0) nxr_fault_set(pool->fault, "%s: %s", pool->name, text);
  else nxr_fault_set(pool->fault, "%s, line %u, column %u: %s", pool->name, pool->line, pool->column, text);
  longjmp(pool->escape, 1);
}

static void add_block(nxj_pool *pool, size_t n_bytes) {
  size_t bytes = n_bytes > BLOCK_BYTES / 2 ? n_bytes : BLOCK_BYTES;
  if (bytes > pool->limit - pool->used)
    nxj_fail(pool, "the template takes more memory than the %llu bytes that it may",
             (unsigned long long)pool->limit);
  nxj_block *block = malloc(sizeof *block + bytes);
  if (block == NULL) nxj_fail(pool, "out of memory");
  *block = (nxj_block){.before = pool->blocks};
  pool->blocks = block;
  pool->used += bytes;
  pool->next = (char *)(block + 1);
  pool->n_free = bytes;
}

void *nxj_alloc(nxj_pool *pool, size_t n_bytes) {
  if (n_bytes > SIZE_MAX / 4) nxj_fail(pool, "out of memory");
  size_t bytes = (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (bytes > pool->n_free) add_block(pool, bytes);
  char *memory = pool->next;
  pool->next += bytes, pool->n_free -= bytes;
  return memset(memory, 0, bytes);
}

void *nxj_array(nxj_pool *pool, size_t n_items, size_t item_bytes) {
  size_t n_bytes;
  if (__builtin_mul_overflow(n_items, item_bytes, &n_bytes)) nxj_fail(pool, "out of memory");
  return nxj_alloc(pool, n_bytes);
}

void *nxj_grow(nxj_pool *pool, void *items, size_t n_items, size_t item_bytes) {
  if ((n_items & (n_items - 1)) != 0) return items;
  void *more = nxj_array(pool, n_items == 0 ? 1 : 2 * n_items, item_bytes);
  if (n_items > 0) memcpy(more, items, n_items * item_bytes);
  return more;
}

char *nxj_copy(nxj_pool *pool, const char *text, size_t n_bytes) {
  char *copy = nxj_alloc(pool, n_bytes + 1);
  if (n_bytes > 0) memcpy(copy, text, n_bytes);
  return copy;
}

void nxj_work(nxj_pool *pool, uint64_t steps) {
  if (steps > pool->limit_steps - pool->steps)
    nxj_fail(pool, "the template takes more than the %llu steps that it may",
             (unsigned long long)pool->limit_steps);
  pool->steps += steps;
}

void nxj_enter(nxj_pool *pool) {
  if (++pool->depth > MOST_DEPTH) nxj_fail(pool, "more than %d levels within one another", MOST_DEPTH);
}

void nxj_leave(nxj_pool *pool) {
  pool->depth--;
}

void nxj_pool_free(nxj_pool *pool) {
  for (nxj_block *block = pool->blocks, *before; block != NULL; block = before) {
    before = block->before;
    free(block);
  }
  pool->blocks = NULL;
}
