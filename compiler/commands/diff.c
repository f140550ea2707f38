/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg diff: how two configurations or plans differ, setting by setting (compare.h). A plan brings its
 * settings, a configuration is compiled. */
#include "compiler/commands/commands.h"
#include "compiler/commands/diff.h"
#include "compiler/commands/folders.h"
#include "compiler/program/program.h"
#include "compiler/render/render.h"
#include "schema/plan.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: nxcfg diff A B [options]\n"
    "       nxcfg diff --git REVISION FILE... [options]\n"
    "Compares two configurations, two plans, or one of each by meaning, and says of every difference what a\n"
    "checkpoint of A is worth to B; then what a rank of each needs and takes. Options apply to "
    "configurations. Of two folders each file is compared with that of its name.\n"
    "Exit status: 0 the same, 1 different, 2 trouble.\n"
    "  --git REVISION       compare each FILE, or those below a folder, with what it was\n"
    "                       at this revision of its repository\n"
    "  --format FORMAT      text, json, github (annotations) or markdown (a comment)\n"
    "  --machine FILE       tell the time of a step on the machine that FILE describes\n"
    "  --assume KEY=VALUE   assume it for the estimates where nothing gives it (repeatable); none assumes "
    "nothing\n";

enum { PLAN_BYTES_MAX = 1 << 30 };

/* -- sides ----------------------------------------------------------------------------------------------- */

static const char *plan_from(nxc_arena *arena, const nx_plan *plan, uint32_t setting) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PROVENANCES]; i++) {
    const nx_provenance *from = &plan->provenances[i];
    if (from->setting != setting) continue;
    const char *file = nx_plan_text(plan, from->file);
    if (from->line == 0) return nx_plan_text(plan, from->kind);
    return nxc_arena_printf(arena, "%s:%u", file, from->line);
  }
  return "";
}

static void tell(const nxc_diff *c, nxc_sink *sink) {
  nxc_render render = nxc_options_render(c->options);
  render.format = NXC_FORMAT_TEXT;
  if (c->wrong == NULL) {
    nxc_sink_print(sink, &render, stderr);
    return;
  }
  json_t *findings = nxc_findings_to_json(sink);
  json_array_extend(c->wrong, findings);
  json_decref(findings);
}

static bool read_plan(nxc_diff *c, nxc_diff_side *s, const nxc_source *file) {
  nx_plan plan;
  nx_fault fault;
  /* the reader wants 8-byte alignment, which the arena gives */
  void *bytes = nxc_arena_alloc(c->arena, file->n_bytes);
  memcpy(bytes, file->text, file->n_bytes);
  if (!nx_plan_check(bytes, file->n_bytes, &plan, &fault)) {
    nxc_sink *sink = nxc_sink_new(c->arena);
    nxc_report(sink, "NX1500", NXC_SEVERITY_ERROR, (nxc_span){0}, "make the plan again",
               "%s is no valid plan: %s (byte %llu)", s->name, fault.text, (unsigned long long)fault.offset);
    tell(c, sink);
    return false;
  }
  for (uint32_t i = 0; i < plan.n[NX_SECTION_SETTINGS]; i++) {
    const nxc_compared_value value = {nx_plan_text(&plan, plan.settings[i].path),
                                      nx_plan_text(&plan, plan.settings[i].value),
                                      plan_from(c->arena, &plan, i)};
    nxc_side_add(c->arena, &s->values, &value);
  }
  nxc_estimate estimate = nxc_estimate_of_plan(c->asked, &plan, c->arena, nxc_sink_new(c->arena));
  s->columns[1] = nxc_nxrun_column(&estimate, &plan);
  return true;
}

static void estimate_configuration(nxc_diff *c, nxc_diff_side *s, const nxc_request *request) {
  nxc_sink *obstacles = nxc_sink_new(c->arena), *silent = nxc_sink_new(c->arena);
  nxc_plan_bytes bytes;
  const nx_plan *plan =
      nxc_program_compile(s->compiled.settings, c->arena, obstacles, &bytes) ? &bytes.plan : NULL;
  nxc_estimate estimate = plan ? nxc_estimate_of_plan(c->asked, plan, c->arena, silent) : (nxc_estimate){0};
  estimate.own = nxc_own_estimate_make(c->asked, request, c->arena);
  s->lacks = estimate.own.lacks;
  s->columns[0] = nxc_own_column(&estimate.own);
  s->columns[1] = nxc_nxrun_column(&estimate, plan);
}

