/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one parse or rendering, with a limit; and the way out where the template is wrong.
 *
 * Everything is freed together. What cannot go on calls nxj_fail, which leaves for the `escape` that the
 * caller of the whole has set: nothing between them owns anything but memory of the pool. */
#ifndef NXJ_POOL_H
#define NXJ_POOL_H

#include "runtime/files/fault.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxj_block nxj_block;

typedef struct nxj_pool {
  nxj_block *blocks;
  size_t n_free; /* bytes behind `next` in the newest block */
  char *next;
  uint64_t used, limit; /* bytes */
  uint64_t steps, limit_steps;
  uint32_t depth; /* of whatever calls itself */
  const char *name; /* of the template */
  uint32_t line, column; /* of what is parsed or evaluated; line 0: of nothing yet */
  nxr_fault *fault;
  jmp_buf escape;
} nxj_pool;

/* Zeroed. */
void *nxj_alloc(nxj_pool *pool, size_t n_bytes);
void *nxj_array(nxj_pool *pool, size_t n_items, size_t item_bytes);
/* `items` with room for one more behind `n_items`: doubles where n_items is a power of two. */
void *nxj_grow(nxj_pool *pool, void *items, size_t n_items, size_t item_bytes);
char *nxj_copy(nxj_pool *pool, const char *text, size_t n_bytes);
/* Around whatever calls itself: too deep is a failure. */
void nxj_enter(nxj_pool *pool);
void nxj_leave(nxj_pool *pool);
/* Counts work; too much of it is a failure. */
void nxj_work(nxj_pool *pool, uint64_t steps);
_Noreturn void nxj_fail(nxj_pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nxj_pool_free(nxj_pool *pool);

#endif
