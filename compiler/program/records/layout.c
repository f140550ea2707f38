/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/layout.h"

#include "compiler/program/records/read.h"

#include <stdlib.h>
#include <string.h>

static uint32_t degree(const nxc_settings *s, nxc_setting_id id) {
  return (uint32_t)nxc_int(s, id);
}

static uint32_t degree_or(const nxc_settings *s, nxc_setting_id id, uint32_t otherwise) {
  return (uint32_t)nxc_int_or(s, id, otherwise);
}

static void read_pipeline(const nxc_settings *s, nxc_layout *l) {
  size_t n_cuts = 0;
  l->pipeline = degree(s, NX_SETTING_MESH_PIPELINE);
  l->n_chunks = l->pipeline;
  if (l->pipeline > 1) l->n_chunks *= degree(s, NX_SETTING_MESH_VIRTUAL_PIPELINE);
  l->gpipe = nxc_is(s, NX_SETTING_PIPELINE_SCHEDULE, "gpipe");
  l->group = (uint32_t)nxc_int_or(s, NX_SETTING_PIPELINE_GROUP, l->pipeline);
  if (l->group < l->pipeline) l->group = (uint32_t)l->pipeline;
  l->receive_ahead = nxc_flag(s, NX_SETTING_PIPELINE_RECEIVE_AHEAD);
  if (nxc_has(s, NX_SETTING_PIPELINE_CUTS)) l->cuts = nxc_list(s, NX_SETTING_PIPELINE_CUTS, &n_cuts);
  if (n_cuts + 1 != l->n_chunks) l->cuts = NULL;
}

nxc_layout nxc_layout_read(const nxc_settings *s) {
  nxc_layout l = {.world = degree(s, NX_SETTING_MESH_WORLD),
                  .nodes = degree(s, NX_SETTING_MESH_NODES),
                  .tensor = degree(s, NX_SETTING_MESH_TENSOR),
                  .context = degree(s, NX_SETTING_MESH_CONTEXT),
                  .replicate = degree(s, NX_SETTING_MESH_REPLICATE),
                  .expert = degree(s, NX_SETTING_MESH_EXPERT),
                  .order = nxc_text(s, NX_SETTING_MESH_ORDER)};
  bool only_ulysses = nxc_flag(s, NX_SETTING_ATTENTION_ULYSSES) && !nxc_flag(s, NX_SETTING_ATTENTION_RING);
  l.ulysses = degree_or(s, NX_SETTING_MESH_ULYSSES, only_ulysses ? l.context : 1);
  l.expert_tensor = degree_or(s, NX_SETTING_MESH_EXPERT_TENSOR, l.tensor);
  l.sequence_parallel = nxc_flag(s, NX_SETTING_SEQUENCE_PARALLEL) && l.tensor > 1;
  read_pipeline(s, &l);
  l.data = l.world / l.tensor / l.context / l.pipeline;
  return l;
}

uint32_t nxc_layout_kv_copies(const nxc_layout *l, int64_t kv_heads) {
  int64_t tensor = l->tensor, divisor = kv_heads;
  while (tensor != 0) {
    int64_t rest = divisor % tensor;
    divisor = tensor;
    tensor = rest;
  }
  return (uint32_t)(l->tensor / divisor);
}

/* The number at the end of a layer's name; -1 where there is none, as of the embedding. */
static int64_t layer_of_name(const char *name) {
  const char *dot = strrchr(name, '.');
  const char *digits = dot == NULL ? name : dot + 1;
  char *end;
  long layer = strtol(digits, &end, 10);
  return end == digits || *end || layer < 0 || layer >= INT32_MAX ? -1 : layer;
}

int64_t nxc_layout_layers_before(const nxc_layout *l, int64_t n_layers, uint32_t chunk) {
  if (chunk == 0) return 0;
  if (l->cuts != NULL && chunk < l->n_chunks) return layer_of_name(l->cuts[chunk - 1].text) + 1;
  int64_t each = n_layers / l->n_chunks, larger = n_layers % l->n_chunks; /* the last ones have one more */
  int64_t smaller = l->n_chunks - larger;
  return each * chunk + (chunk > smaller ? chunk - smaller : 0);
}
