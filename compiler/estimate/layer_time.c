/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/layer_time.h"

#include "compiler/estimate/layer_products.h"

#include <math.h>

/* How often a row is moved when rows are sorted by expert, and back. */
static const double sorting_passes = 4.125;

double nxc_pass_s(const nxc_pass *p) {
  double total = 0;
  for (int i = 0; i < NXC_N_SPENT; i++) total += p->parts[i];
  return total;
}

void nxc_pass_add(nxc_pass *to, const nxc_pass *what, double times) {
  for (int i = 0; i < NXC_N_SPENT; i++) to->parts[i] += times * what->parts[i];
  to->weights_s += times * what->weights_s;
}

static double work_of(const nxc_pass *p) {
  return p->parts[NXC_SPENT_PRODUCTS] + p->parts[NXC_SPENT_ATTENTION] + p->parts[NXC_SPENT_POINTWISE] +
         p->parts[NXC_SPENT_LAUNCH];
}

static nxc_pass forward_since(const nxc_passes *p, const nxc_passes *before) {
  nxc_pass since = p->forward;
  nxc_pass_add(&since, &before->forward, -1);
  return since;
}

/* What the forward pass has got since `before` belongs to a module, and so do modules within it. */
static void end_module(const nxc_clock *c, nxc_passes *p, const nxc_passes *before, const char *module) {
  if (!nxc_computes_again(c->training, module)) return;
  const nxc_pass since = forward_since(p, before);
  p->again = before->again;
  nxc_pass_add(&p->again, &since, 1);
}

double nxc_exposed_s(const nxc_clock *c, double exchange_s, double work_s) {
  return fmax(0, exchange_s - work_s) +
         c->device->collective_units / c->device->units * fmin(exchange_s, work_s);
}

/* A module that ends with a product whose sums have length k: no gradient reads its result. */
static void end_with_product(const nxc_clock *c, nxc_passes *p, const nxc_passes *before, const char *module,
                             double k) {
  end_module(c, p, before, module);
  if (!nxc_computes_again(c->training, module)) return;
  nxc_passes last = {0};
  nxc_add_product(c, &last, c->z->tokens, c->z->hidden, k, 1);
  nxc_pass_add(&p->again, &last.forward, -c->traits.stops_early);
}

/* ---- attention ---- */

static double keys_in(const nxc_sizes *z, double window) {
  window = window > 0 ? fmin(window, z->sequence) : z->sequence;
  return z->windowed * window * (1 - window / (2 * z->sequence)) + (1 - z->windowed) * z->sequence / 2;
}

double nxc_keys_met(const nxc_sizes *z) {
  return z->sparse * z->sparse_keys + (1 - z->sparse) * keys_in(z, z->window);
}

/* Those whose scores a flash kernel computes: blocks on the diagonal, and at the end of a window, are whole.
 */
static double keys_in_blocks(const nxc_sizes *z, double block) {
  double window = z->window > 0 ? block * (ceil((z->window - 1) / block) + 1) : 0;
  return keys_in(z, window) + (1 - z->windowed) * fmin(block, z->sequence) / 2;
}

/* A flash kernel: 2 products forward, 5 backward, over the scores that live, in whole blocks. Of a forward
 * pass the last block of queries goes over all keys when the others are done; the backward pass goes over
 * blocks of keys, and fills the units. Values are padded to the width of keys. Narrow heads reach less
 * (arXiv:2307.08691), and on systolic arrays in proportion. */
static void add_flash(const nxc_clock *c, nxc_passes *p, double share) {
  const nxc_sizes *z = c->z;
  const double block = 128, narrow = c->device->narrow_heads;
  double keys = keys_in_blocks(z, c->device->attention_block);
  double queries = z->sequence / z->context, dims = 2 * fmax(z->head_dim, z->value_dim);
  double flops = share * 2 * z->micro_batch * z->heads / z->tensor * queries * keys * dims;
  double speed = c->device->peak * fmin(1, narrow + (1 - narrow) * z->head_dim / 128) * c->traits.attention;
  double tail = share * 2 * fmin(block, queries) * fmin(z->sequence, 2 * keys) * dims * c->device->units;
  p->forward.parts[NXC_SPENT_ATTENTION] += (flops + tail) / (speed * c->device->attention_forward);
  p->backward.parts[NXC_SPENT_ATTENTION] += 2.5 * flops / (speed * c->device->attention_backward);
}

/* Libraries compute batched products on tensor cores only where rows begin at multiples of 16 bytes, and
 * otherwise as in fp32. */
