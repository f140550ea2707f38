/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/time.h"

#include "compiler/estimate/layer_time.h"
#include "compiler/estimate/memory.h"
#include "compiler/estimate/product.h"
#include "compiler/program/pipeline/play.h"

#include <math.h>
#include <string.h>

const char *const nxc_spent_names[NXC_N_SPENT] = {
#define SPENT(id, name, meaning) name,
    NXC_SPENT(SPENT)
#undef SPENT
};

/* ---- data-parallel exchanges ---- */

/* ZeRO-3 gathers each layer before both passes and scatters its gradients behind the backward one, beneath
 * the work of its neighbours. What is gathered is copied to its parameters, and gradients to what is sent. */
static void add_gathers(const nxc_clock *c, nxc_passes *p, double elements, nxc_ranks group) {
  const nxc_sizes *z = c->z;
  if (z->zero < 3 || group.size <= 1) return;
  double gather = nxc_gather_s(c->machine, group, fmin(2, z->param_bytes) * elements);
  double scatter = (1 + c->traits.sums_whole) * nxc_gather_s(c->machine, group, z->reduce_bytes * elements);
  double copied = c->traits.copies_gathered * elements;
  double copy = nxc_moved_s(c->device, 2 * fmin(2, z->param_bytes) * copied);
  double copy_back = nxc_moved_s(c->device, (2 + z->reduce_bytes) * copied) + (z->reshards ? copy : 0);
  double once = 1 / z->micro_batches, often = c->traits.gathers_once ? once : 1;
  double divides = c->traits.reduces_once ? once : often;
  double again = z->reshards ? gather : 0, back_s = nxc_pass_s(&p->backward);
  double under = c->traits.hides_gather * nxc_pass_s(&p->forward),
         under_back = c->traits.hides_gather * back_s;
  double under_scatter =
      fmax(0, c->device->hidden_sums * c->traits.hides_reduce * back_s - again); /* one link carries both */
  double scatters = divides * nxc_exposed_s(c, z->trained * scatter, under_scatter);
  p->forward.parts[NXC_SPENT_DATA] += often * (nxc_exposed_s(c, gather, under) + copy);
  p->backward.parts[NXC_SPENT_DATA] += often * (nxc_exposed_s(c, again, under_back) + copy_back) + scatters;
}

/* Of ZeRO-3 with copies (HSDP): what the ranks of each have summed is summed over the copies. */
static double copies_s(const nxc_clock *c, double hidden_s) {
  const nxc_sizes *z = c->z;
  double elements = z->parameters / z->shard + z->expert_parameters / z->expert_shard;
  double both = 2 * nxc_gather_s(c->machine, c->copies, z->trained * z->reduce_bytes * elements);
  double often = c->traits.copies_once ? 1 : z->micro_batches;
  return often * fmax(both * (1 - c->device->hidden_sums * c->traits.hides_reduce), both - hidden_s);
}

/* Once a step: gradients summed, and with ZeRO 1 and 2 parameters gathered. ZeRO 2 sums those of each
 * micro-batch beneath its backward pass. */
static double reduce_s(const nxc_clock *c, double hidden_s) {
  const nxc_sizes *z = c->z;
  double bytes = z->trained * z->grad_bytes * z->parameters,
         experts = z->trained * z->grad_bytes * z->expert_parameters;
  if (z->zero >= 3) return copies_s(c, hidden_s);
  double reduce =
      nxc_gather_s(c->machine, c->data, bytes) + nxc_gather_s(c->machine, c->expert_data, experts);
  double gather = reduce * (z->fp8_parameters > 0 ? 1 : z->param_bytes) / z->grad_bytes;
  if (z->zero == 0) gather = reduce;
  else reduce *= 1 + c->traits.sums_whole;
  double sums = reduce * (1 - c->traits.hides_reduce), gathers = gather * (1 - c->traits.hides_gather);
  double before = z->zero == 2 && z->reduce_once == 0 ? z->micro_batches - 1 : 0;
  return before * fmax(sums, reduce - hidden_s) + fmax(sums + gathers, reduce + gather - hidden_s);
}

static double update_s(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  double elements = z->parameters / z->shard + z->expert_parameters / z->expert_shard;
  double cleared = z->zero >= 2 ? elements : z->parameters + z->expert_parameters;
  double bytes = c->traits.update_bytes * elements + c->traits.clear_bytes * cleared;
  double here = 1 - c->traits.updates_on_host * z->offload_optimizer;
  return nxc_moved_s(c->device, here * z->trained * bytes) + 1e-3;
}

/* ---- the host ---- */

