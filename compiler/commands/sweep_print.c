/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/sweep_print.h"
#include "compiler/render/screen.h"

#include <string.h>

enum { WIDEST = 24 }; /* of a cell that tells a value */

/* The last step of a key, or as many as tell it from the others. */
static const char *heading(const nxc_sweep *sweep, size_t key) {
  const char *all = sweep->keys.items[key], *short_name = all + strlen(all);
  for (bool shared = true; shared && short_name > all;) {
    while (short_name > all && *--short_name != '.') continue;
    const char *name = short_name + (*short_name == '.');
    shared = false;
    for (size_t i = 0; i < sweep->keys.n_items; i++) {
      const char *other = sweep->keys.items[i];
      size_t n = strlen(name), n_other = strlen(other);
      bool ends = n_other >= n && strcmp(other + n_other - n, name) == 0;
      shared = shared || (i != key && ends && (n_other == n || other[n_other - n - 1] == '.'));
    }
    if (!shared) return name;
  }
  return all;
}

static const char *cell(const nxc_sweep_report *r, size_t run, size_t key) {
  const nxc_value *value = r->sweep->runs[run].values[key];
  const char *text = value ? nxc_value_show(r->arena, value) : "-";
  return strlen(text) <= WIDEST ? text : nxc_arena_printf(r->arena, "%.*s...", WIDEST - 3, text);
}

/* ---- the table ---- */

static const char *show_seconds(nxc_arena *arena, double seconds) {
  if (seconds >= 1) return nxc_arena_printf(arena, "%.*f s", nxc_decimals(seconds), seconds);
  return nxc_arena_printf(arena, "%.3g ms", seconds * 1e3);
}

static const char *verdict(const nxc_sweep_report *r, const nxc_swept *run) {
  if (run->n_errors > 0)
    return nxc_arena_printf(r->arena, "%zu error%s", run->n_errors, run->n_errors == 1 ? "" : "s");
  if (run->same_as > 0) return nxc_arena_printf(r->arena, "as run %zu", run->same_as);
  if (run->n_warnings == 0) return "valid";
  return nxc_arena_printf(r->arena, "%zu warning%s", run->n_warnings, run->n_warnings == 1 ? "" : "s");
}

/* The columns behind the keys, as far as anything is known of them. */
typedef struct columns {
  bool memory, time;
} columns;

static columns columns_of(const nxc_sweep_report *r) {
  columns shown = {0};
  for (size_t i = 0; i < r->sweep->n_runs; i++) {
    shown.memory = shown.memory || r->all[i].column.whose != NULL;
    shown.time = shown.time || r->all[i].column.timed;
  }
  return shown;
}

static void print_figures(const nxc_sweep_report *r, const nxc_column *c, columns shown, FILE *out) {
  bool known = c->whose != NULL;
  if (shown.memory)
    fprintf(out, " %12s", known ? nxc_arena_printf(r->arena, "%.2f GiB", c->total / 0x1p30) : "-");
  if (!shown.time) return;
  bool timed = known && c->timed;
  fprintf(out, " %9s %12s %7s", timed ? show_seconds(r->arena, c->step_s) : "-",
          timed ? nxc_arena_printf(r->arena, "%.4g", c->tokens_per_s) : "-",
          timed ? nxc_arena_printf(r->arena, "%.1f %%", 100 * c->utilisation) : "-");
}

static void print_table(const nxc_sweep_report *r, FILE *out) {
  const nxc_sweep *sweep = r->sweep;
  size_t n_keys = sweep->keys.n_items;
  int *widths = nxc_arena_array(r->arena, n_keys + 1, sizeof *widths);
  for (size_t key = 0; key < n_keys; key++) {
    widths[key] = (int)strlen(heading(sweep, key));
    for (size_t i = 0; i < sweep->n_runs; i++) {
      int n = (int)strlen(cell(r, i, key));
      widths[key] = n > widths[key] ? n : widths[key];
    }
  }
  columns shown = columns_of(r);
  fprintf(out, "%5s", "run");
  for (size_t key = 0; key < n_keys; key++) fprintf(out, "  %*s", widths[key], heading(sweep, key));
  fprintf(out, "  %-11s", "verdict");
  if (shown.memory) fprintf(out, " %12s", "memory");
  if (shown.time) fprintf(out, " %9s %12s %7s", "step", "tokens/s", "MFU");
  fputc('\n', out);
  for (size_t i = 0; i < sweep->n_runs; i++) {
    fprintf(out, "%5zu", i + 1);
    for (size_t key = 0; key < n_keys; key++) fprintf(out, "  %*s", widths[key], cell(r, i, key));
    fprintf(out, "  %-11s", verdict(r, &r->all[i]));
    print_figures(r, &r->all[i].column, shown, out);
    fputc('\n', out);
  }
}

/* ---- what was found ---- */

static bool is_shown(const nxc_sweep_report *r, const nxc_finding *finding) {
  return finding->severity != NXC_SEVERITY_NOTE || r->notes;
}

static bool is_same(const nxc_finding *a, const nxc_finding *b) {
  return strcmp(a->id, b->id) == 0 && strcmp(a->message, b->message) == 0;
}

