/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg explain: what a setting, an option, a rule or a diagnostic is, from the catalogue alone. */
#include "compiler/commands/commands.h"
#include "compiler/commands/explain.h"
#include "compiler/commands/options.h"
#include "compiler/expression/expression.h"
#include "compiler/config/binding/dialect.h"
#include "compiler/config/site_rules.h"
#include "compiler/render/render.h"
#include "compiler/render/screen.h"
#include "compiler/settings/catalogue.h"
#include "compiler/settings/facts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char usage[] =
    "usage: nxcfg explain [--dialect D] [--rules FILE] NAME...\n"
    "       nxcfg explain [--dialect D] --status executed|checked|refused\n"
    "Explains settings (mesh.tensor), options (trainer.devices, or devices alone),\n"
    "rules and diagnostics (NX2104). Where a name is the end of several, a group that\n"
    "holds several (mesh), or words that several speak of (clipping), they are listed.\n"
    "  --dialect D          look among the options of this dialect alone\n"
    "  --rules FILE         a site's own rules too (repeatable)\n"
    "  --status STATUS      list the options that nxrun executes, that nxcfg only\n"
    "                       checks, or that nxrun refuses, always or for some values\n"
    "  --names              print every name that can be explained, one a line\n";

/* -- text ------------------------------------------------------------------------------------------------ */

enum { COLUMNS = NXC_SCREEN_COLUMNS, INDENT = 4 };

/* A paragraph of words, filled to COLUMNS. */
static void print_paragraph(const char *label, const char *text) {
  char indented[120];
  snprintf(indented, sizeof indented, "  %s", label);
  nxc_print_paragraph(stdout, COLUMNS, INDENT, indented, text);
}

static void print_facts(const nxc_facts *facts) {
  for (size_t i = 0; i < facts->n_items; i++) {
    const nxc_fact *fact = &facts->items[i];
    const char *joint = strcmp(fact->label, "because") == 0 ? " " : ": ";
    const char *label = *fact->label ? nxc_arena_printf(facts->arena, "%s%s", fact->label, joint) : "";
    print_paragraph(label, fact->text);
  }
}

/* -- what belongs together ------------------------------------------------------------------------------- */

static bool mentions(nxc_arena *arena, const char *text, nxc_name_kind kind, const char *path) {
  const nxc_expression *expression = nxc_expression_of(arena, text);
  for (size_t i = 0; expression != NULL && i < expression->n_names; i++) {
    if (expression->names[i].kind == kind && strcmp(expression->names[i].path, path) == 0) return true;
  }
  return false;
}

static void print_rules_of(nxc_arena *arena, const char *dialect, nxc_name_kind kind, const char *path) {
  const char *ids = "", *deriving = "";
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    if (kind == NXC_NAME_OPTION && (rule->dialect == NULL || strcmp(rule->dialect, dialect) != 0)) continue;
    bool target = kind == NXC_NAME_SETTING && rule->derives < NX_N_SETTINGS &&
                  strcmp(nxc_setting_rows[rule->derives].path, path) == 0;
    if (target)
      deriving =
          nxc_arena_printf(arena, "%s%s%s = %s", deriving, *deriving ? "; " : "", rule->id, rule->derive);
    bool used = mentions(arena, rule->when, kind, path) || mentions(arena, rule->require, kind, path) ||
                mentions(arena, rule->derive, kind, path);
    if (used) ids = nxc_arena_printf(arena, "%s%s%s", ids, *ids ? ", " : "", rule->id);
  }
  print_paragraph("derived by: ", deriving);
  print_paragraph("rules that read it: ", ids);
}

