/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg explain: what a setting, an option, a rule or a diagnostic is, from the catalogue alone. */
#include "compiler/commands/commands.h"
#include "compiler/commands/explain.h"
#include "compiler/commands/options.h"
#include "compiler/expression/expression.h"
#include "compiler/config/binding/dialect.h"
#include "compiler/config/site_rules.h"
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

/* -- what belongs together ------------------------------------------------------------------------------- */

/* -- one of each kind ------------------------------------------------------------------------------------ */

static void explain_rule(nxc_arena *arena, const nxc_rule_row *rule) {
  const char *where = rule->dialect ? " of " : rule->except ? " of all but " : "";
  const char *dialect = rule->dialect ? rule->dialect : rule->except ? rule->except : "";
  printf("%s: rule%s%s, %s\n", rule->id, where, dialect,
         rule->require ? nxc_severity_name(rule->severity) : "derives a setting");
  nxc_explain_paragraph("", nxc_message_readable(arena, rule->message));
  nxc_explain_paragraph("where: ", rule->when);
  nxc_explain_paragraph("demands: ", rule->require);
  if (rule->structural)
    nxc_explain_paragraph("structural: ", "no plan is made without it, even where it is allowed");
  if (rule->derive) {
    nxc_explain_paragraph("derives: ",
                    nxc_arena_printf(arena, "%s = %s", nxc_setting_rows[rule->derives].path, rule->derive));
  }
  nxc_explain_paragraph("fix: ", nxc_message_readable(arena, rule->fix));
  nxc_explain_paragraph("", rule->explain);
  nxc_explain_paragraph("source: ", rule->source);
}

/* -- finding --------------------------------------------------------------------------------------------- */

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
    nxc_explain_paragraph("", diagnostic->explain);
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