/* Activations go there beneath the forward pass and come back beneath the backward one; shards of parameters
 * come for both. */
static double copies_to_host_s(const nxc_clock *c, bool back) {
  const nxc_sizes *z = c->z;
  double shards = z->parameters / z->shard + z->expert_parameters / z->expert_shard;
  double parameters = z->offload_parameters * z->param_bytes * shards;
  double bytes = back ? 2 * (parameters + c->offloaded_bytes) : parameters;
  return bytes / c->device->host_bandwidth;
}

/* Gradients go there in fp32, those of earlier micro-batches in their own type and back again, and parameters
 * come back; the host's processors move what the update moves. */
static double host_bytes(const nxc_clock *c, double elements) {
  const nxc_sizes *z = c->z;
  double turns = z->in_turns > 0 ? z->parameters + z->expert_parameters : elements;
  double gradients = 4 + c->traits.host_sums * (z->micro_batches - 1) * 2 * z->param_bytes;
  return gradients * turns + (z->param_bytes + c->traits.update_bytes) * elements;
}

/* Where the device updates, the state comes for that, and goes back. */
static double host_update_s(const nxc_clock *c) {
  const nxc_sizes *z = c->z;
  double elements = z->parameters / z->shard + z->expert_parameters / z->expert_shard;
  double bytes =
      c->traits.updates_on_host > 0 ? host_bytes(c, elements) : 2 * z->states * z->state_bytes * elements;
  return z->offload_optimizer * z->trained * bytes / c->device->host_bandwidth;
}

/* ---- a step ---- */

/* The machine, with as many ranks on a host as the layout puts there: a domain that is a host has no more. Of
 * a torus a training has a slice; copies of what is divided have one each. */
static const nxc_machine *laid_out(const nxc_machine *machine, const nxc_sizes *z, nxc_arena *arena) {
  double of_host = fmax(1, z->world / z->hosts), slice = z->world / z->replicas;
  nxc_device *device = nxc_arena_alloc(arena, sizeof *device);
  nxc_machine *with = nxc_arena_alloc(arena, sizeof *with);
  *device = *machine->device;
  *with = *machine;
  if (device->domain <= machine->ranks_per_host) device->domain = fmin(device->domain, of_host);
  if (device->axes > 0) device->domain = fmin(device->domain, slice);
  with->device = device;
  return with;
}

static double peak_of_wide(const nxc_sizes *z, const nxc_device *device, bool tf32) {
  if (z->compute_bytes < 4 || device->peak_f32 == 0) return device->peak;
  return fmax(device->peak_f32, tf32 ? device->peak / 2 : 0);
}

/* The device as products of this training find it: in fp32 its peak is another; those in fp4 are as in fp8,
 * and faster. */
static const nxc_device *for_products(const nxc_device *device, const nxc_sizes *z, const nxc_traits *traits,
                                      nxc_arena *arena) {
  nxc_device *with = nxc_arena_alloc(arena, sizeof *with);
  *with = *device;
  with->peak = peak_of_wide(z, device, traits->tf32 > 0);
  if (z->fp4 > 0 && device->peak_fp4 > 0) {
    with->peak_fp8 = device->peak_fp4;
    with->efficiency_fp8 = device->efficiency_fp4;
  }
  with->efficiency_fp8 *= traits->fp8_speed;
  if (traits->attention_before > 0 && device->before_forward > 0) {
    with->attention_forward = device->before_forward;
    with->attention_backward = device->before_backward;
  }
  return with;
}

static nxc_clock clock_of(const nxc_system *system, const nxc_sizes *z, const nxc_training *training,
                          const nxc_machine *machine, nxc_arena *arena) {
  nxc_clock c = {.z = z, .training = training, .machine = machine, .device = machine->device};
  c.traits = nxc_system_traits(system, z, arena);
  c.device = for_products(machine->device, z, &c.traits, arena);
  c.offloaded_bytes = nxc_own_offloaded(system, z, training, arena);
  double data = z->data * z->context;
  c.tensor = (nxc_ranks){z->tensor, 1};
  c.ulysses = (nxc_ranks){z->ulysses, z->tensor};
  c.ring = (nxc_ranks){z->context / z->ulysses, z->tensor * z->ulysses};
  c.data = (nxc_ranks){data, z->tensor};
  c.shard = (nxc_ranks){z->shard, z->tensor};
  c.expert = (nxc_ranks){z->expert, z->expert_tensor};
  double experts_data = z->world / (z->pipeline * z->expert * z->expert_tensor);
  c.expert_data = (nxc_ranks){experts_data, z->expert * z->expert_tensor};
  c.copies = (nxc_ranks){z->replicas, z->tensor * z->shard};
  c.expert_shard = (nxc_ranks){z->expert_shard, z->expert * z->expert_tensor};
  c.stages = (nxc_ranks){z->pipeline, z->world / z->pipeline};
  return c;
}

