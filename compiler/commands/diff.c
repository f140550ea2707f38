/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg diff: how two configurations or plans differ, setting by setting.
 *
 * Each side becomes one value, as JSON text, for each setting of the catalogue; a plan brings its own, a
 * configuration is compiled. Where a plan of another release has settings that are not known here they are
 * compared too. */
#include "compiler/commands/commands.h"
#include "compiler/commands/options.h"
#include "compiler/config/interpolation/interpolate.h"
#include "compiler/program/emit/emit.h"
#include "schema/plan.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg diff A B [options]\n"
    "Compares two configurations, two plans, or one of each by meaning, and says of every difference what a\n"
    "checkpoint of A is worth to B. Options apply to configurations.\n"
    "Exit status: 0 the same, 1 different, 2 trouble.\n";

enum { PLAN_BYTES_MAX = 1 << 30 };

typedef struct one_value {
  const char *path;
  const char *json; /* NULL: unknown */
  const char *from; /* where it came from, for people */
} one_value;

typedef struct side {
  const char *name;
  one_value known[NX_N_SETTINGS];
  one_value *foreign; /* settings of another release */
  size_t n_foreign;
} side;

typedef struct difference {
  const char *path;
  const one_value *values[2];
  nxc_changes changes;
} difference;

typedef struct comparison {
  nxc_arena *arena;
  const nxc_options *options;
  side sides[2];
  difference *differences;
  size_t n_differences;
} comparison;

/* -- sides ----------------------------------------------------------------------------------------------- */

static void take(comparison *c, side *s, const one_value *value) {
  nxc_setting_id id = nxc_setting_find(value->path);
  if (id < NX_N_SETTINGS) {
    s->known[id] = *value;
    return;
  }
  s->foreign = nxc_arena_grow(c->arena, s->foreign, s->n_foreign, sizeof *s->foreign);
  s->foreign[s->n_foreign++] = *value;
}

static const char *plan_place(nxc_arena *arena, const nx_plan *plan, uint32_t setting) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PLACES]; i++) {
    const nx_place *place = &plan->places[i];
    if (place->setting != setting) continue;
    const char *file = nx_plan_text(plan, place->file);
    if (place->line == 0) return nx_plan_text(plan, place->kind);
    return nxc_arena_printf(arena, "%s:%u", file, place->line);
  }
  return "";
}

static bool read_plan(comparison *c, side *s, const nxc_source *file) {
  nx_plan plan;
  nx_fault fault;
  /* the reader wants 8-byte alignment, which the arena gives */
  void *bytes = nxc_arena_alloc(c->arena, file->n_bytes);
  memcpy(bytes, file->text, file->n_bytes);
  if (!nx_plan_check(bytes, file->n_bytes, &plan, &fault)) {
    fprintf(stderr, "nxcfg diff: %s is no valid plan: %s (byte %llu)\n", s->name, fault.text,
            (unsigned long long)fault.offset);
    return false;
  }
  for (uint32_t i = 0; i < plan.n[NX_SECTION_SETTINGS]; i++) {
    const one_value value = {nx_plan_text(&plan, plan.settings[i].path),
                             nx_plan_text(&plan, plan.settings[i].value), plan_place(c->arena, &plan, i)};
    take(c, s, &value);
  }
  return true;
}

static bool read_configuration(comparison *c, side *s) {
  nxc_sink *sink = nxc_sink_new(c->arena);
  nxc_compiled compiled;
  nxc_request request = nxc_options_request(c->options, s->name);
  if (c->options->warnings_are_errors) nxc_sink_warnings_are_errors(sink);
  bool good = nxc_compile_settings(c->arena, &request, sink, &compiled);
  if (!good) {
    nxc_render render = nxc_options_render(c->options);
    render.format = NXC_FORMAT_TEXT;
    nxc_sink_print(sink, &render, stderr);
    fprintf(stderr, "nxcfg diff: %s has errors, so its meaning is not known\n", s->name);
    return false;
  }
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    const nxc_value *value = nxc_settings_value(compiled.settings, id);
    if (value == NULL) continue;
    const nxc_value shown =
        nxc_settings_from(compiled.settings, id)->redacted ? nxc_redacted(c->arena, value) : *value;
    s->known[id] = (one_value){nxc_setting_path(id), nxc_value_json(c->arena, &shown),
                               nxc_settings_show_origin(compiled.settings, id)};
  }
  return true;
}

static bool read_side(comparison *c, side *s, const char *name) {
  s->name = name;
  bool standard_input = strcmp(name, "-") == 0;
  const nxc_source *file = standard_input ? NULL : nxc_source_read(c->arena, name, PLAN_BYTES_MAX);
  bool plan = file != NULL && file->n_bytes >= 8 && memcmp(file->text, NX_PLAN_MAGIC, 8) == 0;
  return plan ? read_plan(c, s, file) : read_configuration(c, s);
}

/* -- comparing ------------------------------------------------------------------------------------------- */

static bool same(const one_value *a, const one_value *b) {
  if (a->json == NULL || b->json == NULL) return a->json == b->json;
  return strcmp(a->json, b->json) == 0;
}

