/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by phase: what is allocated lives until its arena is rewound or freed.
 *
 * One arena is kept for a whole compilation, another is rewound after each pass. Nothing is freed one by one.
 * Memory comes zeroed and aligned to 8 bytes. Exhausted memory ends the process with a message (exit 3): a
 * compiler of configurations has nothing better to do, and no caller then needs to check for NULL. */
#ifndef NXC_ARENA_H
#define NXC_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct nxc_arena nxc_arena;

typedef struct nxc_arena_mark {
  void *block;
  size_t used;
} nxc_arena_mark;

nxc_arena *nxc_arena_new(void);
void nxc_arena_free(nxc_arena *arena);

void *nxc_arena_alloc(nxc_arena *arena, size_t n_bytes);
/* A zeroed array; the product is checked for overflow. */
void *nxc_arena_array(nxc_arena *arena, size_t n_items, size_t item_bytes);
/* The array `items` (n_items long, allocated here, or NULL when n_items is 0) with room for one item more:
 * doubles when n_items is a power of two, so a growing list costs amortised constant time. */
void *nxc_arena_grow(nxc_arena *arena, void *items, size_t n_items, size_t item_bytes);
char *nxc_arena_strdup(nxc_arena *arena, const char *text);
char *nxc_arena_strndup(nxc_arena *arena, const char *text, size_t n_bytes);
char *nxc_arena_printf(nxc_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *nxc_arena_vprintf(nxc_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

nxc_arena_mark nxc_arena_mark_now(nxc_arena *arena);
/* Gives back everything allocated since the mark was taken. */
void nxc_arena_rewind(nxc_arena *arena, nxc_arena_mark mark);

#endif
