/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit/emit.h"
#include "compiler/program/passes/passes.h"

static void emit_measure(nxc_emitter *e, const char *name, nxc_id value, const nx_measure *how) {
  nx_measure record = *how;
  record.name = nxc_emit_string(e, name), record.value = e->value_index[value];
  nxc_emit_record(e, NX_SECTION_MEASURES, &record);
}

/* Router losses without their weights, as means over tokens and n layers, from this element on. The first is
 * the load-balancing loss, where it is a sum over each layer's tokens of a micro-batch; of several, that of
 * sequences before that of micro-batches. */
static void emit_router(nxc_emitter *e, nxc_id losses, uint32_t element, double n_layers, const char *of) {
  const nxc_mixture *m = e->training->model.mixture;
  double aux = m->aux_sequence > 0 ? m->aux_sequence : m->aux;
  nx_measure balance = {
      .flags = NX_MEASURE_OF_TOKENS, .element = element, .factor = 1 / (n_layers * aux)};
  nx_measure z = {.flags = NX_MEASURE_OF_TOKENS, .element = element + 1, .factor = 1 / (n_layers * m->z)};
  bool own = m->aux_scope != NXC_AUX_OF_MODEL && m->aux_over == NXC_AUX_OVER_MICRO_BATCH;
  nxc_arena *arena = e->graph->arena;
  if (aux > 0 && own)
    emit_measure(e, nxc_arena_printf(arena, "router_balance_loss%s", of), losses, &balance);
  if (m->z > 0) emit_measure(e, nxc_arena_printf(arena, "router_z_loss%s", of), losses, &z);
}

static void emit_router_layers(nxc_emitter *e) {
  const nxc_graph *graph = e->graph;
  const nxc_model *m = &e->training->model;
  for (int32_t layer = 0; graph->router_layers && layer < m->layers + m->predict_depth; layer++)
    if (nxc_model_layer(m, layer)->ffn.mixture != NULL)
      emit_router(e, graph->router_layers, 2 * (uint32_t)layer, 1,
                  nxc_arena_printf(graph->arena, ".%d", (int)layer));
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
  if (graph->router_losses)
    emit_router(e, graph->router_losses, 0, (double)nxc_model_mixtures(&e->training->model), "");
  emit_router_layers(e);
}