static const nxc_finding *find(const nxc_swept *run, const nxc_finding *like) {
  for (size_t i = 0; i < nxc_sink_n_findings(run->sink); i++)
    if (is_same(nxc_sink_finding(run->sink, i), like)) return nxc_sink_finding(run->sink, i);
  return NULL;
}

/* "1-3, 7" */
static const char *runs_with(const nxc_sweep_report *r, const nxc_finding *finding) {
  const char *text = "";
  size_t n_runs = r->sweep->n_runs, n = 0;
  for (size_t i = 0; i < n_runs; i++) {
    size_t last = i;
    if (find(&r->all[i], finding) == NULL) continue;
    while (last + 1 < n_runs && find(&r->all[last + 1], finding) != NULL) last++;
    n += last - i + 1;
    const char *to = last > i ? nxc_arena_printf(r->arena, "-%zu", last + 1) : "";
    text = nxc_arena_printf(r->arena, "%s%s%zu%s", text, *text ? ", " : "", i + 1, to);
    i = last;
  }
  if (n == n_runs) return "all runs";
  return nxc_arena_printf(r->arena, "run%s %s", n == 1 ? "" : "s", text);
}

static void print_findings(const nxc_sweep_report *r, FILE *out) {
  static const char *const names[] = {
      [NXC_SEVERITY_ERROR] = "error", [NXC_SEVERITY_WARNING] = "warning", [NXC_SEVERITY_NOTE] = "note"};
  for (size_t i = 0; i < r->sweep->n_runs; i++)
    for (size_t k = 0; k < nxc_sink_n_findings(r->all[i].sink); k++) {
      const nxc_finding *finding = nxc_sink_finding(r->all[i].sink, k);
      bool told = !is_shown(r, finding);
      for (size_t before = 0; before < i && !told; before++) told = find(&r->all[before], finding) != NULL;
      if (told) continue;
      fprintf(out, "%s[%s] in %s: %s\n", names[finding->severity], finding->id, runs_with(r, finding),
              finding->message);
      if (finding->fix) fprintf(out, "  fix: %s\n", finding->fix);
    }
}

static size_t count(const nxc_sweep_report *r, bool valid) {
  size_t n = 0;
  for (size_t i = 0; i < r->sweep->n_runs; i++) n += (r->all[i].n_errors == 0) == valid;
  return n;
}

void nxc_sweep_print(const nxc_sweep_report *r, FILE *out) {
  size_t n_wrong = count(r, false);
  print_table(r, out);
  print_findings(r, out);
  fprintf(out, "%s: %zu run%s, %zu valid, %zu with errors\n", r->sweep->file, r->sweep->n_runs,
          r->sweep->n_runs == 1 ? "" : "s", count(r, true), n_wrong);
}

/* ---- for programs ---- */

static json_t *findings_json(const nxc_sweep_report *r, const nxc_swept *run) {
  static const char *const names[] = {
      [NXC_SEVERITY_ERROR] = "error", [NXC_SEVERITY_WARNING] = "warning", [NXC_SEVERITY_NOTE] = "note"};
  json_t *list = json_array();
  for (size_t i = 0; i < nxc_sink_n_findings(run->sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(run->sink, i);
    if (!is_shown(r, finding)) continue;
    json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "id", finding->id, "severity",
                                          names[finding->severity], "message", finding->message));
  }
  return list;
}

static json_t *run_json(const nxc_sweep_report *r, size_t index) {
  const nxc_swept *run = &r->all[index];
  json_t *values = json_object();
  for (size_t key = 0; key < r->sweep->keys.n_items; key++) {
    const nxc_value *value = r->sweep->runs[index].values[key];
    if (value == NULL) continue;
    json_object_set_new(values, r->sweep->keys.items[key],
                        json_loads(nxc_value_json(r->arena, value), JSON_DECODE_ANY, NULL));
  }
  json_t *object = json_pack("{s:I, s:o, s:b, s:o}", "run", (json_int_t)(index + 1), "set", values, "valid",
                             run->n_errors == 0, "findings", findings_json(r, run));
  json_object_set_new(object, "same_as", run->same_as ? json_integer((json_int_t)run->same_as) : json_null());
  json_object_set_new(object, "mesh", run->mesh ? json_string(run->mesh) : json_null());
  json_object_set_new(object, "batches", run->batches ? json_string(run->batches) : json_null());
  json_object_set_new(object, "estimate", run->column.whose ? nxc_column_json(&run->column) : json_null());
  return object;
}

void nxc_sweep_print_json(const nxc_sweep_report *r, FILE *out) {
  json_t *runs = json_array();
  for (size_t i = 0; i < r->sweep->n_runs; i++) json_array_append_new(runs, run_json(r, i));
  json_t *object = json_pack("{s:s, s:I, s:I, s:o}", "file", r->sweep->file, "valid",
                             (json_int_t)count(r, true), "errors", (json_int_t)count(r, false), "runs", runs);
  json_dumpf(object, out, JSON_INDENT(2));
  fputc('\n', out);
  json_decref(object);
}