/* The options that set it, parted by commas. */
static const char *options_of(nxc_arena *arena, const nxc_dialect *dialect, nxc_setting_id id) {
  const char *names = "";
  for (size_t i = 0; i < dialect->n_options && strcmp(dialect->name, "nx") != 0; i++) {
    for (size_t k = 0; k < dialect->options[i].n_sets; k++) {
      if (dialect->options[i].sets[k].setting != id) continue;
      names = nxc_arena_printf(arena, "%s%s%s", names, *names ? ", " : "", dialect->options[i].name);
      break;
    }
  }
  return names;
}

/* What the system decides itself, where no option of it says it. */
static void print_fixed(nxc_arena *arena, const nxc_dialect *dialect, const nxc_fixed_row *fixed,
                        bool always) {
  static const char *const words[] = {
      [NXC_FIXED] = "fixed", [NXC_ABSENT] = "no such thing", [NXC_UNTOLD] = "unknown"};
  const char *reason = fixed->kind == NXC_FIXED ? fixed->source : fixed->why;
  const char *text = nxc_arena_printf(arena, "%s in %s%s", words[fixed->kind], dialect->name,
                                      always ? "" : " where none of these is given");
  if (fixed->kind == NXC_FIXED) text = nxc_arena_printf(arena, "%s: %s", text, fixed->value);
  print_paragraph("", reason ? nxc_arena_printf(arena, "%s (%s)", text, reason) : text);
}

static void print_systems(nxc_arena *arena, nxc_setting_id id) {
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    const char *names = options_of(arena, dialect, id);
    const nxc_fixed_row *fixed = nxc_fixed_find(dialect, id);
    print_paragraph(nxc_arena_printf(arena, "set in %s by: ", dialect->name), names);
    if (fixed != NULL) print_fixed(arena, dialect, fixed, *names == '\0');
  }
}

/* -- one of each kind ------------------------------------------------------------------------------------ */

void nxc_explain_setting(nxc_arena *arena, nxc_setting_id id) {
  const char *path = nxc_setting_rows[id].path;
  const nxc_facts facts = nxc_setting_facts(arena, id);
  printf("%s: setting\n", path);
  print_facts(&facts);
  print_systems(arena, id);
  print_rules_of(arena, NULL, NXC_NAME_SETTING, path);
}

void nxc_explain_option(nxc_arena *arena, const nxc_dialect *dialect, const nxc_option_row *row) {
  printf("%s: option of %s\n", row->name, dialect->name);
  if (row->alias_of != NULL) {
    print_paragraph("another name of: ", row->alias_of);
    nxc_explain_option(arena, dialect, nxc_option_find(dialect, row->alias_of));
    return;
  }
  const nxc_facts facts = nxc_option_facts(arena, row);
  print_facts(&facts);
  print_rules_of(arena, dialect->name, NXC_NAME_OPTION, row->name);
  print_paragraph("source: ", row->source);
}

static void explain_rule(nxc_arena *arena, const nxc_rule_row *rule) {
  const char *where = rule->dialect ? " of " : rule->except ? " of all but " : "";
  const char *dialect = rule->dialect ? rule->dialect : rule->except ? rule->except : "";
  printf("%s: rule%s%s, %s%s\n", rule->id, where, dialect,
         rule->require ? nxc_severity_name(rule->severity) : "derives a setting",
         rule->structural ? ", structural: no plan is made without it, even where it is allowed" : "");
  print_paragraph("", nxc_message_readable(arena, rule->message));
  print_paragraph("where: ", rule->when);
  print_paragraph("demands: ", rule->require);
  if (rule->derive) {
    print_paragraph("derives: ",
                    nxc_arena_printf(arena, "%s = %s", nxc_setting_rows[rule->derives].path, rule->derive));
  }
  print_paragraph("fix: ", nxc_message_readable(arena, rule->fix));
  print_paragraph("", rule->explain);
  print_paragraph("source: ", rule->source);
}

/* -- finding --------------------------------------------------------------------------------------------- */

bool nxc_explain_searches(const nxc_explain_search *s, const nxc_dialect *dialect) {
  return s->only ? strcmp(s->only, dialect->name) == 0 : strcmp(dialect->name, "nx") != 0;
}

