/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/plateau.h"

#include <math.h>

nxr_plateau nxr_plateau_begin(void) {
  return (nxr_plateau){.best = NAN, .loss = NAN};
}

static bool is_better(const nx_plateau *plan, double loss, double best) {
  bool greater = plan->rules & NX_PLATEAU_GREATER;
  double sign = greater ? 1 : -1;
  if (isnan(best)) return !isnan(loss) && loss != -sign * INFINITY;
  if (plan->rules & NX_PLATEAU_ABSOLUTE)
    return greater ? loss > best + plan->threshold : loss < best - plan->threshold;
  return greater ? loss > best * (1 + plan->threshold) : loss < best * (1 - plan->threshold);
}

void nxr_plateau_look(nxr_plateau *plateau, const nx_plateau *plan, double lr) {
  bool better = is_better(plan, plateau->loss, plateau->best);
  if (better) plateau->best = plateau->loss;
  plateau->n_bad = better ? 0 : plateau->n_bad + 1;
  if (plateau->n_cooling > 0) plateau->n_cooling--, plateau->n_bad = 0;
  if (plateau->n_bad <= plan->patience) return;
  plateau->n_reductions += lr - fmax(lr * plan->factor, plan->least) > plan->least_change;
  plateau->n_cooling = plan->cooldown;
  plateau->n_bad = 0;
}
