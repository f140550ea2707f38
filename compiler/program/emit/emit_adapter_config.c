/* SPDX-License-Identifier: Apache-2.0 */
/* The adapter_config.json that stands beside adapters, so that PEFT loads them. */
#include "compiler/program/emit/emit.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The last two parts of a module's name, which tell it from the others of a layer; of "lm_head" the one. */
static const char *module_of(const char *stem) {
  int dots = 0;
  for (const char *at = stem + strlen(stem); at > stem; at--)
    if (*at == '.' && ++dots == 2) return strstr(at, "%d") ? strrchr(stem, '.') + 1 : at + 1;
  return stem;
}

static json_t *modules(const nxc_training *t) {
  json_t *list = json_array();
  for (nxc_part part = 0; part < NXC_N_PARTS; part++) {
    const nxc_tensor_row *tensor = t->model.family->tensors[part];
    if (t->lora.of[part] == NULL || tensor == NULL || tensor->parts[0] != part) continue;
    json_array_append_new(list, json_string(module_of(tensor->stem)));
  }
  return list;
}

static bool is_transposed(const nxc_training *t) {
  for (nxc_part part = 0; part < NXC_N_PARTS; part++)
    if (t->lora.of[part] && t->model.family->tensors[part] && t->model.family->tensors[part]->transposed)
      return true;
  return false;
}

const char *nxc_adapter_config_text(nxc_arena *arena, const nxc_settings *s, const nxc_training *t) {
  if (t->lora.rank == 0) return "";
  double alpha = nxc_number(s, NX_SETTING_LORA_ALPHA);
  bool whole = alpha == (double)(int64_t)alpha;
  json_t *base =
      nxc_has(s, NX_SETTING_RUN_INIT_FROM) ? json_string(nxc_text(s, NX_SETTING_RUN_INIT_FROM)) : json_null();
  json_t *root = json_pack(
      "{s:s, s:s, s:o, s:I, s:o, s:f, s:s, s:o, s:b, s:b, s:b, s:b}", "peft_type", "LORA", "task_type",
      "CAUSAL_LM", "base_model_name_or_path", base, "r", (json_int_t)t->lora.rank, "lora_alpha",
      whole ? json_integer((json_int_t)alpha) : json_real(alpha), "lora_dropout", t->lora.dropout, "bias",
      nxc_text(s, NX_SETTING_LORA_BIAS), "target_modules", modules(t), "fan_in_fan_out", is_transposed(t),
      "use_rslora", nxc_flag(s, NX_SETTING_LORA_RANK_STABILIZED), "inference_mode", true, "init_lora_weights",
      true);
  if (t->lora.shared_by_experts) json_object_set_new(root, "moe_hybrid_shared_lora", json_true());
  char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(16));
  const char *copy = nxc_arena_strdup(arena, text);
  free(text);
  json_decref(root);
  return copy;
}
