/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/loss_scale.h"

nxr_loss_scale nxr_loss_scale_begin(const nx_run *run) {
  return (nxr_loss_scale){.factor = run->loss_scale_initial, .n_left = run->loss_scale_hysteresis};
}

static bool fall(nxr_loss_scale *scale, const nx_run *run) {
  bool at_least = scale->factor <= run->loss_scale_least;
  scale->factor /= 2;
  if (scale->factor < run->loss_scale_least) scale->factor = run->loss_scale_least;
  return !at_least || !(run->loss_scale_rules & NX_LOSS_SCALE_ENDS);
}

bool nxr_loss_scale_next(nxr_loss_scale *scale, const nx_run *run, bool skipped) {
  scale->n_skipped += skipped;
  if (!(run->loss_scale_rules & NX_LOSS_SCALE_DYNAMIC)) return true;
  if (skipped) {
    scale->n_good = 0;
    if (scale->n_left > 1) scale->n_left--;
    else return fall(scale, run);
    return true;
  }
  if (run->loss_scale_rules & NX_LOSS_SCALE_RENEWS) scale->n_left = run->loss_scale_hysteresis;
  if (++scale->n_good < run->loss_scale_window) return true;
  scale->n_good = 0;
  scale->n_left = run->loss_scale_hysteresis;
  scale->factor *= 2;
  return true;
}
