/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/precision.h"

static nx_dtype type_of(const nxc_settings *s, nxc_setting_id id) {
  if (nxc_is(s, id, "fp16")) return NX_f16;
  return nxc_is(s, id, "bf16") ? NX_bf16 : NX_f32;
}

static nxc_loss_scale read_loss_scale(const nxc_settings *s) {
  bool dynamic = !nxc_has(s, NX_SETTING_PRECISION_LOSS_SCALE);
  return (nxc_loss_scale){.used = true,
                          .dynamic = dynamic,
                          .renews = nxc_flag(s, NX_SETTING_PRECISION_LOSS_SCALE_RENEWS),
                          .ends = nxc_flag(s, NX_SETTING_PRECISION_LOSS_SCALE_ENDS),
                          .plain = nxc_flag(s, NX_SETTING_PRECISION_LOSS_SCALE_PLAIN),
                          .initial = nxc_number(s, dynamic ? NX_SETTING_PRECISION_LOSS_SCALE_INITIAL
                                                           : NX_SETTING_PRECISION_LOSS_SCALE),
                          .least = nxc_number(s, NX_SETTING_PRECISION_LOSS_SCALE_MIN),
                          .window = (uint32_t)nxc_int(s, NX_SETTING_PRECISION_LOSS_SCALE_WINDOW),
                          .hysteresis = (uint32_t)nxc_int(s, NX_SETTING_PRECISION_LOSS_SCALE_HYSTERESIS)};
}

static nxc_fp8_recipe recipe_of(const nxc_settings *s) {
  static const nxc_fp8_recipe recipes[] = {{"delayed", NX_FP8_SCALE_TENSOR, NXC_FP8_REMEMBERED, 0, 0},
                                           {"tensorwise", NX_FP8_SCALE_TENSOR, NXC_FP8_MEASURED, 0, 0},
                                           {"blockwise", NX_FP8_SCALE_POWER, NXC_FP8_BLOCKS, 128, 128},
                                           {"mxfp8", NX_FP8_SCALE_MX, NXC_FP8_BLOCKS, 32, 1},
                                           {"rowwise", NX_FP8_SCALE_DIVIDE, NXC_FP8_BLOCKS, 0, 1}};
  size_t i = 0, last = sizeof recipes / sizeof *recipes - 1;
  while (i < last && !nxc_is(s, NX_SETTING_PRECISION_FP8_RECIPE, recipes[i].name)) i++;
  nxc_fp8_recipe recipe = recipes[i];
  if (recipe.maxima == NXC_FP8_BLOCKS && recipe.block == 0)
    recipe.block = nxc_int(s, NX_SETTING_PRECISION_FP8_BLOCK);
  return recipe;
}

static nxc_fp8 read_fp8(const nxc_settings *s) {
  if (!nxc_is(s, NX_SETTING_PRECISION_PRODUCTS, "fp8")) return (nxc_fp8){0};
  bool all = nxc_is(s, NX_SETTING_PRECISION_FP8_BACKWARD, "all");
  bool hybrid = nxc_is(s, NX_SETTING_PRECISION_FP8_FORMAT, "hybrid");
  return (nxc_fp8){.used = true,
                   .recipe = recipe_of(s),
                   .gradients = hybrid ? NX_FP8_E5M2 : NX_FP8_E4M3,
                   .history = nxc_int(s, NX_SETTING_PRECISION_FP8_HISTORY),
                   .newest = nxc_is(s, NX_SETTING_PRECISION_FP8_AMAX, "most_recent"),
                   .margin = (int)nxc_int(s, NX_SETTING_PRECISION_FP8_MARGIN),
                   .input_gradients = !nxc_is(s, NX_SETTING_PRECISION_FP8_BACKWARD, "none"),
                   .weight_gradients = all,
                   .output = nxc_flag(s, NX_SETTING_PRECISION_FP8_OUTPUT),
                   .first_layers = nxc_int(s, NX_SETTING_PRECISION_FP8_FIRST_LAYERS),
                   .last_layers = nxc_int(s, NX_SETTING_PRECISION_FP8_LAST_LAYERS)};
}

nxc_precision nxc_precision_read(const nxc_settings *s) {
  nxc_precision types = {.param = type_of(s, NX_SETTING_PRECISION_PARAM),
                         .activation = type_of(s, NX_SETTING_PRECISION_COMPUTE),
                         .partial = type_of(s, NX_SETTING_PRECISION_REDUCE),
                         .grad = type_of(s, NX_SETTING_PRECISION_GRAD_ACCUMULATION),
                         .state = type_of(s, NX_SETTING_PRECISION_OPTIMIZER_STATE)};
  bool own = nxc_has(s, NX_SETTING_PRECISION_SECOND_MOMENT);
  types.second_moment = own ? type_of(s, NX_SETTING_PRECISION_SECOND_MOMENT) : types.state;
  types.residual = nxc_flag(s, NX_SETTING_PRECISION_FP32_RESIDUAL) ? NX_f32 : types.activation;
  if (types.activation == NX_f16) types.loss_scale = read_loss_scale(s);
  types.fp8 = read_fp8(s);
  types.stochastic = nxc_flag(s, NX_SETTING_PRECISION_STOCHASTIC_ROUNDING);
  types.master = nxc_flag(s, NX_SETTING_PRECISION_MASTER_WEIGHTS) && types.param != NX_f32;
  return types;
}
