/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of schema/rules at work, as TAP. A line of FOLDER/rules.txt is one case:
 *
 *   FINDINGS | BASE | KEY=VALUE | ~KEY that is taken out | --arguments of --megatron | ranks 32
 *
 * BASE is BASE.args, BASE.yml or BASE.yaml in FOLDER, with @VERSION of its dialect and +NAME for the
 * config.json NAME.json; ! judges for nxrun too. Megatron has 8 ranks; `ranks told` leaves them to the file.
 * FINDINGS are E (error), W (warning), N (note) and the digits of the id, in order; - means none. Errors and
 * warnings are exactly these, and so are notes, but for those that most files get. What the first case of
 * each id prints stands in FOLDER/rules.out, and so does what each deriving rule first gives; UPDATE=1
 * rewrites that. At the end each rule needs a case that breaks it, and one that it judges and accepts; one
 * that derives needs a case where it gives a value, and one where it has nothing to say.
 * Usage: rules FOLDER... */
#include "compiler/config/compile_settings.h"
#include "compiler/render/render.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 4096, FIELDS_MAX = 24, FINDINGS_BYTES_MAX = 512, SHOWN_MAX = 4096 };

/* -- what the cases show --------------------------------------------------------------------------------- */

typedef struct coverage {
  bool refused, accepted;
} coverage;

static coverage *covered; /* for each rule of the catalogue */

/* The ids that the golden file of this folder has already. */
typedef struct golden {
  FILE *out;
  char shown[SHOWN_MAX][8];
  size_t n_shown;
} golden;

/* True the first time. */
static bool show_id(golden *g, const char *id) {
  for (size_t i = 0; i < g->n_shown; i++)
    if (strcmp(g->shown[i], id) == 0) return false;
  if (g->n_shown == SHOWN_MAX) abort();
  snprintf(g->shown[g->n_shown++], sizeof *g->shown, "%s", id);
  return true;
}

/* -- one case -------------------------------------------------------------------------------------------- */

typedef struct rule_case {
  nxc_arena *arena;
  nxc_request request;
  nxc_sink *sink;
  nxc_compiled compiled;
  const char *sets[FIELDS_MAX], *overrides[FIELDS_MAX], *arguments[FIELDS_MAX * 8];
} rule_case;

static char *trim(char *text) {
  text += strspn(text, " ");
  size_t n_bytes = strlen(text);
  while (n_bytes > 0 && text[n_bytes - 1] == ' ') text[--n_bytes] = '\0';
  return text;
}

/* What stands before the next " | ", which it cuts off; NULL at the end. */
static char *next_field(char **rest) {
  char *field = *rest, *bar = field ? strstr(field, " | ") : NULL;
  *rest = bar ? bar + 3 : NULL;
  if (bar != NULL) *bar = '\0';
  return field ? trim(field) : NULL;
}

static void read_base(rule_case *c, const char *folder, char *base) {
  size_t n_bytes = strlen(base);
  c->request.for_nxrun = n_bytes > 0 && base[n_bytes - 1] == '!';
  if (c->request.for_nxrun) base[n_bytes - 1] = '\0';
  char *model = strchr(base, '+');
  if (model != NULL) c->request.model_config = nxc_arena_printf(c->arena, "%s.json", model + 1);
  if (model != NULL) *model = '\0';
  char *version = strchr(base, '@');
  if (version != NULL) *version++ = '\0';
  static const char *const ends[] = {"args", "yml", "yaml"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    c->request.file = nxc_arena_printf(c->arena, "%s.%s", base, ends[i]);
    if (access(c->request.file, R_OK) == 0) break;
  }
  bool megatron = strcmp(folder, "megatron") == 0;
  if (megatron) c->request.world_size = "8";
  if (megatron || version != NULL)
    c->request.dialect = nxc_arena_printf(c->arena, "%s@%s", folder, version ? version : "0.10");
}

