/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that tell of given cuts how they may be said: those of expression_cuts.c, backwards. */
#include "compiler/expression/expression_cuts.h"
#include "compiler/expression/expression_function.h"

#include <stdlib.h>
#include <string.h>

typedef struct chunks {
  const nxc_value *cuts;
  int64_t layers;
  size_t n;
} chunks;

static bool read_chunks(evaluation *e, arguments args, chunks *read) {
  bool good = args[0]->kind == NXC_LIST && args[1]->kind == NXC_INT;
  for (size_t i = 0; good && i < args[0]->n_items; i++) good = args[0]->items[i].kind == NXC_STRING;
  if (!good) return nxc_evaluation_fail(e, "needs cuts and a number of layers"), false;
  *read = (chunks){args[0]->items, args[1]->integer, args[0]->n_items + 1};
  return true;
}

/* Layers of all chunks before this one; none end with the embedding. */
static int64_t layers_before(const chunks *of, size_t chunk) {
  if (chunk == 0) return 0;
  if (chunk == of->n) return of->layers;
  const char *name = of->cuts[chunk - 1].text, *dot = strrchr(name, '.');
  return dot == NULL ? 0 : strtoll(dot + 1, NULL, 10) + 1;
}

static int64_t layers_of(const chunks *of, size_t chunk) {
  return layers_before(of, chunk + 1) - layers_before(of, chunk);
}

static const nxc_value *null(evaluation *e) {
  nxc_value *value = nxc_arena_alloc(e->arena, sizeof *value);
  value->kind = NXC_NULL;
  return value;
}

static const nxc_value *pair(evaluation *e, int64_t first, int64_t last) {
  nxc_value *items = nxc_arena_array(e->arena, 2, sizeof *items), *list = nxc_arena_alloc(e->arena, sizeof *list);
  items[0] = (nxc_value){.kind = NXC_INT, .integer = first};
  items[1] = (nxc_value){.kind = NXC_INT, .integer = last};
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = 2};
  return list;
}

/* cut_ends(cuts, layers): how many layers the first and the last chunk have; null where one of them has none,
 * or those between them differ. */
const nxc_value *nxc_call_cut_ends(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  chunks of;
  if (!read_chunks(e, args, &of)) return NULL;
  for (size_t chunk = 2; chunk + 1 < of.n; chunk++)
    if (layers_of(&of, chunk) != layers_of(&of, 1)) return null(e);
  int64_t first = layers_of(&of, 0), last = layers_of(&of, of.n - 1);
  return first > 0 && last > 0 ? pair(e, first, last) : null(e);
}

/* cut_counts(cuts, layers): for how many layers embedding and loss count, none or one, where chunks are the
 * same size with them; null where they are not. */
const nxc_value *nxc_call_cut_counts(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  chunks of;
  if (!read_chunks(e, args, &of)) return NULL;
  int64_t most = 0;
  for (size_t chunk = 0; chunk < of.n; chunk++)
    if (layers_of(&of, chunk) > most) most = layers_of(&of, chunk);
  for (size_t chunk = 0; chunk < of.n; chunk++) {
    int64_t lacks = most - layers_of(&of, chunk);
    if (lacks > 1 || (lacks == 1 && chunk != 0 && chunk + 1 != of.n)) return null(e);
  }
  return pair(e, most - layers_of(&of, 0), most - layers_of(&of, of.n - 1));
}

/* cuts_layout(cuts, layers): the text that layout_cuts reads so. */
const nxc_value *nxc_call_cuts_layout(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  chunks of;
  if (!read_chunks(e, args, &of)) return NULL;
  const char *text = "E";
  for (size_t chunk = 0; chunk < of.n; chunk++) {
    int64_t n = layers_of(&of, chunk);
    const char *layers = n == 0 ? "" : n == 1 ? "t" : nxc_arena_printf(e->arena, "t*%lld", (long long)n);
    text = nxc_arena_printf(e->arena, "%s%s%s", text, chunk > 0 ? "|" : "", layers);
  }
  text = nxc_arena_printf(e->arena, "%sL", text);
  return nxc_value_of_text(e, text, strlen(text));
}