/* A reference model goes forward too, and never back. */
static void add_passes(const nxc_clock *c, nxc_pass *to, const nxc_passes *of, double layers, bool back) {
  nxc_pass_add(to, &of->forward, layers * (1 + c->traits.references));
  if (back) nxc_pass_add(to, &of->backward, layers);
}

/* Of both passes, beneath which activations go to the host. */
static const double forward_share = 1.0 / 3;

/* What goes between stages for a micro-batch, forward, and back. Where tensor-parallel ranks send a part
 * each, they gather what they got; back they gather the output too, of which they have kept a part. */
static double stages_s(const nxc_clock *c, bool back) {
  const nxc_sizes *z = c->z;
  if (z->pipeline <= 1) return 0;
  double whole = z->compute_bytes * z->tokens * z->hidden;
  double parts = c->traits.divides_sends > 0 ? z->tensor : z->sequence_split;
  double sends = (back ? 2 : 1) * nxc_send_s(c->machine, c->stages, whole / parts);
  double gathers = (back ? 3 : 1) * c->traits.divides_sends * nxc_gather_s(c->machine, c->tensor, whole);
  return z->chunks * ((1 - c->traits.hides_stages) * sends + gathers);
}

/* Forward, and back, of one micro-batch on a stage. */
static nxc_pass micro_batch(const nxc_clock *c, bool back) {
  const nxc_sizes *z = c->z;
  nxc_passes dense = nxc_dense_layer(c), mixture = {0};
  double attention = nxc_attention_on_rank(z);
  double experts = z->stage_mixtures > 0 ? z->expert_parameters / z->stage_mixtures : 0;
  add_gathers(c, &dense, attention + (2 + z->gates) * z->hidden * z->ffn / z->tensor, c->shard);
  if (z->stage_mixtures > 0) {
    mixture = nxc_mixture_layer(c);
    add_gathers(c, &mixture, attention, c->shard);
    add_gathers(c, &mixture, experts, c->expert_shard);
  }
  nxc_pass p = {0};
  add_passes(c, &p, &dense, z->stage_layers - z->stage_mixtures, back);
  add_passes(c, &p, &mixture, z->stage_mixtures, back);
  if (z->last) {
    nxc_passes out = nxc_output_layer(c);
    add_passes(c, &p, &out, 1, back);
    nxc_passes further = nxc_prediction(c);
    add_passes(c, &p, &further, z->predicts, back);
  }
  p.parts[NXC_SPENT_STAGES] += stages_s(c, back);
  double waits = back ? z->waits * c->offloaded_bytes / c->device->host_bandwidth : 0;
  double under = nxc_pass_s(&p) * (waits > 0 ? forward_share : 1);
  p.parts[NXC_SPENT_HOST] = waits + fmax(0, copies_to_host_s(c, back) - waits - under);
  return p;
}

static nxc_own_time of_stage(const nxc_clock *c, const nxc_pass *one, double wait_s) {
  const nxc_sizes *z = c->z;
  nxc_own_time t = {0};
  for (int i = 0; i < NXC_N_SPENT; i++) t.parts[i] = one->parts[i] * z->micro_batches;
  double steady_s = nxc_pass_s(one) * z->micro_batches;
  t.parts[NXC_SPENT_BUBBLE] = wait_s;
  t.parts[NXC_SPENT_DATA] += reduce_s(c, 0.7 * steady_s / z->micro_batches);
  t.parts[NXC_SPENT_UPDATE] = update_s(c);
  t.parts[NXC_SPENT_HOST] += host_update_s(c);
  for (int i = 0; i < NXC_N_SPENT; i++) t.step_s += t.parts[i];
  return t;
}

/* Weights of adapters that a token meets. */
static double adapters_met(const nxc_sizes *z) {
  const nxc_adapters *a = &z->adapters;
  double of_expert = z->experts > 0 ? a->experts_added * z->expert * z->expert_tensor / z->experts : 0;
  return (z->layers - z->mixtures) * z->tensor * a->dense_added +
         z->mixtures * (z->tensor * a->mixture_added + z->top_k * of_expert);
}