static bool read_configuration(nxc_diff *c, nxc_diff_side *s) {
  nxc_sink *sink = nxc_sink_new(c->arena);
  nxc_request request = nxc_options_request(c->options, s->file);
  request.text = s->text;
  nxc_request_keep(c->arena, &request);
  if (c->options->warnings_are_errors) nxc_sink_warnings_are_errors(sink);
  bool good = nxc_compile_settings(c->arena, &request, sink, &s->compiled);
  if (!good) {
    tell(c, sink);
    fprintf(stderr, "nxcfg diff: %s has errors, so its meaning is not known\n", s->name);
    return false;
  }
  nxc_side_fill(c->arena, &s->values, &s->compiled);
  estimate_configuration(c, s, &request);
  return true;
}

/* A plan or a configuration, read once. */
static bool read_side(nxc_diff *c, nxc_diff_side *s) {
  if (s->text == NULL) s->text = nxc_source_read(c->arena, s->file, PLAN_BYTES_MAX);
  bool plan = s->text != NULL && s->text->n_bytes >= 8 && memcmp(s->text->text, NX_PLAN_MAGIC, 8) == 0;
  return plan ? read_plan(c, s, s->text) : read_configuration(c, s);
}

/* -- pairs ----------------------------------------------------------------------------------------------- */

/* What is compared in all: of folders each file with that of its name. */
typedef struct pairs {
  nxc_arena *arena;
  const nxc_options *options;
  const nxc_estimate_request *asked;
  nxc_diff_format format;
  const char *revision; /* --git; NULL: files are compared with files */
  json_t *list;         /* of the comparisons as JSON, where that is asked for */
  bool many;
  int status;
} pairs;

static void settle(pairs *p, int status) {
  if (status > p->status) p->status = status;
}

static void compare_pair(pairs *p, nxc_diff_side a, nxc_diff_side b) {
  nxc_diff c = {.arena = p->arena, .options = p->options, .asked = p->asked, .sides = {a, b}};
  bool good = true;
  if (p->format == NXC_DIFF_JSON) c.wrong = json_array();
  for (int i = 0; i < 2; i++) good = read_side(&c, &c.sides[i]) && good;
  if (!good && c.wrong != NULL)
    json_array_append_new(p->list,
                          json_pack("{s:s, s:s, s:O}", "a", a.name, "b", b.name, "diagnostics", c.wrong));
  json_decref(c.wrong);
  if (!good) {
    settle(p, NXC_EXIT_USAGE);
    return;
  }
  c.found = nxc_compare(p->arena, &c.sides[0].values, &c.sides[1].values);
  if (p->format == NXC_DIFF_JSON) json_array_append_new(p->list, nxc_diff_json(&c));
  else nxc_diff_print(&c, p->format);
  settle(p, c.found.n_items > 0 ? NXC_EXIT_FOUND : NXC_EXIT_GOOD);
}

static nxc_diff_side side_of(const char *file) {
  return (nxc_diff_side){.name = file, .file = file};
}

/* What has no other to be compared with. */
static void report_alone(pairs *p, const char *file, const char *where) {
  if (p->format == NXC_DIFF_JSON)
    json_array_append_new(p->list, json_pack("{s:s, s:s}", "file", file, "only", where));
  else if (p->format == NXC_DIFF_MARKDOWN) printf("**%s** is only in %s.\n\n", file, where);
  else printf("%s is only in %s\n", file, where);
  settle(p, NXC_EXIT_FOUND);
}

static void compare_with_revision(pairs *p, const char *file) {
  bool absent;
  nxc_diff_side before = side_of(file);
  before.text = nxc_revision_read(p->arena, p->revision, file, &absent);
  if (before.text != NULL) before.name = before.text->name;
  if (before.text != NULL && access(file, F_OK) != 0) report_alone(p, file, p->revision);
  else if (before.text != NULL) compare_pair(p, before, side_of(file));
  else if (absent) report_alone(p, file, "the working tree");
  else settle(p, NXC_EXIT_USAGE);
}

