/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/plan_page.h"

#include "compiler/estimate/timeline.h"
#include "compiler/commands/why.h"

#include <math.h>

/* ---- time ---- */

static json_t *time_json(const nxc_plan_report *r, const nxc_column *column) {
  const nxc_estimate *e = r->estimate;
  json_t *parts = json_array();
  for (int part = 0; part < NXC_N_SPENT && !e->forecast_made; part++)
    json_array_append_new(parts, json_pack("[s, f]", nxc_spent_names[part], e->own.time.parts[part]));
  for (int class = 0; class < NXC_N_COSTS && e->forecast_made; class++)
    json_array_append_new(parts, json_pack("[s, f]", nxc_cost_names[class], e->forecast.class_s[class]));
  if (e->forecast_made) json_array_append_new(parts, json_pack("[s, f]", "bubble", e->forecast.bubble_s));
  return json_pack("{s:s, s:f, s:f, s:f, s:o}", "system", column->whose, "step_s", column->step_s,
                   "tokens_per_s", column->tokens_per_s, "utilisation", column->utilisation, "parts", parts);
}

/* ---- schedule ---- */

/* Seconds of what the timeline counts in; 0: not known. */
static double seconds_per_unit(const nxc_plan_report *r, const nxc_timeline *line, const nxc_training *t) {
  const nxc_estimate *e = r->estimate;
  double passes_s = 0;
  if (e->own.timed)
    passes_s = e->own.time.step_s - e->own.time.parts[NXC_SPENT_BUBBLE] - e->own.time.parts[NXC_SPENT_DATA] -
               e->own.time.parts[NXC_SPENT_UPDATE];
  else if (e->forecast_made)
    passes_s = e->forecast.step_s - e->forecast.bubble_s - e->forecast.class_s[NXC_COST_OPTIMIZER];
  return passes_s > 0 ? passes_s / ((double)t->batch.n_micro * line->busiest) : 0;
}

static json_t *timeline_json(const nxc_plan_report *r, const nxc_timeline *line, const nxc_training *t) {
  double unit = seconds_per_unit(r, line, t), scale = unit > 0 ? unit : 3 / line->busiest;
  json_t *passes = json_array();
  for (size_t i = 0; i < line->n_passes; i++) {
    const nxc_timed_pass *p = &line->passes[i];
    json_array_append_new(
        passes, json_pack("[i, i, i, i, f, f]", (int)p->stage, (int)p->kind, (int)p->micro_batch,
                          (int)p->chunk / (int)line->n_stages, p->begin * scale, p->end * scale));
  }
  return json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:f, s:f, s:o}", "name", nxc_layout_order_name(&t->layout),
                   "unit", unit > 0 ? "s" : "passes", "stages", (int)line->n_stages, "chunks",
                   (int)line->n_chunks, "micro_batches", (json_int_t)t->batch.n_micro, "shown",
                   (int)line->n_shown, "length", line->length * scale, "bubble", line->bubble, "passes",
                   passes);
}

/* ---- memory of each stage ---- */

/* `most` forward passes of the stage are in flight at once. */
static json_t *stage_json(double total, double activations, uint32_t most) {
  return json_pack("{s:f, s:f, s:i}", "fixed", total - activations, "per_pass", activations / fmax(1, most),
                   "most", (int)most);
}

static json_t *own_stages_json(const nxc_plan_report *r, const nxc_timeline *line) {
  const nxc_own_estimate *own = &r->estimate->own;
  const nxc_system *system = nxc_system_open(r->arena, own->system);
  const nxc_device *device = own->timed ? r->estimate->machine->device : NULL;
  json_t *list = json_array();
  for (uint32_t stage = 0; stage < line->n_stages; stage++) {
    nxc_own_memory m = nxc_own_memory_of_stage(system, &own->sizes, &own->training, stage, r->arena);
    double total = device ? nxc_own_taken(device, m.total, own->sizes.world) : m.total;
    json_array_append_new(list, stage_json(total, m.parts[NXC_PART_ACTIVATIONS], line->in_flight[stage]));
  }
  return list;
}

static json_t *nxrun_stages_json(const nx_plan *plan, const nxc_timeline *line) {
  json_t *list = json_array();
  for (uint32_t stage = 0; stage < line->n_stages; stage++) {
    uint64_t total = plan->run->workspace_bytes + nx_plan_copy_bytes(plan, stage);
    uint64_t slots = nx_plan_stage_bytes(plan, stage, NX_ARENA_slot);
    for (nx_arena_kind kind = 0; kind < NX_N_ARENAS; kind++) total += nx_plan_stage_bytes(plan, stage, kind);
    json_array_append_new(list, stage_json((double)total, (double)slots, line->in_flight[stage]));
  }
  return list;
}

