/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/program.h"

#include "compiler/program/emit/emit.h"
#include "compiler/program/model/model_decoder.h"
#include "compiler/program/graph/grad.h"
#include "compiler/program/passes/overlap.h"
#include "compiler/program/passes/passes.h"
#include "compiler/machine/machine.h"
#include "compiler/program/pipeline/pipeline.h"

#include <inttypes.h>
#include <string.h>

static bool contradiction(nxc_sink *sink, const char *after, const char *what) {
  nxc_report(sink, "NX3900", NXC_SEVERITY_ERROR, (nxc_span){0},
             "this is a fault of nxcfg: please report it with the configuration",
             "internal error after %s: %s", after, what);
  return false;
}

static bool check(nxc_graph *graph, nxc_sink *sink, const char *after) {
  const char *fault = nxc_graph_check(graph);
  return fault == NULL || contradiction(sink, after, fault);
}

/* Each chunk's place in the table of squared norms; returns how many entries it has. In a graph's table the
 * chunks of other graphs have the place of its own first one, so that all places are within bounds. */
static int64_t count_squares(nxc_pipeline *p) {
  int64_t n = 0;
  p->first_squares = nxc_arena_array(p->arena, p->n_graphs, sizeof *p->first_squares);
  for (uint32_t g = 0; g < p->n_graphs; g++)
    p->first_squares[g] = nxc_arena_array(p->arena, p->n_chunks, sizeof **p->first_squares);
  for (uint32_t c = 0; c < p->n_chunks; c++) {
    uint32_t graph = p->chunks[c].graph;
    for (uint32_t at = 0; at < p->n_chunks; at++)
      if (at == c || (p->graphs[graph]->chunk == c && p->chunks[at].graph != graph))
        p->first_squares[graph][at] = n * (int64_t)sizeof(double);
    n += nxc_n_trained(p->graphs[graph]);
  }
  return n;
}

static bool build_graph(nxc_graph *graph, const nxc_training *t, int64_t n_squares, nxc_sink *sink) {
  nxc_step_begin(graph, t, n_squares);
  if (!check(graph, sink, "building the model")) return false;
  nxc_grad_build(graph, 1.0 / (double)(t->batch.global * t->model.sequence));
  if (!check(graph, sink, "gradients")) return false;
  nxc_dead_code(graph);
  nxc_recompute(graph, t);
  if (!check(graph, sink, "recomputation")) return false;
  nxc_ring(graph);
  if (!check(graph, sink, "ring attention")) return false;
  nxc_ranges_build(graph, t);
  nxc_gathers_build(graph, t);
  if (!check(graph, sink, "gathers")) return false;
  nxc_reductions_build(graph, t);
  nxc_step_build(graph, t);
  if (!check(graph, sink, "the step")) return false;
  nxc_cut_backward(graph);
  if (!check(graph, sink, "cutting the backward pass")) return false;
  nxc_in_place(graph);
  if (!check(graph, sink, "overwriting")) return false;
  nxc_waits(graph);
  if (!check(graph, sink, "waits")) return false;
  nxc_evaluate_build(graph, t);
  if (!check(graph, sink, "the evaluation")) return false;
  nxc_memory_plan(graph);
  return check(graph, sink, "memory");
}

/* What is trained of each chunk: with adapters that stand beside some matrices alone, it may be nothing. */
static bool all_train(const nxc_pipeline *p, int64_t n_trained, nxc_sink *sink) {
  const char *fix = "name others in lora.modules, as q_proj, or all-linear";
  for (uint32_t c = 0; c < p->n_chunks; c++) {
    if (nxc_n_trained(p->graphs[p->chunks[c].graph]) > 0) continue;
    if (n_trained == 0)
      nxc_report(
          sink, "NX3040", NXC_SEVERITY_ERROR, (nxc_span){0}, fix,
          "no layer of this model has a matrix that lora.modules names, and everything else is frozen");
    else
      nxc_report(sink, "NX3040", NXC_SEVERITY_ERROR, (nxc_span){0}, fix,
                 "stage %u of the pipeline has no matrix that lora.modules names, and a stage without "
                 "anything to train cannot run", p->chunks[c].stage);
    return false;
  }
  return true;
}

nxc_pipeline *nxc_program_build(const nxc_training *t, nxc_arena *arena, nxc_sink *sink) {
  nxc_pipeline *pipeline = nxc_pipeline_new(arena, t);
  for (uint32_t i = 0; i < pipeline->n_graphs; i++) nxc_model_decoder(pipeline->graphs[i], t);
  const char *unused = nxc_parameter_groups_build(pipeline->graphs, pipeline->n_graphs, t);
  if (unused)
    nxc_report(sink, "NX3023", NXC_SEVERITY_WARNING, (nxc_span){0},
               "leave it out, or match names that nxcfg show --tensors lists",
               "no tensor has a name that optimizer.groups' %s matches", unused);
  int64_t n_squares = count_squares(pipeline);
  if (!all_train(pipeline, n_squares, sink)) return NULL;
  for (uint32_t i = 0; i < pipeline->n_graphs; i++)
    if (!build_graph(pipeline->graphs[i], t, n_squares, sink)) return NULL;
  nxc_schedule(pipeline, t);
  nxc_pipeline_lay_out(pipeline);
  return pipeline;
}

