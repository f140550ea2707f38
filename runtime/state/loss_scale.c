/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/loss_scale.h"

nxr_loss_scale nxr_loss_scale_begin(const nx_run *run) {
  return (nxr_loss_scale){.factor = run->loss_scale_initial, .n_left = run->loss_scale_hysteresis};
}

static bool follows(const nx_run *run, uint32_t rule) {
  return (run->loss_scale_rules & rule) != 0;
}

static bool fall(nxr_loss_scale *scale, const nx_run *run) {
  bool at_least = scale->factor == run->loss_scale_least;
  scale->factor /= 2;
  if (scale->factor < run->loss_scale_least) scale->factor = run->loss_scale_least;
  return !at_least || !follows(run, NX_LOSS_SCALE_ENDS) || follows(run, NX_LOSS_SCALE_PLAIN);
}

static bool overflow(nxr_loss_scale *scale, const nx_run *run, uint64_t n_samples) {
  scale->n_skipped++;
  scale->n_samples += n_samples;
  if (!follows(run, NX_LOSS_SCALE_DYNAMIC)) return !follows(run, NX_LOSS_SCALE_ENDS);
  scale->n_good = 0;
  if (scale->n_left == 1 || follows(run, NX_LOSS_SCALE_PLAIN)) return fall(scale, run);
  if (scale->n_left > 1) scale->n_left--; /* 0, which DeepSpeed counts down from: it never falls */
  return true;
}

bool nxr_loss_scale_next(nxr_loss_scale *scale, const nx_run *run, bool skipped, uint64_t n_samples) {
  if (skipped) return overflow(scale, run, n_samples);
  if (!follows(run, NX_LOSS_SCALE_DYNAMIC)) return true;
  uint32_t first = follows(run, NX_LOSS_SCALE_PLAIN); /* of the good steps, which is in no window */
  if (follows(run, NX_LOSS_SCALE_RENEWS)) scale->n_left = run->loss_scale_hysteresis;
  if (++scale->n_good < run->loss_scale_window + first) return true;
  scale->n_good = first;
  scale->n_left = run->loss_scale_hysteresis;
  scale->factor *= 2;
  return true;
}