static double peak_of_heads(const nxc_clock *c) {
  bool whole = fmod(c->z->head_dim * c->z->compute_bytes, 16) == 0;
  return whole || c->device->peak_f32 == 0 ? c->device->peak : fmin(c->device->peak, c->device->peak_f32);
}

/* Batched products over all scores with `keys` of each query, dead ones too, with passes of softmax and
 * dropout between. */
static void add_scores(const nxc_clock *c, nxc_passes *p, double keys, double share) {
  const nxc_sizes *z = c->z;
  double heads = share * z->micro_batch * z->heads / z->tensor, queries = z->sequence / z->context;
  double flops = 2 * heads * queries * keys * (z->head_dim + z->value_dim);
  double fill = z->head_dim / (z->head_dim + c->device->depth / 2);
  double speed = peak_of_heads(c) * c->device->efficiency * fill;
  double scores = heads * queries * keys;
  double moved = scores * ((4 + c->traits.more_scores) * z->compute_bytes +
                           z->attention_dropout * (1 + 2 * z->compute_bytes));
  p->forward.parts[NXC_SPENT_ATTENTION] += flops / speed + nxc_moved_s(c->device, moved);
  p->backward.parts[NXC_SPENT_ATTENTION] += 2 * flops / speed + nxc_moved_s(c->device, moved);
}

/* ---- what memory bounds ---- */

/* What operators move that one kernel would not. */
static void add_separate(const nxc_clock *c, nxc_passes *p, double elements) {
  double seconds = nxc_moved_s(c->device, elements * c->z->compute_bytes);
  p->forward.parts[NXC_SPENT_POINTWISE] += seconds;
  p->backward.parts[NXC_SPENT_POINTWISE] += 1.7 * seconds;
}

static void add_pointwise(const nxc_clock *c, nxc_passes *p, double elements) {
  add_separate(c, p, c->traits.pointwise_passes * elements);
}

/* Norms and residuals read and write the stream, rotation the heads. */
static void add_stream(const nxc_clock *c, nxc_passes *p) {
  const nxc_sizes *z = c->z;
  double stream = z->tokens * z->hidden / z->sequence_split;
  double heads = z->tokens * (z->heads + 2 * z->kv_heads) * z->head_dim / z->tensor;
  const nxc_passes before = *p;
  add_pointwise(c, p, 4 * stream); /* two norms */
  end_module(c, p, &before, "layernorm");
  add_pointwise(c, p, 6 * stream + 2 * heads);
  double rotated = z->tokens * (z->heads + z->kv_heads) * z->head_dim / z->tensor;
  add_pointwise(c, p, 2 * z->qk_norms * rotated);
  add_separate(c, p, c->traits.more_stream * stream + c->traits.more_heads * rotated);
}

static void add_activation(const nxc_clock *c, nxc_passes *p, double rows, double width) {
  add_pointwise(c, p, rows * width * (2 + c->z->gates));
  add_separate(c, p, rows * width * c->traits.more_activation);
}

/* ---- exchanges within a layer ---- */

/* Forward: two all-reduces, or gathers and scattered sums. */
static double tensor_s(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  if (z->tensor <= 1) return 0;
  double bytes = z->compute_bytes * z->tokens * z->hidden;
  double copy = c->traits.tensor_copies * nxc_moved_s(c->device, 2 * bytes);
  return 4 * (nxc_gather_s(c->machine, c->tensor, bytes) + copy) * (1 - c->traits.hides_tensor);
}

static void add_tensor(const nxc_clock *c, nxc_passes *p, double share) {
  double seconds = share * tensor_s(c) * c->traits.tensor_forward, back = seconds * c->traits.tensor_back;
  /* half of the products of a backward pass are of weights, and the inputs of half of these are divided */
  double under = c->traits.hides_inputs * p->backward.parts[NXC_SPENT_PRODUCTS] / 4;
  p->forward.parts[NXC_SPENT_TENSOR] += seconds;
  p->backward.parts[NXC_SPENT_TENSOR] += fmax(0, back - under);
}

/* Heads are exchanged for sequence before the attention and back after it, which nothing hides; keys and
 * values go round while blocks of attention are computed. */
