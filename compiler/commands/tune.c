/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg tune: searches the layouts that the file's system accepts for the best on a machine. */
#include "compiler/commands/commands.h"
#include "compiler/commands/estimate.h"
#include "compiler/commands/options.h"
#include "compiler/commands/output.h"
#include "compiler/commands/tune_report.h"
#include "compiler/program/program.h"
#include "compiler/tune/difference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: nxcfg tune FILE --machine M [-o OUTPUT] [options]\n"
    "Searches the layouts of FILE that its system accepts, and prints the best on the machine: memory, time "
    "of\n"
    "a step, and what each loses against the best. What the training learns stays as it is.\n"
    "  --machine FILE       the machine that FILE describes\n"
    "  --memory BYTES       what a rank may need, as 72GiB; else what the machine has, of a device but for a "
    "twentieth\n"
    "  --vary WORD,...      mesh, batch, recompute, zero (all four, where nothing is said), offload (too, "
    "where\n"
    "                       nothing fits without it) and global; or of the mesh tensor, pipeline, context,\n"
    "                       expert, expert-tensor, of offload optimizer, activations. global varies the "
    "global batch,\n"
    "                       schedule the order of a pipeline's passes, replicate how many groups of ranks\n"
    "                       each hold what ZeRO divides\n"
    "  --top N              how many to print; 10 where nothing is said\n"
    "  --deadline SECONDS   stop then with the best so far\n"
    "  -o OUTPUT            write FILE with the best layout, its comments kept\n"
    "  --force              replace what OUTPUT is\n"
    "  --format FORMAT      text, json, patch (a difference to FILE) or options (KEY=VALUE lines)\n"
    "  --assume KEY=VALUE   assume it where nothing gives it (repeatable)\n"
    "  --system NAME        estimate as if this system ran it, as megatron, neox, nxdt, xorl\n";

typedef struct job {
  nxc_arena *arena;
  nxc_options options;
  const char *output, *memory, *machine, *vary, *top, *deadline;
  bool force;
  nxc_texts assume;
  nxc_estimate_request estimate;
  nxc_request request;
  bool varies[NXC_N_KNOBS];
} job;

static bool is_json(const job *j) {
  return j->options.format_name != NULL && strcmp(j->options.format_name, "json") == 0;
}

static const char *file_name(const job *j) {
  return j->options.files.n_items > 0 ? j->options.files.items[0] : "arguments";
}

static int complain(const char *what, const char *about) {
  fprintf(stderr, "nxcfg tune: %s%s (nxcfg tune --help)\n", what, about);
  return NXC_EXIT_USAGE;
}

/* ---- progress ---- */

static void draw(double done) {
  enum { WIDTH = 40 };
  static int drawn = -1;
  int filled = (int)(done * WIDTH);
  if (filled == drawn) return;
  drawn = filled;
  fputs("\r  [", stderr);
  for (int i = 0; i < WIDTH; i++) fputc(i < filled ? '#' : '.', stderr);
  fprintf(stderr, "] %3.0f %%", 100 * done);
  fflush(stderr);
}

static void clear_progress(void) {
  fputs("\r\033[K", stderr);
}

/* ---- the file ---- */

static void print_obstacles(const job *j, nxc_sink *errors, nxc_sink *obstacles) {
  const nxc_render render = nxc_options_render(&j->options);
  if (is_json(j)) {
    nxc_tune_print_obstacles(file_name(j), errors, obstacles, stdout);
    return;
  }
  nxc_sink_print(errors, &render, stderr);
  nxc_sink_print(obstacles, &render, stderr);
}

/* False, with what is wrong told, where there is nothing to tune. */
static bool compile(job *j, nxc_compiled *compiled, nxc_assumed *assumed, nxc_training *training,
                    nxc_sink *sink) {
  nxc_sink *obstacles = nxc_sink_new(j->arena);
  nxc_estimate_compile(&j->estimate, &j->request, j->arena, sink, compiled, assumed);
  /* sizes that do not fit together are what a search is for; those that are unknown are not */
  if (compiled->settings != NULL && nxc_training_read_sizes(compiled->settings, obstacles, training))
    return true;
  bool other = compiled->settings != NULL && nxc_is_other_kind(compiled->settings);
  bool tells = nxc_sink_count(sink, NXC_SEVERITY_ERROR) > 0 && !other;
  print_obstacles(j, tells ? sink : nxc_sink_new(j->arena), obstacles);
  return false;
}

