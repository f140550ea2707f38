/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/arena.h"
#include "tests/unit/cmocka_all.h"

#include <stdint.h>
#include <string.h>

typedef struct list {
  uint32_t *items;
  size_t n_items;
} list;

static void add(nxc_arena *arena, list *to, uint32_t item) {
  to->items = nxc_arena_grow(arena, to->items, to->n_items, sizeof *to->items);
  assert_int_equal(to->items[to->n_items], 0);
  to->items[to->n_items++] = item;
}

static void assert_counts(const list *l, size_t n_items, uint32_t from) {
  assert_int_equal(l->n_items, n_items);
  for (size_t i = 0; i < n_items; i++) assert_int_equal(l->items[i], from + i);
}

/* One list alone grows where it lies, two by turns are moved; a block's end is passed by both. */
static void test_lists_grow(void **state) {
  (void)state;
  enum { N = 100000 };
  nxc_arena *arena = nxc_arena_new();
  list alone = {0}, first = {0}, second = {0};
  for (uint32_t i = 0; i < N; i++) add(arena, &alone, i);
  for (uint32_t i = 0; i < N; i++) {
    add(arena, &first, 1 + i);
    add(arena, &second, 2 + i);
  }
  assert_counts(&alone, N, 0);
  assert_counts(&first, N, 1);
  assert_counts(&second, N, 2);
  nxc_arena_free(arena);
}

static void test_the_last_grows_in_place(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  list l = {0};
  add(arena, &l, 0);
  const uint32_t *before = l.items;
  for (uint32_t i = 1; i < 1000; i++) add(arena, &l, i);
  assert_ptr_equal(l.items, before);
  const char *behind = nxc_arena_strdup(arena, "behind");
  for (uint32_t i = 1000; i < 2000; i++) add(arena, &l, i);
  assert_ptr_not_equal(l.items, before);
  assert_string_equal(behind, "behind");
  assert_counts(&l, 2000, 0);
  nxc_arena_free(arena);
}

static void test_rewound_memory_is_zero_again(void **state) {
  (void)state;
  enum { N = 3 << 20 };
  nxc_arena *arena = nxc_arena_new();
  nxc_arena_strdup(arena, "kept");
  nxc_arena_mark mark = nxc_arena_mark_now(arena);
  for (int round = 0; round < 2; round++) {
    unsigned char *small = nxc_arena_alloc(arena, 100), *large = nxc_arena_alloc(arena, N);
    for (size_t i = 0; i < 100; i++) assert_int_equal(small[i], 0);
    for (size_t i = 0; i < N; i += 4096) assert_int_equal(large[i], 0);
    memset(small, 1, 100);
    memset(large, 1, N);
    nxc_arena_rewind(arena, mark);
  }
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists_grow),
      cmocka_unit_test(test_the_last_grows_in_place),
      cmocka_unit_test(test_rewound_memory_is_zero_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
