/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/time.h"

#include "compiler/estimate/exchange.h"
#include "compiler/estimate/product.h"

#include <math.h>
#include <string.h>

const char *const nxc_spent_names[NXC_N_SPENT] = {
#define SPENT(id, name, meaning) name,
    NXC_SPENT(SPENT)
#undef SPENT
};

/* What passes over one layer, or over the output layer, take. */
typedef struct pass {
  double parts[NXC_N_SPENT];
} pass;

typedef struct passes {
  pass forward, backward,
      again; /* again: what of the forward pass is computed again before the backward one */
} passes;

typedef struct clock {
  const nxc_sizes *z;
  const nxc_training *training;
  const nxc_machine *machine;
  const nxc_device *device;
  nxc_traits traits;
  nxc_ranks tensor, ulysses, ring, data, shard, expert, expert_shard, stages;
} clock;

static double sum(const pass *p) {
  double total = 0;
  for (int i = 0; i < NXC_N_SPENT; i++) total += p->parts[i];
  return total;
}

static void add(pass *to, const pass *what, double times) {
  for (int i = 0; i < NXC_N_SPENT; i++) to->parts[i] += times * what->parts[i];
}

static double work_of(const pass *p) {
  return p->parts[NXC_SPENT_PRODUCTS] + p->parts[NXC_SPENT_ATTENTION] + p->parts[NXC_SPENT_POINTWISE] +
         p->parts[NXC_SPENT_LAUNCH];
}

/* What the forward pass has got since `before` belongs to a module. */
static void end_module(const clock *c, passes *p, const pass *before, const char *module) {
  if (!nxc_computes_again(c->training, module)) return;
  add(&p->again, &p->forward, 1);
  add(&p->again, before, -1);
}

/* What is left of an exchange beneath work: what does not fit, and what the work loses to it, since
 * collectives run on some of the units that compute. */
static double exposed_s(const clock *c, double exchange_s, double work_s) {
  return fmax(0, exchange_s - work_s) +
         c->device->collective_units / c->device->units * fmin(exchange_s, work_s);
}

/* ---- products ---- */

/* Bytes that an element of a weight's gradient moves: it is read and written where micro-batches are summed,
 * and only written where it goes to the ranks that own it. */
static double gradient_bytes(const nxc_sizes *z) {
  return z->zero >= 2 ? 2 : 2 * z->grad_bytes;
}

/* What an fp8 product reads is cast to it, by rows and by columns, with a scale: inputs and weights forward,
 * gradients of the result and weights backward. */
static void add_casts(const clock *c, passes *p, double m, double n, double k, double count) {
  if (c->z->fp8 == 0) return;
  double weights = c->traits.casts_weights * n * k,
         passes_s = c->traits.cast_passes * nxc_moved_s(c->device, 2);
  p->forward.parts[NXC_SPENT_POINTWISE] += passes_s * count * (m * k + weights);
  p->backward.parts[NXC_SPENT_POINTWISE] += passes_s * count * (m * n + weights);
}

/* y[m, n] = x[m, k] w: forward, then the gradients of x and of w; `count` of them in one kernel. */
static void add_product(const clock *c, passes *p, double m, double n, double k, double count) {
  const nxc_product forward = {m, n, k, count, 2, c->z->fp8 > 0}, input = {m, k, n, count, 2, c->z->fp8 > 0};
  const nxc_product weight = {n, k, m, count, gradient_bytes(c->z), c->z->fp8 > 0};
  p->forward.parts[NXC_SPENT_PRODUCTS] += nxc_product_s(c->device, &forward);
  p->backward.parts[NXC_SPENT_PRODUCTS] += nxc_product_s(c->device, &input);
  if (c->z->trained == 1) p->backward.parts[NXC_SPENT_PRODUCTS] += nxc_product_s(c->device, &weight);
  add_casts(c, p, m, n, k, count);
}

static void add_network(const clock *c, passes *p, double rows, double width, double count) {
  if (width <= 0 || count <= 0) return;
  add_product(c, p, rows, (1 + c->z->gates) * width, c->z->hidden, count);
  add_product(c, p, rows, c->z->hidden, width, count);
}

