/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/handover.h"

#include "compiler/settings/programs.h"

#include <string.h>
#include <sys/stat.h>

typedef struct reading {
  nxc_arena *arena;
  const char *script;
  nxc_handover *to;
  bool missing;
} reading;

static void add(reading *r, const char ***items, size_t *n_items, const char *item) {
  *items = nxc_arena_grow(r->arena, *items, *n_items, sizeof **items);
  (*items)[(*n_items)++] = item;
}

static bool is_file(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Scripts run in the folder of their project, which is above them more often than not. */
static void add_file(reading *r, const char *path) {
  static const char *const above[] = {"", "../", "../../", "../../../"};
  const char *slash = r->script ? strrchr(r->script, '/') : NULL;
  const char *folder = slash ? nxc_arena_strndup(r->arena, r->script, (size_t)(slash - r->script) + 1) : "";
  const char *found = is_file(path) ? path : NULL;
  for (size_t i = 0; found == NULL && *path != '/' && i < sizeof above / sizeof *above; i++) {
    const char *beside = nxc_arena_printf(r->arena, "%s%s%s", folder, above[i], path);
    if (is_file(beside)) found = beside;
  }
  if (found == NULL) r->missing = true;
  else add(r, &r->to->files, &r->to->n_files, found);
}

static bool ends_in(const char *text, const char *end) {
  size_t n_text = strlen(text), n_end = strlen(end);
  return n_text > n_end && strcmp(text + n_text - n_end, end) == 0;
}

/* The value of --NAME=VALUE or --NAME VALUE at *i, which is moved to its last word; NULL: something else. */
static const char *value_of(const nxc_document *document, size_t *i, const char *name) {
  const char *word = document->words[*i];
  size_t n_name = strlen(name);
  if (strncmp(word, name, n_name) != 0) return NULL;
  if (word[n_name] == '=') return word + n_name + 1;
  return word[n_name] == '\0' && *i + 1 < document->n_words ? document->words[++*i] : NULL;
}

/* deepy.py SCRIPT [-d FOLDER] FILE...; a name without an ending is a .yml. */
static void read_neox(reading *r, const nxc_document *document) {
  const char *folder = NULL;
  for (size_t i = 1; i < document->n_words; i++) {
    const char *word = document->words[i], *value = value_of(document, &i, "--conf_dir");
    if (value == NULL) value = value_of(document, &i, "-d");
    if (value != NULL) {
      folder = value;
      continue;
    }
    if (*word == '-') break; /* what follows belongs to the program */
    bool whole = ends_in(word, ".yml") || ends_in(word, ".yaml") || ends_in(word, ".json");
    const char *path = nxc_arena_printf(r->arena, "%s%s", word, whole ? "" : ".yml");
    add_file(r, folder ? nxc_arena_printf(r->arena, "%s/%s", folder, path) : path);
  }
}

/* --config-path FOLDER --config-name NAME, and Hydra's overrides. */
static void read_nxdt(reading *r, const nxc_document *document) {
  const char *folder = "conf", *name = NULL;
  for (size_t i = 0; i < document->n_words; i++) {
    const char *path = value_of(document, &i, "--config-path");
    const char *value = value_of(document, &i, "--config-name");
    if (path != NULL) folder = path;
    else if (value != NULL) name = value;
    else if (strchr(document->words[i], '=') != NULL && *document->words[i] != '-')
      add(r, &r->to->overrides, &r->to->n_overrides, document->words[i]);
  }
  if (name == NULL) return;
  const char *end = ends_in(name, ".yaml") ? "" : ".yaml";
  add_file(r, nxc_arena_printf(r->arena, "%s/%s%s", folder, name, end));
}

static void read_xorl(reading *r, const nxc_document *document) {
  if (document->n_words == 0 || *document->words[0] == '-') return;
  add_file(r, document->words[0]);
  for (size_t i = 1; i < document->n_words; i++)
    add(r, &r->to->arguments, &r->to->n_arguments, document->words[i]);
}

bool nxc_handover_read(nxc_arena *arena, const nxc_document *document, const char *script,
                       nxc_handover *handover) {
  static const struct {
    const char *system;
    void (*read)(reading *r, const nxc_document *document);
  } systems[] = {{"neox", read_neox}, {"nxdt", read_nxdt}, {"xorl", read_xorl}};
  reading r = {.arena = arena, .script = script, .to = handover};
  const nxc_program_row *program = document->program;
  *handover = (nxc_handover){0};
  if (program == NULL || program->use != NXC_PROGRAM_READS) return false;
  for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
    if (strcmp(systems[i].system, program->system) == 0) systems[i].read(&r, document);
  if (r.missing || handover->n_files == 0) {
    *handover = (nxc_handover){0};
    return false;
  }
  handover->shown = nxc_arena_printf(arena, "%s (%s) with", program->what, document->program_name);
  for (size_t i = 0; i < handover->n_files; i++)
    handover->shown =
        nxc_arena_printf(arena, "%s%s %s", handover->shown, i ? "," : "", handover->files[i]);
  return true;
}
