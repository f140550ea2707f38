/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/judge_parts.h"

#include "compiler/program/records/demands.h"

static bool has_adapters(const nxc_lora *lora) {
  for (nxc_part part = 0; part < NXC_N_PARTS; part++)
    if (lora->of[part] != NULL) return true;
  return false;
}

/* Whether one adapter stands beside parts whose products are of different ranks. */
static bool joins_copied_heads(const nxc_training *t) {
  const nxc_adapted *of_q = t->lora.of[NXC_PART_Q], *of_k = t->lora.of[NXC_PART_K];
  return t->layout.kv_replica > 1 && of_q != NULL && of_q == of_k;
}

/* Whether some of the biases that stand in one vector are trained, and some not. */
static bool splits_biases(const nxc_training *t) {
  const nxc_lora *l = &t->lora;
  const nxc_layer_spec *layer = &t->model.specs[0];
  bool fused = layer->attention.fused && layer->attention.qkv_bias;
  bool heads = (l->of[NXC_PART_Q] == NULL) != (l->of[NXC_PART_K] == NULL) ||
               (l->of[NXC_PART_Q] == NULL) != (l->of[NXC_PART_V] == NULL);
  bool gates = (l->of[NXC_PART_GATE] == NULL) != (l->of[NXC_PART_UP] == NULL);
  return l->bias == NXC_LORA_OWN_BIASES &&
         ((fused && heads) || (layer->ffn.bias && layer->ffn.activation->gated && gates));
}

/* Whether all matrices with adapters are divided into whole blocks, and no file has them transposed; where
 * blocks have several rows, the heads of a rank fill them too, and stand together. */
static bool fills_blocks(const nxc_training *t) {
  const nxc_model *m = &t->model;
  const nxc_mixture *e = m->mixture;
  const nxc_layer_spec *layer = &m->specs[0];
  const nxc_quantization *base = t->lora.base;
  int64_t experts = e ? e->hidden / nxc_mesh_size(&t->mesh, nxc_axis(&t->mesh, NXC_AXIS_EXPERT_TENSOR)) : 0;
  const nxc_attention_spec *a = &layer->attention;
  int64_t keys = a->kv_heads * t->layout.kv_replica / t->layout.tensor;
  const int64_t columns[] = {m->hidden,
                             a->heads * a->value_dim / t->layout.tensor,
                             a->query_rank,
                             a->kv_rank,
                             layer->ffn.width / t->layout.tensor,
                             (e ? e->shared_hidden : 0) / t->layout.tensor,
                             experts};
  const int64_t rows[] = {a->heads * a->head_dim / t->layout.tensor, keys * a->head_dim, keys * a->value_dim};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    if (columns[i] % base->block != 0 || columns[i] % base->rows != 0) return false;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i] % base->rows != 0) return false;
  for (nxc_part part = 0; part < NXC_N_PARTS; part++) {
    const nxc_tensor_row *tensor = m->family->tensors[part];
    if (t->lora.of[part] == NULL || tensor == NULL) continue;
    if (tensor->transposed || (base->rows > 1 && tensor->layout == NXC_LAYOUT_GROUPS)) return false;
  }
  return true;
}

/* Whether each adapter stands beside one tensor of the checkpoint. */
static bool has_own_tensors(const nxc_training *t) {
  for (nxc_part part = 0; part < NXC_N_PARTS; part++) {
    const nxc_tensor_row *tensor = t->model.family->tensors[part];
    if (t->lora.of[part] && tensor && (tensor->stacked || tensor->bare)) return false;
  }
  return true;
}

bool nxc_adapters_judge(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  const nxc_lora *l = &t->lora;
  if (l->rank == 0) return true;
  bool of_experts = false;
  for (nxc_part part = NXC_PART_EXPERT_GATE; part < NXC_N_PARTS; part++) of_experts |= l->of[part] != NULL;
  const nxc_demand demands[] = {
      {l->unused == NULL, NX_SETTING_LORA_MODULES, "NX3040",
       l->unused ? nxc_arena_printf(nxc_settings_arena(s),
                                    "no matrix of %s is named %s, and so none has that adapter",
                                    t->model.family->name, l->unused)
                 : ""},
      {has_adapters(l), NX_SETTING_LORA_MODULES, "NX3040",
       "no matrix has an adapter, and everything else is frozen"},
      {t->model.unique_layers == t->model.layers, NX_SETTING_LORA_RANK, "NX3040",
       "adapters beside weights that several layers share would be shared too"},
      {!joins_copied_heads(t), NX_SETTING_LORA_MODULES, "NX3040",
       "queries, keys and values cannot have one adapter where key heads are copied to several ranks"},
      {!of_experts || l->dropout == 0 || t->model.mixture == NULL, NX_SETTING_LORA_DROPOUT, "NX3040",
       "there is no dropout before the adapters of experts"},
      {!of_experts || t->model.mixture == NULL || t->model.family->tensors[NXC_PART_EXPERT_GATE] == NULL ||
           t->model.family->tensors[NXC_PART_EXPERT_GATE]->layout != NXC_LAYOUT_TURNS,
       NX_SETTING_LORA_MODULES, "NX3040",
       "experts whose gates and other halves stand in turn in one tensor have no adapters"},
      {l->base == NULL || fills_blocks(t), NX_SETTING_LORA_BASE_TYPE, "NX3040",
       "quantized matrices are a whole number of blocks on each rank, and stand as products read them"},
      {!nxc_flag(s, NX_SETTING_LORA_DOUBLE_QUANTIZATION) || nxc_has(s, NX_SETTING_RUN_INIT_FROM),
       NX_SETTING_LORA_DOUBLE_QUANTIZATION, "NX3040", "weights that are drawn have no scales to quantize"},
      {l->merge_every == 0 || nxc_flag(s, NX_SETTING_LORA_SAVE_BASE), NX_SETTING_LORA_MERGE_INTERVAL,
       "NX3040",
       "weights that adapters are added to are saved too (lora.save_base), else nothing could resume"},
      {l->base == NULL || !nxc_flag(s, NX_SETTING_LORA_SAVE_BASE) || has_own_tensors(t),
       NX_SETTING_LORA_SAVE_BASE, "NX3040",
       "checkpoints hold no quantized experts in one tensor: a run that resumes reads them where it began"},
      {l->merge_every == 0 || has_own_tensors(t), NX_SETTING_LORA_MERGE_INTERVAL, "NX3040",
       "what adapters of experts in one tensor learned is not added to it"},
      {!splits_biases(t), NX_SETTING_LORA_BIAS, "NX3040",
       "biases of projections that are one product are trained all or none"},
  };
  return nxc_demands_check(s, sink, demands, sizeof demands / sizeof *demands);
}
