/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/trained.h"

#include "compiler/program/records/optimizer.h"

#include <math.h>
#include <string.h>

/* ---- moments ---- */

static double momentum_of(const nxc_settings *s, double otherwise) {
  bool given = nxc_settings_from(s, NX_SETTING_OPTIMIZER_MOMENTUM)->kind != NXC_FROM_DEFAULT;
  if (!given || !nxc_has(s, NX_SETTING_OPTIMIZER_MOMENTUM)) return otherwise;
  return nxc_number(s, NX_SETTING_OPTIMIZER_MOMENTUM) > 0;
}

static void read_states(const nxc_settings *s, nxc_sizes *z) {
  const char *name = nxc_has(s, NX_SETTING_OPTIMIZER_NAME) ? nxc_update_name(s) : "";
  z->states = nx_optimizer_keeps(name, 2); /* of one that nobody knows, as Adam */
  z->matrix_states = z->states;
  const nx_optimizer_row *rule = nx_optimizer_find(name);
  bool eight_bits = rule != NULL && rule->op == NX_OP_adamw_8bit;
  if (eight_bits) z->state_bytes = 1 + 4.0 / 256; /* with a scale in fp32 for each 256 of them */
  /* Muon is for the matrices of layers; embeddings and norms have AdamW. */
  if (rule == NULL || rule->kind != NX_MATRIX) return;
  z->factors = nx_optimizer_n_same(rule) < nx_optimizer_n_states(rule);
  if (z->factors == 0) z->matrix_states += momentum_of(s, 1) - 1;
  z->states = 2;
}

/* ---- adapters ---- */

/* What a module that may have adapters multiplies with: its matrix is of `in` by `out` features. */
typedef enum side {
  HIDDEN,
  QUERIES,
  KEYS,
  VALUES,
  ALL_HEADS,
  HEADS_OUT,
  WIDTH,
  TWO_WIDTHS,
  FIRST_WIDTHS
} side;

static const struct module {
  const char *name;
  side in, out;
  bool network;       /* of the feed-forward part, and so of experts */
  bool input_divided; /* over tensor-parallel ranks; else the output is */
} modules[] = {
    {"q_proj", HIDDEN, QUERIES, false, false},         {"k_proj", HIDDEN, KEYS, false, false},
    {"v_proj", HIDDEN, VALUES, false, false},          {"qkv_proj", HIDDEN, ALL_HEADS, false, false},
    {"linear_qkv", HIDDEN, ALL_HEADS, false, false},   {"o_proj", HEADS_OUT, HIDDEN, false, true},
    {"linear_proj", HEADS_OUT, HIDDEN, false, true},   {"gate_proj", HIDDEN, WIDTH, true, false},
    {"up_proj", HIDDEN, WIDTH, true, false},           {"gate_up_proj", HIDDEN, TWO_WIDTHS, true, false},
    {"linear_fc1", HIDDEN, FIRST_WIDTHS, true, false}, {"down_proj", WIDTH, HIDDEN, true, true},
    {"linear_fc2", WIDTH, HIDDEN, true, true}};

static double features(const nxc_sizes *z, side which, double width) {
  double queries = z->heads * z->head_dim, keys = z->kv_heads * z->head_dim,
         values = z->kv_heads * z->value_dim;
  const double of[] = {[HIDDEN] = z->hidden,
                       [QUERIES] = queries,
                       [KEYS] = keys,
                       [VALUES] = values,
                       [ALL_HEADS] = queries + keys + values,
                       [HEADS_OUT] = z->heads * z->value_dim,
                       [WIDTH] = width,
                       [TWO_WIDTHS] = 2 * width,
                       [FIRST_WIDTHS] = (1 + z->gates) * width};
  return of[which];
}

/* A module's adapters, and the parameters that they stand beside, on one rank. */
static void add_module(const struct module *module, const nxc_sizes *z, double width, double ranks,
                       double times, double *added, double *adapted) {
  double in = features(z, module->in, width), out = features(z, module->out, width);
  *added += times * z->adapter_rank * (module->input_divided ? in / ranks + out : in + out / ranks);
  *adapted += times * in * out / ranks;
}