/* ---- attention ---- */

/* Keys that a query meets on average: causal, and within the window in the layers that have one. */
static double keys_met(const nxc_sizes *z) {
  double window = z->window > 0 ? fmin(z->window, z->sequence) : z->sequence;
  return z->windowed * window * (1 - window / (2 * z->sequence)) + (1 - z->windowed) * z->sequence / 2;
}

/* A flash kernel: 2 products forward, 5 backward, over the scores that live. Of a forward pass the last block
 * of queries goes over all keys when the others are done; the backward pass goes over blocks of keys, and
 * fills the units. Values are padded to the width of keys. Narrow heads reach less (arXiv:2307.08691). */
static void add_flash(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  const double block = 128;
  double queries = z->sequence / z->context, dims = 2 * fmax(z->head_dim, z->value_dim), keys = keys_met(z);
  double flops = 2 * z->micro_batch * z->heads / z->tensor * queries * keys * dims;
  double speed = c->device->peak * fmin(1, 0.7 + 0.3 * z->head_dim / 128) * c->traits.attention;
  double tail = 2 * fmin(block, queries) * fmin(z->sequence, 2 * keys) * dims * c->device->units;
  p->forward.parts[NXC_SPENT_ATTENTION] += (flops + tail) / (speed * c->device->attention_forward);
  p->backward.parts[NXC_SPENT_ATTENTION] += 2.5 * flops / (speed * c->device->attention_backward);
}

/* Batched products over all scores, dead ones too, with passes of softmax and dropout between. */
static void add_scores(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  double heads = z->micro_batch * z->heads / z->tensor, queries = z->sequence / z->context;
  double flops = 2 * heads * queries * z->sequence * (z->head_dim + z->value_dim);
  double fill = z->head_dim / (z->head_dim + c->device->depth / 2) * (fmod(z->head_dim, 8) == 0 ? 1 : 0.25);
  double speed = c->device->peak * c->device->efficiency * fill;
  double scores = heads * queries * z->sequence;
  double moved = scores * (4 * z->compute_bytes + z->attention_dropout * (1 + 2 * z->compute_bytes));
  p->forward.parts[NXC_SPENT_ATTENTION] += flops / speed + nxc_moved_s(c->device, moved);
  p->backward.parts[NXC_SPENT_ATTENTION] += 2 * flops / speed + nxc_moved_s(c->device, moved);
}

/* ---- what memory bounds ---- */

static void add_pointwise(const clock *c, passes *p, double elements) {
  double seconds = c->traits.pointwise_passes * nxc_moved_s(c->device, elements * c->z->compute_bytes);
  p->forward.parts[NXC_SPENT_POINTWISE] += seconds;
  p->backward.parts[NXC_SPENT_POINTWISE] += 1.7 * seconds;
}

/* Norms and residuals read and write the stream, rotation the heads. */
static void add_stream(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  double stream = z->tokens * z->hidden / z->sequence_split;
  double heads = z->tokens * (z->heads + 2 * z->kv_heads) * z->head_dim / z->tensor;
  pass before = p->forward;
  add_pointwise(c, p, 4 * stream); /* two norms */
  end_module(c, p, &before, "layernorm");
  add_pointwise(c, p, 6 * stream + 2 * heads);
}

static void add_activation(const clock *c, passes *p, double rows, double width) {
  add_pointwise(c, p, rows * width * (2 + c->z->gates));
}

/* ---- exchanges within a layer ---- */

static void add_tensor(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  double one = nxc_gather_s(c->machine, c->tensor, z->compute_bytes * z->tokens * z->hidden);
  double seconds =
      4 * one * (1 - c->traits.hides_tensor); /* two all-reduces, or gathers and scattered sums */
  p->forward.parts[NXC_SPENT_TENSOR] += seconds;
  p->backward.parts[NXC_SPENT_TENSOR] += seconds;
}

/* Heads are exchanged for sequence before the attention and back after it, which nothing hides; keys and
 * values go round while blocks of attention are computed. */
