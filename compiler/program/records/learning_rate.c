/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/learning_rate.h"

#include "compiler/program/records/read.h"

static int64_t shape_of(const nxc_settings *s) {
  bool from_zero = nxc_is(s, NX_SETTING_SCHEDULE_RISE, "zero");
  if (nxc_is(s, NX_SETTING_SCHEDULE_NAME, "linear")) return 1;
  if (nxc_is(s, NX_SETTING_SCHEDULE_NAME, "cosine")) return from_zero ? 4 : 2;
  if (nxc_is(s, NX_SETTING_SCHEDULE_NAME, "annealing")) return 3;
  return from_zero ? 5 : 0;
}

nxc_learning_rate nxc_learning_rate_read(const nxc_settings *s) {
  return (nxc_learning_rate){.shape = shape_of(s),
                    .lr = nxc_number_or(s, NX_SETTING_OPTIMIZER_LR, 0),
                    .warmup_steps = nxc_int(s, NX_SETTING_SCHEDULE_WARMUP_STEPS),
                    .constant_steps = nxc_int(s, NX_SETTING_SCHEDULE_CONSTANT_STEPS),
                    .max_steps = nxc_int_or(s, NX_SETTING_SCHEDULE_MAX_STEPS, 0),
                    .min_lr = nxc_number(s, NX_SETTING_SCHEDULE_MIN_LR)};
}