static void adapt(const struct module *module, nxc_sizes *z) {
  nxc_adapters *a = &z->adapters;
  double ignored = 0;
  if (module->in == HIDDEN) *(module->network ? &z->kept_network : &z->kept_stream) = 1;
  if (module->in == WIDTH) z->kept_width = 1;
  add_module(module, z, z->ffn, z->tensor, 1, &a->dense_added, &a->dense_adapted);
  if (!module->network) {
    add_module(module, z, 0, z->tensor, 1, &a->mixture_added, &a->mixture_adapted);
    return;
  }
  add_module(module, z, z->shared_ffn, z->tensor, z->shared_ffn > 0, &a->mixture_added, &ignored);
  a->mixture_adapted += ignored;
  if (z->experts > 0)
    add_module(module, z, z->expert_ffn, z->expert_tensor, z->experts / z->expert, &a->experts_added,
               &a->experts_adapted);
}

/* layers.0.self_attn.q_proj and *.q_proj are q_proj. */
static bool is_module(const nxc_value *name, const char *module) {
  const char *text = name->kind == NXC_STRING ? name->text : "";
  size_t n = strlen(text), n_module = strlen(module);
  return n >= n_module && strcmp(text + n - n_module, module) == 0 &&
         (n == n_module || strchr(".*", text[n - n_module - 1]) != NULL);
}

typedef struct module_names {
  const nxc_value *items;
  size_t n_items;
} module_names;

static module_names names_of(const nxc_settings *s, nxc_setting_id id) {
  module_names names = {0};
  if (nxc_has(s, id)) names.items = nxc_list(s, id, &names.n_items);
  return names;
}

static bool names_module(const module_names *names, const char *module) {
  for (size_t i = 0; i < names->n_items; i++)
    if (is_module(&names->items[i], module)) return true;
  return false;
}

/* Where no module is named all of a layer's matrices have adapters. */
static void read_adapters(const nxc_settings *s, nxc_sizes *z) {
  static const char *const all[] = {"qkv_proj", "o_proj", "linear_fc1", "down_proj"};
  const module_names named = names_of(s, NX_SETTING_LORA_MODULES),
                     excluded = names_of(s, NX_SETTING_LORA_EXCLUDE_MODULES);
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
    bool adapted = names_module(&named, modules[i].name);
    for (size_t k = 0; named.n_items == 0 && k < sizeof all / sizeof *all; k++)
      adapted = adapted || strcmp(modules[i].name, all[k]) == 0;
    if (adapted && !names_module(&excluded, modules[i].name)) adapt(&modules[i], z);
  }
}

/* Bytes of a weight in a quantized type, and of the scales that it shares with others. */
static const struct {
  const char *type;
  double weight, scale;
} quantized[] = {{"nvfp4", 0.5, 4.0 / 16},
                 {"block_fp8", 1, 4.0 / (128 * 128)},
                 {"nf4", 0.5, 4.0 / 64},
                 {"mxfp4", 0.5, 1.0 / 32}};

static void read_base(const nxc_settings *s, nxc_sizes *z) {
  z->adapters.base_bytes = z->param_bytes;
  for (size_t i = 0; i < sizeof quantized / sizeof *quantized; i++) {
    if (!nxc_is(s, NX_SETTING_LORA_BASE_TYPE, quantized[i].type)) continue;
    z->adapters.quantized = true;
    z->adapters.base_bytes = quantized[i].weight;
    z->adapters.scale_bytes = quantized[i].scale;
  }
}