/* No config.json of transformers has a word for a capacity: its mixtures drop no token. */
static void tell_capacity(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  if (t->model.mixture == NULL || t->model.mixture->capacity_factor <= 0) return;
  if (!nxc_flag(s, NX_SETTING_CHECKPOINT_HUGGING_FACE)) return;
  nxc_report(sink, "NX3026", NXC_SEVERITY_WARNING, nxc_settings_span(s, NX_SETTING_MOE_CAPACITY_FACTOR),
             "leave the capacity out, or accept the difference",
             "a config.json cannot say that experts have a capacity: transformers drops no token, and finds "
             "another loss where the training drops some");
}

/* Kernels within less than they need do not run. A ceiling that nobody gave is high enough. */
static bool judge_workspace(const nxc_settings *s, nxc_sink *sink, const nx_plan *plan) {
  if (!nxc_has(s, NX_SETTING_RUN_WORKSPACE_BYTES)) return true;
  nxc_arena *arena = nxc_sink_arena(sink);
  nxc_workspace need = nxc_workspace_of(plan, (nx_target)plan->run->target, plan->run->n_threads);
  uint64_t allowed = plan->run->workspace_bytes;
  if (need.bytes.least <= allowed || allowed == 0) return true;
  nxc_report(
      sink, "NX3027", NXC_SEVERITY_ERROR, nxc_settings_span(s, NX_SETTING_RUN_WORKSPACE_BYTES),
      nxc_arena_printf(arena, "leave it out, or set it to %" PRIu64, need.bytes.most + NX_WORKSPACE_SPARE),
      "%s of %s works in %s, and run.workspace_bytes allows %s", nx_op_find(need.op->op)->name,
      nx_plan_string(plan, plan->values[plan->arguments[need.op->first_argument]].name),
      nxc_bytes_show(arena, need.bytes.least), nxc_bytes_show(arena, allowed));
  return false;
}

/* nxrun asks no host how large it is: where nothing tells how many there are (config/world.h), one. */
static const nxc_settings *with_hosts(const nxc_settings *settings, nxc_arena *arena) {
  if (nxc_settings_known(settings, NX_SETTING_MESH_NODES)) return settings;
  nxc_settings *told = nxc_settings_copy(arena, settings);
  const nxc_provenance from = {.kind = NXC_FROM_DEFAULT};
  nxc_settings_set(told, NX_SETTING_MESH_NODES, nxc_setting_rows[NX_SETTING_MESH_NODES].initial, &from,
                   nxc_sink_new(arena));
  return told;
}

bool nxc_program_compile(const nxc_settings *given, nxc_arena *arena, nxc_sink *sink, nxc_plan_bytes *out) {
  const nxc_settings *settings = with_hosts(given, arena);
  nxc_training training;
  nx_fault fault = {{0}, 0};
  bool read = nxc_training_read(settings, sink, &training);
  bool room = !read || nxc_training_has_room(settings, sink);
  if (!nxc_training_judge(settings, sink, read ? &training : NULL) || !read || !room) return false;
  tell_capacity(settings, sink, &training);
  nxc_pipeline *pipeline = nxc_program_build(&training, arena, sink);
  if (pipeline == NULL) return false;
  out->bytes = nxc_emit(pipeline, &training, settings, &out->n_bytes);
  if (!nx_plan_check(out->bytes, out->n_bytes, &out->plan, &fault))
    return contradiction(sink, "emission", fault.text);
  if (!nx_plan_prove(&out->plan, &fault)) return contradiction(sink, "emission", fault.text);
  if (!nxc_overlap_check(&out->plan, arena, &fault)) return contradiction(sink, "memory", fault.text);
  return judge_workspace(settings, sink, &out->plan);
}

uint32_t nxc_forecast_memory(const nx_plan *plan, uint64_t bytes[NX_N_ARENAS]) {
  uint64_t most = 0;
  uint32_t worst = 0;
  for (uint32_t stage = 0; stage < nx_plan_n_stages(plan); stage++) {
    uint64_t of_stage[NX_N_ARENAS], sum = 0;
    for (nx_arena_kind kind = 0; kind < NX_N_ARENAS; kind++)
      sum += of_stage[kind] = nx_plan_stage_bytes(plan, stage, kind);
    if (stage > 0 && sum <= most) continue;
    most = sum;
    worst = stage;
    memcpy(bytes, of_stage, sizeof of_stage);
  }
  return worst;
}
