/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/sparsity.h"

#include "compiler/program/records/read.h"
#include "schema/philox.h"

#include <string.h>

nxc_sparsity nxc_sparsity_read(const nxc_settings *s) {
  nxc_sparsity sparsity = {.block = nxc_int(s, NX_SETTING_MODEL_SPARSE_BLOCK),
                           .heads_differ = nxc_flag(s, NX_SETTING_MODEL_SPARSE_HEADS_DIFFER),
                           .window = nxc_int(s, NX_SETTING_MODEL_SPARSE_WINDOW_BLOCKS),
                           .n_global = nxc_int(s, NX_SETTING_MODEL_SPARSE_GLOBAL_BLOCKS),
                           .n_patterns = nxc_int(s, NX_SETTING_MODEL_SPARSE_PATTERNS),
                           .n_random = nxc_int(s, NX_SETTING_MODEL_SPARSE_RANDOM_BLOCKS),
                           .seed = (uint64_t)nxc_int(s, NX_SETTING_RUN_SEED)};
  sparsity.windows = nxc_list(s, NX_SETTING_MODEL_SPARSE_LOCAL_BLOCKS, &sparsity.n_windows);
  sparsity.global_from = nxc_list(s, NX_SETTING_MODEL_SPARSE_GLOBAL_FROM, &sparsity.n_global_from);
  if (nxc_has(s, NX_SETTING_MODEL_SPARSE_GLOBAL_TO))
    sparsity.global_to = nxc_list(s, NX_SETTING_MODEL_SPARSE_GLOBAL_TO, &sparsity.n_global_to);
  return sparsity;
}

/* ---- the pattern of layers ---- */

typedef struct kind_row {
  const char *name;
  nxc_sparse_kind kind;
} kind_row;

static const kind_row kinds_by_name[] = {{"global", NXC_SPARSE_NONE},
                                         {"flash", NXC_SPARSE_NONE},
                                         {"sparse_fixed", NXC_SPARSE_FIXED},
                                         {"sparse_variable", NXC_SPARSE_VARIABLE},
                                         {"local", NXC_SPARSE_LOCAL},
                                         {"bigbird", NXC_SPARSE_BIGBIRD},
                                         {"bslongformer", NXC_SPARSE_LONGFORMER}};

static const kind_row *find_kind(const char *name) {
  for (size_t i = 0; i < sizeof kinds_by_name / sizeof *kinds_by_name; i++)
    if (strcmp(kinds_by_name[i].name, name) == 0) return &kinds_by_name[i];
  return NULL;
}

const char *nxc_sparsity_kinds(const nxc_settings *s, int64_t n_layers, uint8_t *kinds) {
  size_t n;
  if (!nxc_has(s, NX_SETTING_MODEL_ATTENTION_PATTERN)) return NULL;
  const nxc_value *names = nxc_list(s, NX_SETTING_MODEL_ATTENTION_PATTERN, &n);
  if (n == 0 || n_layers % (int64_t)n != 0) return "the kinds of layers do not divide them";
  for (int64_t layer = 0; layer < n_layers; layer++) {
    const kind_row *row = find_kind(names[(size_t)layer % n].text);
    if (row == NULL) return "a layer has a kind of attention that there is not";
    kinds[layer] = (uint8_t)row->kind;
  }
  return NULL;
}

/* ---- layouts ---- */

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

const char *nxc_sparsity_fault(const nxc_sparsity *p, nxc_sparse_kind kind, int64_t tokens) {
  int64_t n_blocks = tokens / p->block;
  bool windowed = kind == NXC_SPARSE_LOCAL || kind == NXC_SPARSE_BIGBIRD || kind == NXC_SPARSE_LONGFORMER;
  bool listed = kind == NXC_SPARSE_VARIABLE || kind == NXC_SPARSE_LONGFORMER;
  if (kind == NXC_SPARSE_NONE) return NULL;
  if (tokens % p->block != 0) return "the sequence is not a whole number of blocks";
  if (windowed && n_blocks < p->window) return "the window has more blocks than the sequence";
  if (kind == NXC_SPARSE_BIGBIRD && n_blocks < p->n_global)
    return "more blocks are read by all than there are";
  if (kind == NXC_SPARSE_BIGBIRD && p->n_random > 1)
    return "the first block is to read more than one at random, and there is no other before it";
  if (kind == NXC_SPARSE_VARIABLE && n_blocks < p->n_random)
    return "more random blocks are read than there are";
  if (kind == NXC_SPARSE_FIXED &&
      (p->n_windows < 1 || p->n_global < 1 || p->windows[0].integer % p->n_global != 0))
    return "the blocks of a window that all read do not divide it";
  if (kind == NXC_SPARSE_FIXED && p->n_patterns > (p->heads_differ ? p->windows[0].integer / p->n_global : 1))
    return "there are more patterns than heads with blocks of their own, or the window, have room for";
  for (size_t i = 0; i < p->n_windows; i++)
    if (p->windows[i].integer < 1) return "a window has no block";
  if (kind == NXC_SPARSE_VARIABLE && p->n_windows == 0) return "there is no window";
  if (listed && p->global_to && p->n_global_to != p->n_global_from)
    return "as many runs of blocks end as begin, or none says where it ends";
  for (size_t i = 0; listed && i < p->n_global_from; i++)
    if (p->global_from[i].integer < 0 ||
        (p->global_to && p->global_to[i].integer <= p->global_from[i].integer))
      return "a run of blocks ends before it begins";
  return NULL;
}

