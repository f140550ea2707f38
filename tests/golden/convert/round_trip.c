/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings that go into every other dialect and back, as TAP. A line for each pair of dialects says what the
 * other cannot say, what it refuses (ids of findings), and what is lost on the way back although it was said;
 * behind each name stands how many files it is about. The lines must be those of the reviewed LISTING;
 * UPDATE=1 rewrites it. The numbers of settings kept stand in comments.
 * Usage: round_trip LISTING FILE...  or, for the files of $NX_SHARED/corpora: round_trip LISTING */
#include "compiler/convert/convert.h"
#include "tests/tap.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIALECTS = 5, NAMES_MAX = 200, LINE_MAX_BYTES = 8192, LAYERS_MAX = 8 };
static const char *const dialects[DIALECTS] = {"nx", "nxdt", "megatron", "neox", "xorl"};

/* -- what is counted ------------------------------------------------------------------------------------- */

typedef struct counted_name {
  char name[80];
  int count;
} counted_name;

typedef struct tally {
  counted_name items[NAMES_MAX];
  int n_items;
} tally;

typedef struct pair {
  int n_files, n_back;    /* converted; and converted back */
  size_t n_said, n_kept;  /* settings, on the way there and on the way back */
  tally unsaid, refused, lost;
} pair;

static pair pairs[DIALECTS][DIALECTS];

static void count(tally *to, const char *name) {
  int i = 0;
  while (i < to->n_items && strcmp(to->items[i].name, name) != 0) i++;
  if (i == NAMES_MAX) return;
  if (i == to->n_items) snprintf(to->items[to->n_items++].name, sizeof to->items[0].name, "%s", name);
  to->items[i].count++;
}

static int index_of(const char *dialect) {
  for (int i = 0; i < DIALECTS; i++)
    if (strcmp(dialects[i], dialect) == 0) return i;
  return -1;
}

/* -- one file -------------------------------------------------------------------------------------------- */

static bool is_unsaid(const nxc_conversion *conversion, const char *name) {
  for (size_t i = 0; i < conversion->n_unsaid; i++)
    if (conversion->unsaid[i].name != NULL && strcmp(conversion->unsaid[i].name, name) == 0) return true;
  return false;
}

/* What the settings do not tell: xorl's datasets. */
static const char *const datasets[] = {"data.datasets=[{path: data, type: tokenized}]"};

static void come_back(nxc_arena *arena, const nxc_conversion *there, const char *home, pair *counted) {
  nxc_conversion_request request = {.to = home, .model_path = "config.json", .reveal = true};
  request.from.text = nxc_source_new(arena, "there", there->text, strlen(there->text));
  request.from.dialect = there->dialect;
  request.from.world_size = there->world_size;
  if (strcmp(there->dialect, "xorl") == 0) {
    request.from.sets = datasets;
    request.from.n_sets = 1;
  }
  if (there->model_text != NULL)
    request.from.model_text =
        nxc_source_new(arena, "config.json", there->model_text, strlen(there->model_text));
  nxc_conversion back;
  if (!nxc_convert(arena, &request, nxc_sink_new(arena), &back)) return;
  counted->n_back++;
  counted->n_kept += back.n_said;
  for (size_t i = 0; i < back.n_unsaid; i++)
    if (back.unsaid[i].name != NULL && !back.unsaid[i].is_option && !is_unsaid(there, back.unsaid[i].name))
      count(&counted->lost, back.unsaid[i].name);
}

static void convert(nxc_arena *arena, const nxc_request *from, const char *home, const char *to) {
  const nxc_conversion_request request = {
      .from = *from, .to = to, .model_path = "config.json", .reveal = true, .anew = true};
  nxc_conversion there;
  if (!nxc_convert(arena, &request, nxc_sink_new(arena), &there)) return;
  pair *counted = &pairs[index_of(home)][index_of(to)];
  counted->n_files++;
  counted->n_said += there.n_said;
  for (size_t i = 0; i < there.n_unsaid; i++) {
    const nxc_unsaid *one = &there.unsaid[i];
    if (one->is_option) continue; /* meaning.c looks at those */
    if (one->name != NULL) count(&counted->unsaid, one->name);
    else count(&counted->refused, one->finding);
  }
  come_back(arena, &there, home, counted);
}