static void add_context(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  double keys = z->kv_heads * (z->head_dim + z->value_dim), queries = z->heads * (z->head_dim + z->value_dim);
  double of_feature = z->compute_bytes * z->tokens / z->tensor;
  double exchange = nxc_all_to_all_s(c->machine, c->ulysses, of_feature * (keys + queries), 1);
  double round = nxc_send_s(c->machine, c->ring, of_feature * keys) * (c->ring.size - 1);
  double under = p->forward.parts[NXC_SPENT_ATTENTION], under_back = p->backward.parts[NXC_SPENT_ATTENTION];
  p->forward.parts[NXC_SPENT_CONTEXT] += exchange + exposed_s(c, round, under);
  p->backward.parts[NXC_SPENT_CONTEXT] += exchange + exposed_s(c, 2 * round, under_back);
}

/* Rows to the experts and back, forward and backward alike; they are sorted by expert, and back, at about
 * 0.75 of the rate of other moves (SimuMax, B200). */
static void add_dispatch(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  double rows = z->tokens * z->top_k / z->tensor;
  double seconds = 2 * nxc_all_to_all_s(c->machine, c->expert, z->compute_bytes * rows * z->hidden, z->top_k);
  add_pointwise(c, p, (5.5 + z->fp8 * c->traits.pads_experts) * rows * z->hidden);
  p->forward.parts[NXC_SPENT_EXPERT] += seconds;
  p->backward.parts[NXC_SPENT_EXPERT] += seconds;
}

/* The forward pass of a micro-batch goes with the backward pass of one before it, and each exchanges beneath
 * the work of the other. The micro-batches that fill the pipeline, and the last ones, have no partner. */
static void hide_dispatch(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  double paired = c->traits.hides_experts * fmax(0, 1 - z->in_flight / z->micro_batches);
  double *there = &p->forward.parts[NXC_SPENT_EXPERT], *back = &p->backward.parts[NXC_SPENT_EXPERT];
  double left = exposed_s(c, *there, work_of(&p->backward)),
         left_back = exposed_s(c, *back, work_of(&p->forward));
  *there = paired * left + (1 - paired) * *there;
  *back = paired * left_back + (1 - paired) * *back;
}

/* ---- layers ---- */

/* What kernels take to be launched, where that is more than their work. */
static void add_launches(const clock *c, passes *p, double n_forward) {
  double forward = n_forward * c->traits.launches * c->device->launch_s;
  double missing = forward - work_of(&p->forward), missing_back = 2 * forward - work_of(&p->backward);
  if (missing > 0) p->forward.parts[NXC_SPENT_LAUNCH] += missing;
  if (missing_back > 0) p->backward.parts[NXC_SPENT_LAUNCH] += missing_back;
}

/* Latent attention goes down to its ranks, and up from them to the heads (arXiv:2405.04434). */
static void add_latent_products(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  double heads = z->heads / z->tensor, plain = z->head_dim - z->rope_dim;
  double down = z->query_rank + z->kv_rank + z->rope_dim,
         query_from = z->query_rank > 0 ? z->query_rank : z->hidden;
  add_product(c, p, z->tokens / z->sequence_split, down, z->hidden, 1);
  pass before = p->forward;
  add_product(c, p, z->tokens, heads * z->head_dim, query_from, 1);
  add_product(c, p, z->tokens, heads * (plain + z->value_dim), z->kv_rank, 1);
  end_module(c, p, &before, "mla_up_proj");
}

static void add_attention(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  pass before = p->forward;
  double out = (z->heads + z->kv_heads) * z->head_dim + z->kv_heads * z->value_dim;
  if (z->kv_rank > 0) add_latent_products(c, p);
  else add_product(c, p, z->tokens, out / z->tensor, z->hidden, 1);
  pass core = p->forward;
  if (c->traits.attention > 0) add_flash(c, p);
  else add_scores(c, p);
  end_module(c, p, &core, "core_attn");
  add_product(c, p, z->tokens, z->hidden, z->heads * z->value_dim / z->tensor, 1);
  end_module(c, p, &before, "attention");
}

