/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/layout.h"

#include "compiler/program/records/read.h"
#include "schema/plan_program.h"

#include <stdlib.h>
#include <string.h>

static uint32_t degree(const nxc_settings *s, nxc_setting_id id) {
  return (uint32_t)nxc_int(s, id);
}

static uint32_t degree_or(const nxc_settings *s, nxc_setting_id id, uint32_t otherwise) {
  return (uint32_t)nxc_int_or(s, id, otherwise);
}

static const struct {
  const char *name, *meaning;
  nxc_dealing dealing;
  bool cuts;
  uint32_t spare;
} orders[] = {
#define ORDER(id, name, dealing, cuts, spare, meaning) {name, meaning, dealing, cuts, spare},
#include "compiler/program/records/orders.def"
#undef ORDER
};

/* One stage goes forward and back in turn, whatever the order is called. */
static nxc_order_id read_order(const nxc_settings *s, uint32_t n_stages) {
  nxc_order_id order = NXC_ORDER_1F1B;
  while (n_stages > 1 && order + 1 < NXC_N_ORDERS &&
         !nxc_is(s, NX_SETTING_PIPELINE_SCHEDULE, orders[order].name))
    order++;
  return order;
}

static void read_pipeline(const nxc_settings *s, nxc_layout *l) {
  size_t n_cuts = 0;
  l->pipeline = degree(s, NX_SETTING_MESH_PIPELINE);
  l->pipeline_order = read_order(s, l->pipeline);
  l->n_chunks = l->pipeline;
  if (nxc_layout_is_mirrored(l)) l->n_chunks *= 2;
  else if (l->pipeline > 1) l->n_chunks *= degree(s, NX_SETTING_MESH_VIRTUAL_PIPELINE);
  l->group = degree_or(s, NX_SETTING_PIPELINE_GROUP, 0);
  l->spare_slots = nxc_flag(s, NX_SETTING_PIPELINE_RECEIVE_AHEAD) ? 1 : orders[l->pipeline_order].spare;
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

bool nxc_layout_is_mirrored(const nxc_layout *l) {
  return orders[l->pipeline_order].dealing == NXC_MIRRORED;
}

uint32_t nxc_layout_stage_of(const nxc_layout *l, uint32_t chunk) {
  uint32_t turn = chunk / l->pipeline, at = chunk % l->pipeline;
  bool returns = turn % 2 == 1 && nxc_layout_is_mirrored(l);
  return returns ? l->pipeline - 1 - at : at;
}

bool nxc_layout_cuts_backward(const nxc_layout *l) {
  return orders[l->pipeline_order].cuts;
}

/* Zero bubbles have as many rounds as there are whole turns of the stages, and share the rest among them, as
 * PyTorch's do; a longer turn than transfers may be under way would wait for ever. */
uint32_t nxc_layout_turn(const nxc_layout *l, uint32_t n_micro) {
  if (l->group > 0) return l->group < l->pipeline ? l->pipeline : l->group;
  if (l->pipeline_order != NXC_ORDER_ZERO_BUBBLE) return l->pipeline;
  uint32_t turn = n_micro < l->pipeline ? n_micro : n_micro / (n_micro / l->pipeline);
  return turn > l->pipeline + NX_MAX_TRANSFERS ? l->pipeline : turn;
}

const char *nxc_order_name(nxc_order_id order) {
  return orders[order].name;
}

const char *nxc_layout_order_name(const nxc_layout *l) {
  bool several = l->n_chunks > l->pipeline && l->pipeline_order == NXC_ORDER_1F1B;
  if (l->pipeline == 1) return "one micro-batch behind the other";
  return orders[several ? NXC_ORDER_INTERLEAVED : l->pipeline_order].meaning;
}