void nxc_trained_read(const nxc_settings *s, nxc_sizes *z) {
  read_states(s, z);
  z->trained = 1;
  z->frozen_bytes = z->expert_frozen_bytes = z->param_bytes;
  z->adapter_rank = nxc_has(s, NX_SETTING_LORA_RANK) ? (double)nxc_int(s, NX_SETTING_LORA_RANK) : 0;
  z->models =
      nxc_has(s, NX_SETTING_ALIGNMENT_REFERENCE_MODEL) && nxc_flag(s, NX_SETTING_ALIGNMENT_REFERENCE_MODEL)
          ? 2
          : 1;
  z->kept_stream = z->kept_network = z->kept_width = z->adapter_rank == 0;
  if (z->adapter_rank == 0) return;
  z->fp8_backward =
      fmin(z->fp8_backward, 1); /* of frozen weights there are no gradients, and adapters read bf16 */
  z->read_bytes = z->compute_bytes;
  read_base(s, z);
  read_adapters(s, z);
}

/* ---- a stage ---- */

/* Elements of a matrix that a rank has a part of, and of the squares of both sides of that. */
static void add_sides(double in, double out, bool input_divided, double ranks, double times, double *elements,
                      double *squares) {
  *(input_divided ? &in : &out) /= ranks;
  *elements += times * in * out;
  *squares += times * 2 * (in * in + out * out);
}

static void add_network(const nxc_sizes *z, double width, double ranks, double times, double *elements,
                        double *squares) {
  if (width == 0 || times == 0) return;
  add_sides(z->hidden, features(z, FIRST_WIDTHS, width), false, ranks, times, elements, squares);
  add_sides(width, z->hidden, true, ranks, times, elements, squares);
}

/* As moments of the matrices of layers, which systems have joined. */
static double factors_of_stage(const nxc_sizes *z) {
  double dense = z->stage_layers - z->stage_mixtures, elements = 0, squares = 0;
  add_sides(z->hidden, features(z, ALL_HEADS, 0), false, z->tensor, z->stage_layers, &elements, &squares);
  add_sides(features(z, HEADS_OUT, 0), z->hidden, true, z->tensor, z->stage_layers, &elements, &squares);
  add_network(z, z->ffn, z->tensor, dense, &elements, &squares);
  add_network(z, z->shared_ffn, z->tensor, z->stage_mixtures, &elements, &squares);
  if (z->experts > 0)
    add_network(z, z->expert_ffn, z->expert_tensor, z->stage_mixtures * z->experts / z->expert, &elements,
                &squares);
  return elements > 0 ? squares / elements * sizeof(float) / z->state_bytes : 0;
}

static void states_of_stage(nxc_sizes *z) {
  double output = (z->last - z->tied * z->first * z->last) * z->outputs;
  double tables = (z->first * z->vocab + output) * z->hidden / z->tensor;
  double vectors = (2 * z->stage_layers + z->last) * z->hidden + z->stage_mixtures * z->experts * z->hidden;
  double all = z->parameters + z->expert_parameters;
  if (z->factors > 0) z->matrix_states += factors_of_stage(z);
  z->states += (z->matrix_states - z->states) * (all - tables - vectors) / all;
}

void nxc_trained_of_stage(nxc_sizes *z) {
  const nxc_adapters *a = &z->adapters;
  states_of_stage(z);
  if (z->adapter_rank == 0) return;
  double dense = z->stage_layers - z->stage_mixtures, mixtures = z->stage_mixtures;
  double added = dense * a->dense_added + mixtures * a->mixture_added,
         experts_added = mixtures * a->experts_added;
  double adapted = dense * a->dense_adapted + mixtures * a->mixture_adapted;
  double experts = mixtures * a->experts_adapted, fp32 = 4;
  z->trained = (added + experts_added) / (z->parameters + z->expert_parameters);
  z->frozen_bytes =
      z->param_bytes + (fp32 * added - (z->param_bytes - a->base_bytes) * adapted) / z->parameters;
  z->undivided_bytes = a->scale_bytes * (adapted + experts) + (a->quantized ? a->base_bytes * experts : 0);
  if (z->expert_parameters == 0) return;
  double rest = z->expert_parameters - (a->quantized ? experts : 0);
  z->expert_frozen_bytes = (z->param_bytes * rest + fp32 * experts_added) / z->expert_parameters;
}