typedef struct layout {
  nxc_sparse_layout to;
  const nxc_sparsity *p;
  int64_t which; /* of the layouts */
} layout;

/* Blocks behind a query's own are never read. */
static void set(const layout *l, int64_t row, int64_t column) {
  if (column < 0 || column > row) return;
  uint64_t bit = UINT64_C(1) << column % 64;
  int64_t word = (l->which * l->to.n_blocks + row) * l->to.n_words + column / 64;
  l->to.bits[word] = (int64_t)((uint64_t)l->to.bits[word] | bit);
}

static void set_window(const layout *l, int64_t first, int64_t size) {
  int64_t end = least(first + size, l->to.n_blocks);
  for (int64_t row = first; row < end; row++)
    for (int64_t column = first; column <= row; column++) set(l, row, column);
}

/* Columns that all rows from `first` on read. */
static void set_columns(const layout *l, int64_t first, int64_t n) {
  for (int64_t column = first; column < least(first + n, l->to.n_blocks); column++)
    for (int64_t row = first; row < l->to.n_blocks; row++) set(l, row, column);
}

static void set_sliding(const layout *l) {
  for (int64_t row = 0; row < l->to.n_blocks; row++)
    for (int64_t column = row - l->p->window / 2; column <= row; column++) set(l, row, column);
}

/* Of the blocks of a row, n that are different; those behind the row's own count, and are not read. */
static void set_random(const layout *l, bool up_to_own) {
  enum { KEY = 7 << 28 }; /* above those of tensors and masks */
  int64_t n_blocks = l->to.n_blocks;
  for (int64_t row = 0; row < n_blocks; row++) {
    int64_t n = up_to_own ? row + 1 : n_blocks, left = l->p->n_random;
    for (int64_t column = 0; column < n && left > 0; column++) {
      nx_philox drawn =
          nx_philox_draw(l->p->seed, KEY, (uint32_t)column, (uint32_t)row, (uint32_t)l->which, 0);
      if ((int64_t)((uint64_t)drawn.word[0] * (uint64_t)(n - column) >> 32) >= left) continue;
      set(l, row, column);
      left--;
    }
  }
}

static void set_fixed(const layout *l) {
  int64_t window = l->p->windows[0].integer, n_global = l->p->n_global, n_blocks = l->to.n_blocks;
  int64_t first = window - (1 + l->which % l->p->n_patterns) * n_global, end = n_blocks - n_blocks % window;
  for (int64_t i = 0; i < n_blocks; i += window) set_window(l, i, window);
  for (int64_t i = first; i < end; i += window) set_columns(l, i, n_global);
  if (end < n_blocks) set_columns(l, least(end + first, n_blocks - n_global), n_global);
}

static void set_variable(const layout *l) {
  int64_t at = 0, size = 0;
  set_random(l, false);
  for (size_t i = 0; i < l->p->n_windows; i++, at += size) {
    size = l->p->windows[i].integer;
    set_window(l, at, size);
  }
  for (; at < l->to.n_blocks; at += size) set_window(l, at, size);
}

static void set_listed(const layout *l, bool reads_all) {
  const nxc_sparsity *p = l->p;
  for (size_t i = 0; i < p->n_global_from; i++) {
    int64_t first = p->global_from[i].integer, end = p->global_to ? p->global_to[i].integer : first + 1;
    set_columns(l, first, end - first);
    for (int64_t row = first; reads_all && row < least(end, l->to.n_blocks); row++)
      for (int64_t column = 0; column <= row; column++) set(l, row, column);
  }
}

static void set_all(const layout *l, nxc_sparse_kind kind) {
  if (kind == NXC_SPARSE_FIXED) set_fixed(l);
  if (kind == NXC_SPARSE_VARIABLE) set_variable(l), set_listed(l, false);
  if (kind == NXC_SPARSE_LOCAL || kind == NXC_SPARSE_BIGBIRD || kind == NXC_SPARSE_LONGFORMER) set_sliding(l);
  if (kind == NXC_SPARSE_LONGFORMER) set_listed(l, true);
  if (kind != NXC_SPARSE_BIGBIRD) return;
  set_random(l, true);
  set_columns(l, 0, l->p->n_global);
}

nxc_sparse_layout nxc_sparse_layout_make(nxc_arena *arena, const nxc_sparsity *p, nxc_sparse_kind kind,
                                         int64_t heads, int64_t tokens) {
  int64_t n_blocks = tokens / p->block, n_words = (n_blocks + 63) / 64;
  bool differ = p->heads_differ && kind != NXC_SPARSE_LOCAL;
  layout l = {{differ ? heads : 1, n_blocks, n_words, NULL}, p, 0};
  l.to.bits = nxc_arena_array(arena, (size_t)(l.to.n_layouts * n_blocks * n_words), sizeof *l.to.bits);
  for (; l.which < l.to.n_layouts; l.which++) set_all(&l, kind);
  return l.to;
}
