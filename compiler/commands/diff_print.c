/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/diff.h"

#include "compiler/diagnostics/characters.h"
#include "compiler/render/screen.h"
#include "compiler/show/plan_dump.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- printing -------------------------------------------------------------------------------------------- */

/* A plan's texts are whoever's made it. */
static const char *shown(const nxc_diff *c, const nxc_compared_value *value) {
  if (value->absent != NULL) return value->absent;
  return value->json ? nxc_characters_shown(c->arena, value->json) : "unknown";
}

static const char *shown_from(const nxc_diff *c, const nxc_compared_value *value) {
  return value->from ? nxc_characters_shown(c->arena, value->from) : "unknown";
}

static const char *name_of(const nxc_diff *c, int side) {
  return nxc_characters_shown(c->arena, c->sides[side].name);
}

static const char *worst_name(const nxc_diff *c) {
  return nxc_changes_name(nxc_comparison_worst(&c->found));
}

/* "2 settings and 1 option differ" */
static const char *count_differences(const nxc_diff *c) {
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

static void print_speeds(double a, double b) {
  if (a <= 0 || b <= 0) return;
  printf("  %-28s ", "speed");
  nxc_print_quantity(stdout, a, "tokens/s");
  fputs(" -> ", stdout);
  nxc_print_quantity(stdout, b, "tokens/s");
  printf(" (%+.1f %%)\n", 100 * (b / a - 1));
}

static bool both_known(const nxc_diff *c, int column) {
  return c->sides[0].columns[column].whose != NULL && c->sides[1].columns[column].whose != NULL;
}

static void print_estimates(const nxc_diff *c) {
  for (int i = 0; i < 2 && c->found.n_items > 0; i++) {
    const nxc_column *a = &c->sides[0].columns[i], *b = &c->sides[1].columns[i];
    if (!both_known(c, i)) continue;
    bool same = strcmp(a->whose, b->whose) == 0;
    printf("a rank of %s%s%s\n", a->whose, same ? "" : " -> ", same ? "" : b->whose);
    print_both("memory", "GiB", a->total / 1073741824.0, b->total / 1073741824.0);
    print_both("step", "s", a->step_s, b->step_s);
    print_speeds(a->tokens_per_s, b->tokens_per_s);
    print_both("share of the peak (MFU)", "%", 100 * a->utilisation, 100 * b->utilisation);
  }
  for (int i = 0; i < 2; i++)
    if (c->sides[i].lacks != NULL) printf("%s is not estimated: %s\n", name_of(c, i), c->sides[i].lacks);
}

/* One for both, where it is the same; each by itself, where a line is too short for both. */
static void print_sources(const nxc_diff *c, const char *a, const char *b) {
  enum { INDENT = 6 };
  static const char first[] = "     (", second[] = "      -> ";
  const char *last = nxc_arena_printf(c->arena, "%s)", b);
  const char *both = strcmp(a, b) == 0 ? last : nxc_arena_printf(c->arena, "%s -> %s", a, last);
  bool fits = both == last || INDENT + strlen(both) <= (size_t)nxc_screen_columns(stdout);
  if (!fits) nxc_print_paragraph(stdout, INDENT, first, a);
  nxc_print_paragraph(stdout, INDENT, fits ? first : second, fits ? both : last);
}

static void print_text(const nxc_diff *c) {
  for (int changes = NXC_CHANGES_CHECKPOINT; changes >= NXC_CHANGES_SETTINGS; changes--) {
    bool first = true;
    for (size_t i = 0; i < c->found.n_items; i++) {
      const nxc_difference *d = &c->found.items[i];
      if ((int)d->changes != changes) continue;
      if (first) puts(nxc_changes_name(d->changes));
      first = false;
      const nxc_compared_value *a = &d->values[0], *b = &d->values[1];
      const char *label = nxc_arena_printf(c->arena, "  %-28s ", nxc_characters_shown(c->arena, d->path));
      const char *values = nxc_arena_printf(c->arena, "%s -> %s", shown(c, a), shown(c, b));
      nxc_print_filled(stdout, 4, label, 0, values, "");
      print_sources(c, shown_from(c, a), shown_from(c, b));
    }
  }
  print_estimates(c);
  const char *a = name_of(c, 0), *b = name_of(c, 1);
  if (*c->found.resumed) nxc_print_filled(stdout, 2, "", 0, c->found.resumed, "");
  if (*c->found.unread) printf("differ where they are not read: %s\n", c->found.unread);
  const char *verdict = " mean the same";
  if (c->found.n_items > 0)
    verdict = nxc_arena_printf(c->arena, ": %s; %s", count_differences(c), worst_name(c));
  nxc_print_filled(stdout, 2, "", 0, nxc_arena_printf(c->arena, "%s and %s%s", a, b, verdict), "");
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
static json_t *estimates_json(const nxc_diff *c, int column) {
  return json_pack("[o, o]", nxc_column_json(&c->sides[0].columns[column]),
                   nxc_column_json(&c->sides[1].columns[column]));
}

json_t *nxc_diff_json(const nxc_diff *c) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->found.n_items; i++) {
    const nxc_difference *d = &c->found.items[i];
    const char *kind = d->is_setting ? "setting" : "option";
    json_array_append_new(
        list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:s}", kind, d->path, "a", value_json(&d->values[0]), "b",
                        value_json(&d->values[1]), "a_from", from_json(&d->values[0]), "b_from",
                        from_json(&d->values[1]), "class", nxc_changes_name(d->changes)));
  }
  return json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o}", "a", c->sides[0].name, "b", c->sides[1].name,
                   "same", c->found.n_items == 0, "class",
                   c->found.n_items ? json_string(worst_name(c)) : json_null(), "differences", list, "own",
                   estimates_json(c, 0), "nxrun", estimates_json(c, 1));
}

