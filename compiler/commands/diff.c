/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg diff: how two configurations or plans differ, setting by setting (compare.h). A plan brings its
 * settings, a configuration is compiled. */
#include "compiler/commands/commands.h"
#include "compiler/commands/estimate.h"
#include "compiler/commands/options.h"
#include "compiler/compare/compare.h"
#include "schema/plan.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg diff A B [options]\n"
    "Compares two configurations, two plans, or one of each by meaning, and says of every difference what a\n"
    "checkpoint of A is worth to B; then what a rank of each needs and takes. Options apply to "
    "configurations.\n"
    "Exit status: 0 the same, 1 different, 2 trouble.\n"
    "  --format FORMAT      text or json\n"
    "  --machine FILE       tell the time of a step on the machine that FILE describes\n"
    "  --assume KEY=VALUE   assume it for the estimates where nothing gives it (repeatable); none assumes "
    "nothing\n";

enum { PLAN_BYTES_MAX = 1 << 30 };

typedef struct side {
  const char *name;
  nxc_compiled compiled; /* of a plan: nothing */
  nxc_side values;
  const char *lacks;     /* why its own system is not estimated, or NULL */
  nxc_column columns[2]; /* its own system's, and nxrun's; of a plan the second alone */
} side;

typedef struct comparison {
  nxc_arena *arena;
  const nxc_options *options;
  const nxc_estimate_request *asked;
  side sides[2];
  nxc_comparison found;
} comparison;

/* -- sides ----------------------------------------------------------------------------------------------- */

static const char *plan_from(nxc_arena *arena, const nx_plan *plan, uint32_t setting) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PROVENANCES]; i++) {
    const nx_provenance *from = &plan->provenances[i];
    if (from->setting != setting) continue;
    const char *file = nx_plan_text(plan, from->file);
    if (from->line == 0) return nx_plan_text(plan, from->kind);
    return nxc_arena_printf(arena, "%s:%u", file, from->line);
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
    const nxc_compared_value value = {nx_plan_text(&plan, plan.settings[i].path),
                             nx_plan_text(&plan, plan.settings[i].value), plan_from(c->arena, &plan, i)};
    nxc_side_add(c->arena, &s->values, &value);
  }
  nxc_estimate estimate = nxc_estimate_of_plan(c->asked, &plan, c->arena, nxc_sink_new(c->arena));
  s->columns[1] = nxc_nxrun_column(&estimate, &plan);
  return true;
}

static void estimate_configuration(comparison *c, side *s, const nxc_request *request) {
  nxc_sink *obstacles = nxc_sink_new(c->arena), *silent = nxc_sink_new(c->arena);
  nxc_plan_bytes bytes;
  const nx_plan *plan =
      nxc_program_compile(s->compiled.settings, c->arena, obstacles, &bytes) ? &bytes.plan : NULL;
  nxc_estimate estimate = plan ? nxc_estimate_of_plan(c->asked, plan, c->arena, silent) : (nxc_estimate){0};
  estimate.own = nxc_own_estimate_make(c->asked, request, c->arena);
  s->lacks = estimate.own.lacks;
  s->columns[0] = nxc_own_column(&estimate.own);
  s->columns[1] = nxc_nxrun_column(&estimate, plan);
}

static bool read_configuration(comparison *c, side *s) {
  nxc_sink *sink = nxc_sink_new(c->arena);
  nxc_request request = nxc_options_request(c->options, s->name);
  if (c->options->warnings_are_errors) nxc_sink_warnings_are_errors(sink);
  bool good = nxc_compile_settings(c->arena, &request, sink, &s->compiled);
  if (!good) {
    nxc_render render = nxc_options_render(c->options);
    render.format = NXC_FORMAT_TEXT;
    nxc_sink_print(sink, &render, stderr);
    fprintf(stderr, "nxcfg diff: %s has errors, so its meaning is not known\n", s->name);
    return false;
  }
  nxc_side_fill(c->arena, &s->values, &s->compiled);
  estimate_configuration(c, s, &request);
  return true;
}

static bool read_side(comparison *c, side *s, const char *name) {
  s->name = name;
  bool standard_input = strcmp(name, "-") == 0;
  const nxc_source *file = standard_input ? NULL : nxc_source_read(c->arena, name, PLAN_BYTES_MAX);
  bool plan = file != NULL && file->n_bytes >= 8 && memcmp(file->text, NX_PLAN_MAGIC, 8) == 0;
  return plan ? read_plan(c, s, file) : read_configuration(c, s);
}

/* -- printing -------------------------------------------------------------------------------------------- */

static const char *shown(const nxc_compared_value *value) {
  if (value->absent != NULL) return value->absent;
  return value->json ? value->json : "unknown";
}

static const char *worst_name(const comparison *c) {
  return nxc_changes_name(nxc_comparison_worst(&c->found));
}

/* "2 settings and 1 option differ" */
static const char *count_differences(const comparison *c) {
  size_t n_settings = 0;
  for (size_t i = 0; i < c->found.n_items; i++) n_settings += c->found.items[i].is_setting;
  size_t n_options = c->found.n_items - n_settings;
  const char *settings = nxc_arena_printf(c->arena, "%zu setting%s", n_settings, n_settings == 1 ? "" : "s");
  const char *options = nxc_arena_printf(c->arena, "%zu option%s", n_options, n_options == 1 ? "" : "s");
  return nxc_arena_printf(c->arena, "%s%s%s differ%s", n_settings ? settings : "",
                          n_settings && n_options ? " and " : "", n_options ? options : "",
                          c->found.n_items == 1 ? "s" : "");
}

