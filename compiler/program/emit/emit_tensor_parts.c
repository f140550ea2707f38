/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a model the tensors of its family hold, for nxrun to find them in the checkpoints of other
 * systems. */
#include "compiler/program/emit/emit.h"
#include "compiler/settings/family.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const layouts[] = {
    [NXC_LAYOUT_BLOCKS] = "blocks", [NXC_LAYOUT_GROUPS] = "groups", [NXC_LAYOUT_TURNS] = "turns"};

/* Matrices and vectors of a layer, of an expert or of the whole, whose parts stand in rows. */
static bool is_plain(const nxc_tensor_row *row) {
  return !row->bare && !row->stacked;
}

static json_t *describe(const nxc_tensor_row *row) {
  json_t *parts = json_array();
  for (size_t i = 0; i < row->n_parts; i++)
    json_array_append_new(parts, json_string(nxc_part_name(row->parts[i])));
  return json_pack("{s:s, s:o, s:s, s:b}", "stem", row->stem, "parts", parts, "layout", layouts[row->layout],
                   "transposed", row->transposed);
}

const char *nxc_tensor_parts_text(nxc_arena *arena, const nxc_training *t) {
  const nxc_tensor_row *const *rows = t->model.family->tensors;
  const nxc_layer_spec *layer = nxc_model_layer(&t->model, 0);
  json_t *tensors = json_array();
  for (int part = 0; part < NXC_N_PARTS; part++) /* a row once: where its first part is */
    if (rows[part] && rows[part]->parts[0] == (nxc_part)part && is_plain(rows[part]))
      json_array_append_new(tensors, describe(rows[part]));
  json_t *root =
      json_pack("{s:I, s:I, s:I, s:b, s:o}", "heads", (json_int_t)layer->attention.heads, "kv_heads",
                (json_int_t)layer->attention.kv_heads, "head_dim", (json_int_t)layer->attention.head_dim,
                "parallel", layer->parallel, "tensors", tensors);
  char *text = json_dumps(root, JSON_COMPACT);
  const char *copy = nxc_arena_strdup(arena, text);
  free(text);
  json_decref(root);
  return copy;
}
