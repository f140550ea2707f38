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
                          .initial = nxc_number(s, dynamic ? NX_SETTING_PRECISION_LOSS_SCALE_INITIAL
                                                           : NX_SETTING_PRECISION_LOSS_SCALE),
                          .least = nxc_number(s, NX_SETTING_PRECISION_LOSS_SCALE_MIN),
                          .window = (uint32_t)nxc_int(s, NX_SETTING_PRECISION_LOSS_SCALE_WINDOW),
                          .hysteresis = (uint32_t)nxc_int(s, NX_SETTING_PRECISION_LOSS_SCALE_HYSTERESIS)};
}

nxc_precision nxc_precision_read(const nxc_settings *s) {
  nxc_precision types = {.param = type_of(s, NX_SETTING_PRECISION_PARAM),
                         .activation = type_of(s, NX_SETTING_PRECISION_COMPUTE),
                         .partial = type_of(s, NX_SETTING_PRECISION_REDUCE),
                         .grad = type_of(s, NX_SETTING_PRECISION_GRAD_ACCUMULATION),
                         .state = type_of(s, NX_SETTING_PRECISION_OPTIMIZER_STATE)};
  types.residual = nxc_flag(s, NX_SETTING_PRECISION_FP32_RESIDUAL) ? NX_f32 : types.activation;
  if (types.activation == NX_f16) types.loss_scale = read_loss_scale(s);
  types.stochastic = nxc_flag(s, NX_SETTING_PRECISION_STOCHASTIC_ROUNDING);
  types.master = nxc_flag(s, NX_SETTING_PRECISION_MASTER_WEIGHTS) && types.param != NX_f32;
  return types;
}
