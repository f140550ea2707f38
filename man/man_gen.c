/* SPDX-License-Identifier: Apache-2.0 */
/* Writes nx-settings(5) and nx-rules(7) from the catalogue, at build time: `man_gen settings|rules`. */
#include "compiler/settings/catalogue.h"

#include <stdio.h>
#include <string.h>

/* Text as roff: backslashes escaped, no line beginning with a control character. */
static void print_text(const char *text) {
  fputs("\\&", stdout);
  for (; *text; text++) {
    if (*text == '\\') fputs("\\e", stdout);
    else if (*text == '-') fputs("\\-", stdout);
    else if (*text == '\n') fputs("\n\\&", stdout);
    else putchar(*text);
  }
}

static void print_line(const char *before, const char *text, const char *after) {
  if (text == NULL || *text == '\0') return;
  fputs(before, stdout);
  print_text(text);
  puts(after);
}

static void print_domain(nxc_arena *arena, const nxc_domain *domain, const nxc_value *initial, const char *unit) {
  fputs("Takes ", stdout);
  print_text(domain->n_values ? "one of" : nxc_type_name(domain->type));
  for (size_t i = 0; i < domain->n_values; i++) {
    fputs(i == 0 ? " " : ", ", stdout);
    print_text(domain->values[i]);
  }
  if (unit) printf(", in %s", unit);
  if (domain->min) printf(", at least %s", nxc_value_show(arena, domain->min));
  if (domain->above) printf(", above %s", nxc_value_show(arena, domain->above));
  if (domain->max) printf(", at most %s", nxc_value_show(arena, domain->max));
  puts(".");
  if (initial == NULL) return;
  fputs("Default: ", stdout);
  print_text(initial->kind == NXC_NULL ? "none" : nxc_value_show(arena, initial));
  puts(".");
}

static void print_settings(nxc_arena *arena) {
  puts(".TH NX-SETTINGS 5 \"\" \"nxcfg\" \"File formats\"\n.ad l\n.SH NAME\nnx-settings \\- every setting of a training\n"
       ".SH DESCRIPTION\nThe keys of a configuration in the nx dialect, nested at the dots, and what the options of\n"
       "the other dialects set.\nA setting without a default is unknown until something gives or derives it.\n"
       "Beside them a file of the nx dialect may have\n.BR vars ,\n"
       "free keys for interpolations to read.\n.SH SETTINGS");
  for (size_t i = 0; i < NX_N_SETTINGS; i++) {
    const nxc_setting_row *row = &nxc_setting_rows[nxc_settings_by_path[i]];
    printf(".TP\n.B %s\n", row->path);
    print_line("", row->doc, "");
    print_domain(arena, &row->domain, row->initial, row->unit);
    print_line("When run: ", row->runs, "");
    if (row->needed) puts("A plan can not be made without it.");
    if (!row->meaning) puts("It does not count toward plan_id.");
    print_line("Another value between runs: ", nxc_changes_name(row->changes), ".");
    print_line("nxrun can not run it where: ", row->refused_when, ";");
    if (row->refused_when) print_line("", row->why, ".");
  }
  puts(".SH SEE ALSO\n.BR nxcfg (1),\n.BR nx-rules (7),\n.BR nx-plan (5)");
}

static const char *severity_name(nxc_severity severity) {
  return severity == NXC_SEVERITY_ERROR ? "error" : severity == NXC_SEVERITY_WARNING ? "warning" : "note";
}

static void print_rule(const nxc_rule_row *rule) {
  printf(".TP\n.B %s\n", rule->id);
  if (rule->derives < NX_N_SETTINGS) {
    printf("Derives\n.BR %s :\n", nxc_setting_rows[rule->derives].path);
    print_line("", rule->derive, ".");
  } else {
    printf("%s%s%s: ", rule->dialect ? rule->dialect : "", rule->dialect ? " " : "", severity_name(rule->severity));
    print_line("", rule->message, ".");
    print_line("Demands: ", rule->require, ".");
  }
  print_line("When: ", rule->when, ".");
  print_line("Fix: ", rule->fix, ".");
  print_line("", rule->explain, "");
  print_line("Source: ", rule->source, ".");
}

static void print_rules(void) {
  puts(".TH NX-RULES 7 \"\" \"nxcfg\" \"Miscellaneous\"\n.ad l\n.SH NAME\nnx-rules \\- what nxcfg demands, derives and reports\n"
       ".SH DESCRIPTION\nEach rule has an id, which\n.B nxcfg explain\nexplains and which a comment\n.RB ( \"# nxcfg: allow\"\n"
       "id reason) on or above the line allows.\nA rule whose inputs are not known is skipped.\n"
       "In expressions a plain name is a setting and a name after @ is an option of the file's dialect.\n.SH RULES");
  for (size_t i = 0; i < nxc_n_rules; i++) print_rule(&nxc_rules[i]);
  puts(".SH OTHER FINDINGS");
  for (size_t i = 0; i < nxc_n_diagnostics; i++) {
    printf(".TP\n.B %s\n", nxc_diagnostics[i].id);
    print_line("", nxc_diagnostics[i].title, ".");
    print_line("", nxc_diagnostics[i].explain, "");
  }
  puts(".SH SEE ALSO\n.BR nxcfg (1),\n.BR nx-settings (5)");
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  nxc_arena *arena = nxc_arena_new();
  if (strcmp(argv[1], "settings") == 0) print_settings(arena);
  else print_rules();
  nxc_arena_free(arena);
  return fflush(stdout) == 0 ? 0 : 1;
}
