/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/tune_row.h"

static const char *const recompute_words[] = {"none", "selective", "full"};

const char *nxc_tune_recompute(const nxc_tune_report *r, const nxc_tuned *tuned) {
  return recompute_words[nxc_choice_value(&r->result->space, &tuned->choice, NXC_KNOB_RECOMPUTE).first];
}

int64_t nxc_tune_zero(const nxc_tune_report *r, const nxc_tuned *tuned) {
  return nxc_choice_value(&r->result->space, &tuned->choice, NXC_KNOB_ZERO).first;
}

double nxc_tune_device_hours(const nxc_tune_report *r, const nxc_tuned *tuned) {
  const nxc_settings *settings = r->request->compiled->settings;
  bool assumed = nxc_settings_from(settings, NX_SETTING_SCHEDULE_MAX_STEPS)->kind == NXC_FROM_ASSUMED;
  if (assumed || !nxc_has(settings, NX_SETTING_SCHEDULE_MAX_STEPS)) return 0;
  const nxc_training *training = r->request->training;
  int64_t samples =
      nxc_batch_samples_before(&training->batch, nxc_int(settings, NX_SETTING_SCHEDULE_MAX_STEPS));
  double tokens = (double)samples * (double)training->model.sequence;
  return tokens / tuned->tokens_per_s * tuned->layout.world / 3600;
}

double nxc_tune_token_s(const nxc_tuned *tuned) {
  return 1 / tuned->tokens_per_s;
}

double nxc_tune_loss(const nxc_tuned *best, const nxc_tuned *tuned) {
  return nxc_tune_token_s(tuned) / nxc_tune_token_s(best) - 1;
}

int64_t nxc_tune_samples(const nxc_tune_report *r, int64_t sequences) {
  return sequences / r->request->training->batch.rows;
}

const char *nxc_tune_value(const nxc_tune_report *r, const nxc_left_out *one) {
  if (one->knob == NXC_KNOB_RECOMPUTE) return recompute_words[one->value.first];
  if (one->knob == NXC_KNOB_ORDER) return nxc_order_name((nxc_order_id)one->value.first);
  if (one->knob == NXC_KNOB_OFFLOAD_OPTIMIZER || one->knob == NXC_KNOB_OFFLOAD_ACTIVATIONS)
    return nxc_arena_printf(r->arena, "%lld %%", (long long)one->value.first / 10);
  return nxc_arena_printf(r->arena, "%lld", (long long)one->value.first);
}
