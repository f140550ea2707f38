/* SPDX-License-Identifier: Apache-2.0 */
/* How two configurations differ in meaning.
 *
 * A side is one value, as JSON text, for each setting, and what a configuration says beyond its settings
 * (beyond.h). A side may be a plan, which has settings alone. Words of one dialect are compared with each
 * other; of two dialects what one side says, and the other has no words for, is a difference where the
 * training may depend on it. */
#ifndef NXC_CONFIG_COMPARE_H
#define NXC_CONFIG_COMPARE_H

#include "compiler/compare/beyond.h"

typedef struct nxc_compared_value {
  const char *path;
  const char *json; /* NULL: unknown */
  const char *from; /* where it came from, for people */
  const char *absent; /* "not in megatron": the value is one that changes nothing; NULL elsewhere */
} nxc_compared_value;

typedef struct nxc_side {
  nxc_compared_value settings[NX_N_SETTINGS];
  nxc_compared_value *foreign; /* settings of another release, which a plan brought */
  size_t n_foreign;
  const nxc_compiled *compiled; /* NULL: a plan */
  nxc_beyond *beyond;
  size_t n_beyond;
} nxc_side;

typedef struct nxc_difference {
  const char *path;
  nxc_compared_value values[2];
  nxc_changes changes;
  bool is_setting; /* false: an option or another key of the configuration */
} nxc_difference;

typedef struct nxc_comparison {
  nxc_difference *items;
  size_t n_items;
  const char *unread; /* options that differ where no side reads them, "a, b"; "" for none */
  const char *resumed; /* what becomes of a schedule that differs where a run goes on; "" for none */
} nxc_comparison;

/* A setting of a plan, by its path. */
void nxc_side_add(nxc_arena *arena, nxc_side *side, const nxc_compared_value *setting);
void nxc_side_fill(nxc_arena *arena, nxc_side *side, const nxc_compiled *compiled);
nxc_comparison nxc_compare(nxc_arena *arena, const nxc_side *a, const nxc_side *b);
/* SETTINGS where nothing differs. */
nxc_changes nxc_comparison_worst(const nxc_comparison *comparison);

#endif
