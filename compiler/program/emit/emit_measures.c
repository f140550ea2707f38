/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit/emit.h"
#include "compiler/program/passes/passes.h"

static void emit_measure(nxc_emitter *e, const char *name, nxc_id value, const nx_measure *how) {
  nx_measure record = *how;
  record.name = nxc_emit_string(e, name), record.value = e->value_index[value];
  nxc_emit_record(e, NX_SECTION_MEASURES, &record);
}

/* Router losses without their weights, as means over tokens and layers. The first element is the
 * load-balancing loss, where it is a sum over each layer's tokens of a micro-batch. */
static void emit_router(nxc_emitter *e, nxc_id losses) {
  const nxc_mixture *m = e->training->model.mixture;
  double n_layers = (double)nxc_model_mixtures(&e->training->model);
  nx_measure balance = {.flags = NX_MEASURE_OF_TOKENS, .factor = 1 / (n_layers * m->aux)};
  nx_measure z = {.flags = NX_MEASURE_OF_TOKENS, .element = 1, .factor = 1 / (n_layers * m->z)};
  bool own = m->aux_scope != NXC_AUX_OF_MODEL && m->aux_over == NXC_AUX_OVER_MICRO_BATCH;
  if (m->aux > 0 && own)
    emit_measure(e, "router_balance_loss", losses, &balance);
  if (m->z > 0) emit_measure(e, "router_z_loss", losses, &z);
}

void nxc_emit_measures(nxc_emitter *e) {
  const nxc_graph *graph = e->graph;
  nx_measure norm = {.flags = NX_MEASURE_ROOT, .factor = 1};
  nx_measure zeros = {.factor = 1};
  if (graph->parameter_squares) emit_measure(e, "params_norm", graph->parameter_squares, &norm);
  if (graph->zeros) {
    zeros.offset = -(double)nxc_measures_gaps(e->pipeline);
    emit_measure(e, "zero_gradients", graph->zeros, &zeros);
  }
  if (graph->router_losses) emit_router(e, graph->router_losses);
}
