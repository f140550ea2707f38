/* SPDX-License-Identifier: Apache-2.0 */
/* What plan tells, as one JSON object. */
#include "compiler/commands/plan_report.h"
#include "compiler/compare/beyond.h"
#include "compiler/config/exports.h"
#include "compiler/config/settings_json.h"
#include "compiler/render/render.h"

static json_t *exports_json(const nxc_plan_report *r) {
  json_t *object = json_object();
  size_t n_exports;
  const nxc_export *exports = nxc_exports(r->arena, r->compiled, &n_exports);
  for (size_t i = 0; i < n_exports; i++)
    json_object_set_new(object, exports[i].name, nxc_json_text(exports[i].value));
  return object;
}

static json_t *unfollowed_json(const nxc_plan_report *r) {
  size_t n;
  const nxc_beyond *items = nxc_beyond_unfollowed(r->arena, r->compiled, &n);
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++) {
    json_t *value = items[i].value ? json_loads(items[i].value, JSON_DECODE_ANY, NULL) : NULL;
    json_array_append_new(list, json_pack("{s:s, s:o}", "option", items[i].name, "value",
                                          value ? value : json_null()));
  }
  return list;
}

static json_t *derived_json(const nxc_plan_report *r) {
  json_t *object = json_object();
  nxc_derived rows[NXC_N_DERIVED];
  nxc_plan_derive(r, rows);
  for (int i = 0; i < NXC_N_DERIVED; i++) {
    bool exact = rows[i].value < 9e15;
    json_t *number = exact ? json_integer((json_int_t)rows[i].value) : json_real(rows[i].value);
    json_object_set(object, rows[i].name, rows[i].known ? number : json_null());
    json_decref(number);
  }
  return object;
}

static json_t *memory_json(const nxc_plan_report *r) {
  if (r->plan == NULL) return json_null();
  uint64_t bytes[NX_N_ARENAS], copy, sum = nxc_plan_memory(r, bytes, &copy);
  json_t *object = json_object();
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++)
    json_object_set_new(object, nx_arena_name(kind), json_integer((json_int_t)bytes[kind]));
  json_object_set_new(object, "sum", json_integer((json_int_t)sum));
  json_object_set_new(object, "copy", json_integer((json_int_t)copy));
  json_object_set_new(object, "workspace", json_integer((json_int_t)r->plan->plan.run->workspace_bytes));
  return object;
}

static json_t *id_json(const nxc_plan_report *r) {
  if (r->plan == NULL) return json_null();
  char text[65];
  nx_hex(r->plan->plan.header->plan_id, text);
  return json_string(text);
}

static bool holds(const json_t *list, const json_t *wanted) {
  size_t index;
  const json_t *item;
  json_array_foreach(list, index, item) if (json_equal(item, wanted)) return true;
  return false;
}

/* An error of the configuration stands among the obstacles too, and is told once. */
static json_t *findings_json(const nxc_plan_report *r) {
  json_t *findings = nxc_findings_to_json(r->sink), *obstacles = nxc_findings_to_json(r->obstacles);
  size_t index;
  json_t *finding;
  json_array_foreach(obstacles, index, finding) {
    if (holds(findings, finding)) continue;
    json_object_set_new(finding, "severity", json_string("note"));
    json_array_append(findings, finding);
  }
  json_decref(obstacles);
  return findings;
}

json_t *nxc_plan_json(const nxc_plan_report *r) {
  const nxc_compiled *compiled = r->compiled;
  json_t *object = json_object();
  json_object_set_new(object, "plan_id", id_json(r));
  json_object_set_new(object, "dialect",
                      compiled->dialect ? json_string(compiled->dialect->name) : json_null());
  if (compiled->settings != NULL) {
    json_object_set_new(object, "settings", nxc_settings_to_json(r->arena, compiled->settings));
    json_object_set_new(object, "sources", nxc_sources_to_json(compiled->settings));
    json_object_set_new(object, "unfollowed", unfollowed_json(r));
    json_object_set_new(object, "derived", derived_json(r));
  }
  json_object_set_new(object, "memory", memory_json(r));
  json_object_set_new(object, "own", nxc_own_estimate_json(&r->estimate->own));
  nxc_column nxrun = nxc_nxrun_column(r->estimate, r->plan ? &r->plan->plan : NULL);
  json_object_set_new(object, "nxrun", nxc_column_json(&nxrun));
  if (r->estimate->machine != NULL)
    json_object_set_new(object, "forecast",
                        r->plan ? nxc_forecast_json(r->estimate, &r->plan->plan) : json_null());
  json_object_set_new(object, "environment", nxc_environment_to_json(&compiled->resolution));
  json_object_set_new(object, "exports", exports_json(r));
  json_object_set_new(object, "diagnostics", findings_json(r));
  return object;
}

void nxc_plan_print_json(const nxc_plan_report *r, FILE *out) {
  json_t *object = nxc_plan_json(r);
  json_dumpf(object, out, JSON_INDENT(2));
  fputc('\n', out);
  json_decref(object);
}

json_t *nxc_plan_first_of(json_t *programs) {
  json_t *first = json_incref(json_array_get(programs, 0));
  json_array_remove(programs, 0);
  json_object_set(first, "others", programs);
  return first;
}

void nxc_plan_print_each(json_t *reports) {
  json_t *first = nxc_plan_first_of(reports);
  json_dumpf(first, stdout, JSON_INDENT(2));
  putchar('\n');
  json_decref(first);
}
