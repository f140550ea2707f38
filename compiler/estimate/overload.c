/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/overload.h"

#include <math.h>

/* Tokens of a text choose alike: experts are loaded as if so many tokens chose, each for itself, as trained
 * and when a training begins (docs/forecasts.md). */
static const double choosers_trained = 178, choosers_first = 18;

static bool is_set(const nxc_settings *s, nxc_setting_id id) {
  return nxc_has(s, id) && nxc_flag(s, id);
}

static bool is_balanced(const nxc_settings *s) {
  return is_set(s, NX_SETTING_MOE_RANDOM_LOGITS) || !nxc_is(s, NX_SETTING_MOE_ROUTING, "top_k");
}

/* A rank's rows are then a sum of choices: their deviation, and what the largest of `expert` such sums is
 * expected to be above the mean. At most all tokens choose as many of its experts as they can. */
static double worst_of_ranks(const nxc_sizes *z, double choosers) {
  double deviation = sqrt((z->expert - 1) / (z->top_k * choosers));
  double most = fmin(z->expert, z->experts / z->top_k);
  return fmin(most, 1 + deviation * sqrt(2 * log(z->expert)));
}

static double within_capacity(const nxc_sizes *z, double overload) {
  return z->capacity > 0 ? fmin(z->capacity, overload) : overload;
}

/* Corrections of the choice (moe.correction_rate) balance experts within some hundred steps. */
void nxc_overload_read(const nxc_settings *s, nxc_sizes *z) {
  if (z->experts == 0) return;
  bool balanced = is_balanced(s), corrected = nxc_number(s, NX_SETTING_MOE_CORRECTION_RATE) > 0;
  double first = balanced ? 1 : worst_of_ranks(z, choosers_first);
  z->overload = within_capacity(z, balanced || corrected ? 1 : worst_of_ranks(z, choosers_trained));
  z->expert_rows = z->tokens * z->top_k * z->expert_tensor / z->tensor * within_capacity(z, first);
}