/* ---- results ---- */

static void print_options(const nxc_tuned *best, nxc_arena *arena) {
  for (size_t i = 0; i < best->n_edits; i++)
    printf("%s=%s\n", best->edits[i].bound->row->name,
           nxc_value_show(arena, nxc_option_change_value(&best->edits[i])));
}

static const nxc_assumption *find_assumption(const nxc_assumed *assumed, nxc_setting_id setting) {
  for (size_t i = 0; i < assumed->n_items; i++)
    if (assumed->items[i].setting == setting) return &assumed->items[i];
  return NULL;
}

static bool is_same_model(const char *a, const char *b) {
  return a == NULL || (b != NULL && strcmp(a, b) == 0);
}

/* " --assume batch.global=64": what is assumed may follow from the layout, or from what the file is called,
 * and is not written, so that of another file it would be assumed otherwise. */
static const char *assumptions_for(const job *j, const nxc_assumed *here, const char *text) {
  const char *options = "";
  nxc_request request = j->request;
  nxc_compiled compiled;
  nxc_assumed there;
  request.text = nxc_source_new(j->arena, j->output, text, strlen(text));
  if (request.file != NULL) request.file = j->output;
  nxc_estimate_compile(&j->estimate, &request, j->arena, nxc_sink_new(j->arena), &compiled, &there);
  if (!is_same_model(here->model, there.model))
    options = nxc_arena_printf(j->arena, " --assume model=%s", here->model);
  for (size_t i = 0; i < here->n_items; i++) {
    const nxc_assumption *one = &here->items[i], *other = find_assumption(&there, one->setting);
    if (other == NULL || strcmp(one->value, other->value) == 0) continue;
    options =
        nxc_arena_printf(j->arena, "%s --assume %s=%s", options, nxc_setting_path(one->setting), one->value);
  }
  return options;
}

static int report(const job *j, nxc_tune_report *r) {
  const nxc_tune_result *result = r->result;
  const char *format = j->options.format_name ? j->options.format_name : "text";
  const nxc_source *source = r->request->compiled->binding->origin.first;
  bool found = result->n_best > 0;
  if (found && j->output != NULL) {
    if (!nxc_output_write(j->arena, "tune", j->output, result->best[0].text, strlen(result->best[0].text)))
      return NXC_EXIT_USAGE;
    r->written = j->output;
    r->assuming = assumptions_for(j, r->assumed, result->best[0].text);
  }
  if (is_json(j)) nxc_tune_print_json(r, stdout);
  else if (strcmp(format, "text") == 0) nxc_tune_print(r, stdout);
  else if (!found) nxc_tune_print(r, stderr); /* why there is none */
  else if (strcmp(format, "options") == 0) print_options(&result->best[0], j->arena);
  else fputs(nxc_difference(j->arena, r->file, source->text, result->best[0].text), stdout);
  return found && !result->best[0].has_errors ? NXC_EXIT_GOOD : NXC_EXIT_FOUND;
}

static const nxc_system *open_system(const job *j, const nxc_compiled *compiled) {
  const char *name = j->estimate.system ? j->estimate.system : compiled->dialect->name;
  return nxc_system_open(j->arena, name);
}

/* Of a device's memory: estimates may be wrong by that. */
static const double spare = 0.05;