/* What is computed again is that before the backward pass: of full recomputation the whole layer. */
static void add_recompute(const clock *c, passes *p) {
  const nxc_sizes *z = c->z;
  double share = z->recompute_block ? fmin(1, z->recompute_layers / fmax(1, z->stage_layers)) : 1;
  if (z->recomputes_all) add(&p->backward, &p->forward, share);
  else add(&p->backward, &p->again, 1);
}

static passes dense_layer(const clock *c) {
  const nxc_sizes *z = c->z;
  passes p = {0};
  add_attention(c, &p);
  add_stream(c, &p);
  pass before = p.forward;
  add_network(c, &p, z->tokens, z->ffn / z->tensor, 1);
  add_activation(c, &p, z->tokens, z->ffn / z->tensor);
  end_module(c, &p, &before, "mlp");
  add_tensor(c, &p);
  add_context(c, &p);
  add_launches(c, &p, 16);
  add_recompute(c, &p);
  return p;
}

static passes mixture_layer(const clock *c) {
  const nxc_sizes *z = c->z;
  passes p = {0};
  double local = z->experts / z->expert, rows = z->tokens * z->top_k * z->expert_tensor / z->tensor;
  add_attention(c, &p);
  add_stream(c, &p);
  pass before = p.forward;
  add_network(c, &p, rows / local, z->expert_ffn / z->expert_tensor, local);
  pass experts = p.forward;
  add_activation(c, &p, rows, z->expert_ffn / z->expert_tensor);
  end_module(c, &p, &experts, "moe_act");
  add_network(c, &p, z->tokens, z->shared_ffn / z->tensor, 1);
  add_dispatch(c, &p);
  end_module(c, &p, &before, "moe");
  add_tensor(c, &p);
  add_context(c, &p);
  add_launches(c, &p,
               40 + (z->fp8 > 0 ? 6 : 2) * local); /* two products of each expert, and casts for them */
  add_recompute(c, &p);
  hide_dispatch(c, &p);
  return p;
}

static passes output_layer(const clock *c) {
  const nxc_sizes *z = c->z;
  passes p = {0};
  double m = z->tokens, n = z->vocab / z->tensor, k = z->hidden;
  const nxc_product forward = {m, n, k, 1, 2, false}, input = {m, k, n, 1, 2, false};
  const nxc_product weight = {n, k, m, 1, gradient_bytes(c->z), false};
  p.forward.parts[NXC_SPENT_PRODUCTS] = nxc_product_s(c->device, &forward);
  p.backward.parts[NXC_SPENT_PRODUCTS] = nxc_product_s(c->device, &input) + nxc_product_s(c->device, &weight);
  p.forward.parts[NXC_SPENT_POINTWISE] = nxc_moved_s(c->device, 8 * m * n);
  p.backward.parts[NXC_SPENT_POINTWISE] = nxc_moved_s(c->device, 6 * m * n);
  return p;
}

/* ---- data-parallel exchanges ---- */

/* ZeRO-3 gathers each layer before both passes and scatters its gradients behind the backward one, beneath
 * the work of its neighbours. What is gathered is copied to its parameters, and gradients to what is sent. */
static void add_gathers(const clock *c, passes *p, double elements, nxc_ranks group) {
  const nxc_sizes *z = c->z;
  if (z->zero < 3 || group.size <= 1) return;
  double gather = nxc_gather_s(c->machine, group, fmin(2, z->param_bytes) * elements);
  double scatter = nxc_gather_s(c->machine, group, z->reduce_bytes * elements);
  double copy = nxc_moved_s(c->device, 2 * fmin(2, z->param_bytes) * elements);
  double copy_back = nxc_moved_s(c->device, (2 + z->reduce_bytes) * elements) + (z->reshards ? copy : 0);
  double often = c->traits.gathers_once ? 1 / z->micro_batches : 1;
  double back = (z->reshards ? gather : 0) + z->trained * scatter;
  double under = c->traits.hides_gather * sum(&p->forward),
         under_back = c->traits.hides_reduce * sum(&p->backward);
  p->forward.parts[NXC_SPENT_DATA] += often * (exposed_s(c, gather, under) + copy);
  p->backward.parts[NXC_SPENT_DATA] += often * (exposed_s(c, back, under_back) + copy_back);
}