void nxc_explain_separate(nxc_explain_search *s) {
  if (s->n_found++ > 0) putchar('\n');
}

/* Options of this full name, in every dialect that has one. */
static void explain_options(nxc_explain_search *s, const char *name) {
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    const nxc_option_row *row = nxc_explain_searches(s, dialect) ? nxc_option_find(dialect, name) : NULL;
    if (row == NULL) continue;
    nxc_explain_separate(s);
    nxc_explain_option(s->arena, dialect, row);
  }
}

/* GPT-NeoX takes - for _, and people write either for the other everywhere. */
static void explain_respelt(nxc_explain_search *s, const char *name, char from, char to) {
  char *respelt = nxc_arena_strdup(s->arena, name);
  for (char *at = respelt; (at = strchr(at, from)) != NULL;) *at = to;
  size_t n_before = s->n_found;
  explain_options(s, respelt);
  if (s->n_found == n_before) nxc_explain_ends(s, respelt);
}

/* Codes are written in capitals, and may be asked for otherwise. */
static const char *with_capitals(nxc_arena *arena, const char *name) {
  if (strncasecmp(name, "nx", 2) != 0 || !isdigit((unsigned char)name[2])) return name;
  char *code = nxc_arena_strdup(arena, name);
  for (char *at = code; *at != '\0'; at++) *at = (char)toupper((unsigned char)*at);
  return code;
}

static bool explain(nxc_explain_search *s, const char *name) {
  size_t n_before = s->n_found;
  if (name[strspn(name, " \t")] == '\0') {
    fputs("nxcfg explain: an empty name says nothing (nxcfg explain --help)\n", stderr);
    return false;
  }
  name = with_capitals(s->arena, name);
  const nxc_rule_row *rule = nxc_rule_find(name);
  const nxc_diagnostic_row *diagnostic = nxc_diagnostic_find(name);
  nxc_setting_id id = s->only && strcmp(s->only, "nx") != 0 ? NX_N_SETTINGS : nxc_setting_find(name);
  for (size_t i = 0; i < s->site.n_rows; i++)
    if (strcmp(s->site.rows[i].id, name) == 0) rule = &s->site.rows[i];
  if (rule != NULL) {
    nxc_explain_separate(s);
    explain_rule(s->arena, rule);
  }
  if (diagnostic != NULL) {
    nxc_explain_separate(s);
    printf("%s: %s\n", diagnostic->id, diagnostic->title);
    print_paragraph("", diagnostic->explain);
  }
  if (id < NX_N_SETTINGS) {
    nxc_explain_separate(s);
    nxc_explain_setting(s->arena, id);
  }
  explain_options(s, name);
  if (s->n_found == n_before) nxc_explain_ends(s, name);
  if (s->n_found == n_before && (id = nxc_setting_find(name)) < NX_N_SETTINGS) {
    nxc_explain_separate(s);
    nxc_explain_setting(s->arena, id);
  }
  if (s->n_found == n_before) nxc_explain_group(s, name);
  if (s->n_found == n_before) explain_respelt(s, name, '-', '_');
  if (s->n_found == n_before) explain_respelt(s, name, '_', '-');
  if (s->n_found == n_before && strncmp(name, "NX", 2) != 0) {
    nxc_explain_values(s, name);
    nxc_explain_words(s, name);
  }
  if (s->n_found > n_before) return true;
  nxc_explain_nothing(s, name);
  return false;
}

/* -- by status ------------------------------------------------------------------------------------------- */

static const char *const statuses[] = {
    [NXC_EXECUTED] = "executed", [NXC_CHECKED] = "checked", [NXC_REFUSED] = "refused"};

static bool has_status(const nxc_option_row *row, nxc_status status) {
  if (row->alias_of != NULL) return false;
  return row->status == status || (status == NXC_REFUSED && row->refused_when != NULL);
}

