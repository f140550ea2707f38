/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/attention_layer.h"

#include "compiler/program/model/context.h"

#include <string.h>

static int64_t local_heads(const nxc_decoder *d) {
  return d->layer->attention.heads / d->t->layout.tensor;
}

static int64_t local_kv_heads(const nxc_decoder *d) {
  return d->layer->attention.kv_heads * d->t->layout.kv_replica / d->t->layout.tensor;
}

typedef struct heads {
  nxc_id q, k, v;
} heads;

/* From rotary_dims on, in the order of ops.def. */
static void rope_attributes(nx_attribute *attrs, const nxc_rope_spec *rope, int64_t dims) {
  const nx_attribute all[] = {nxc_integer(dims),
                              nxc_real(rope->theta),
                              nxc_integer(rope->scaling),
                              nxc_real(rope->factor),
                              nxc_real(rope->low_freq_factor),
                              nxc_real(rope->high_freq_factor),
                              nxc_integer(rope->original_positions),
                              nxc_real(rope->amplitude),
                              nxc_integer(rope->interleaved)};
  memcpy(attrs, all, sizeof all);
}

/* Features that are rotated as heads are split: none where a norm comes between. */
static int64_t split_dims(const nxc_attention_spec *a) {
  return a->qk_norm == NXC_QK_NORM_OF_HEAD ? 0 : a->rope.dims;
}

/* Queries, keys and values from one product; not where key heads are copied, since then the gradients of keys
 * and values are summed over other ranks than those of queries. */
static heads fused_heads(const nxc_decoder *d, nxc_id x, const nxc_box boxes[3]) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  nxc_id qkv = nxc_decoder_column_product(d, "qkv", x, boxes, 3, d->tensor, a->qkv_bias);
  nxc_op_request request = {.op = NX_OP_split_qkv,
                            .in = {qkv, graph->positions},
                            .attrs = {[NX_split_qkv_heads] = nxc_integer(local_heads(d)),
                                      [NX_split_qkv_kv_heads] = nxc_integer(local_kv_heads(d))}};
  rope_attributes(request.attrs + NX_split_qkv_rotary_dims, &a->rope, split_dims(a));
  nxc_append(graph, &request);
  return (heads){nxc_last_output(graph, 0), nxc_last_output(graph, 1), nxc_last_output(graph, 2)};
}

/* The ranks over which features are divided exchange them for tokens, and back. */
static nxc_id exchange(const nxc_decoder *d, nxc_id x, uint32_t atoms, const char *name, int64_t split,
                       int64_t concat) {
  if (atoms == 0) return x;
  return nxc_append(d->graph, &(nxc_op_request){.op = NX_OP_all_to_all,
                                                .name = name,
                                                .in = {x},
                                                .attrs = {[NX_all_to_all_split_axis] = nxc_integer(split),
                                                          [NX_all_to_all_concat_axis] = nxc_integer(concat)},
                                                .group_atoms = atoms});
}

/* A norm over all features of a projection. */
static nxc_id norm_of_all(const nxc_decoder *d, nxc_id x, nxc_part part, const char *name, uint32_t atoms) {
  nxc_id whole = exchange(d, x, atoms, nxc_arena_printf(d->graph->arena, "%s_whole", name), 1, 2);
  nxc_id y = nxc_decoder_norm(d, whole, part, &d->layer->norm, name, d->graph->types.activation);
  return exchange(d, y, atoms, nxc_arena_printf(d->graph->arena, "%s_own", name), 2, 1);
}

typedef struct projection {
  const char *name;
  nxc_part norm; /* of what is made; NXC_N_PARTS: none */
  int64_t n_heads, rotary_dims;
  uint32_t atoms;
} projection;

static nxc_id separate_heads(const nxc_decoder *d, nxc_id x, const nxc_box *box, const projection *p) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  nxc_id features = nxc_decoder_column_product(d, p->name, x, box, 1, p->atoms, a->qkv_bias);
  if (a->qk_norm == NXC_QK_NORM_OF_ALL && p->norm != NXC_N_PARTS)
    features =
        norm_of_all(d, features, p->norm, nxc_arena_printf(graph->arena, "%s_norm", p->name), p->atoms);
  nxc_op_request request = {.op = NX_OP_split_heads,
                            .name = nxc_arena_printf(graph->arena, "%s_heads", p->name),
                            .in = {features, graph->positions},
                            .attrs = {[NX_split_heads_heads] = nxc_integer(p->n_heads)}};
  rope_attributes(request.attrs + NX_split_heads_rotary_dims, &a->rope, p->rotary_dims);
  return nxc_append(graph, &request);
}

