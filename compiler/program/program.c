/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/program.h"

#include "compiler/program/emit.h"
#include "compiler/program/grad.h"
#include "compiler/program/model_decoder.h"
#include "compiler/program/overlap.h"
#include "compiler/program/passes.h"

static bool contradiction(nxc_sink *sink, const char *after, const char *what) {
  nxc_report(sink, "NX3900", NXC_SEVERITY_ERROR, (nxc_span){0}, NULL, "internal error after %s: %s", after,
             what);
  return false;
}

static bool check(nxc_graph *graph, nxc_sink *sink, const char *after) {
  const char *fault = nxc_graph_check(graph);
  return fault == NULL || contradiction(sink, after, fault);
}

nxc_graph *nxc_program_build(const nxc_training *t, nxc_arena *arena, nxc_sink *sink) {
  const nxc_mesh mesh = nxc_mesh_new(t->tensor, t->kv_replica, t->context, t->data, t->pipeline);
  nxc_graph *graph = nxc_graph_new(arena, &mesh, &t->types);
  graph->n_micro_batches = (uint32_t)t->n_micro_batches;

  nxc_model_decoder(graph, t);
  if (!check(graph, sink, "building the model")) return NULL;
  nxc_grad_build(graph, 1.0 / (double)(t->global_batch * t->sequence));
  if (!check(graph, sink, "gradients")) return NULL;
  nxc_recompute(graph, t);
  if (!check(graph, sink, "recomputation")) return NULL;
  nxc_step_build(graph, t);
  if (!check(graph, sink, "the step")) return NULL;
  nxc_in_place(graph);
  if (!check(graph, sink, "overwriting")) return NULL;
  nxc_waits(graph);
  if (!check(graph, sink, "waits")) return NULL;
  nxc_schedule(graph);
  nxc_memory_plan(graph);
  return check(graph, sink, "memory") ? graph : NULL;
}

bool nxc_program_compile(const nxc_settings *settings, nxc_arena *arena, nxc_sink *sink,
                         nxc_plan_bytes *out) {
  nxc_training training;
  nx_fault fault = {{0}, 0};
  if (!nxc_training_read(settings, sink, &training)) return false;
  nxc_graph *graph = nxc_program_build(&training, arena, sink);
  if (graph == NULL) return false;
  out->bytes = nxc_emit(graph, &training, settings, &out->n_bytes);
  if (!nx_plan_check(out->bytes, out->n_bytes, &out->plan, &fault))
    return contradiction(sink, "emission", fault.text);
  if (!nx_plan_prove(&out->plan, &fault)) return contradiction(sink, "emission", fault.text);
  if (!nxc_overlap_check(&out->plan, arena, &fault)) return contradiction(sink, "memory", fault.text);
  return true;
}

void nxc_forecast_memory(const nx_plan *plan, uint64_t bytes[NX_N_ARENAS]) {
  for (nx_arena_kind kind = 0; kind < NX_N_ARENAS; kind++) {
    const nx_arena_record *arena = nx_plan_arena(plan, kind);
    bytes[kind] = arena == NULL ? 0 : arena->bytes;
  }
}
