/* SPDX-License-Identifier: Apache-2.0 */
/* What tune has found, for programs: schema/tune.schema.json. */
#include "compiler/commands/tune_row.h"

#include "compiler/commands/estimate.h"
#include "compiler/render/render.h"

#include <jansson.h>

static json_t *options_json(const nxc_tune_report *r, const nxc_tuned *t) {
  json_t *options = json_array();
  for (size_t i = 0; i < t->n_edits; i++) {
    const nxc_value *value = nxc_option_change_value(&t->edits[i]);
    json_t *option = json_pack("{s:s}", "name", t->edits[i].bound->row->name);
    json_object_set_new(option, "value", json_loads(nxc_value_json(r->arena, value), JSON_DECODE_ANY, NULL));
    json_object_set_new(option, "taken_out", json_boolean(t->edits[i].value == NULL));
    json_array_append_new(options, option);
  }
  return options;
}

static json_t *tuned_json(const nxc_tune_report *r, const nxc_tuned *best, const nxc_tuned *t) {
  const nxc_layout *l = &t->layout;
  size_t n_parts;
  const char *const *names = nxc_tune_parts(r->request->machine, &n_parts);
  json_t *object =
      json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "tensor", (int)l->tensor, "pipeline",
                (int)l->pipeline, "chunks", (int)(l->n_chunks / l->pipeline), "context", (int)l->context,
                "expert", (int)l->expert, "expert_tensor", (int)l->expert_tensor, "data", (int)l->data,
                "replicate", (int)l->replicate, "sequence_parallel", (int)l->sequence_parallel);
  if (r->result->space.n_values[NXC_KNOB_ORDER] > 1 && l->pipeline > 1)
    json_object_set_new(object, "schedule", json_string(nxc_order_name(l->pipeline_order)));
  json_object_set_new(object, "micro_batch", json_integer(nxc_tune_samples(r, t->batch.micro)));
  json_object_set_new(object, "micro_batches", json_integer(t->batch.n_micro));
  json_object_set_new(object, "global_batch", json_integer(nxc_tune_samples(r, t->batch.global)));
  json_object_set_new(object, "zero_stage", json_integer(nxc_tune_zero(r, t)));
  json_object_set_new(object, "recompute", json_string(nxc_tune_recompute(r, t)));
  json_object_set_new(object, "memory_bytes", json_real(t->memory_bytes));
  json_object_set_new(object, "step_seconds", json_real(t->step_s));
  json_t *seconds = json_object();
  for (size_t part = 0; part < n_parts; part++)
    json_object_set_new(seconds, names[part], json_real(t->parts[part]));
  json_object_set_new(object, "seconds", seconds);
  json_object_set_new(object, "tokens_per_second", json_real(t->tokens_per_s));
  json_object_set_new(object, "utilisation", json_real(t->utilisation));
  double hours = nxc_tune_device_hours(r, t);
  json_object_set_new(object, "device_hours", hours > 0 ? json_real(hours) : json_null());
  json_object_set_new(object, "slower", best ? json_real(nxc_tune_loss(best, t)) : json_null());
  json_object_set_new(object, "options", options_json(r, t));
  return object;
}

static json_t *reasons_json(const nxc_tune_result *result) {
  json_t *reasons = json_array();
  for (size_t i = 0; i < result->n_reasons; i++) {
    const nxc_reason *one = &result->reasons[i];
    json_array_append_new(reasons, json_pack("{s:s?, s:s, s:s?, s:I}", "id", one->id, "message", one->message,
                                             "fix", one->remedy, "layouts", (json_int_t)one->n_layouts));
  }
  return reasons;
}

static json_t *left_out_json(const nxc_tune_report *r) {
  const nxc_left_outs *all = &r->result->left_out;
  json_t *list = json_array();
  for (size_t i = 0; i < all->n; i++) {
    const nxc_left_out *one = &all->list[i];
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s?}", "knob", nxc_knob_name(one->knob),
                                          "value", nxc_tune_value(r, one), "id", one->id, "message",
                                          one->message, "fix", one->remedy));
  }
  return list;
}

static void print(json_t *object, FILE *out) {
  json_dumpf(object, out, JSON_INDENT(2));
  fputc('\n', out);
  json_decref(object);
}

void nxc_tune_print_json(const nxc_tune_report *r, FILE *out) {
  const nxc_tune_result *result = r->result;
  const nxc_tuned *first = result->n_best ? &result->best[0] : NULL;
  json_t *best = json_array(),
         *object = json_pack("{s:s, s:s, s:i}", "file", r->file, "machine", r->request->machine->name,
                             "ranks", (int)r->request->training->layout.world);
  for (size_t i = 0; i < result->n_best; i++)
    json_array_append_new(best, tuned_json(r, first, &result->best[i]));
  json_object_set_new(object, "assumed", nxc_assumed_json(r->assumed));
  json_object_set_new(object, "combinations", json_real(nxc_space_size(&result->space)));
  json_object_set_new(object, "divide", json_integer((json_int_t)result->n_divide));
  json_object_set_new(object, "fit", json_integer((json_int_t)result->n_fit));
  json_object_set_new(object, "judged", json_integer((json_int_t)result->n_judged));
  json_object_set_new(object, "refused", json_integer((json_int_t)result->n_refused));
  json_object_set_new(object, "reasons", reasons_json(result));
  json_object_set_new(object, "not_tried", left_out_json(r));
  json_object_set_new(object, "cut_short", json_boolean(result->cut_short));
  json_object_set_new(object, "least_bytes", json_real(result->least_bytes));
  json_object_set_new(object, "best", best);
  json_object_set_new(object, "file_layout",
                      result->own_refused ? json_null() : tuned_json(r, first, &result->own));
  json_object_set_new(object, "file_refused",
                      result->own_refused ? json_string(result->own_refused) : json_null());
  json_object_set_new(object, "diagnostics", nxc_findings_to_json(r->request->findings));
  print(object, out);
}

void nxc_tune_print_obstacles(const char *file, const nxc_sink *errors, const nxc_sink *obstacles,
                              FILE *out) {
  json_t *list = nxc_findings_to_json(errors), *more = nxc_findings_to_json(obstacles);
  json_array_extend(list, more);
  json_decref(more);
  print(json_pack("{s:s, s:o}", "file", file, "diagnostics", list), out);
}
