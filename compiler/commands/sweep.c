/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/sweep.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
  nxc_arena *arena;
  nxc_sink *sink;
  nxc_sweep *sweep;
} reader;

static bool refuse(const reader *r, const nxc_node *node, const char *message, const char *fix) {
  nxc_report(r->sink, "NX1540", NXC_SEVERITY_ERROR, nxc_node_span(node), fix, "%s", message);
  return false;
}

static void append(nxc_arena *arena, nxc_texts *texts, const char *text) {
  texts->items = nxc_arena_grow(arena, texts->items, texts->n_items, sizeof *texts->items);
  texts->items[texts->n_items++] = text;
}

static size_t column_of(const reader *r, const char *key) {
  nxc_texts *keys = &r->sweep->keys;
  for (size_t i = 0; i < keys->n_items; i++)
    if (strcmp(keys->items[i], key) == 0) return i;
  append(r->arena, keys, key);
  return keys->n_items - 1;
}

/* What stands plain in the file is written as it stands; all else as JSON, which YAML reads. */
static const char *set_of(const reader *r, const char *key, const nxc_node *node) {
  bool plain = node->kind == NXC_NODE_SCALAR && node->style == NXC_STYLE_PLAIN;
  const char *value = plain ? node->raw : nxc_value_json(r->arena, nxc_node_raw_value(r->arena, node));
  return nxc_arena_printf(r->arena, "%s=%s", key, value);
}

/* ---- the parts of the file ---- */

static bool is_map(const reader *r, const nxc_node *node) {
  return node == NULL || node->kind == NXC_NODE_MAP || refuse(r, node, "this is a map of KEY: VALUE", NULL);
}

static bool check_sweep(const reader *r, const nxc_node *sweep) {
  if (!is_map(r, sweep)) return false;
  for (size_t i = 0; sweep != NULL && i < sweep->n_children; i++) {
    const nxc_node *list = sweep->children[i];
    if (list->kind != NXC_NODE_LIST || list->n_children == 0)
      return refuse(r, list, nxc_arena_printf(r->arena, "%s has no list of values", list->key),
                    "give [VALUE, ...], or set it under set");
    column_of(r, list->key);
  }
  return true;
}

static bool check_runs(const reader *r, const nxc_node *runs, const nxc_node *sweep) {
  if (runs == NULL) return true;
  if (runs->kind != NXC_NODE_LIST || runs->n_children == 0)
    return refuse(r, runs, "runs is a list of maps of KEY: VALUE", NULL);
  for (size_t i = 0; i < runs->n_children; i++) {
    const nxc_node *row = runs->children[i];
    if (!is_map(r, row)) return false;
    for (size_t k = 0; k < row->n_children; k++) {
      const nxc_node *cell = row->children[k];
      if (sweep != NULL && nxc_node_child(sweep, cell->key) != NULL)
        return refuse(r, cell, nxc_arena_printf(r->arena, "%s is in sweep too", cell->key),
                      "name it in one of the two");
      column_of(r, cell->key);
    }
  }
  return true;
}

static bool check_keys(const reader *r, const nxc_node *root) {
  static const char *const known[] = {"file", "set", "sweep", "runs"};
  if (root->kind != NXC_NODE_MAP) return refuse(r, root, "a sweep is a map with file, sweep and runs", NULL);
  bool any = nxc_node_child(root, "sweep") || nxc_node_child(root, "runs") || nxc_node_child(root, "file");
  if (!any)
    return refuse(r, root, "this is no sweep: it has neither file nor sweep nor runs",
                  "nxcfg validate judges a configuration by itself");
  for (size_t i = 0; i < root->n_children; i++) {
    const char *key = root->children[i]->key, *near = nxc_nearest(key, known, 4);
    bool good = false;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) good = good || strcmp(key, known[k]) == 0;
    const char *fix = near ? nxc_did_you_mean(r->arena, "", near) : "remove it";
    if (!good) return refuse(r, root->children[i], nxc_arena_printf(r->arena, "a sweep has no %s", key), fix);
  }
  return true;
}