static void compare_one(comparison *c, const char *path, const one_value *a, const one_value *b,
                        nxc_changes changes) {
  if (same(a, b)) return;
  c->differences = nxc_arena_grow(c->arena, c->differences, c->n_differences, sizeof *c->differences);
  c->differences[c->n_differences++] = (difference){path, {a, b}, changes};
}

static const one_value *find_foreign(const side *s, const char *path) {
  static const one_value unknown = {0};
  for (size_t i = 0; i < s->n_foreign; i++)
    if (strcmp(s->foreign[i].path, path) == 0) return &s->foreign[i];
  return &unknown;
}

static void compare(comparison *c) {
  const side *a = &c->sides[0], *b = &c->sides[1];
  for (size_t id = 0; id < NX_N_SETTINGS; id++)
    compare_one(c, nxc_setting_path((nxc_setting_id)id), &a->known[id], &b->known[id],
                nxc_setting_rows[id].changes);
  for (size_t i = 0; i < a->n_foreign; i++)
    compare_one(c, a->foreign[i].path, &a->foreign[i], find_foreign(b, a->foreign[i].path),
                NXC_CHANGES_CHECKPOINT);
  for (size_t i = 0; i < b->n_foreign; i++)
    if (find_foreign(a, b->foreign[i].path)->json == NULL)
      compare_one(c, b->foreign[i].path, find_foreign(a, b->foreign[i].path), &b->foreign[i],
                  NXC_CHANGES_CHECKPOINT);
}

static nxc_changes worst(const comparison *c) {
  nxc_changes found = NXC_CHANGES_NOTHING_KEPT;
  for (size_t i = 0; i < c->n_differences; i++)
    if (c->differences[i].changes > found) found = c->differences[i].changes;
  return found;
}

/* -- printing -------------------------------------------------------------------------------------------- */

static const char *shown(const one_value *value) {
  return value->json ? value->json : "unknown";
}

static void print_text(const comparison *c) {
  for (int changes = NXC_CHANGES_CHECKPOINT; changes >= NXC_CHANGES_NOTHING_KEPT; changes--) {
    bool first = true;
    for (size_t i = 0; i < c->n_differences; i++) {
      const difference *d = &c->differences[i];
      if ((int)d->changes != changes) continue;
      if (first) puts(nxc_changes_name(d->changes));
      first = false;
      printf("  %-28s %s -> %s\n", d->path, shown(d->values[0]), shown(d->values[1]));
      printf("  %-28s   (%s -> %s)\n", "", d->values[0]->from ? d->values[0]->from : "unknown",
             d->values[1]->from ? d->values[1]->from : "unknown");
    }
  }
  const char *a = c->sides[0].name, *b = c->sides[1].name;
  if (c->n_differences == 0) printf("%s and %s mean the same\n", a, b);
  else
    printf("%s and %s: %zu setting%s differ%s; %s\n", a, b, c->n_differences,
           c->n_differences == 1 ? "" : "s", c->n_differences == 1 ? "s" : "", nxc_changes_name(worst(c)));
}

static json_t *value_json(const one_value *value) {
  json_t *json = value->json ? json_loads(value->json, JSON_DECODE_ANY, NULL) : NULL;
  return json ? json : json_null();
}

static json_t *from_json(const one_value *value) {
  json_t *json = value->from ? json_string(value->from) : NULL;
  return json ? json : json_null();
}

static void print_json(const comparison *c) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->n_differences; i++) {
    const difference *d = &c->differences[i];
    json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:s}", "setting", d->path, "a",
                                          value_json(d->values[0]), "b", value_json(d->values[1]), "a_from",
                                          from_json(d->values[0]), "b_from", from_json(d->values[1]), "class",
                                          nxc_changes_name(d->changes)));
  }
  json_t *object = json_pack("{s:s, s:s, s:b, s:o, s:o}", "a", c->sides[0].name, "b", c->sides[1].name,
                             "same", c->n_differences == 0, "class",
                             c->n_differences ? json_string(nxc_changes_name(worst(c))) : json_null(),
                             "differences", list);
  json_dumpf(object, stdout, JSON_INDENT(2));
  putchar('\n');
  json_decref(object);
}

static int diff(nxc_arena *arena, const nxc_options *options) {
  comparison c = {.arena = arena, .options = options};
  if (options->format != NXC_FORMAT_TEXT && options->format != NXC_FORMAT_JSON) {
    fprintf(stderr, "nxcfg diff: --format takes text or json, not %s\n", options->format_name);
    return NXC_EXIT_USAGE;
  }
  bool good = true;
  for (int i = 0; i < 2; i++) good = read_side(&c, &c.sides[i], options->files.items[i]) && good;
  if (!good) return NXC_EXIT_USAGE;
  compare(&c);
  if (options->format == NXC_FORMAT_JSON) print_json(&c);
  else print_text(&c);
  return c.n_differences > 0 ? NXC_EXIT_FOUND : NXC_EXIT_GOOD;
}

int nxc_command_diff(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(arena, &options, "diff", argc - 1, argv + 1, NULL, false)) {
    if (options.help) {
      printf("%s%s", usage, nxc_options_usage);
      status = NXC_EXIT_GOOD;
    } else if (options.files.n_items != 2) {
      fprintf(stderr, "%s%s", usage, nxc_options_usage);
    } else {
      status = diff(arena, &options);
    }
  }
  nxc_arena_free(arena);
  return status;
}
