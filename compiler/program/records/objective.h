/* SPDX-License-Identifier: Apache-2.0 */
/* What is trained for: the next token, or the preference of one answer to another. */
#ifndef NXC_RECORDS_OBJECTIVE_H
#define NXC_RECORDS_OBJECTIVE_H

#include "compiler/settings/settings.h"
#include "schema/plan.h"

typedef struct nxc_objective {
  nx_objective kind;
  double beta, smoothing;
  bool refers; /* to what the model said before the training */
} nxc_objective;

nxc_objective nxc_objective_read(const nxc_settings *settings);
/* Whether sequences stand in pairs, the chosen answer and the rejected one. */
bool nxc_objective_has_pairs(const nxc_objective *objective);

#endif