static void read_field(rule_case *c, char *field) {
  if (strncmp(field, "ranks ", 6) == 0) {
    c->request.world_size = strcmp(trim(field + 6), "told") == 0 ? NULL : trim(field + 6);
  } else if (strncmp(field, "--", 2) == 0) {
    for (char *rest, *word = strtok_r(field, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
      if (c->request.n_arguments < sizeof c->arguments / sizeof *c->arguments)
        c->arguments[c->request.n_arguments++] = word;
  } else if (*field == '~' && c->request.n_overrides < FIELDS_MAX) {
    c->overrides[c->request.n_overrides++] = field;
  } else if (*field != '\0' && c->request.n_sets < FIELDS_MAX) {
    c->sets[c->request.n_sets++] = field;
  }
}

/* Notes that say little about a case. */
static bool is_common(const nxc_finding *finding) {
  static const char *const ids[] = {"NX1319", "NX1401", "NX1402", "NX1403"};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    if (finding->severity == NXC_SEVERITY_NOTE && strcmp(finding->id, ids[i]) == 0) return true;
  return false;
}

static int compare_words(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "E2002 W2302 N2113", each once, in order of their letters and digits; "-" for none. */
static const char *findings(const rule_case *c) {
  size_t n_findings = nxc_sink_n_findings(c->sink), n_words = 0;
  const char **words = nxc_arena_array(c->arena, n_findings + 1, sizeof *words), *text = "";
  for (size_t i = 0; i < n_findings; i++) {
    const nxc_finding *finding = nxc_sink_finding(c->sink, i);
    if (!is_common(finding))
      words[n_words++] = nxc_arena_printf(c->arena, "%c%s", "NWE"[finding->severity], finding->id + 2);
  }
  qsort(words, n_words, sizeof *words, compare_words);
  for (size_t i = 0; i < n_words; i++) {
    if (i > 0 && strcmp(words[i], words[i - 1]) == 0) continue;
    text = nxc_arena_printf(c->arena, "%s%s%s", text, *text ? " " : "", words[i]);
  }
  return *text ? text : "-";
}

/* -- remedies -------------------------------------------------------------------------------------------- */

/* A setting of ours that no option of the dialect has the name of; NULL: the text names none. */
static const char *foreign_setting(const nxc_dialect *dialect, const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
  for (size_t id = 0; text != NULL && id < NX_N_SETTINGS; id++) {
    const char *path = nxc_setting_path((nxc_setting_id)id), *at = text;
    size_t n = strlen(path);
    if (strchr(path, '.') == NULL || nxc_option_find(dialect, path) != NULL) continue;
    for (; (at = strstr(at, path)) != NULL; at += n) {
      bool begins = at == text || (strchr(letters, at[-1]) == NULL && at[-1] != ':'); /* not of nx:PATH */
      if (begins && (at[n] == '\0' || strchr(letters, at[n]) == NULL)) return path;
    }
  }
  return NULL;
}

static bool rule_has_remedy(const char *id) {
  bool has = false;
  for (size_t i = 0; i < nxc_n_rules; i++)
    has = has || (strcmp(nxc_rules[i].id, id) == 0 && nxc_rules[i].fix != NULL);
  return has;
}

/* Whatever is no note has a remedy, and it speaks the language of the file. */
static void check_remedies(const rule_case *c) {
  for (size_t i = 0; c->compiled.dialect != NULL && i < nxc_sink_n_findings(c->sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(c->sink, i);
    const char *path = foreign_setting(c->compiled.dialect, finding->fix);
    if (finding->fix == NULL && (finding->severity != NXC_SEVERITY_NOTE || rule_has_remedy(finding->id)))
      tap_report(false, "%s has no remedy that can be said in %s", finding->id, c->compiled.dialect->name);
    if (path != NULL)
      tap_report(false, "%s tells a user of %s to change %s", finding->id, c->compiled.dialect->name, path);
  }
}

/* -- coverage -------------------------------------------------------------------------------------------- */

static bool is_found(const rule_case *c, const char *id) {
  for (size_t i = 0; i < nxc_sink_n_findings(c->sink); i++)
    if (strcmp(nxc_sink_finding(c->sink, i)->id, id) == 0) return true;
  return false;
}

static bool holds(const rule_case *c, const char *expression) {
  const nxc_value *value =
      expression ? nxc_binding_evaluate(c->compiled.binding, NULL, expression) : NULL;
  return expression == NULL || (value != NULL && nxc_value_is_true(value));
}

/* A rule of its dialect and version that has a case to judge. */
static bool applies(const rule_case *c, const nxc_rule_row *rule) {
  if (c->compiled.binding == NULL || c->compiled.settings == NULL) return false;
  return nxc_rule_is_of(rule, c->compiled.dialect->name, c->compiled.version);
}

static bool gave(const rule_case *c, const nxc_rule_row *rule) {
  const nxc_provenance *from = nxc_settings_from(c->compiled.settings, rule->derives);
  return from->kind == NXC_FROM_RULE && from->origin != NULL && strcmp(from->origin, rule->id) == 0;
}

static void judge(const rule_case *c, golden *g) {
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    if (!applies(c, rule)) continue;
    if (rule->derive != NULL) {
      bool given = gave(c, rule);
      if (given && rule->message == NULL && show_id(g, rule->id))
        fprintf(g->out, "%s: %s is %s\n", rule->id, nxc_setting_path(rule->derives),
                nxc_settings_show(c->compiled.settings, rule->derives));
      covered[i].refused |= given;
      covered[i].accepted |= !given;
    } else {
      bool found = is_found(c, rule->id);
      covered[i].refused |= found;
      covered[i].accepted |= !found && holds(c, rule->when) && holds(c, rule->require);
    }
  }
}

/* -- the golden file ------------------------------------------------------------------------------------- */

/* Notes are shown once. */
static void show_case(const rule_case *c, golden *g, const char *line) {
  size_t n_findings = nxc_sink_n_findings(c->sink);
  bool *fresh = nxc_arena_array(c->arena, n_findings + 1, sizeof *fresh), any = false;
  for (size_t i = 0; i < n_findings; i++) {
    const nxc_finding *finding = nxc_sink_finding(c->sink, i);
    fresh[i] = !is_common(finding) && show_id(g, finding->id);
    any |= fresh[i];
  }
  if (any) fprintf(g->out, "== %s\n", line);
  for (size_t i = 0; any && i < n_findings; i++) {
    const nxc_finding *finding = nxc_sink_finding(c->sink, i);
    if (finding->severity == NXC_SEVERITY_NOTE ? fresh[i] : !is_common(finding))
      nxc_render_text(finding, false, g->out);
  }
}

static void run_case(const char *folder, char *line, golden *g) {
  rule_case c = {.arena = nxc_arena_new()};
  const char *whole = nxc_arena_strdup(c.arena, line);
  char *rest = line, *wanted = next_field(&rest), *base = next_field(&rest);
  c.sink = nxc_sink_new(c.arena);
  c.request.sets = c.sets;
  c.request.overrides = c.overrides;
  c.request.arguments = c.arguments;
  if (base != NULL) read_base(&c, folder, base);
  for (char *field; (field = next_field(&rest)) != NULL;) read_field(&c, field);
  nxc_compile_settings(c.arena, &c.request, c.sink, &c.compiled);
  const char *found = findings(&c);
  bool good = strcmp(found, wanted) == 0;
  tap_report(good, "%s", whole);
  if (!good) tap_note("found: %s", found);
  if (strcmp(found, "-") != 0) show_case(&c, g, whole);
  check_remedies(&c);
  judge(&c, g);
  nxc_arena_free(c.arena);
}

static char *read_all(const char *path) {
  char *text = NULL;
  size_t n_bytes = 0;
  FILE *file = fopen(path, "r");
  if (file != NULL && getdelim(&text, &n_bytes, '\0', file) < 0) text[0] = '\0';
  if (file != NULL) fclose(file);
  return text;
}

static void compare_golden(const char *folder, const char *found) {
  if (getenv("UPDATE") != NULL) {
    FILE *file = fopen("rules.out", "w");
    if (file == NULL || fputs(found, file) < 0 || fclose(file) != 0) abort();
  }
  char *wanted = read_all("rules.out");
  size_t at = 0, line = 1;
  while (wanted != NULL && wanted[at] != '\0' && wanted[at] == found[at]) line += wanted[at++] == '\n';
  bool good = wanted != NULL && wanted[at] == found[at];
  tap_report(good, "%s/rules.out", folder);
  if (!good) tap_note("differs from line %zu on; UPDATE=1 rewrites it", line);
  free(wanted);
}

static bool run_folder(const char *folder) {
  char line[LINE_BYTES_MAX], *text;
  size_t n_bytes;
  golden g = {.out = open_memstream(&text, &n_bytes)};
  FILE *cases = chdir(folder) == 0 ? fopen("rules.txt", "r") : NULL;
  const char *name = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
  if (g.out == NULL || cases == NULL) return false;
  fputs("# What the cases of rules.txt print, the first of each id; UPDATE=1 rewrites it.\n", g.out);
  while (fgets(line, sizeof line, cases) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (*line != '#' && *line != '\0') run_case(name, line, &g);
  }
  fclose(cases);
  fclose(g.out);
  compare_golden(name, text);
  free(text);
  return true;
}

int main(int argc, char **argv) {
  covered = calloc(nxc_n_rules, sizeof *covered);
  for (int i = 1; i < argc; i++) {
    if (covered == NULL || !run_folder(argv[i])) return EXIT_FAILURE;
  }
  for (size_t i = 0; i < nxc_n_rules; i++) {
    static const char *const lacks[] = {": no case breaks it", ": no case keeps it", ": no case at all"};
    const coverage *c = &covered[i];
    bool good = c->refused && c->accepted;
    tap_report(good, "%s%s", nxc_rules[i].id, good ? "" : lacks[c->refused ? 1 : c->accepted ? 0 : 2]);
  }
  free(covered);
  return tap_end();
}
