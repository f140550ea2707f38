/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/measures.h"

nxc_measures nxc_measures_read(const nxc_settings *s) {
  bool loss =
      nxc_number(s, NX_SETTING_MOE_AUX_LOSS_COEF) > 0 || nxc_number(s, NX_SETTING_MOE_Z_LOSS_COEF) > 0 ||
      nxc_number(s, NX_SETTING_MOE_SEQUENCE_AUX_LOSS_COEF) > 0 ||
      nxc_number(s, NX_SETTING_MOE_STEP_AUX_LOSS_COEF) > 0;
  return (nxc_measures){.parameter_norm = nxc_flag(s, NX_SETTING_RUN_LOG_PARAMETER_NORM),
                        .zero_gradients = nxc_flag(s, NX_SETTING_RUN_LOG_ZERO_GRADIENTS),
                        .router_losses = nxc_int(s, NX_SETTING_MOE_EXPERTS) > 1 && loss,
                        .router_layers = nxc_flag(s, NX_SETTING_RUN_LOG_ROUTER_LAYERS)};
}
