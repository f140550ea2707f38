/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg init: looks at what is below this folder, writes a project file for it, and says what it found. It
 * asks nothing, and replaces nothing. */
#include "compiler/commands/commands.h"
#include "compiler/commands/folders.h"
#include "compiler/commands/judged.h"
#include "compiler/commands/output.h"
#include "compiler/config/project.h"
#include "compiler/diagnostics/characters.h"
#include "compiler/document/canon.h"
#include "compiler/render/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: nxcfg init\n"
    "Looks at the configurations below this folder and writes " NXC_PROJECT_FILE ": which\n"
    "files are of which system, which folders hold none, and the world size where a\n"
    "Slurm script says one. What is there already is not replaced.\n";

/* A file that was found, without the leading ./ */
typedef struct found {
  const char *name;
  const char *dialect; /* NULL: no training's */
  bool sized;          /* it tells its world size itself */
  bool part;           /* it is given together with others */
} found;

typedef struct survey {
  nxc_arena *arena;
  found *files;
  size_t n_files, n_trainings;
  int64_t world; /* that Slurm scripts ask for; 0: none does, -1: several do, and differ */
} survey;

static size_t folder_bytes(const char *name) {
  const char *slash = strrchr(name, '/');
  return slash ? (size_t)(slash + 1 - name) : 0;
}

static const char *ending(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot ? dot : "";
}

/* -- looking --------------------------------------------------------------------------------------------- */

static void look_at(survey *s, const char *path) {
  static const nxc_options options;
  static const nxc_standard standard = {.options = &options};
  nxc_judged judged = {.arena = nxc_arena_new()};
  nxc_judge(&judged, &standard, path, true);
  const nxc_compiled *compiled = &judged.compiled;
  bool training = !compiled->foreign && compiled->dialect != NULL && !compiled->unreadable;
  found *at = &s->files[s->n_files++];
  const nxc_binding *binding = compiled->binding;
  *at = (found){.part = training && binding != NULL && binding->elsewhere && !compiled->document->open,
                .name = strncmp(path, "./", 2) == 0 ? path + 2 : path,
                .dialect = training ? compiled->dialect->name : NULL,
                .sized = training && compiled->settings != NULL &&
                         nxc_settings_known(compiled->settings, NX_SETTING_MESH_WORLD)};
  s->n_trainings += training;
  nxc_arena_free(judged.arena);
}

/* The number behind an option of Slurm; 0: it is not in the text. */
static int64_t slurm_number(const char *text, const char *option) {
  for (const char *at = text; (at = strstr(at, "#SBATCH")) != NULL; at += 7) {
    const char *end = at + strcspn(at, "\n"), *there = strstr(at, option);
    if (there == NULL || there > end) continue;
    there += strlen(option);
    there += strspn(there, "= ");
    return strtoll(there, NULL, 10);
  }
  return 0;
}

static void read_slurm(survey *s, const char *path) {
  enum { BYTES_MAX = 1024 * 1024 };
  const nxc_source *source = nxc_source_read_file(s->arena, path, BYTES_MAX);
  if (source == NULL || strstr(source->text, "#SBATCH") == NULL) return;
  int64_t n_nodes = slurm_number(source->text, "--nodes"),
          n_each = slurm_number(source->text, "--gpus-per-node");
  if (n_nodes == 0) n_nodes = slurm_number(source->text, "-N");
  if (n_each == 0) n_each = slurm_number(source->text, "--gres=gpu:");
  if (n_each == 0) n_each = slurm_number(source->text, "--ntasks-per-node");
  int64_t world = n_nodes * n_each;
  if (world <= 0 || world > 1 << 24) return;
  s->world = s->world == 0 || s->world == world ? world : -1;
}

/* -- writing --------------------------------------------------------------------------------------------- */

/* Whether every file of that folder and ending is of one dialect. */
static bool is_uniform(const survey *s, const found *of) {
  size_t n_folder = folder_bytes(of->name);
  for (size_t i = 0; i < s->n_files; i++) {
    const found *other = &s->files[i];
    bool beside = folder_bytes(other->name) == n_folder && strncmp(other->name, of->name, n_folder) == 0 &&
                  strcmp(ending(other->name), ending(of->name)) == 0;
    if (beside && (other->dialect == NULL || strcmp(other->dialect, of->dialect) != 0)) return false;
  }
  return true;
}

/* The pattern that these bytes of a name alone fit. */
static const char *literal(nxc_arena *arena, const char *name, size_t n_bytes) {
  char *text = nxc_arena_alloc(arena, 2 * n_bytes + 1), *to = text;
  for (size_t i = 0; i < n_bytes; i++) {
    if (strchr("*?[\\", name[i]) != NULL) *to++ = '\\';
    *to++ = name[i];
  }
  *to = '\0';
  return text;
}

static const char *pattern_of(const survey *s, const found *of) {
  if (!is_uniform(s, of)) return literal(s->arena, of->name, strlen(of->name));
  size_t n_folder = folder_bytes(of->name);
  const char *end = ending(of->name);
  return nxc_arena_printf(s->arena, "%s*%s", literal(s->arena, of->name, n_folder),
                          literal(s->arena, end, strlen(end)));
}