static bool list_status(const nxc_explain_search *s, const char *name) {
  size_t status = 0, n_statuses = sizeof statuses / sizeof *statuses;
  while (status < n_statuses && strcmp(statuses[status], name) != 0) status++;
  if (status == n_statuses) {
    fprintf(stderr, "nxcfg explain: --status is executed, checked or refused, not %s\n", name);
    return false;
  }
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    for (size_t j = 0; nxc_explain_searches(s, dialect) && j < dialect->n_options; j++) {
      const nxc_option_row *row = &dialect->options[j];
      if (!has_status(row, (nxc_status)status)) continue;
      bool sometimes = status == NXC_REFUSED && row->status != NXC_REFUSED;
      printf("%-9s %-44s%s%s\n", dialect->name, row->name, sometimes ? " some values: " : " ",
             row->why && (status != NXC_EXECUTED) ? row->why : "");
    }
  }
  return true;
}

static void list_names(const nxc_explain_search *s) {
  for (size_t i = 0; s->only == NULL && i < NX_N_SETTINGS; i++) puts(nxc_setting_rows[i].path);
  for (size_t i = 0; i < nxc_n_dialects; i++)
    for (size_t j = 0; nxc_explain_searches(s, &nxc_dialects[i]) && j < nxc_dialects[i].n_options; j++)
      puts(nxc_dialects[i].options[j].name);
  for (size_t i = 0; s->only == NULL && i < nxc_n_rules; i++) puts(nxc_rules[i].id);
  for (size_t i = 0; s->only == NULL && i < nxc_n_diagnostics; i++) puts(nxc_diagnostics[i].id);
}

static bool read_rules(nxc_explain_search *s, const nxc_options *options) {
  nxc_sink *sink = nxc_sink_new(s->arena);
  bool good = true, unreadable;
  for (size_t i = 0; i < options->rules.n_items; i++)
    good = nxc_site_rules_read(s->arena, options->rules.items[i], sink, &s->site, &unreadable) && good;
  const nxc_render render = nxc_options_render(options);
  nxc_sink_print(sink, &render, stderr);
  return good;
}

/* An option of a command line may be asked for as it stands there. */
static char *without_dashes(char *argument) {
  if (strncmp(argument, "--", 2) != 0) return argument;
  for (size_t i = 0; i < nxc_n_dialects; i++)
    if (nxc_option_find(&nxc_dialects[i], argument + 2) != NULL) return argument + 2;
  return argument;
}

int nxc_command_explain(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  for (int i = 1; i < argc; i++) argv[i] = without_dashes(argv[i]);
  nxc_options options;
  int status = NXC_EXIT_USAGE;
  const char *listed = NULL;
  bool names = false;
  const nxc_extra_option extras[] = {
      {.name = "--status", .text = &listed}, {.name = "--names", .flag = &names}, {.name = NULL}};
  if (!nxc_options_parse(arena, &options, "explain", argc - 1, argv + 1, extras, false)) {
    status = NXC_EXIT_USAGE;
  } else if (options.help) {
    nxc_print_usage(stdout, usage);
    status = NXC_EXIT_GOOD;
  } else if ((options.files.n_items > 0) + (listed != NULL) + names != 1) {
    nxc_print_usage(stderr, usage);
  } else {
    nxc_explain_search s = {.arena = arena};
    if (options.dialect != NULL)
      s.only = nxc_arena_strndup(arena, options.dialect, strcspn(options.dialect, "@"));
    if (names) list_names(&s);
    status =
        read_rules(&s, &options) && (!listed || list_status(&s, listed)) ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
    for (size_t i = 0; status != NXC_EXIT_USAGE && i < options.files.n_items; i++) {
      if (!explain(&s, options.files.items[i])) status = NXC_EXIT_FOUND;
    }
  }
  nxc_arena_free(arena);
  return status;
}
