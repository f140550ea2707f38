/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the manual pages that are made of the catalogue, at build time: `man_gen settings`, `man_gen rules`,
 * or `man_gen DIALECT` for one of the foreign dialects. */
#include "compiler/config/fronts.h"
#include "compiler/settings/facts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* -- roff ------------------------------------------------------------------------------------------------ */

/* Text with backslashes and hyphens escaped, no line beginning with a control character. */
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

/* A sentence each; its end is the text's own where that has one. */
static void print_facts(const nxc_facts *facts) {
  for (size_t i = 0; i < facts->n_items; i++) {
    const nxc_fact *fact = &facts->items[i];
    const char *joint = strcmp(fact->label, "because") == 0 ? " " : ": ";
    bool ended = fact->text[strlen(fact->text) - 1] == '.';
    if (*fact->label) printf(".br\n%c%s%s", toupper((unsigned char)*fact->label), fact->label + 1, joint);
    print_text(fact->text);
    puts(ended ? "" : ".");
  }
}

static void print_title(const char *name, int section, const char *volume) {
  fputs(".TH ", stdout);
  for (const char *c = name; *c != '\0'; c++) putchar(toupper((unsigned char)*c));
  printf(" %d \"\" \"nxcfg\" \"%s\"\n.ad l\n.SH NAME\n", section, volume);
  for (const char *c = name; *c != '\0'; c++) fputs(*c == '-' ? "\\-" : (char[]){*c, '\0'}, stdout);
}

/* -- settings -------------------------------------------------------------------------------------------- */

static void print_settings(nxc_arena *arena) {
  print_title("nx-settings", 5, "File formats");
  puts(
      " \\- every setting of a training\n"
      ".SH DESCRIPTION\nThe keys of a configuration in the nx dialect, nested at the dots, and what the "
      "options of\n"
      "the other dialects set.\nA setting without a default is unknown until something gives or derives it.\n"
      "Beside them a file of the nx dialect may have\n.BR vars ,\n"
      "free keys for interpolations to read.\n.SH SETTINGS");
  for (size_t i = 0; i < NX_N_SETTINGS; i++) {
    nxc_setting_id id = nxc_settings_by_path[i];
    const nxc_facts facts = nxc_setting_facts(arena, id);
    print_line(".TP\n.B ", nxc_setting_rows[id].path, "");
    print_facts(&facts);
  }
  puts(".SH SEE ALSO\n.BR nxcfg (1),\n.BR nx\\-megatron (5),\n.BR nx\\-neox (5),\n.BR nx\\-nxdt (5),\n"
       ".BR nx\\-xorl (5),\n.BR nx\\-rules (7),\n.BR nx\\-plan (5)");
}

/* -- a dialect ------------------------------------------------------------------------------------------- */

/* What a reader of the page must know of a dialect before its options. */
static const struct {
  const char *name, *system, *about;
} dialects[] = {
    {"megatron", "Megatron\\-LM",
     "An option stands as on the command line, without its two hyphens.\n"
     "A switch takes no value: it is true where it stands, also one that turns something off.\n"
     "In a file of\n.B \\-\\-yaml\\-cfg\nand in recipes the same names have underscores.\n"},
    {"neox", "GPT\\-NeoX",
     "Keys may be written with hyphens or underscores, and nested keys stand here with dots.\n"
     "Where null is accepted, the real system takes it for not given.\n"},
    {"nxdt", "NeuronX Distributed Training", "Options are nested at the dots.\n"},
    {"xorl", "xorl",
     "Options are nested at the dots;\n.B data.datasets[].\nbegins the keys of an entry of that list.\n"
     "The real parser turns every value into text and reads that by the type of its option.\n"},
};
enum { N_DIALECTS = sizeof dialects / sizeof *dialects };

static void print_versions(const nxc_front *front) {
  if (front->versions == NULL) return;
  printf("Versions are ");
  for (const char *const *version = front->versions; *version != NULL; version++)
    printf("%s%s", version == front->versions ? "" : version[1] ? ", " : " and ", *version);
  printf(", as in\n.BR \"\\-\\-dialect %s@%s\" ;\n", front->dialect, front->versions[1]);
  puts("where none is named, the newest that knows every key of the file is meant.");
  puts("An option that names no versions is in all of them.");
}

