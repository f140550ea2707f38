/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/lora.h"

#include "schema/quantized.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

/* One adapter for several matrices, where the family has no tensor of that name. */
static const struct {
  const char *module;
  nxc_adapted adapted;
} fused[] = {{"qkv_proj", {{NXC_PART_Q, NXC_PART_K, NXC_PART_V}, 3}},
             {"gate_up_proj", {{NXC_PART_GATE, NXC_PART_UP}, 2}},
             {"gate_up_proj", {{NXC_PART_SHARED_GATE, NXC_PART_SHARED_UP}, 2}}};
enum { N_FUSED = sizeof fused / sizeof *fused };

/* Tables, norms and routers have none. */
static bool is_adaptable(nxc_part part) {
  static const bool never[NXC_N_PARTS] = {[NXC_PART_EMBEDDING] = true,
                                          [NXC_PART_POSITIONS] = true,
                                          [NXC_PART_FINAL_NORM] = true,
                                          [NXC_PART_ATTENTION_NORM] = true,
                                          [NXC_PART_FFN_NORM] = true,
                                          [NXC_PART_ROUTER] = true,
                                          [NXC_PART_Q_NORM] = true,
                                          [NXC_PART_K_NORM] = true,
                                          [NXC_PART_ATTENTION_AFTER_NORM] = true,
                                          [NXC_PART_FFN_AFTER_NORM] = true,
                                          [NXC_PART_Q_LATENT_NORM] = true,
                                          [NXC_PART_KV_LATENT_NORM] = true,
                                          [NXC_PART_ROUTER_CORRECTION] = true,
                                          [NXC_PART_EMBEDDING_NORM] = true};
  return !never[part];
}

static const char *without_numbers(nxc_arena *arena, const char *stem) {
  char *name = nxc_arena_strdup(arena, stem);
  for (char *hole = strstr(name, "%d"); hole != NULL; hole = strstr(hole, "%d")) hole[0] = '0', hole[1] = '0';
  return name;
}

/* Whole parts at the end of the name, or a pattern over all of it. */
static bool is_named(const char *entry, const char *name) {
  size_t n = strlen(name), n_entry = strlen(entry);
  if (strpbrk(entry, "*?[")) return fnmatch(entry, name, 0) == 0;
  return n >= n_entry && strcmp(name + n - n_entry, entry) == 0 &&
         (n == n_entry || name[n - n_entry - 1] == '.');
}

typedef struct reader {
  nxc_lora *lora;
  const nxc_family *family;
  nxc_arena *arena;
} reader;

static bool matches(const reader *r, const char *entry, nxc_part part) {
  if (!is_adaptable(part) || r->family->tensors[part] == NULL) return false;
  if (strcmp(entry, "all-linear") == 0) return part != NXC_PART_OUTPUT;
  return is_named(entry, without_numbers(r->arena, r->family->tensors[part]->stem));
}

static const nxc_adapted *adapted_of_tensor(const reader *r, nxc_part part) {
  const nxc_tensor_row *tensor = r->family->tensors[part];
  nxc_adapted *adapted = nxc_arena_array(r->arena, 1, sizeof *adapted);
  for (size_t i = 0; i < tensor->n_parts && i < NXC_MOST_ADAPTED; i++)
    adapted->parts[adapted->n_parts++] = tensor->parts[i];
  return adapted;
}

/* All parts of a tensor have the same adapter. */
static bool add_tensors(const reader *r, const char *entry) {
  bool used = false;
  for (nxc_part part = 0; part < NXC_N_PARTS; part++) {
    if (!matches(r, entry, part)) continue;
    used = true;
    if (r->lora->of[part] != NULL) continue;
    const nxc_adapted *adapted = adapted_of_tensor(r, part);
    for (size_t i = 0; i < adapted->n_parts; i++) r->lora->of[adapted->parts[i]] = adapted;
  }
  return used;
}

static bool add_fused(const reader *r, const char *entry) {
  bool used = false;
  for (size_t f = 0; f < N_FUSED; f++) {
    const nxc_adapted *adapted = &fused[f].adapted;
    if (!is_named(fused[f].module, entry)) continue;
    for (size_t i = 0; i < adapted->n_parts; i++) {
      if (r->family->tensors[adapted->parts[i]] == NULL) continue;
      r->lora->of[adapted->parts[i]] = adapted;
      used = true;
    }
  }
  return used;
}

