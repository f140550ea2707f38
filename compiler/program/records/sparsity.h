/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse attention: which blocks of keys the blocks of queries of a layer read, as DeepSpeed's layouts
 * (deepspeed/ops/sparse_attention/sparsity_config.py, all of them unidirectional). Which layer has which is
 * said by model.attention_pattern.
 *
 *   fixed      windows one after another; of each the last blocks are read by all behind them
 *   variable   windows of given sizes, given blocks that all behind them read, and random ones
 *   local      a window before each block
 *   bigbird    a window, the first blocks, and random ones
 *   longformer a window, and given blocks, which read all before them too */
#ifndef NXC_RECORDS_SPARSITY_H
#define NXC_RECORDS_SPARSITY_H

#include "compiler/settings/settings.h"

typedef enum nxc_sparse_kind {
  NXC_SPARSE_NONE, /* all is read */
  NXC_SPARSE_FIXED,
  NXC_SPARSE_VARIABLE,
  NXC_SPARSE_LOCAL,
  NXC_SPARSE_BIGBIRD,
  NXC_SPARSE_LONGFORMER,
  NXC_N_SPARSE_KINDS
} nxc_sparse_kind;

/* The numbers of all layouts. */
typedef struct nxc_sparsity {
  int64_t block; /* tokens */
  bool heads_differ;
  const nxc_value *windows; /* sizes, ints */
  size_t n_windows;
  int64_t window, n_global, n_patterns, n_random;
  const nxc_value *global_from, *global_to; /* ints; global_to: NULL where each is one block */
  size_t n_global_from, n_global_to;
  uint64_t seed;
} nxc_sparsity;

nxc_sparsity nxc_sparsity_read(const nxc_settings *settings);
/* The kind of each of the layers by model.attention_pattern. What is wrong with it, or NULL. */
const char *nxc_sparsity_kinds(const nxc_settings *settings, int64_t n_layers, uint8_t *kinds);
/* What is wrong with the numbers for a kind, or NULL. */
const char *nxc_sparsity_fault(const nxc_sparsity *sparsity, nxc_sparse_kind kind, int64_t tokens);

/* The bits of a layout, as attention_sparse reads them: [n_layouts, n_blocks, n_words]. */
typedef struct nxc_sparse_layout {
  int64_t n_layouts, n_blocks, n_words;
  int64_t *bits;
} nxc_sparse_layout;

nxc_sparse_layout nxc_sparse_layout_make(nxc_arena *arena, const nxc_sparsity *sparsity, nxc_sparse_kind kind,
                                         int64_t heads, int64_t tokens);

#endif
