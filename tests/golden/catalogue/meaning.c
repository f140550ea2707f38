/* SPDX-License-Identifier: Apache-2.0 */
/* No option is without meaning: each option of each dialect is given other legal values than it has in a
 * valid file. Where the real system reads it, either a setting differs then, or the option itself is named as
 * a difference; and a conversion names it too, unless settings carry it. Where a value changes nothing
 * although it is read, the reviewed LISTING says why: "DIALECT OPTION=VALUE # reason", a "*" for any value.
 * UPDATE=1 prints the lines without their reasons. TAP, a test for each dialect. Usage: meaning LISTING
 * FILE... */
#include "compiler/compare/compare.h"
#include "compiler/convert/convert.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTING_BYTES_MAX = 1 << 20, SAMPLES_MAX = 16 };

typedef struct trying {
  nxc_arena *arena;
  nxc_request base;
  nxc_compiled compiled; /* the file itself */
  nxc_side side;
  int n_options, n_tried, n_unread, n_bad;
} trying;

static char *listing;

/* -- listing --------------------------------------------------------------------------------------------- */

static char *read_all(const char *path) {
  FILE *file = fopen(path, "r");
  char *text = calloc(1, LISTING_BYTES_MAX);
  if (file == NULL || text == NULL) return text;
  text[fread(text, 1, LISTING_BYTES_MAX - 1, file)] = '\0';
  fclose(file);
  return text;
}

/* With a reason behind it. */
static bool is_listed(nxc_arena *arena, const char *dialect, const char *option, const char *value) {
  const char *ways[] = {value, "*"};
  for (int i = 0; i < 2; i++) {
    const char *line = nxc_arena_printf(arena, "%s %s=%s # ", dialect, option, ways[i]);
    const char *found = listing ? strstr(listing, line) : NULL;
    if (found != NULL && (found == listing || found[-1] == '\n') && found[strlen(line)] > ' ') return true;
  }
  return false;
}

/* -- samples --------------------------------------------------------------------------------------------- */

static size_t add_samples(const nxc_option_row *row, const char *samples[SAMPLES_MAX]) {
  static const char *const words[][SAMPLES_MAX] = {
      [NXC_TYPE_INT] = {"0", "1", "2", "3", "4", "8", "64", "96", NULL},
      [NXC_TYPE_FLOAT] = {"0.25", "0.5", "0.0", "1.0", "2.0", NULL},
      [NXC_TYPE_INT_OR_FLOAT] = {"1", "2", "0.5", "1.0", "64", NULL},
      [NXC_TYPE_BOOL] = {"true", "false", NULL},
      [NXC_TYPE_BIT] = {"'0'", "'1'", NULL},
      [NXC_TYPE_STR] = {"other", "a b", NULL},
      [NXC_TYPE_PATH] = {"other/place", NULL},
      [NXC_TYPE_LIST] = {"[other]", "[1]", "[{path: other, type: text}]", NULL},
      [NXC_TYPE_LIST_INT] = {"[1]", "[1, 2]", "[2]", NULL},
      [NXC_TYPE_LIST_FLOAT] = {"[0.5]", "[0.5, 0.25]", NULL},
      [NXC_TYPE_LIST_STR] = {"[other]", "[a, b]", NULL},
      [NXC_TYPE_MAP] = {"{other: 1}", NULL},
      [NXC_TYPE_ANY] = {"other", "1", "true", NULL},
      [NXC_TYPE_ENUM] = {NULL},
  };
  size_t n = 0;
  for (; words[row->domain.type][n] != NULL; n++) samples[n] = words[row->domain.type][n];
  for (size_t i = 0; i < row->domain.n_values && n < SAMPLES_MAX; i++) samples[n++] = row->domain.values[i];
  return n;
}

/* -- one value ------------------------------------------------------------------------------------------- */

static bool contains(const char *names, const char *name) {
  size_t n_bytes = strlen(name);
  for (const char *at = names; (at = strstr(at, name)) != NULL; at++)
    if ((at == names || at[-1] == ' ') && (at[n_bytes] == '\0' || at[n_bytes] == ',')) return true;
  return false;
}

static bool is_named(const nxc_comparison *found, const char *name) {
  for (size_t i = 0; i < found->n_items; i++)
    if (!found->items[i].is_setting && strcmp(found->items[i].path, name) == 0) return true;
  return false;
}

static const nxc_beyond *find(const nxc_side *side, const char *name) {
  for (size_t i = 0; i < side->n_beyond; i++)
    if (strcmp(side->beyond[i].name, name) == 0) return &side->beyond[i];
  return NULL;
}

/* Whether the value is another one than before. Where nothing is known to stand before, it may be the one
 * that the settings have anyhow. */
static bool is_another(const nxc_beyond *before, const nxc_beyond *now, size_t n_differences) {
  if (now == NULL || now->value == NULL) return false;
  if (before == NULL || before->value == NULL) return n_differences > 0 || !now->followed;
  return strcmp(before->value, now->value) != 0;
}