static int tune(job *j) {
  nxc_compiled compiled;
  nxc_assumed assumed;
  nxc_training training;
  nxc_tune_result result;
  const char *file = j->options.files.n_items > 0 ? j->options.files.items[0] : NULL;
  const nxc_machine *machine = j->estimate.machine;
  j->request = nxc_options_request(&j->options, file);
  nxc_request_keep(j->arena, &j->request);
  nxc_sink *findings = nxc_sink_new(j->arena);
  if (!compile(j, &compiled, &assumed, &training, findings))
    return compiled.unreadable ? NXC_EXIT_USAGE : NXC_EXIT_FOUND;
  const bool estimated = machine->device != NULL;
  uint64_t limit = j->estimate.memory_bytes ? j->estimate.memory_bytes : machine->memory_bytes;
  const nxc_tune_request request = {.request = &assumed.request,
                                    .compiled = &compiled,
                                    .findings = findings,
                                    .training = &training,
                                    .system = open_system(j, &compiled),
                                    .machine = machine,
                                    .memory_bytes = (double)limit,
                                    .spare = estimated && j->estimate.memory_bytes == 0 ? spare : 0,
                                    .varies = j->varies,
                                    .offloads = j->vary == NULL,
                                    .top = j->top ? strtoul(j->top, NULL, 10) : 10,
                                    .deadline_s = j->deadline ? strtod(j->deadline, NULL) : 0,
                                    .progress = isatty(STDERR_FILENO) ? draw : NULL};
  if (request.system == NULL && machine->device != NULL)
    return complain("there is no system ", j->estimate.system);
  nxc_tune(j->arena, &request, &result);
  if (request.progress != NULL) clear_progress();
  nxc_tune_report r = {
      .arena = j->arena, .file = file_name(j), .assumed = &assumed, .request = &request, .result = &result};
  return report(j, &r);
}

/* ---- options ---- */

static bool is_number(const char *text, bool whole) {
  char *end;
  double number = strtod(text, &end);
  return end != text && *end == '\0' && number > 0 && number < 1e9 &&
         (!whole || text[strspn(text, "0123456789")] == '\0');
}

static int check_and_tune(job *j) {
  static const char *const formats[] = {"text", "json", "patch", "options"};
  const char *wrong, *format = j->options.format_name;
  size_t n_files = j->options.files.n_items, known = format == NULL;
  for (size_t i = 0; format != NULL && i < sizeof formats / sizeof *formats; i++)
    known += strcmp(format, formats[i]) == 0;
  if (!known) return complain("--format takes text, json, patch or options, not ", format);
  if (n_files > 1 || n_files + j->options.arguments.n_items == 0)
    return complain("one FILE is tuned at a time", "");
  if (j->machine == NULL) return complain("--machine is missing: it names the machine's description", "");
  if (!nxc_knobs_parse(j->arena, j->vary ? j->vary : "mesh,batch,recompute,zero", j->varies, &wrong))
    return complain("--vary: there is nothing to vary of this name: ", wrong);
  if (j->top != NULL && !is_number(j->top, true))
    return complain("--top takes a number from 1, not ", j->top);
  if (j->deadline != NULL && !is_number(j->deadline, false))
    return complain("--deadline takes seconds, more than 0, not ", j->deadline);
  const nxc_texts inputs = nxc_options_inputs(j->arena, &j->options);
  if (!nxc_output_spares("tune", j->output, &inputs) ||
      !nxc_output_may_replace("tune", "-o", j->output, NXC_OUTPUT_TEXT, j->force))
    return NXC_EXIT_USAGE;
  if (!nxc_estimate_read(j->arena, "tune", j->memory, j->machine, &j->estimate) ||
      !nxc_estimate_assume(j->arena, "tune", &j->assume, &j->estimate))
    return NXC_EXIT_USAGE;
  return tune(j);
}

int nxc_command_tune(int argc, char **argv) {
  job j = {.arena = nxc_arena_new()};
  const nxc_extra_option extras[] = {{.name = "-o", .text = &j.output},
                                     {.name = "--force", .flag = &j.force},
                                     {.name = "--machine", .text = &j.machine},
                                     {.name = "--memory", .text = &j.memory},
                                     {.name = "--vary", .text = &j.vary},
                                     {.name = "--top", .text = &j.top},
                                     {.name = "--deadline", .text = &j.deadline},
                                     {.name = "--assume", .list = &j.assume},
                                     {.name = "--system", .text = &j.estimate.system},
                                     {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(j.arena, &j.options, "tune", argc - 1, argv + 1, extras, true)) {
    status = NXC_EXIT_GOOD;
    if (j.options.help) nxc_options_print_usage(usage, stdout);
    else status = check_and_tune(&j);
  }
  nxc_arena_free(j.arena);
  return status;
}
