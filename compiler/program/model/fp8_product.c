/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/model/fp8_product.h"

#include "compiler/program/model/parameters.h"

static bool is_in_fp8(const nxc_graph *graph, const nxc_training *t) {
  const nxc_fp8 *fp8 = &graph->types.fp8;
  return fp8->used && (graph->layer < 0 ? fp8->output : nxc_model_layer(&t->model, graph->layer)->fp8);
}

/* Each operand has maxima of its own, where they are remembered. */
static void remember(nxc_graph *graph, const nxc_training *t, nxc_part part, nxc_fp8_product *product) {
  static const char *const operands[] = {
      [NXC_FP8_X] = "x", [NXC_FP8_WEIGHT] = "weight", [NXC_FP8_GRADIENT] = "gradient"};
  int64_t length = nxc_fp8_history(graph);
  int n = graph->types.fp8.input_gradients ? NXC_N_FP8_OPERANDS : NXC_FP8_GRADIENT;
  for (int i = 0; length > 0 && i < n; i++)
    product->history[i] = nxc_parameter_memory(
        graph, t, nxc_arena_printf(graph->arena, "%s_amax", operands[i]), part, length);
}

bool nxc_fp8_operands(nxc_graph *graph, const nxc_training *t, nxc_part part, nxc_id *x, nxc_id *weight,
                      nxc_fp8_product *product) {
  *product = (nxc_fp8_product){.x = *x, .weight = *weight};
  if (!is_in_fp8(graph, t)) return false;
  remember(graph, t, part, product);
  nxc_fp8_follow(graph, product);
  nxc_fp8_note(graph, product, NXC_FP8_X, *x);
  nxc_fp8_note(graph, product, NXC_FP8_WEIGHT, *weight);
  *x = nxc_fp8_round(graph, product, NXC_FP8_X, *x);
  *weight = nxc_fp8_round(graph, product, NXC_FP8_WEIGHT, *weight);
  return true;
}