/* Whether a conversion says of the option that it was left behind. */
static bool converted(const nxc_request *from, const char *dialect, const char *name, nxc_arena *arena) {
  const nxc_conversion_request request = {.from = *from, .to = strcmp(dialect, "nx") == 0 ? "nxdt" : "nx"};
  nxc_conversion conversion;
  if (!nxc_convert(arena, &request, nxc_sink_new(arena), &conversion)) return true;
  for (size_t i = 0; i < conversion.n_unsaid; i++)
    if (conversion.unsaid[i].name && strcmp(conversion.unsaid[i].name, name) == 0) return true;
  return contains(conversion.left, name);
}

static void complain(trying *t, const char *what, const char *dialect, const char *set) {
  if (getenv("UPDATE")) fprintf(stderr, "%s %s\n", dialect, set);
  tap_note("%s %s: %s", dialect, set, what);
  t->n_bad++;
}

/* False: the system refuses the value here, or it is the one that it has. */
static bool try_value(trying *t, const nxc_option_row *row, const char *value, bool converts) {
  nxc_arena *arena = nxc_arena_new();
  const char *dialect = t->compiled.dialect->name;
  const char *set = nxc_arena_printf(arena, "%s=%s", row->name, value);
  nxc_request request = t->base;
  request.sets = &set;
  request.n_sets = 1;
  nxc_compiled compiled;
  nxc_side side = {0};
  bool good = nxc_compile_settings(arena, &request, nxc_sink_new(arena), &compiled);
  if (good) nxc_side_fill(arena, &side, &compiled);
  const nxc_beyond *now = good ? find(&side, row->name) : NULL;
  nxc_comparison found = {0};
  if (good) found = nxc_compare(arena, &t->side, &side);
  good = good && is_another(find(&t->side, row->name), now, found.n_items);
  if (good && !now->read) {
    t->n_unread++;
  } else if (good) {
    bool same = found.n_items == 0 && !is_listed(arena, dialect, row->name, value);
    if (same) complain(t, "means the same", dialect, set);
    if (converts && is_named(&found, row->name) && !converted(&request, dialect, row->name, arena))
      complain(t, "a conversion loses it", dialect, set);
  }
  nxc_arena_free(arena);
  return good;
}

/* Whether its section is not there, and cannot stand with this option alone: another one is demanded of
 * it. */
static bool needs_another(const trying *t, const nxc_option_row *row) {
  const char *dot = strrchr(row->name, '.');
  size_t n_section = dot ? (size_t)(dot - row->name) + 1 : 0;
  for (size_t i = 0; dot && i < t->compiled.dialect->n_options; i++) {
    const nxc_option_row *other = &t->compiled.dialect->options[i];
    if (other == row || other->required == NULL || strncmp(other->name, row->name, n_section) != 0) continue;
    const nxc_beyond *now = find(&t->side, other->name);
    if (now == NULL || !now->given) return true;
  }
  return false;
}

static void try_option(trying *t, const nxc_option_row *row) {
  const char *samples[SAMPLES_MAX];
  size_t n_samples = add_samples(row, samples), first;
  bool section = nxc_dialect_section(t->compiled.dialect, row->name, &first) > first;
  bool free_form = row->name[strlen(row->name) - 1] == '*', tried = false;
  bool here = nxc_in_version(row->versions, row->n_versions, t->compiled.version);
  if (row->alias_of != NULL || section || free_form || !here) return;
  for (size_t i = 0; i < n_samples; i++) tried = try_value(t, row, samples[i], !tried) || tried;
  if (!tried && needs_another(t, row)) return;
  t->n_options++;
  t->n_tried += tried;
  if (!tried && getenv("NX_VERBOSE")) tap_note("not tried: %s", row->name);
}

static void try_file(const char *file) {
  trying t = {.arena = nxc_arena_new(), .base = {.file = file}};
  nxc_compile_settings(t.arena, &t.base, nxc_sink_new(t.arena), &t.compiled);
  t.base.dialect = t.compiled.dialect->name;
  if (t.compiled.version != NULL)
    t.base.dialect = nxc_arena_printf(t.arena, "%s@%s", t.base.dialect, t.compiled.version);
  nxc_side_fill(t.arena, &t.side, &t.compiled);
  for (size_t i = 0; i < t.compiled.dialect->n_options; i++) try_option(&t, &t.compiled.dialect->options[i]);
  bool good = t.n_bad == 0 && 4 * t.n_tried > 3 * t.n_options;
  tap_report(good, "%s: %d of %d options changed, %d values where they are not read", t.base.dialect,
             t.n_tried, t.n_options, t.n_unread);
  nxc_arena_free(t.arena);
}

int main(int argc, char **argv) {
  listing = argc > 1 ? read_all(argv[1]) : NULL;
  for (int i = 2; i < argc; i++) try_file(argv[i]);
  free(listing);
  return tap_end();
}
