/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/precision.h"

static nx_dtype type_of(const nxc_settings *s, nxc_setting_id id) {
  if (nxc_is(s, id, "fp16")) return NX_f16;
  return nxc_is(s, id, "bf16") ? NX_bf16 : NX_f32;
}

nxc_precision nxc_precision_read(const nxc_settings *s) {
  nxc_precision types = {.param = type_of(s, NX_SETTING_PRECISION_PARAM),
                         .activation = type_of(s, NX_SETTING_PRECISION_COMPUTE),
                         .partial = type_of(s, NX_SETTING_PRECISION_REDUCE),
                         .grad = type_of(s, NX_SETTING_PRECISION_GRAD_ACCUMULATION),
                         .state = type_of(s, NX_SETTING_PRECISION_OPTIMIZER_STATE)};
  types.residual = nxc_flag(s, NX_SETTING_PRECISION_FP32_RESIDUAL) ? NX_f32 : types.activation;
  types.master = nxc_flag(s, NX_SETTING_PRECISION_MASTER_WEIGHTS) && types.param != NX_f32;
  return types;
}