/* Once a step: gradients summed, and with ZeRO 1 and 2 parameters gathered. */
static double reduce_s(const clock *c, double hidden_s) {
  const nxc_sizes *z = c->z;
  double bytes = z->trained * z->grad_bytes * z->parameters,
         experts = z->trained * z->grad_bytes * z->expert_parameters;
  if (z->zero >= 3) return 0;
  double reduce =
      nxc_gather_s(c->machine, c->data, bytes) + nxc_gather_s(c->machine, c->expert_shard, experts);
  double gather = reduce * z->param_bytes / z->grad_bytes;
  if (z->zero == 0) gather = reduce;
  double exposed = reduce * (1 - c->traits.hides_reduce) + gather * (1 - c->traits.hides_gather);
  return fmax(exposed, reduce + gather - hidden_s);
}

static double update_s(const clock *c) {
  const nxc_sizes *z = c->z;
  double elements = z->parameters / z->shard + z->expert_parameters / z->expert_shard;
  double cleared = z->zero >= 2 ? elements : z->parameters + z->expert_parameters;
  double bytes = c->traits.update_bytes * elements + c->traits.clear_bytes * cleared;
  return nxc_moved_s(c->device, z->trained * bytes) + 1e-3;
}

/* ---- a step ---- */

/* The machine, with as many ranks on a host as the layout puts there: a domain that is a host has no more. */
static const nxc_machine *laid_out(const nxc_machine *machine, const nxc_sizes *z, nxc_arena *arena) {
  double of_host = fmax(1, z->world / z->hosts);
  if (machine->device->domain > machine->ranks_per_host || machine->device->domain <= of_host) return machine;
  nxc_device *device = nxc_arena_alloc(arena, sizeof *device);
  nxc_machine *with = nxc_arena_alloc(arena, sizeof *with);
  *device = *machine->device;
  *with = *machine;
  device->domain = of_host;
  with->device = device;
  return with;
}

static clock clock_of(const nxc_system *system, const nxc_sizes *z, const nxc_training *training,
                      const nxc_machine *machine, nxc_arena *arena) {
  clock c = {.z = z, .training = training, .machine = machine, .device = machine->device};
  c.traits = nxc_system_traits(system, z, arena);
  double data = z->data * z->context;
  c.tensor = (nxc_ranks){z->tensor, 1};
  c.ulysses = (nxc_ranks){z->ulysses, z->tensor};
  c.ring = (nxc_ranks){z->context / z->ulysses, z->tensor * z->ulysses};
  c.data = (nxc_ranks){data, z->tensor};
  c.shard = (nxc_ranks){z->shard, z->tensor};
  c.expert = (nxc_ranks){z->expert, z->expert_tensor};
  c.expert_shard = (nxc_ranks){z->expert_shard, z->expert * z->expert_tensor};
  c.stages = (nxc_ranks){z->pipeline, z->world / z->pipeline};
  return c;
}

static void add_passes(pass *to, const passes *of, double layers, bool back) {
  add(to, &of->forward, layers);
  if (back) add(to, &of->backward, layers);
}

/* Forward, and back, of one micro-batch on a stage. */
static pass micro_batch(const clock *c, bool back) {
  const nxc_sizes *z = c->z;
  passes dense = dense_layer(c), mixture = {0};
  double attention = z->attention;
  double experts = z->stage_mixtures > 0 ? z->expert_parameters / z->stage_mixtures : 0;
  add_gathers(c, &dense, (attention + (2 + z->gates) * z->hidden * z->ffn) / z->tensor, c->shard);
  if (z->stage_mixtures > 0) {
    mixture = mixture_layer(c);
    add_gathers(c, &mixture, attention / z->tensor, c->shard);
    add_gathers(c, &mixture, experts, c->expert_shard);
  }
  pass p = {0};
  add_passes(&p, &dense, z->stage_layers - z->stage_mixtures, back);
  add_passes(&p, &mixture, z->stage_mixtures, back);
  if (z->last) {
    passes out = output_layer(c);
    add_passes(&p, &out, 1, back);
  }
  if (z->pipeline > 1) {
    double bytes = z->compute_bytes * z->tokens * z->hidden / z->sequence_split;
    double seconds = (back ? 2 : 1) * z->chunks * nxc_send_s(c->machine, c->stages, bytes);
    p.parts[NXC_SPENT_STAGES] += seconds * (1 - c->traits.hides_stages);
  }
  return p;
}