static void add_schedule(const nxc_plan_report *r, const nxc_training *t, json_t *page) {
  nxc_sizes sizes = nxc_sizes_read(t, nxc_plan_settings(r));
  bool own = r->estimate->own.system != NULL && r->estimate->own.lacks == NULL;
  nxc_timeline line;
  if (!nxc_timeline_of(t, &sizes, r->arena, &line)) return;
  json_object_set_new(page, "timeline", timeline_json(r, &line, t));
  if (!own && r->plan == NULL) return;
  json_object_set_new(page, "stages",
                      own ? own_stages_json(r, &line) : nxrun_stages_json(&r->plan->plan, &line));
  json_object_set_new(page, "stages_of", json_string(own ? r->estimate->own.system : "nxrun"));
}

/* ---- mesh ---- */

static void add_axis(json_t *axes, const char *name, int64_t size, int64_t stride, const char *carries) {
  if (size > 1)
    json_array_append_new(axes, json_pack("{s:s, s:I, s:I, s:s}", "name", name, "size", (json_int_t)size,
                                          "stride", (json_int_t)stride, "carries", carries));
}

/* Ranks are numbered with the first axis fastest. */
static json_t *mesh_json(const nxc_plan_report *r, const nxc_training *t) {
  const nxc_layout *l = &t->layout;
  json_t *axes = json_array();
  bool pipeline_first = nxc_is(nxc_plan_settings(r), NX_SETTING_MESH_ORDER, "tp-pp-dp");
  int64_t inner = (int64_t)l->tensor * l->context;
  int64_t pipeline = pipeline_first ? inner : inner * l->data,
          data = pipeline_first ? inner * l->pipeline : inner;
  add_axis(axes, "tensor", l->tensor, 1,
           "activations, summed or gathered around each product, in every layer");
  add_axis(axes, "context", l->context, l->tensor, "keys and values, in every layer");
  add_axis(axes, "expert", l->expert, l->expert_tensor,
           "tokens to their experts and back, in layers with experts");
  add_axis(axes, "data", l->data, data,
           t->sharding.stage >= 3 ? "parameters gathered and gradients scattered, layer by layer"
                                  : "gradients, summed once a step");
  add_axis(axes, "pipeline", l->pipeline, pipeline,
           "activations and their gradients, between neighbouring stages");
  return json_pack("{s:I, s:o}", "world", (json_int_t)l->world, "axes", axes);
}

/* ---- the page ---- */

static json_t *history_json(const nxc_plan_report *r) {
  json_t *list = json_array();
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    const char *nearest;
    bool known = nxc_settings_known(r->compiled->settings, id) || nxc_setting_is_wanted(id);
    const nxc_why *why = known ? nxc_why_find(r->arena, r->compiled, nxc_setting_path(id), &nearest) : NULL;
    if (why != NULL) json_array_append_new(list, nxc_why_to_json(why));
  }
  return list;
}

static void add_time(const nxc_plan_report *r, json_t *page) {
  const nxc_column own = nxc_own_column(&r->estimate->own);
  const nxc_column nxrun = nxc_nxrun_column(r->estimate, r->plan ? &r->plan->plan : NULL);
  const nxc_column *timed = own.timed ? &own : nxrun.timed ? &nxrun : NULL;
  if (timed == NULL) return;
  json_object_set_new(page, "time", time_json(r, timed));
  json_object_set_new(page, "machine", json_string(r->estimate->machine->name));
}

json_t *nxc_plan_page(const nxc_plan_report *r) {
  const nxc_training *t = nxc_plan_training(r);
  json_t *page = json_object(), *summary = json_array();
  const char *lines[NXC_N_SUMMARY];
  nxc_plan_summary(r, lines);
  for (int i = 0; i < NXC_N_SUMMARY; i++)
    if (*lines[i] != '\0') json_array_append_new(summary, json_string(lines[i]));
  json_object_set_new(page, "file", json_string(r->file));
  json_object_set_new(page, "summary", summary);
  json_object_set_new(page, "plan", nxc_plan_json(r));
  json_object_set_new(page, "limit_bytes", json_integer((json_int_t)r->estimate->limit_bytes));
  json_object_set_new(page, "history", history_json(r));
  add_time(r, page);
  if (t == NULL) return page;
  add_schedule(r, t, page);
  json_object_set_new(page, "mesh", mesh_json(r, t));
  return page;
}