/* -- for pull requests ----------------------------------------------------------------------------------- */

/* A bar would end the cell. */
static void print_cell(const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '|' || *text == '\\') putchar('\\');
    putchar(*text == '\n' ? ' ' : *text);
  }
}

static void print_markdown(const nxc_diff *c) {
  const char *a = name_of(c, 0), *b = name_of(c, 1);
  if (c->found.n_items == 0) {
    printf("**%s** and **%s** mean the same.\n\n", a, b);
    return;
  }
  printf("**%s** and **%s**: %s; %s.\n\n| what | before | after | effect |\n|---|---|---|---|\n", a, b,
         count_differences(c), worst_name(c));
  for (int changes = NXC_CHANGES_CHECKPOINT; changes >= NXC_CHANGES_SETTINGS; changes--) {
    for (size_t i = 0; i < c->found.n_items; i++) {
      const nxc_difference *d = &c->found.items[i];
      if ((int)d->changes != changes) continue;
      printf("| `%s` | ", nxc_characters_shown(c->arena, d->path));
      print_cell(shown(c, &d->values[0]));
      fputs(" | ", stdout);
      print_cell(shown(c, &d->values[1]));
      printf(" | %s |\n", nxc_changes_name(d->changes));
    }
  }
  putchar('\n');
  if (*c->found.resumed) printf("%s\n\n", c->found.resumed);
}

/* An annotation of the line that says the new value, where one does. */
static void print_github(const nxc_diff *c) {
  nxc_sink *sink = nxc_sink_new(c->arena);
  for (size_t i = 0; i < c->found.n_items; i++) {
    const nxc_difference *d = &c->found.items[i];
    const char *from = d->values[1].from ? d->values[1].from : "", *colon = strrchr(from, ':');
    unsigned line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    bool own = line > 0 && strncmp(from, c->sides[1].file, strlen(c->sides[1].file)) == 0;
    const nxc_source *source = c->sides[1].text;
    nxc_span at = own && source ? (nxc_span){source, line, 1, 1} : (nxc_span){0};
    const nxc_finding finding = {
        .id = "diff",
        .severity = NXC_SEVERITY_NOTE,
        .message = nxc_arena_printf(c->arena, "%s: %s -> %s (%s)", d->path, shown(c, &d->values[0]),
                                    shown(c, &d->values[1]), nxc_changes_name(d->changes)),
        .at = at};
    nxc_sink_report(sink, &finding);
  }
  const nxc_render render = {.format = NXC_FORMAT_GITHUB, .notes = true};
  nxc_sink_print(sink, &render, stdout);
}

void nxc_diff_print(const nxc_diff *diff, nxc_diff_format format) {
  static void (*const prints[])(const nxc_diff *) = {
      [NXC_DIFF_TEXT] = print_text, [NXC_DIFF_GITHUB] = print_github, [NXC_DIFF_MARKDOWN] = print_markdown};
  prints[format](diff);
}