/* As a text of YAML, behind what begins its line. */
static void write_pattern(nxc_buffer *out, const char *before, const char *pattern) {
  nxc_buffer_puts(out, before);
  nxc_write_json_string(out, pattern, strlen(pattern), false);
  nxc_buffer_puts(out, "\n");
}

static void write_entries(survey *s, nxc_buffer *out) {
  const char *written = "\n";
  nxc_buffer_puts(out, "files:\n");
  for (size_t i = 0; i < s->n_files; i++) {
    const found *at = &s->files[i];
    if (at->dialect == NULL) continue;
    const char *pattern = pattern_of(s, at), *line = nxc_arena_printf(s->arena, "\n%s\n", pattern);
    if (strstr(written, line) != NULL) continue;
    written = nxc_arena_printf(s->arena, "%s%s", written, line + 1);
    const char *size = !at->sized && s->world > 0
                           ? nxc_arena_printf(s->arena, "    world_size: %lld\n", (long long)s->world)
                           : "";
    write_pattern(out, "  - match: ", pattern);
    nxc_buffer_puts(out, nxc_arena_printf(s->arena, "    dialect: %s\n%s", at->dialect, size));
    printf("  %-40s %s\n", nxc_characters_shown(s->arena, pattern), at->dialect);
  }
}

/* Files that are completed by others are judged as parts. */
static void write_parts(survey *s, nxc_buffer *out) {
  size_t n_parts = 0;
  for (size_t i = 0; i < s->n_files; i++) {
    if (!s->files[i].part) continue;
    if (n_parts++ == 0) nxc_buffer_puts(out, "  - match:\n");
    write_pattern(out, "      - ", literal(s->arena, s->files[i].name, strlen(s->files[i].name)));
  }
  if (n_parts == 0) return;
  nxc_buffer_puts(out, "    partial: true\n");
  printf("  %-40s parts of configurations, judged so\n",
         nxc_arena_printf(s->arena, "%zu file%s", n_parts, n_parts == 1 ? "" : "s"));
}

/* The folders below which nothing is a training's, from the top; each once. */
static void write_excluded(survey *s, nxc_buffer *out) {
  const char *written = "\n";
  for (size_t i = 0; i < s->n_files; i++) {
    const char *name = s->files[i].name;
    size_t n_folder = strcspn(name, "/");
    bool training = name[n_folder] == '\0';
    for (size_t k = 0; k < s->n_files && !training; k++)
      training = s->files[k].dialect != NULL && strncmp(s->files[k].name, name, n_folder + 1) == 0;
    const char *line = nxc_arena_printf(s->arena, "\n%.*s/\n", (int)n_folder, name);
    if (training || strstr(written, line) != NULL) continue;
    if (written[1] == '\0') nxc_buffer_puts(out, "exclude:\n");
    written = nxc_arena_printf(s->arena, "%s%s", written, line + 1);
    const char *pattern = literal(s->arena, name, n_folder + 1);
    write_pattern(out, "  - ", pattern);
    printf("  %-40s no training: excluded\n", nxc_characters_shown(s->arena, pattern));
  }
}

static int init(nxc_arena *arena) {
  const char *here[] = {"."};
  nxc_found_files all;
  if (access(NXC_PROJECT_FILE, F_OK) == 0) {
    fprintf(stderr, "nxcfg init: %s is there already\n", NXC_PROJECT_FILE);
    return NXC_EXIT_USAGE;
  }
  if (!nxc_folders_expand(arena, "init", &(nxc_texts){here, 1}, &all)) return NXC_EXIT_USAGE;
  survey s = {.arena = arena, .files = nxc_arena_array(arena, all.names.n_items + 1, sizeof *s.files)};
  for (size_t i = 0; i < all.names.n_items; i++) {
    look_at(&s, all.names.items[i]);
    read_slurm(&s, all.names.items[i]);
  }
  if (s.n_trainings == 0) {
    fprintf(stderr, "nxcfg init: none of %zu files below this folder is a training configuration\n",
            s.n_files);
    return NXC_EXIT_USAGE;
  }
  printf("%zu of %zu files are training configurations\n", s.n_trainings, s.n_files);
  nxc_buffer out = {.arena = arena};
  nxc_buffer_puts(&out,
                  "# What the configurations of this repository have in common: nxcfg(1), PROJECT FILE.\n");
  write_excluded(&s, &out);
  write_entries(&s, &out);
  write_parts(&s, &out);
  if (!nxc_output_write(arena, "init", NXC_PROJECT_FILE, out.bytes, out.n_bytes)) return NXC_EXIT_USAGE;
  printf("wrote %s; now: nxcfg validate .\n", NXC_PROJECT_FILE);
  return NXC_EXIT_GOOD;
}

int nxc_command_init(int argc, char **argv) {
  if (argc > 1) {
    bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    nxc_print_usage(help ? stdout : stderr, usage);
    return help ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
  }
  nxc_arena *arena = nxc_arena_new();
  int status = init(arena);
  nxc_arena_free(arena);
  return status;
}