static void add_context(const nxc_clock *c, nxc_passes *p) {
  const nxc_sizes *z = c->z;
  double keys = z->kv_heads * (z->head_dim + z->value_dim), queries = z->heads * (z->head_dim + z->value_dim);
  double of_feature = z->compute_bytes * z->tokens / z->tensor;
  double exchange = nxc_all_to_all_s(c->machine, c->ulysses, of_feature * (keys + queries), 1);
  double round = nxc_send_s(c->machine, c->ring, of_feature * keys) * (c->ring.size - 1);
  double under = p->forward.parts[NXC_SPENT_ATTENTION], under_back = p->backward.parts[NXC_SPENT_ATTENTION];
  p->forward.parts[NXC_SPENT_CONTEXT] += exchange + nxc_exposed_s(c, round, under);
  p->backward.parts[NXC_SPENT_CONTEXT] += exchange + nxc_exposed_s(c, 2 * round, under_back);
  /* what each block of keys gives is read and added; half of the blocks meet half of the queries */
  double blocks = c->ring.size > 1 ? (c->ring.size + 1) / 2 : 0;
  add_separate(c, p, 3 * blocks * z->tokens * z->heads * z->value_dim / z->tensor);
}

/* What comes once to a rank is copied there for each of its experts, and what these make is summed. */
static double sorting_of(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  double passes = z->joins_copies > 0 ? 2 + 2 * nxc_places_of(z->expert, z->top_k) : sorting_passes;
  return passes + (1 - z->joins_sorting) * c->traits.more_sorting;
}

/* Rows that padding adds, of the experts of a rank. */
static double rows_added(const nxc_clock *c) {
  double from = c->z->router_pads > 0 ? c->z->expert : 1;
  return c->traits.padded_rows * c->z->experts / c->z->expert * from;
}

/* Rows to the experts and back, forward and backward alike; they are sorted by expert, and back, row by
 * row. Ranks that divide an expert each have all of its rows. */
static void add_dispatch(const nxc_clock *c, nxc_passes *p) {
  const nxc_sizes *z = c->z;
  double rows = z->tokens * z->top_k / z->tensor + z->router_pads * rows_added(c);
  double copies = z->joins_copies > 0 ? z->top_k : 1;
  double sent = z->compute_bytes * rows * fmax(1, z->overload) * z->hidden;
  double seconds = 2 * nxc_all_to_all_s(c->machine, c->expert, sent, copies);
  const nxc_ranks sharing = {z->expert_tensor, 1};
  double gathered = z->compute_bytes * rows * z->expert_tensor * z->hidden;
  seconds += 2 * c->traits.gathers_rows * nxc_gather_s(c->machine, sharing, gathered);
  double pads = z->fp8 * (1 - z->joins_sorting) * c->traits.pads_experts;
  add_pointwise(c, p, (sorting_of(c) / c->device->scattered + pads) * rows * z->hidden);
  p->forward.parts[NXC_SPENT_EXPERT] += seconds;
  p->backward.parts[NXC_SPENT_EXPERT] += seconds;
}

/* The forward pass of a micro-batch goes with the backward pass of one before it, and each exchanges beneath
 * the work of the other. The micro-batches that fill the pipeline, and the last ones, have no partner. */
static void hide_dispatch(const nxc_clock *c, nxc_passes *p) {
  const nxc_sizes *z = c->z;
  double paired = c->traits.hides_experts * fmax(0, 1 - z->in_flight / z->micro_batches);
  double *there = &p->forward.parts[NXC_SPENT_EXPERT], *back = &p->backward.parts[NXC_SPENT_EXPERT];
  double left = nxc_exposed_s(c, *there, work_of(&p->backward)),
         left_back = nxc_exposed_s(c, *back, work_of(&p->forward));
  *there = paired * left + (1 - paired) * *there;
  *back = paired * left_back + (1 - paired) * *back;
}

/* ---- layers ---- */

/* A part of a layer has about so many kernels; a graph of them is launched as one. */
static double launches_of(double n_kernels, double graph) {
  return graph > 0 ? 1 : n_kernels;
}

/* What kernels take to be launched, where that is more than their work. */
static void add_launches(const nxc_clock *c, nxc_passes *p, double n_forward) {
  double forward = n_forward * c->traits.launches * c->device->launch_s;
  p->forward.parts[NXC_SPENT_LAUNCH] += fmax(0, forward - work_of(&p->forward));
  p->backward.parts[NXC_SPENT_LAUNCH] += fmax(0, 2 * forward - work_of(&p->backward));
}

