/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks that sparse attention reads, against DeepSpeed's own layouts (tests/parity/record_sparsity.py
 * says how a line of the file is made), and what only random ones must hold. Usage: test_sparsity RECORDED.
 * TAP. */
#include "compiler/program/records/sparsity.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4, ITEMS_MAX = 8, LINE_BYTES = 1 << 16 };

static const char *const kinds[NXC_N_SPARSE_KINDS] = {"",      "fixed",   "variable",
                                                      "local", "bigbird", "longformer"};

static nxc_sparse_kind kind_of(const char *name) {
  nxc_sparse_kind kind = NXC_SPARSE_FIXED;
  while (kind < NXC_N_SPARSE_KINDS && strcmp(kinds[kind], name) != 0) kind++;
  return kind;
}

static size_t read_list(const char *text, nxc_value *items) {
  size_t n = 0;
  if (strcmp(text, "-") == 0) return 0;
  for (char *at = (char *)(size_t)text; n < ITEMS_MAX; at++) {
    items[n++] = (nxc_value){.kind = NXC_INT, .integer = strtoll(at, &at, 10)};
    if (*at != ',') break;
  }
  return n;
}

/* A row's blocks as a number of any length, without leading zeros. */
static void write_row(const nxc_sparse_layout *layout, int64_t row, char *text) {
  const int64_t *words = layout->bits + row * layout->n_words;
  int n = 0;
  for (int64_t i = layout->n_words - 1; i >= 0; i--)
    if (n > 0 || words[i] != 0 || i == 0)
      n += sprintf(text + n, n > 0 ? "%016llx" : "%llx", (unsigned long long)words[i]);
}

static bool same_rows(const nxc_sparse_layout *layout, char *rows) {
  int64_t row = 0, n_rows = layout->n_layouts * layout->n_blocks;
  for (char *word = strtok(rows, " \n"); word; word = strtok(NULL, " \n"), row++) {
    char made[LINE_BYTES / 64];
    if (row == n_rows) return false;
    write_row(layout, row, made);
    if (strcmp(made, word) == 0) continue;
    tap_note("row %lld is %s and not %s", (long long)row, made, word);
    return false;
  }
  return row == n_rows;
}

static void check_line(nxc_arena *arena, char *line) {
  char kind[16], windows[64], from[64], to[64], *colon = strstr(line, " : ");
  int heads, n_blocks, differ, window, n_global, n_patterns;
  nxc_value items[3][ITEMS_MAX];
  int n = sscanf(line, "%15s %d %d %d %d %d %d %63s %63s %63s", kind, &heads, &n_blocks, &differ, &window,
                 &n_global, &n_patterns, windows, from, to);
  if (n != 10 || colon == NULL) tap_bail("a line cannot be read");
  nxc_sparsity sparsity = {.block = BLOCK, .heads_differ = differ, .window = window, .n_global = n_global,
                           .n_patterns = n_patterns, .windows = items[0], .global_from = items[1]};
  sparsity.n_windows = read_list(windows, items[0]);
  sparsity.n_global_from = read_list(from, items[1]);
  sparsity.n_global_to = read_list(to, items[2]);
  if (sparsity.n_global_to > 0) sparsity.global_to = items[2];
  const char *fault = nxc_sparsity_fault(&sparsity, kind_of(kind), n_blocks * BLOCK);
  nxc_sparse_layout layout = nxc_sparse_layout_make(arena, &sparsity, kind_of(kind), heads, n_blocks * BLOCK);
  *colon = '\0';
  tap_report(fault == NULL && same_rows(&layout, colon + 3), "%s", line);
}

static int64_t bits_of_row(const nxc_sparse_layout *layout, int64_t row) {
  int64_t n = 0;
  for (int64_t i = 0; i < layout->n_words; i++)
    n += __builtin_popcountll((unsigned long long)layout->bits[row * layout->n_words + i]);
  return n;
}

/* Each row reads its own block and at most one more, which some rows do; another seed draws others. */
static void check_random(nxc_arena *arena) {
  nxc_sparsity sparsity = {.block = BLOCK, .window = 1, .n_random = 1, .seed = 7};
  nxc_sparse_layout one = nxc_sparse_layout_make(arena, &sparsity, NXC_SPARSE_BIGBIRD, 1, 100 * BLOCK);
  sparsity.seed = 8;
  nxc_sparse_layout other = nxc_sparse_layout_make(arena, &sparsity, NXC_SPARSE_BIGBIRD, 1, 100 * BLOCK);
  int64_t n = 0;
  bool bounded = true;
  for (int64_t row = 0; row < 100; row++) {
    int64_t more = bits_of_row(&one, row) - 1;
    bounded &= more == 0 || more == 1;
    n += more;
  }
  tap_report(bounded && n > 80, "each row draws one block of those up to its own");
  tap_report(memcmp(one.bits, other.bits, sizeof *one.bits * 100 * (size_t)one.n_words) != 0,
             "another seed draws others");
}

int main(int argc, char **argv) {
  static char line[LINE_BYTES], path[512];
  snprintf(path, sizeof path, "%s/sparsity.txt", argc > 1 ? argv[1] : ".");
  FILE *file = fopen(path, "r");
  if (file == NULL) tap_bail("%s cannot be read", path);
  nxc_arena *arena = nxc_arena_new();
  while (fgets(line, sizeof line, file)) check_line(arena, line);
  fclose(file);
  check_random(arena);
  nxc_arena_free(arena);
  return tap_end();
}