static bool is_folder(const char *name) {
  struct stat status;
  return stat(name, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Whether the file is a training's: folders hold much else. */
static bool is_training(const pairs *p, const char *file, const nxc_source *text) {
  nxc_request request = nxc_options_request(p->options, file);
  nxc_compiled compiled;
  request.text = text;
  request.searched = request.judges_only = true;
  nxc_compile_settings(p->arena, &request, nxc_sink_new(p->arena), &compiled);
  return !compiled.foreign;
}

static const char *below(const char *file, const char *folder) {
  if (strcmp(folder, ".") == 0 || strcmp(folder, "./") == 0) return file; /* it is not shown */
  const char *rest = file + strlen(folder);
  return *rest == '/' ? rest + 1 : rest;
}

static void compare_folders(pairs *p, const char *a, const char *b) {
  nxc_found_files of_a, of_b;
  const char *first[] = {a}, *second[] = {b};
  if (!nxc_folders_expand(p->arena, "diff", &(nxc_texts){first, 1}, &of_a) ||
      !nxc_folders_expand(p->arena, "diff", &(nxc_texts){second, 1}, &of_b)) {
    settle(p, NXC_EXIT_USAGE);
    return;
  }
  size_t i = 0, k = 0;
  while (i < of_a.names.n_items || k < of_b.names.n_items) {
    const char *left = i < of_a.names.n_items ? of_a.names.items[i] : NULL,
               *right = k < of_b.names.n_items ? of_b.names.items[k] : NULL;
    int order = !left ? 1 : !right ? -1 : strcmp(below(left, a), below(right, b));
    i += order <= 0;
    k += order >= 0;
    if (!is_training(p, order > 0 ? right : left, NULL)) continue;
    if (order == 0) compare_pair(p, side_of(left), side_of(right));
    else report_alone(p, order < 0 ? left : right, order < 0 ? a : b);
  }
}

/* What was below the folder at the revision, and is no more. */
static void report_gone(pairs *p, const char *folder) {
  nxc_texts names;
  bool absent, here = strcmp(folder, ".") == 0;
  if (!nxc_revision_list(p->arena, p->revision, folder, &names)) settle(p, NXC_EXIT_USAGE);
  for (size_t i = 0; i < names.n_items; i++) {
    const char *file = here ? names.items[i] : nxc_arena_printf(p->arena, "%s/%s", folder, names.items[i]);
    if (!nxc_folders_take(file) || access(file, F_OK) == 0) continue;
    const nxc_source *text = nxc_revision_read(p->arena, p->revision, file, &absent);
    if (text != NULL && is_training(p, file, text)) report_alone(p, file, p->revision);
  }
}

static void compare_with_revisions(pairs *p, const nxc_texts *files, const nxc_found_files *found) {
  p->many = found->names.n_items != 1;
  for (size_t i = 0; i < found->names.n_items; i++)
    if (!found->below[i] || is_training(p, found->names.items[i], NULL))
      compare_with_revision(p, found->names.items[i]);
  for (size_t i = 0; i < files->n_items; i++)
    if (is_folder(files->items[i])) report_gone(p, files->items[i]);
}

static void compare_all(pairs *p) {
  const nxc_texts *files = &p->options->files;
  nxc_found_files found;
  if (p->revision == NULL && is_folder(files->items[0]) && is_folder(files->items[1])) {
    p->many = true;
    compare_folders(p, files->items[0], files->items[1]);
  } else if (p->revision == NULL) {
    compare_pair(p, side_of(files->items[0]), side_of(files->items[1]));
  } else if (!nxc_folders_expand(p->arena, "diff", files, &found)) {
    settle(p, NXC_EXIT_USAGE);
  } else {
    compare_with_revisions(p, files, &found);
  }
}

static int diff(pairs *p) {
  p->list = p->format == NXC_DIFF_JSON ? json_array() : NULL;
  compare_all(p);
  if (p->list == NULL) return p->status;
  const json_t *one = p->many ? p->list : json_array_get(p->list, 0);
  if (one != NULL) json_dumpf(one, stdout, JSON_INDENT(2));
  if (one != NULL) putchar('\n');
  json_decref(p->list);
  return p->status;
}

static bool choose_format(const nxc_options *options, nxc_diff_format *format) {
  static const char *const names[] = {[NXC_DIFF_TEXT] = "text",
                                      [NXC_DIFF_JSON] = "json",
                                      [NXC_DIFF_GITHUB] = "github",
                                      [NXC_DIFF_MARKDOWN] = "markdown"};
  const char *name = options->format_name ? options->format_name : "text";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    *format = (nxc_diff_format)i;
    if (strcmp(names[i], name) == 0) return true;
  }
  fprintf(stderr, "nxcfg diff: --format takes text, json, github or markdown, not %s\n", name);
  return false;
}

int nxc_command_diff(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  const char *machine = NULL;
  nxc_texts assume = {0};
  nxc_estimate_request asked = {0};
  pairs p = {.arena = arena, .options = &options, .asked = &asked};
  const nxc_extra_option extras[] = {{.name = "--git", .text = &p.revision},
                                     {.name = "--machine", .text = &machine},
                                     {.name = "--assume", .list = &assume},
                                     {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(arena, &options, "diff", argc - 1, argv + 1, extras, true)) {
    size_t n_files = options.files.n_items;
    if (options.help) {
      nxc_options_print_usage(usage, stdout);
      status = NXC_EXIT_GOOD;
    } else if (p.revision ? n_files == 0 : n_files != 2) {
      nxc_options_print_usage(usage, stderr);
    } else if (choose_format(&options, &p.format) &&
               nxc_estimate_read(arena, "diff", NULL, machine, &asked) &&
               nxc_estimate_assume(arena, "diff", &assume, &asked)) {
      status = diff(&p);
    }
  }
  nxc_arena_free(arena);
  return status;
}