/* Latent attention goes down to its ranks, and up from them to the heads (arXiv:2405.04434). */
static void add_latent_products(const nxc_clock *c, nxc_passes *p) {
  const nxc_sizes *z = c->z;
  double heads = z->heads / z->tensor, plain = z->head_dim - z->rope_dim;
  double down = z->query_rank + z->kv_rank + z->rope_dim,
         query_from = z->query_rank > 0 ? z->query_rank : z->hidden;
  nxc_add_product(c, p, z->tokens / z->sequence_split, down, z->hidden, 1);
  const nxc_passes before = *p;
  nxc_add_product(c, p, z->tokens, heads * z->head_dim, query_from, 1);
  nxc_add_product(c, p, z->tokens, heads * (plain + z->value_dim), z->kv_rank, 1);
  end_module(c, p, &before, "mla_up_proj");
}

static void add_attention(const nxc_clock *c, nxc_passes *p) {
  const nxc_sizes *z = c->z;
  const nxc_passes before = *p;
  double out = (z->heads + z->kv_heads) * z->head_dim + z->kv_heads * z->value_dim;
  if (z->kv_rank > 0) add_latent_products(c, p);
  else nxc_add_product(c, p, z->tokens, out / z->tensor, z->hidden, 1);
  const nxc_passes core = *p;
  double flash = z->flash * (1 - z->sparse);
  if (flash > 0) add_flash(c, p, flash);
  add_scores(c, p, z->sequence, 1 - z->sparse - flash);
  add_scores(c, p, z->sparse_keys, z->sparse);
  end_module(c, p, &core, "core_attn");
  double values = z->heads * z->value_dim / z->tensor;
  nxc_add_product(c, p, z->tokens, z->hidden, values, 1);
  end_with_product(c, p, &before, "attention", values);
}

/* Every second product, with what lies between products, and their gathered inputs. `width` is that of the
 * network of all tokens. */
static void add_second_products(const nxc_clock *c, nxc_pass *to, double width) {
  const nxc_sizes *z = c->z;
  nxc_passes p = {0};
  if (z->second_products == 0) return;
  nxc_add_product(c, &p, z->tokens, z->kv_heads * z->head_dim / z->tensor, z->hidden, 1);
  nxc_add_product(c, &p, z->tokens, z->hidden, z->heads * z->value_dim / z->tensor, 1);
  nxc_add_product(c, &p, z->tokens, z->gates * width / z->tensor, z->hidden, 1);
  add_stream(c, &p);
  add_activation(c, &p, z->tokens, width / z->tensor);
  p.forward.parts[NXC_SPENT_TENSOR] = tensor_s(c) / 2;
  nxc_pass_add(to, &p.forward, 1);
}

/* Products of experts are grouped, none of which is kept: all but the last ones are computed again, and rows
 * go to the experts once more, and not back. */
static void add_experts_again(const nxc_clock *c, nxc_passes *p, const nxc_pass *made, const nxc_pass *sent) {
  if (c->z->second_products == 0) return;
  nxc_pass again = *made;
  again.parts[NXC_SPENT_PRODUCTS] *= (1 + c->z->gates) / (2 + c->z->gates);
  nxc_pass_add(&again, sent, 0.5);
  nxc_pass_add(&p->again, &again, 1);
}

/* What is computed again is that before the backward pass: of full recomputation the whole layer, but for
 * what no gradient reads. */
static void add_recompute(const nxc_clock *c, nxc_passes *p, const nxc_pass *unread, double width) {
  const nxc_sizes *z = c->z;
  double share = z->recompute_block ? fmin(1, z->recompute_layers / fmax(1, nxc_sizes_chunk_layers(z))) : 1;
  if (!z->recomputes_all) {
    nxc_pass_add(&p->backward, &p->again, 1);
    add_second_products(c, &p->backward, width);
    return;
  }
  nxc_pass_add(&p->backward, &p->forward, share);
  nxc_pass_add(&p->backward, unread, -share * c->traits.stops_early);
}

/* The last product of a dense layer, and how its sum goes over the tensor-parallel ranks. */
static nxc_pass last_product(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  nxc_passes p = {0};
  nxc_add_product(c, &p, z->tokens, z->hidden, z->ffn / z->tensor, 1);
  p.forward.parts[NXC_SPENT_TENSOR] = tensor_s(c) / 4;
  return p.forward;
}