/* Each head by itself, before it is rotated. */
static nxc_id norm_of_heads(const nxc_decoder *d, nxc_id x, nxc_part part, const char *name) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  nxc_id y = nxc_decoder_norm(d, x, part, &d->layer->norm, nxc_arena_printf(graph->arena, "%s_norm", name),
                              graph->types.activation);
  if (a->rope.dims == 0) return y;
  nxc_op_request request = {.op = NX_OP_rotate,
                            .name = nxc_arena_printf(graph->arena, "%s_rotated", name),
                            .in = {y, graph->positions},
                            .attrs = {[NX_rotate_backward] = nxc_integer(0)}};
  rope_attributes(request.attrs + NX_rotate_rotary_dims, &a->rope, a->rope.dims);
  return nxc_append(graph, &request);
}

static heads make_heads(const nxc_decoder *d, nxc_id x) {
  const nxc_attention_spec *a = &d->layer->attention;
  int64_t n_heads = local_heads(d), n_kv_heads = local_kv_heads(d);
  int64_t queries = n_heads * a->head_dim, keys = n_kv_heads * a->head_dim, dims = split_dims(a);
  uint32_t key_groups = nxc_axis(&d->graph->mesh, NXC_AXIS_KV_GROUP);
  nxc_rank_number key_start = nxc_rank_number_of(0);
  nxc_rank_number_stride(&key_start, key_groups, keys);
  const nxc_box boxes[3] = {{NXC_PART_Q, queries, nxc_decoder_divided(d, queries)},
                            {NXC_PART_K, keys, key_start},
                            {NXC_PART_V, keys, key_start}};
  if (a->fused && d->t->layout.kv_replica == 1 && a->qk_norm != NXC_QK_NORM_OF_ALL)
    return fused_heads(d, x, boxes);
  const projection q = {"q", NXC_PART_Q_NORM, n_heads, dims, d->tensor};
  const projection k = {"k", NXC_PART_K_NORM, n_kv_heads, dims, key_groups};
  const projection v = {"v", NXC_N_PARTS, n_kv_heads, 0, key_groups};
  return (heads){separate_heads(d, x, &boxes[0], &q), separate_heads(d, x, &boxes[1], &k),
                 separate_heads(d, x, &boxes[2], &v)};
}

static heads normed_heads(const nxc_decoder *d, nxc_id x) {
  heads h = make_heads(d, x);
  if (d->layer->attention.qk_norm != NXC_QK_NORM_OF_HEAD) return h;
  h.q = norm_of_heads(d, h.q, NXC_PART_Q_NORM, "q");
  h.k = norm_of_heads(d, h.k, NXC_PART_K_NORM, "k");
  return h;
}

nxc_id nxc_attention_layer(const nxc_decoder *d, nxc_id x) {
  nxc_graph *graph = d->graph;
  const nxc_attention_spec *a = &d->layer->attention;
  heads h = normed_heads(d, x);
  int64_t n_heads = local_heads(d), width = n_heads * a->head_dim;
  nxc_rank_number first_head = nxc_decoder_divided(d, n_heads);
  nxc_rank_number number = nxc_rank_number_layer(graph, 1, a->layer_scaling ? 1 : 0, graph->layer);
  if (!a->layer_scaling) number = nxc_rank_number_of(1);
  nxc_context_first_head(graph, &first_head, n_heads);
  nxc_op_request request = {
      .op = NX_OP_attention,
      .name = "o",
      .in = {nxc_context_gather(graph, h.q, "q_whole"), nxc_context_gather(graph, h.k, "k_whole"),
             nxc_context_gather(graph, h.v, "v_whole"), graph->samples},
      .attrs = {[NX_attention_scale] = nxc_real(a->scale),
                [NX_attention_layer_number] = nxc_attribute(graph, &number),
                [NX_attention_dropout] = nxc_real(a->dropout),
                [NX_attention_tensor_id] = nxc_decoder_dropout_key(graph, NXC_KEY_ATTENTION),
                [NX_attention_head_start] = nxc_attribute(graph, &first_head),
                [NX_attention_window] = nxc_integer(a->window),
                [NX_attention_soft_cap] = nxc_real(a->soft_cap),
                [NX_attention_alibi_heads] = nxc_integer(a->alibi ? a->heads : 0)},
      .group_atoms = nxc_axis(&graph->mesh, NXC_AXIS_RING)};
  if (graph->starts) {
    request.in[4] = request.in[5] = graph->place_rows[0];
    request.in[6] = graph->starts;
  }
  nxc_id o = nxc_context_scatter(graph, nxc_append(graph, &request), "o_own");
  const nxc_box box = {NXC_PART_O, width, nxc_decoder_divided(d, width)};
  return nxc_decoder_row_product(d, o, &box, a->output_bias);
}