static nxc_own_time of_stage(const clock *c, const pass *one, double mean_s) {
  const nxc_sizes *z = c->z;
  nxc_own_time t = {0};
  for (int i = 0; i < NXC_N_SPENT; i++) t.parts[i] = one->parts[i] * z->micro_batches;
  double steady_s = sum(one) * z->micro_batches;
  t.parts[NXC_SPENT_BUBBLE] = (z->pipeline - 1) * mean_s / z->chunks;
  t.parts[NXC_SPENT_DATA] += reduce_s(c, 0.7 * steady_s / z->micro_batches);
  t.parts[NXC_SPENT_UPDATE] = update_s(c);
  for (int i = 0; i < NXC_N_SPENT; i++) t.step_s += t.parts[i];
  return t;
}

/* Forward and backward once, with half of the scores. */
static double model_flops(const nxc_sizes *z) {
  double tokens = z->micro_batches * z->micro_batch * z->sequence * z->data;
  double attention = z->attention;
  double dense = (z->layers - z->mixtures) * (2 + z->gates) * z->hidden * z->ffn;
  double mixtures = z->mixtures * (2 + z->gates) * z->hidden * (z->top_k * z->expert_ffn + z->shared_ffn);
  double scores = z->layers * z->heads * keys_met(z) * (z->head_dim + z->value_dim);
  return 6 * tokens * (z->layers * attention + dense + mixtures + scores + z->vocab * z->hidden);
}

static double peak_of(const nxc_sizes *z, const nxc_device *device) {
  return z->fp8 > 0 && device->peak_fp8 > 0 ? device->peak_fp8 : device->peak;
}

double nxc_own_time_least(const nxc_sizes *z, const nxc_machine *machine) {
  double work_s = model_flops(z) / z->world / peak_of(z, machine->device);
  return work_s * (1 + (z->pipeline - 1) / z->chunks / z->micro_batches);
}

nxc_own_time nxc_own_time_of(const nxc_system *system, const nxc_sizes *sizes, const nxc_training *training,
                             const nxc_machine *machine, nxc_arena *arena) {
  nxc_own_time slowest = {0};
  nxc_stage_kind *kinds;
  size_t n_kinds = nxc_sizes_of_stages(sizes, training, arena, &kinds);
  const nxc_machine *hosts = laid_out(machine, sizes, arena);
  clock *clocks = nxc_arena_array(arena, n_kinds, sizeof *clocks);
  pass *passes_of = nxc_arena_array(arena, n_kinds, sizeof *passes_of);
  double sum_s = 0, evaluation_s = 0;
  for (size_t i = 0; i < n_kinds; i++) {
    clocks[i] = clock_of(system, &kinds[i].sizes, training, hosts, arena);
    passes_of[i] = micro_batch(&clocks[i], true);
    pass forward = micro_batch(&clocks[i], false);
    evaluation_s = fmax(evaluation_s, sum(&forward) * kinds[i].sizes.micro_batches);
    sum_s += kinds[i].n_stages * sum(&passes_of[i]);
  }
  for (size_t i = 0; i < n_kinds; i++) {
    nxc_own_time t = of_stage(&clocks[i], &passes_of[i], sum_s / sizes->pipeline);
    if (t.step_s > slowest.step_s) slowest = t;
  }
  double tokens = sizes->micro_batches * sizes->micro_batch * sizes->sequence * sizes->data;
  slowest.evaluation_s = evaluation_s;
  slowest.tokens_per_s = tokens / slowest.step_s;
  slowest.model_flops = model_flops(sizes) / sizes->world;
  slowest.utilisation = slowest.model_flops / slowest.step_s / peak_of(sizes, machine->device);
  return slowest;
}
