/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/judge_parts.h"

#include "compiler/program/records/demands.h"
#include "schema/targets.h"

/* Whether the sum over every rank's micro-batches is a part of the sum in pairs over the step's. */
static bool divides_in_pairs(const nxc_training *t) {
  return t->layout.data == 1 || (t->batch.n_micro & (t->batch.n_micro - 1)) == 0;
}

bool nxc_pairs_judge(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  if (!t->sharding.in_pairs) return true;
  bool whole_tensors = t->optimizer.update.rule->kind != NX_ELEMENT;
  const nxc_demand demands[] = {
      {divides_in_pairs(t), NX_SETTING_BATCH_GLOBAL, "NX3050",
       "with run.reproducible: elastic each of several data-parallel ranks has a power of two of "
       "micro-batches a step: choose a global batch of micro x ranks x 1, 2, 4, ..."},
      {t->batch.n_phases == 0, NX_SETTING_BATCH_GROWTH, "NX3050",
       "with run.reproducible: elastic the batch does not grow"},
      {t->sharding.stage == 0 || !whole_tensors, NX_SETTING_OPTIMIZER_ZERO_STAGE, "NX3050",
       "with run.reproducible: elastic tensors that the update rule needs whole are not dealt to ranks: "
       "set 0"},
      {t->optimizer.update.rule->op != NX_OP_onebitadam, NX_SETTING_OPTIMIZER_NAME, "NX3050",
       "with run.reproducible: elastic ranks tell each other whole gradients: choose another update rule"},
      {t->types.grad == NX_f32, NX_SETTING_PRECISION_GRAD_ACCUMULATION, "NX3050",
       "with run.reproducible: elastic gradients are fp32"},
      {t->layout.expert == 1 || t->model.mixture == NULL, NX_SETTING_MESH_EXPERT, "NX3050",
       "with run.reproducible: elastic experts see the tokens of one rank: set 1"},
      {t->layout.replicate == 1, NX_SETTING_MESH_REPLICATE, "NX3050",
       "with run.reproducible: elastic the optimizer is divided over all data-parallel ranks, or none: "
       "set 1"},
      {t->layout.pipeline == 1 || !nxc_model_shares(&t->model), NX_SETTING_MESH_PIPELINE, "NX3050",
       "with run.reproducible: elastic no two stages share weights: set 1, or untie them"},
      {!nx_target_find_name(nxc_text(s, NX_SETTING_RUN_TARGET))->on_device, NX_SETTING_RUN_TARGET, "NX3050",
       "run.reproducible: elastic is kept by processors: choose one"},
  };
  return nxc_demands_check(s, sink, demands, sizeof demands / sizeof *demands);
}
