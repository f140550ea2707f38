/* SPDX-License-Identifier: Apache-2.0 */
/* What is trained for: the next token, or what is preferred of answers. */
#ifndef NXC_RECORDS_OBJECTIVE_H
#define NXC_RECORDS_OBJECTIVE_H

#include "compiler/settings/settings.h"
#include "schema/plan.h"

typedef struct nxc_objective {
  nx_objective kind;
  const nx_objective_row *row;
  double z; /* weight of the z-loss of tokens */
  double beta, smoothing;
  double desirable, undesirable; /* weights of answers, by their rewards */
  double penalty;                /* of the squares of values */
  bool refers; /* to what the model said before the training */
} nxc_objective;

nxc_objective nxc_objective_read(const nxc_settings *settings);
/* Whether answers are compared: whole sequences have a loss, not tokens. */
bool nxc_objective_compares(const nxc_objective *objective);

#endif