/* A number of both, where both have it. */
static void print_both(const char *name, const char *unit, double a, double b) {
  if (a <= 0 || b <= 0) return;
  printf("  %-28s %.4g %s -> %.4g %s (%+.1f %%)\n", name, a, unit, b, unit, 100 * (b / a - 1));
}

static bool both_known(const comparison *c, int column) {
  return c->sides[0].columns[column].whose != NULL && c->sides[1].columns[column].whose != NULL;
}

static void print_estimates(const comparison *c) {
  for (int i = 0; i < 2 && c->found.n_items > 0; i++) {
    const nxc_column *a = &c->sides[0].columns[i], *b = &c->sides[1].columns[i];
    if (!both_known(c, i)) continue;
    bool same = strcmp(a->whose, b->whose) == 0;
    printf("a rank of %s%s%s\n", a->whose, same ? "" : " -> ", same ? "" : b->whose);
    print_both("memory", "GiB", a->total / 1073741824.0, b->total / 1073741824.0);
    print_both("step", "s", a->step_s, b->step_s);
    print_both("speed", "tokens/s", a->tokens_per_s, b->tokens_per_s);
    print_both("share of the peak (MFU)", "%", 100 * a->utilisation, 100 * b->utilisation);
  }
  for (int i = 0; i < 2; i++)
    if (c->sides[i].lacks != NULL) printf("%s is not estimated: %s\n", c->sides[i].name, c->sides[i].lacks);
}

static void print_text(const comparison *c) {
  for (int changes = NXC_CHANGES_CHECKPOINT; changes >= NXC_CHANGES_SETTINGS; changes--) {
    bool first = true;
    for (size_t i = 0; i < c->found.n_items; i++) {
      const nxc_difference *d = &c->found.items[i];
      if ((int)d->changes != changes) continue;
      if (first) puts(nxc_changes_name(d->changes));
      first = false;
      printf("  %-28s %s -> %s\n", d->path, shown(&d->values[0]), shown(&d->values[1]));
      printf("  %-28s   (%s -> %s)\n", "", d->values[0].from ? d->values[0].from : "unknown",
             d->values[1].from ? d->values[1].from : "unknown");
    }
  }
  print_estimates(c);
  const char *a = c->sides[0].name, *b = c->sides[1].name;
  if (*c->found.unread) printf("differ where they are not read: %s\n", c->found.unread);
  if (c->found.n_items == 0) printf("%s and %s mean the same\n", a, b);
  else printf("%s and %s: %s; %s\n", a, b, count_differences(c), worst_name(c));
}

static json_t *value_json(const nxc_compared_value *value) {
  json_t *json = value->json && !value->absent ? json_loads(value->json, JSON_DECODE_ANY, NULL) : NULL;
  return json ? json : json_null();
}

static json_t *from_json(const nxc_compared_value *value) {
  json_t *json = value->from ? json_string(value->from) : NULL;
  return json ? json : json_null();
}

/* [of A, of B] */
static json_t *estimates_json(const comparison *c, int column) {
  return json_pack("[o, o]", nxc_column_json(&c->sides[0].columns[column]),
                   nxc_column_json(&c->sides[1].columns[column]));
}

static void print_json(const comparison *c) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->found.n_items; i++) {
    const nxc_difference *d = &c->found.items[i];
    const char *kind = d->is_setting ? "setting" : "option";
    json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:s}", kind, d->path, "a",
                                          value_json(&d->values[0]), "b", value_json(&d->values[1]), "a_from",
                                          from_json(&d->values[0]), "b_from", from_json(&d->values[1]),
                                          "class", nxc_changes_name(d->changes)));
  }
  json_t *object =
      json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o}", "a", c->sides[0].name, "b", c->sides[1].name, "same",
                c->found.n_items == 0, "class", c->found.n_items ? json_string(worst_name(c)) : json_null(),
                "differences", list, "own", estimates_json(c, 0), "nxrun", estimates_json(c, 1));
  json_dumpf(object, stdout, JSON_INDENT(2));
  putchar('\n');
  json_decref(object);
}

static int diff(nxc_arena *arena, const nxc_options *options, const nxc_estimate_request *asked) {
  comparison c = {.arena = arena, .options = options, .asked = asked};
  if (options->format != NXC_FORMAT_TEXT && options->format != NXC_FORMAT_JSON) {
    fprintf(stderr, "nxcfg diff: --format takes text or json, not %s\n", options->format_name);
    return NXC_EXIT_USAGE;
  }
  bool good = true;
  for (int i = 0; i < 2; i++) good = read_side(&c, &c.sides[i], options->files.items[i]) && good;
  if (!good) return NXC_EXIT_USAGE;
  c.found = nxc_compare(arena, &c.sides[0].values, &c.sides[1].values);
  if (options->format == NXC_FORMAT_JSON) print_json(&c);
  else print_text(&c);
  return c.found.n_items > 0 ? NXC_EXIT_FOUND : NXC_EXIT_GOOD;
}

int nxc_command_diff(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  const char *machine = NULL;
  nxc_texts assume = {0};
  nxc_estimate_request asked = {0};
  const nxc_extra_option extras[] = {
      {.name = "--machine", .text = &machine}, {.name = "--assume", .list = &assume}, {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(arena, &options, "diff", argc - 1, argv + 1, extras, false)) {
    if (options.help) {
      nxc_options_print_usage(usage, stdout);
      status = NXC_EXIT_GOOD;
    } else if (options.files.n_items != 2) {
      nxc_options_print_usage(usage, stderr);
    } else if (nxc_estimate_read(arena, "diff", NULL, machine, &asked) &&
               nxc_estimate_assume(arena, "diff", &assume, &asked)) {
      status = diff(arena, &options, &asked);
    }
  }
  nxc_arena_free(arena);
  return status;
}
