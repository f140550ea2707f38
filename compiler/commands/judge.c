/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/judged.h"

#include "compiler/program/program.h"
#include "compiler/program/records/training.h"

#include <string.h>

/* With --for nxrun: the limits that nxcfg plan -o judges, where all that they need is known. */
static void judge_limits(nxc_judged *v) {
  nxc_setting_id unknown[NX_N_SETTINGS];
  bool wrong = nxc_sink_count(v->sink, NXC_SEVERITY_ERROR) > 0 || v->compiled.unreadable;
  if (wrong || v->compiled.settings == NULL) return;
  if (nxc_settings_unknown_for_plan(v->compiled.settings, unknown) > 0) return;
  nxc_training training;
  if (nxc_training_read(v->compiled.settings, v->sink, &training))
    (void)nxc_training_judge(v->compiled.settings, v->sink, &training);
}

/* With --for nxrun: what kind of model its name alone tells. */
static void judge_named_model(nxc_judged *v, const nxc_estimate_request *asked, nxc_request request) {
  const nxc_settings *told = v->compiled.settings;
  if (told == NULL || v->compiled.unreadable || asked->assumes_nothing || nxc_is_other_kind(told)) return;
  nxc_compiled compiled;
  nxc_assumed assumed;
  request.for_nxrun = false;
  if (!nxc_estimate_compile(asked, &request, v->arena, nxc_sink_new(v->arena), &compiled, &assumed) ||
      assumed.model_at.source == NULL || !nxc_is_other_kind(compiled.settings))
    return;
  nxc_report(v->sink, "NX1401", NXC_SEVERITY_ERROR, assumed.model_at,
             "where it is another model, give its config.json: --model-config FILE",
             "nxrun cannot execute %s: %s", assumed.model, nxc_setting_rows[NX_SETTING_MODEL_KIND].why);
}

/* With --memory or --machine: what nxcfg plan would find. */
static void judge_memory(nxc_judged *v, const nxc_estimate_request *asked, const nxc_request *request) {
  bool wrong = nxc_sink_count(v->sink, NXC_SEVERITY_ERROR) > 0 || v->compiled.unreadable;
  bool asks = v->standard->measures || asked->memory_bytes > 0 || asked->machine != NULL;
  if (!asks || wrong || v->compiled.settings == NULL) return;
  nxc_sink *obstacles = nxc_sink_new(v->arena);
  nxc_plan_bytes plan;
  bool compiled = nxc_program_compile(v->compiled.settings, v->arena, obstacles, &plan);
  nxc_estimate_request judged = *asked;
  judged.nxrun_alone = request->for_nxrun;
  nxc_estimate estimate = nxc_estimate_make(&judged, request, v->compiled.settings,
                                            compiled ? &plan.plan : NULL, obstacles, v->arena, v->sink);
  v->assumed = estimate.own.assumed;
  v->column = nxc_own_column(&estimate.own);
  bool on_host = asked->machine != NULL && asked->machine->device == NULL;
  if (compiled && (v->column.whose == NULL || v->standard->for_nxrun || on_host))
    v->column = nxc_nxrun_column(&estimate, &plan.plan);
}

static bool is_told(const nxc_sink *sink, const nxc_finding *finding) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *other = nxc_sink_finding(sink, i);
    bool same = other->at.line == finding->at.line && other->at.column == finding->at.column;
    if (same && strcmp(other->id, finding->id) == 0 && strcmp(other->message, finding->message) == 0)
      return true;
  }
  return false;
}

/* The other programs that a script starts: what is wrong with each, once. */
static void judge_other_launches(nxc_judged *v, nxc_request request) {
  size_t n_launches = v->compiled.document ? v->compiled.document->n_launches : 0;
  if (request.launch > 0) return;
  for (request.launch = 2; request.launch <= n_launches; request.launch++) {
    nxc_sink *own = nxc_sink_new(v->arena);
    nxc_compiled compiled;
    if (v->standard->options->warnings_are_errors) nxc_sink_warnings_are_errors(own);
    nxc_compile_settings(v->arena, &request, own, &compiled);
    for (size_t i = 0; i < nxc_sink_n_findings(own); i++)
      if (!is_told(v->sink, nxc_sink_finding(own, i))) nxc_sink_report(v->sink, nxc_sink_finding(own, i));
  }
}

void nxc_judge(nxc_judged *v, const nxc_standard *standard, const char *file, bool below) {
  *v = (nxc_judged){.arena = v->arena, .standard = standard, .file = file ? file : "arguments"};
  v->sink = nxc_sink_new(v->arena);
  nxc_request request = nxc_options_request(standard->options, file);
  request.for_nxrun = standard->for_nxrun;
  request.partial = standard->partial;
  request.searched = file != NULL && below;
  request.judges_only = !request.for_nxrun;
  request.all_launches = true;
  nxc_request_keep(v->arena, &request);
  if (standard->options->warnings_are_errors) nxc_sink_warnings_are_errors(v->sink);
  nxc_compile_settings(v->arena, &request, v->sink, &v->compiled);
  judge_other_launches(v, request);
  if (request.for_nxrun && !request.partial) judge_limits(v);
  if (request.for_nxrun) judge_named_model(v, &standard->estimate, request);
  judge_memory(v, &standard->estimate, &request);
}