static void convert_to_all(const nxc_request *from, const char *dialect) {
  for (int i = 0; i < DIALECTS; i++) {
    nxc_arena *arena = nxc_arena_new();
    convert(arena, from, dialect, dialects[i]);
    nxc_arena_free(arena);
  }
}

/* -- the files ------------------------------------------------------------------------------------------- */

static void add_file(const char *path) {
  nxc_arena *arena = nxc_arena_new();
  const char *dialect = "";
  for (int i = 0; i < DIALECTS; i++)
    if (strstr(path, nxc_arena_printf(arena, "/%s/", dialects[i])) != NULL) dialect = dialects[i];
  bool launched = strcmp(dialect, "xorl") == 0;
  const nxc_request request = {.file = path, .dialect = dialect, .world_size = launched ? "2" : NULL};
  convert_to_all(&request, dialect);
  nxc_arena_free(arena);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_folder(const char *folder) {
  const char *paths[256];
  int n_paths = 0;
  nxc_arena *arena = nxc_arena_new();
  DIR *entries = opendir(folder);
  for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
    if (strstr(entry->d_name, ".yaml") != NULL && n_paths < 256)
      paths[n_paths++] = nxc_arena_printf(arena, "%s/%s", folder, entry->d_name);
  if (entries != NULL) closedir(entries);
  qsort(paths, (size_t)n_paths, sizeof *paths, compare_names);
  for (int i = 0; i < n_paths; i++) add_file(paths[i]);
  nxc_arena_free(arena);
}

/* "64|configs/a.yml+configs/b.yml" */
static void add_neox(const char *folder, const char *key) {
  nxc_arena *arena = nxc_arena_new();
  const char *layers[LAYERS_MAX], *first = NULL;
  size_t n_layers = 0;
  char *files = nxc_arena_strdup(arena, strchr(key, '|') + 1);
  for (char *file = strtok(files, "+"); file != NULL && n_layers < LAYERS_MAX; file = strtok(NULL, "+")) {
    const char *path = nxc_arena_printf(arena, "%s/%s", folder, file);
    if (first == NULL) first = path;
    else layers[n_layers++] = path;
  }
  const nxc_request request = {.file = first,
                               .layers = layers,
                               .n_layers = n_layers,
                               .dialect = "neox",
                               .world_size = nxc_arena_strndup(arena, key, strcspn(key, "|"))};
  convert_to_all(&request, "neox");
  nxc_arena_free(arena);
}

static void add_megatron(const json_t *one) {
  nxc_arena *arena = nxc_arena_new();
  const json_t *words = json_object_get(one, "argv");
  const char **arguments = nxc_arena_array(arena, json_array_size(words) + 1, sizeof *arguments);
  for (size_t i = 0; i < json_array_size(words); i++)
    arguments[i] = json_string_value(json_array_get(words, i));
  int world = (int)json_integer_value(json_object_get(one, "world_size"));
  const nxc_request request = {.arguments = arguments,
                               .n_arguments = json_array_size(words),
                               .dialect = "megatron",
                               .world_size = nxc_arena_printf(arena, "%d", world)};
  convert_to_all(&request, "megatron");
  nxc_arena_free(arena);
}

static bool add_corpora(const char *shared) {
  char path[512];
  const char *key;
  json_t *value;
  snprintf(path, sizeof path, "%s/corpora/nxdt", shared);
  add_folder(path);
  snprintf(path, sizeof path, "%s/corpora/neox/expected.json", shared);
  json_t *neox = json_load_file(path, 0, NULL);
  snprintf(path, sizeof path, "%s/corpora/megatron/expected.json", shared);
  json_t *megatron = json_load_file(path, 0, NULL);
  snprintf(path, sizeof path, "%s/corpora/neox", shared);
  json_object_foreach(neox, key, value) add_neox(path, key);
  json_object_foreach(megatron, key, value) add_megatron(value);
  bool good = neox != NULL && megatron != NULL;
  json_decref(neox);
  json_decref(megatron);
  return good;
}

/* -- the report ------------------------------------------------------------------------------------------ */

static int compare_counted(const void *a, const void *b) {
  return strcmp(((const counted_name *)a)->name, ((const counted_name *)b)->name);
}

static void put_tally(char *line, const char *label, tally *from) {
  if (from->n_items == 0) return;
  qsort(from->items, (size_t)from->n_items, sizeof *from->items, compare_counted);
  char *end = line + strlen(line);
  size_t n_left = LINE_MAX_BYTES - (size_t)(end - line);
  int n = snprintf(end, n_left, "; %s", label);
  for (int i = 0; i < from->n_items; i++)
    n += snprintf(end + n, n_left - (size_t)n, " %s:%d", from->items[i].name, from->items[i].count);
}

static void show(char *line, int home, int to) {
  pair *counted = &pairs[home][to];
  snprintf(line, LINE_MAX_BYTES, "%s to %s: %d files, %d of them back", dialects[home], dialects[to],
           counted->n_files, counted->n_back);
  put_tally(line, "unsaid", &counted->unsaid);
  put_tally(line, "refused", &counted->refused);
  put_tally(line, "lost on the way back", &counted->lost);
}

/* The next line of the listing that is no comment; "" at its end. */
static void next_line(FILE *listing, char *line) {
  do {
    line[0] = '\0';
    if (listing == NULL || fgets(line, LINE_MAX_BYTES, listing) == NULL) return;
    line[strcspn(line, "\n")] = '\0';
  } while (line[0] == '#' || line[0] == '\0');
}

/* The comments at the head of the listing stay. */
static FILE *rewrite(const char *path) {
  static char head[LINE_MAX_BYTES];
  FILE *old = fopen(path, "r");
  size_t n_bytes = 0;
  char line[LINE_MAX_BYTES];
  while (old != NULL && fgets(line, sizeof line, old) != NULL && line[0] == '#')
    n_bytes += (size_t)snprintf(head + n_bytes, sizeof head - n_bytes, "%s", line);
  if (old != NULL) fclose(old);
  FILE *listing = fopen(path, "w");
  if (listing != NULL) fputs(head, listing);
  return listing;
}

int main(int argc, char **argv) {
  const char *shared = getenv("NX_SHARED");
  if (argc < 2 || (argc == 2 && shared == NULL))
    return argc < 2 ? 2 : tap_skip_all("NX_SHARED names no folder with corpora");
  for (int i = 2; i < argc; i++) add_file(argv[i]);
  if (argc == 2 && !add_corpora(shared)) tap_bail("the corpora are not there");
  FILE *listing = getenv("UPDATE") ? NULL : fopen(argv[1], "r");
  FILE *rewritten = getenv("UPDATE") ? rewrite(argv[1]) : NULL;
  static char line[LINE_MAX_BYTES], wanted[LINE_MAX_BYTES];
  for (int home = 0; home < DIALECTS; home++) {
    for (int to = 0; to < DIALECTS; to++) {
      if (pairs[home][to].n_files == 0) continue;
      show(line, home, to);
      if (rewritten != NULL) fprintf(rewritten, "%s\n", line);
      else next_line(listing, wanted);
      bool good = rewritten != NULL || strcmp(line, wanted) == 0;
      tap_note("%zu settings said there, %zu on the way back", pairs[home][to].n_said,
               pairs[home][to].n_kept);
      if (!good) tap_note("wanted %s", wanted), tap_note("found  %s", line);
      tap_report(good, "%s to %s", dialects[home], dialects[to]);
    }
  }
  if (listing != NULL) fclose(listing);
  if (rewritten != NULL) fclose(rewritten);
  return tap_end();
}