nxc_passes nxc_dense_layer(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  nxc_passes p = {0};
  add_attention(c, &p);
  add_stream(c, &p);
  const nxc_passes before = p;
  nxc_add_network(c, &p, z->tokens, z->ffn / z->tensor, 1);
  const nxc_passes network = p;
  add_activation(c, &p, z->tokens, z->ffn / z->tensor);
  end_module(c, &p, &network, "moe_act");
  end_with_product(c, &p, &before, "mlp", z->ffn / z->tensor);
  nxc_add_adapters(c, &p, z->tokens, z->adapters.dense_added, z->adapters.dense_adapted, 1);
  add_tensor(c, &p, 1);
  add_context(c, &p);
  add_launches(c, &p, launches_of(8, z->graph_attention) + launches_of(8, z->graph_network));
  const nxc_pass unread = last_product(c);
  add_recompute(c, &p, &unread, z->ffn);
  return p;
}

/* Rows that the busiest rank's experts multiply for each one of balanced experts. */
static double rows_multiplied(const nxc_clock *c) {
  return c->traits.pads_capacity > 0 && c->z->capacity > 0 ? c->z->capacity : c->z->overload;
}

nxc_passes nxc_mixture_layer(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  nxc_passes p = {0};
  double local = z->experts / z->expert, sent = z->tokens * z->top_k * z->expert_tensor / z->tensor;
  double rows = sent * rows_multiplied(c) + rows_added(c);
  add_attention(c, &p);
  add_stream(c, &p);
  const nxc_passes before = p;
  nxc_add_experts(c, &p, rows / local, z->expert_ffn / z->expert_tensor, local);
  const nxc_passes experts = p;
  if (z->joins_experts == 0) add_activation(c, &p, rows, z->expert_ffn / z->expert_tensor);
  add_separate(c, &p, c->traits.more_rows * rows * z->hidden);
  end_module(c, &p, &experts, "moe_act");
  const nxc_passes shared = p;
  const nxc_pass made = forward_since(&p, &before);
  nxc_add_network(c, &p, z->tokens, z->shared_ffn / z->tensor, 1);
  end_with_product(c, &p, &shared, "shared_experts", z->shared_ffn / z->tensor);
  const nxc_passes unsent = p;
  add_dispatch(c, &p);
  const nxc_pass dispatch = forward_since(&p, &unsent);
  end_module(c, &p, &before, "moe");
  add_experts_again(c, &p, &made, &dispatch);
  const nxc_adapters *a = &z->adapters;
  nxc_add_adapters(c, &p, z->tokens, a->mixture_added, a->mixture_adapted, 1);
  nxc_add_adapters(c, &p, rows / local, a->experts_added / local, a->experts_adapted / local, local);
  add_tensor(c, &p, c->traits.gathers_rows > 0 && z->shared_ffn == 0 ? 0.5 : 1); /* attention alone */
  add_context(c, &p);
  double of_experts = 20 + (z->fp8 > 0 ? 6 : 2) * local; /* two products of each, and casts for them */
  add_launches(c, &p,
               launches_of(8, z->graph_attention) + launches_of(12, z->graph_router) +
                   launches_of(of_experts, z->graph_experts));
  add_recompute(c, &p, &(nxc_pass){0}, z->shared_ffn);
  hide_dispatch(c, &p);
  return p;
}

nxc_passes nxc_output_layer(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  nxc_passes p = {0};
  double sharing = z->output_whole > 0 ? 1 : z->tensor;
  double m = z->tokens, n = z->outputs / sharing, k = z->hidden;
  const nxc_product forward = {m, n, k, 1, 2, false, false}, input = {m, k, n, 1, 2, false, false};
  const nxc_product weight = {n, k, m, 1, nxc_gradient_bytes(c), false, true};
  p.forward.parts[NXC_SPENT_PRODUCTS] = nxc_product_s(c->device, &forward);
  p.backward.parts[NXC_SPENT_PRODUCTS] = nxc_product_s(c->device, &input);
  nxc_add_weights(c, &p, &weight);
  double logits = m * n * (z->loss_whole > 0 ? sharing : 1), gathered = z->compute_bytes * logits;
  p.forward.parts[NXC_SPENT_POINTWISE] = nxc_moved_s(c->device, c->traits.loss_bytes * logits);
  p.backward.parts[NXC_SPENT_POINTWISE] += nxc_moved_s(c->device, c->traits.loss_back_bytes * logits);
  if (logits > m * n) p.forward.parts[NXC_SPENT_TENSOR] += nxc_gather_s(c->machine, c->tensor, gathered);
  return p;
}

nxc_passes nxc_prediction(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  nxc_passes p = nxc_output_layer(c);
  nxc_add_product(c, &p, z->tokens, z->hidden / z->tensor, 2 * z->hidden, 1);
  return p;
}