/* Forward and backward once, with half of the scores; frozen weights need no gradients of their own. */
static double model_flops(const nxc_sizes *z) {
  double tokens = z->micro_batches * z->micro_batch * z->sequence * z->data;
  double attention = z->attention;
  double further = z->predicts / z->layers; /* as the others are, on average */
  double dense = (z->layers - z->mixtures) * (2 + z->gates) * z->hidden * z->ffn;
  double mixtures = z->mixtures * (2 + z->gates) * z->hidden * (z->top_k * z->expert_ffn + z->shared_ffn);
  double scores = z->layers * z->heads * nxc_keys_met(z) * (z->head_dim + z->value_dim);
  double weights = (1 + further) * (z->layers * attention + dense + mixtures);
  weights += (1 + z->predicts) * z->outputs * z->hidden + z->predicts * 2 * z->hidden * z->hidden;
  double passes = z->adapter_rank > 0 ? 4 : 6;
  return tokens * (passes * weights + 6 * ((1 + further) * scores + adapters_met(z)));
}

/* `peak`: of products that are not in fp8. */
static double peak_of(const nxc_sizes *z, const nxc_device *device, double peak) {
  if (z->fp4 > 0 && device->peak_fp4 > 0) return device->peak_fp4;
  return z->fp8 > 0 && device->peak_fp8 > 0 ? device->peak_fp8 : peak;
}

/* Where weights wait for their turn stages may have to wait for nothing. */
double nxc_own_time_least(const nxc_sizes *z, const nxc_layout *layout, const nxc_machine *machine) {
  double work_s =
      model_flops(z) / z->world / peak_of(z, machine->device, peak_of_wide(z, machine->device, true));
  if (nxc_layout_cuts_backward(layout)) return work_s;
  return work_s * (1 + (z->pipeline - 1) / z->chunks / z->micro_batches);
}

/* What stages wait for one another, if each took what they take on average. */
static double wait_of(const nxc_sizes *z, const nxc_layout *layout, double forward_s, const nxc_pass *both) {
  double backward_s = nxc_pass_s(both) - forward_s, weights_s = fmin(both->weights_s, backward_s);
  double each = 1 / z->pipeline / z->chunks;
  const nxc_pass_lengths lengths = {{[NXC_ACTION_FORWARD] = each * forward_s,
                                     [NXC_ACTION_BACKWARD] = each * backward_s,
                                     [NXC_ACTION_INPUTS] = each * (backward_s - weights_s),
                                     [NXC_ACTION_WEIGHTS] = each * weights_s}};
  return nxc_play_wait(layout, (uint64_t)z->micro_batches, &lengths);
}

nxc_own_time nxc_own_time_of(const nxc_system *system, const nxc_sizes *sizes, const nxc_training *training,
                             const nxc_machine *machine, nxc_arena *arena) {
  nxc_own_time slowest = {0};
  nxc_stage_kind *kinds;
  size_t n_kinds = nxc_sizes_of_stages(sizes, training, arena, &kinds);
  const nxc_machine *hosts = laid_out(machine, sizes, arena);
  nxc_clock *clocks = nxc_arena_array(arena, n_kinds, sizeof *clocks);
  nxc_pass *passes_of = nxc_arena_array(arena, n_kinds, sizeof *passes_of);
  double forward_s = 0, evaluation_s = 0;
  nxc_pass both = {0};
  for (size_t i = 0; i < n_kinds; i++) {
    kinds[i].sizes.compiled = machine->device->compiled;
    clocks[i] = clock_of(system, &kinds[i].sizes, training, hosts, arena);
    passes_of[i] = micro_batch(&clocks[i], true);
    nxc_pass forward = micro_batch(&clocks[i], false);
    evaluation_s = fmax(evaluation_s, nxc_pass_s(&forward) * kinds[i].sizes.micro_batches);
    forward_s += kinds[i].n_stages * nxc_pass_s(&forward);
    nxc_pass_add(&both, &passes_of[i], kinds[i].n_stages);
  }
  double wait_s = wait_of(sizes, &training->layout, forward_s, &both);
  for (size_t i = 0; i < n_kinds; i++) {
    nxc_own_time t = of_stage(&clocks[i], &passes_of[i], wait_s);
    if (t.step_s > slowest.step_s) slowest = t;
  }
  double tokens = sizes->micro_batches * sizes->micro_batch * sizes->sequence * sizes->data;
  slowest.evaluation_s = evaluation_s;
  slowest.tokens_per_s = tokens / slowest.step_s;
  slowest.model_flops = model_flops(sizes) / sizes->world;
  slowest.utilisation =
      slowest.model_flops / slowest.step_s / peak_of(sizes, machine->device, clocks[0].device->peak);
  return slowest;
}