static void add(const reader *r, const char *entry) {
  if (!add_tensors(r, entry) && !add_fused(r, entry) && r->lora->unused == NULL) r->lora->unused = entry;
}

static void leave_out(const reader *r, const char *entry) {
  for (nxc_part part = 0; part < NXC_N_PARTS; part++)
    if (matches(r, entry, part)) r->lora->of[part] = NULL;
  for (size_t f = 0; f < N_FUSED; f++)
    for (size_t i = 0; is_named(fused[f].module, entry) && i < fused[f].adapted.n_parts; i++)
      r->lora->of[fused[f].adapted.parts[i]] = NULL;
}

static const nxc_quantization *base_of(const nxc_settings *s) {
  static const nxc_quantization rows[] = {
      {"nf4", NX_FORM_NF4, NX_FORM_NF4_ABSMAX, NX_OP_dequantize_nf4, 1, NX_NF4_BLOCK},
      {"nvfp4", NX_FORM_NVFP4, NX_FORM_NVFP4_SCALE, NX_OP_dequantize_nvfp4, 1, NX_NVFP4_BLOCK},
      {"mxfp4", NX_FORM_MXFP4, NX_FORM_MXFP4_SCALE, NX_OP_dequantize_mxfp4, 1, NX_MXFP4_BLOCK},
      {"block_fp8", NX_FORM_FP8, NX_FORM_FP8_SCALE, NX_OP_dequantize_fp8, NX_FP8_TILE, NX_FP8_TILE}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (nxc_is(s, NX_SETTING_LORA_BASE_TYPE, rows[i].name)) return &rows[i];
  return NULL;
}

static nxc_lora_bias bias_of(const nxc_settings *s) {
  if (nxc_is(s, NX_SETTING_LORA_BIAS, "all")) return NXC_LORA_ALL_BIASES;
  return nxc_is(s, NX_SETTING_LORA_BIAS, "lora_only") ? NXC_LORA_OWN_BIASES : NXC_LORA_NO_BIAS;
}

nxc_lora nxc_lora_read(const nxc_settings *s, const nxc_family *family, nxc_arena *arena) {
  nxc_lora lora = {.rank = nxc_int(s, NX_SETTING_LORA_RANK)};
  const reader r = {&lora, family, arena};
  size_t n;
  if (lora.rank == 0) return lora;
  double rank = (double)lora.rank, below = nxc_flag(s, NX_SETTING_LORA_RANK_STABILIZED) ? sqrt(rank) : rank;
  lora.scale = nxc_number(s, NX_SETTING_LORA_ALPHA) / below;
  lora.dropout = nxc_number(s, NX_SETTING_LORA_DROPOUT);
  lora.b_init_std = nxc_number(s, NX_SETTING_LORA_B_INIT_STD);
  lora.base = base_of(s);
  lora.base_noise = lora.base ? nxc_number(s, NX_SETTING_LORA_BASE_NOISE) : 0;
  lora.merge_every = nxc_int(s, NX_SETTING_LORA_MERGE_INTERVAL);
  lora.merge_resets = nxc_flag(s, NX_SETTING_LORA_MERGE_RESETS_OPTIMIZER);
  lora.bias = bias_of(s);
  lora.shared_by_experts = nxc_flag(s, NX_SETTING_LORA_SHARED_BY_EXPERTS);
  const nxc_value *names = nxc_list(s, NX_SETTING_LORA_MODULES, &n);
  for (size_t i = 0; i < n; i++) add(&r, names[i].text);
  if (n == 0) add(&r, "all-linear");
  names = nxc_list(s, NX_SETTING_LORA_EXCLUDE_MODULES, &n);
  for (size_t i = 0; i < n; i++) leave_out(&r, names[i].text);
  return lora;
}

bool nxc_lora_trains_bias(const nxc_lora *lora, nxc_part part) {
  if (lora->rank == 0 || lora->bias == NXC_LORA_ALL_BIASES) return true;
  return lora->bias == NXC_LORA_OWN_BIASES && lora->of[part] != NULL;
}