static void print_option(nxc_arena *arena, const nxc_dialect *dialect, const nxc_option_row *row) {
  print_line(".TP\n.B ", row->name, "");
  if (row->alias_of != NULL) {
    printf("Another name of\n.BR ");
    print_text(nxc_option_find(dialect, row->alias_of)->name);
    puts(" .");
    print_line("In versions: ", nxc_versions_show(arena, row->versions, row->n_versions), ".");
    return;
  }
  const nxc_facts facts = nxc_option_facts(arena, row);
  print_facts(&facts);
}

static void print_dialect(nxc_arena *arena, size_t which) {
  const char *name = dialects[which].name, *version;
  const nxc_dialect *dialect = nxc_dialect_find(name);
  const nxc_front *front = nxc_front_find(arena, name, &version);
  print_title(nxc_arena_printf(arena, "nx-%s", name), 5, "File formats");
  printf(" \\- every option of %s that nxcfg knows\n.SH DESCRIPTION\n%s", dialects[which].system,
         dialects[which].about);
  print_versions(front);
  puts("Each option has one status.\n.I Executed\nchanges the plan.\n.I Checked\nis judged as the real "
       "system judges it, "
       "and means nothing to\n.BR nxrun (1).\n.I Refused\nis what nxrun can not do: a note to\n.BR \"nxcfg "
       "validate\" ,\n"
       "an error to\n.BR \"nxcfg plan \\-o\" .\nAfter\n.I sets\nstands which setting of\n.BR nx\\-settings "
       "(5)\n"
       "follows from the option, whose value is\n.BR value .\n.SH OPTIONS");
  for (size_t i = 0; i < dialect->n_options; i++) print_option(arena, dialect, &dialect->options[i]);
  puts(".SH SEE ALSO\n.BR nxcfg (1),\n.BR nx\\-settings (5),\n.BR nx\\-rules (7)");
}

/* -- rules ----------------------------------------------------------------------------------------------- */

static const char *severity_name(nxc_severity severity) {
  return severity == NXC_SEVERITY_ERROR ? "error" : severity == NXC_SEVERITY_WARNING ? "warning" : "note";
}

static void print_rule(const nxc_rule_row *rule) {
  printf(".TP\n.B %s\n", rule->id);
  if (rule->derives < NX_N_SETTINGS) {
    printf("Derives\n.BR %s :\n", nxc_setting_rows[rule->derives].path);
    print_line("", rule->derive, ".");
  } else {
    printf("%s%s%s: ", rule->dialect ? rule->dialect : "", rule->dialect ? " " : "",
           severity_name(rule->severity));
    print_line("", rule->message, ".");
    print_line("Demands: ", rule->require, ".");
  }
  print_line("When: ", rule->when, ".");
  print_line("Fix: ", rule->fix, ".");
  print_line("", rule->explain, "");
  print_line("Source: ", rule->source, ".");
}

static void print_rules(void) {
  print_title("nx-rules", 7, "Miscellaneous");
  puts(" \\- what nxcfg demands, derives and reports\n"
       ".SH DESCRIPTION\nEach rule has an id, which\n.B nxcfg explain\nexplains and which a comment\n.RB ( "
       "\"# nxcfg: allow\"\n"
       "id reason) on or above the line allows.\nA rule whose inputs are not known is skipped.\n"
       "In expressions a plain name is a setting and a name after @ is an option of the file's dialect.\n.SH "
       "RULES");
  for (size_t i = 0; i < nxc_n_rules; i++) print_rule(&nxc_rules[i]);
  puts(".SH OTHER FINDINGS");
  for (size_t i = 0; i < nxc_n_diagnostics; i++) {
    printf(".TP\n.B %s\n", nxc_diagnostics[i].id);
    print_line("", nxc_diagnostics[i].title, ".");
    print_line("", nxc_diagnostics[i].explain, "");
  }
  puts(".SH SEE ALSO\n.BR nxcfg (1),\n.BR nx\\-settings (5)");
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  nxc_arena *arena = nxc_arena_new();
  bool known = strcmp(argv[1], "settings") == 0 || strcmp(argv[1], "rules") == 0;
  if (strcmp(argv[1], "settings") == 0) print_settings(arena);
  if (strcmp(argv[1], "rules") == 0) print_rules();
  for (size_t i = 0; i < N_DIALECTS; i++) {
    if (strcmp(argv[1], dialects[i].name) != 0) continue;
    print_dialect(arena, i);
    known = true;
  }
  nxc_arena_free(arena);
  return known && fflush(stdout) == 0 ? 0 : 1;
}