/* Beside the file of the sweep, unless it is absolute. */
static bool find_file(const reader *r, const nxc_node *root, const char *path) {
  const nxc_node *file = nxc_node_child(root, "file");
  if (file == NULL || file->kind != NXC_NODE_SCALAR || *file->raw == '\0')
    return refuse(r, file ? file : root, "file is missing: it names the configuration", NULL);
  const char *slash = strrchr(path, '/');
  int n_folder = slash && *file->raw != '/' ? (int)(slash - path + 1) : 0;
  r->sweep->file = nxc_arena_printf(r->arena, "%.*s%s", n_folder, path, file->raw);
  return true;
}

/* ---- its runs ---- */

static void put(const reader *r, nxc_sweep_run *run, const char *key, const nxc_node *node) {
  run->values[column_of(r, key)] = nxc_node_raw_value(r->arena, node);
  append(r->arena, &run->sets, set_of(r, key, node));
}

/* The combination of this number, whose last key counts fastest. */
static void put_combination(const reader *r, nxc_sweep_run *run, const nxc_node *sweep, size_t number) {
  size_t n = sweep ? sweep->n_children : 0, each = 1;
  for (size_t i = 0; i < n; i++) each *= sweep->children[i]->n_children;
  for (size_t i = 0; i < n; i++) {
    const nxc_node *list = sweep->children[i];
    each /= list->n_children;
    put(r, run, list->key, list->children[number / each % list->n_children]);
  }
}

static bool make_runs(const reader *r, const nxc_node *root, const nxc_node *sweep, const nxc_node *runs) {
  size_t n_rows = runs ? runs->n_children : 1, n_combinations = 1;
  for (size_t i = 0; sweep != NULL && i < sweep->n_children; i++) {
    n_combinations *= sweep->children[i]->n_children;
    if (n_combinations * n_rows > NXC_SWEEP_RUNS_MAX)
      return refuse(r, sweep->children[i], "these are more than 10000 runs", "sweep less at a time");
  }
  if (sweep == NULL && runs == NULL)
    return refuse(r, root, "there is nothing to vary: neither sweep nor runs", NULL);
  r->sweep->n_runs = n_rows * n_combinations;
  r->sweep->runs = nxc_arena_array(r->arena, r->sweep->n_runs, sizeof *r->sweep->runs);
  for (size_t i = 0; i < r->sweep->n_runs; i++) {
    nxc_sweep_run *run = &r->sweep->runs[i];
    const nxc_node *row = runs ? runs->children[i / n_combinations] : NULL;
    run->values = nxc_arena_array(r->arena, r->sweep->keys.n_items + 1, sizeof *run->values);
    for (size_t k = 0; row != NULL && k < row->n_children; k++)
      put(r, run, row->children[k]->key, row->children[k]);
    put_combination(r, run, sweep, i % n_combinations);
  }
  return true;
}

bool nxc_sweep_read(nxc_arena *arena, const char *path, nxc_sink *sink, nxc_sweep *sweep, bool *unreadable) {
  *sweep = (nxc_sweep){0};
  const reader r = {arena, sink, sweep};
  const nxc_source *source = nxc_source_read(arena, path, NXC_DOCUMENT_BYTES_MAX);
  *unreadable = source == NULL;
  if (source == NULL) return false;
  const nxc_document *document = nxc_document_read(arena, source, &(nxc_reading){0}, sink);
  const nxc_node *root = document->root;
  if (!document->complete || !check_keys(&r, root) || !find_file(&r, root, path)) return false;
  const nxc_node *set = nxc_node_child(root, "set"), *lists = nxc_node_child(root, "sweep"),
                 *runs = nxc_node_child(root, "runs");
  if (!is_map(&r, set) || !check_runs(&r, runs, lists) || !check_sweep(&r, lists)) return false;
  for (size_t i = 0; set != NULL && i < set->n_children; i++)
    append(arena, &sweep->sets, set_of(&r, set->children[i]->key, set->children[i]));
  return make_runs(&r, root, lists, runs);
}
