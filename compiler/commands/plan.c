/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg plan: tells what a configuration amounts to, and freezes it into a plan.
 *
 * Without -o whatever is known is printed, and what nxrun cannot execute is no error. With -o everything must
 * be known and executable; the plan appears under its name only when it is whole. */
#include "compiler/commands/commands.h"
#include "compiler/commands/output.h"
#include "compiler/commands/plan_page.h"
#include "compiler/commands/plan_rate.h"
#include "compiler/commands/plan_report.h"
#include "compiler/commands/why.h"
#include "compiler/program/emit/emit_routes.h"
#include "compiler/program/forecast/routes.h"
#include "compiler/program/program.h"
#include "compiler/program/weights.h"
#include "compiler/render/html.h"
#include "compiler/render/render_document.h"
#include "compiler/render/screen.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg plan FILE [-o PLAN] [options]\n"
    "Prints what the training of FILE (- is standard input) needs and takes, on its own system and in nxrun, "
    "and what\n"
    "is set.\n"
    "  -o PLAN              write the plan that nxrun executes\n"
    "  --html FILE          write a page for a browser too: memory, time, schedule, mesh, settings with "
    "their history\n"
    "  --all                print every setting with its source, and all that follows\n"
    "  --format FORMAT      text, short, json, sarif, github or gitlab\n"
    "  --memory BYTES       demand that a rank needs no more, as 80GiB\n"
    "  --machine FILE       tell the time of a step on the machine that FILE describes; a rank must fit it\n"
    "  --assume KEY=VALUE   assume it for the estimate where nothing gives it (repeatable); none assumes "
    "nothing\n"
    "  --system NAME        estimate as if this system ran it, as megatron, neox, nxdt, xorl\n"
    "  --reveal             let the plan hold paths and names that come from secrets or the environment\n"
    "  --lr                 print the learning rate of the steps instead\n"
    "  --svg FILE           draw the learning rate of the steps as a picture too\n"
    "  --why PATH           tell the history of one setting or option instead (repeatable)\n";

typedef struct job {
  nxc_arena *arena;
  const nxc_options *options;
  const char *output; /* NULL: print only */
  const char *html;   /* the page's file; NULL: none */
  const char *svg;    /* the learning rate's picture; NULL: none */
  bool rate;          /* the learning rate is printed instead */
  bool reveal, all;
  json_t *gathered; /* of the programs that a script starts: "reports", what JSON tells of each, and "pages" */
  const nxc_estimate_request *asked;
  const nxc_request *request;
  nxc_sink *sink;
  nxc_compiled compiled;
} job;

static void report(const job *j, nxc_plan_report *r) {
  if (j->options->format == NXC_FORMAT_JSON && j->gathered != NULL) {
    json_t *object = nxc_plan_json(r);
    json_object_set_new(object, "launch", json_integer((json_int_t)j->request->launch));
    json_array_append_new(json_object_get(j->gathered, "reports"), object);
    return;
  }
  if (j->options->format == NXC_FORMAT_JSON) {
    nxc_plan_print_json(r, stdout);
    return;
  }
  const nxc_document_format *format = nxc_document_format_of(j->options->format);
  if (format != NULL) {
    struct json_t *document = nxc_findings_begin(format);
    nxc_findings_add(format, document, j->sink, r->file);
    nxc_findings_end(format, document, stdout);
    return;
  }
  nxc_render render = nxc_options_render(j->options);
  render.file = r->file;
  nxc_sink_print(j->sink, &render, stdout);
  bool shown = r->sound || (r->estimate->own.system != NULL && r->estimate->own.lacks == NULL);
  if (j->options->format == NXC_FORMAT_TEXT && !r->sound && shown)
    fputs("estimated as if the errors were mended\n", stdout);
  if (j->options->format == NXC_FORMAT_TEXT && shown && (j->output == NULL || r->written != NULL))
    (j->all ? nxc_plan_print : nxc_plan_print_screen)(r, stdout);
}

static bool has_finding(const nxc_sink *sink, const char *id) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++)
    if (strcmp(nxc_sink_finding(sink, i)->id, id) == 0) return true;
  return false;
}

static bool is_text(nxc_type type) {
  return type == NXC_TYPE_STR || type == NXC_TYPE_PATH || type == NXC_TYPE_LIST_STR || type == NXC_TYPE_LIST;
}

/* nxrun needs paths and names as they are, so that whoever has the plan can read them. */
static void refuse_hidden(const job *j) {
  const nxc_settings *settings = j->compiled.settings;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS && settings != NULL; id++) {
    const nxc_provenance *from = nxc_settings_from(settings, id);
    if (!from->redacted || !nxc_has(settings, id) || !is_text(nxc_setting_rows[id].domain.type)) continue;
    nxc_report(j->sink, "NX1534", NXC_SEVERITY_ERROR, nxc_settings_span(settings, id),
               "give --reveal, or write the value itself",
               "the plan would hold the value of %s, which is a secret or comes from the environment",
               nxc_setting_name_in_dialect(settings, id));
  }
}

static bool write_page(const job *j, const json_t *page) {
  size_t n_bytes = 0;
  char *text = nxc_html(page, &n_bytes);
  bool good = text != NULL && nxc_output_write(j->arena, "plan", j->html, text, n_bytes);
  free(text);
  return good;
}

/* Of a configuration that has no errors. */
static bool make_page(const job *j, const nxc_plan_report *r) {
  json_t *page = nxc_plan_page(r);
  json_t *gathered = j->gathered ? json_object_get(j->gathered, "pages") : NULL;
  if (gathered != NULL) json_object_set_new(page, "launch", json_integer((json_int_t)j->request->launch));
  bool good = gathered != NULL ? json_array_append(gathered, page) == 0 : write_page(j, page);
  json_decref(page);
  return good;
}

static void take_errors(const nxc_sink *from, nxc_sink *to) {
  for (size_t i = 0; i < nxc_sink_n_findings(from); i++)
    if (nxc_sink_finding(from, i)->severity == NXC_SEVERITY_ERROR)
      nxc_sink_report(to, nxc_sink_finding(from, i));
}

/* What is wrong takes nothing from an estimate for a machine, as far as sizes are known: a value that stops
 * the training seldom changes what it needs. */
static bool is_estimable(const job *j, bool wrong) {
  if (!wrong) return true;
  return j->asked->machine != NULL && j->output == NULL && j->compiled.settings != NULL &&
         !j->compiled.unreadable && !j->compiled.foreign;
}

/* Findings of the program half are errors only where a plan is to be written; else they are why there is
 * none. */
static int plan_settings(job *j) {
  nxc_sink *obstacles = nxc_sink_new(j->arena);
  nxc_plan_bytes plan;
  nxc_training training;
  if (j->output != NULL && !j->reveal) refuse_hidden(j);
  bool good = nxc_sink_count(j->sink, NXC_SEVERITY_ERROR) == 0 && j->compiled.settings != NULL;
  bool compiled =
      good && nxc_program_compile(j->compiled.settings, j->arena, j->output ? j->sink : obstacles, &plan);
  if (compiled)
    nxc_weights_check(&plan.plan, j->compiled.settings, j->output ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING,
                      j->sink);
  if (compiled) {
    uint32_t n_routes;
    const nx_route *routes = nxc_routes_choose(&plan.plan, j->asked->machine, j->arena, &n_routes);
    nxc_emit_routes(&plan, routes, n_routes, j->arena);
  }
  bool sized = good && nxc_training_read(j->compiled.settings, nxc_sink_new(j->arena), &training);
  nxc_estimate estimate = {0};
  bool wrong = nxc_sink_count(j->sink, NXC_SEVERITY_ERROR) > 0;
  if (wrong) take_errors(j->sink, obstacles);
  if (is_estimable(j, wrong))
    estimate = nxc_estimate_make(j->asked, j->request, j->compiled.settings, compiled ? &plan.plan : NULL,
                                 obstacles, j->arena, j->sink);
  if (compiled) nxc_estimate_apply(&estimate, j->compiled.settings, &plan);
  nxc_plan_report r = {.arena = j->arena,
                       .sound = good,
                       .file = j->request->file ? j->request->file : "arguments",
                       .compiled = &j->compiled,
                       .training = sized ? &training : NULL,
                       .plan = compiled ? &plan : NULL,
                       .sink = j->sink,
                       .obstacles = obstacles,
                       .estimate = &estimate};
  int status = nxc_sink_count(j->sink, NXC_SEVERITY_ERROR) > 0 ? NXC_EXIT_FOUND : NXC_EXIT_GOOD;
  if (status == NXC_EXIT_GOOD && j->output != NULL) {
    if (!nxc_output_write(j->arena, "plan", j->output, plan.bytes, plan.n_bytes)) return NXC_EXIT_USAGE;
    r.written = j->output;
  }
  if (j->html != NULL && good && !make_page(j, &r)) return NXC_EXIT_USAGE;
  bool rates = (j->rate || j->svg != NULL) && status == NXC_EXIT_GOOD;
  if (rates && !nxc_rate_show(j->arena, j->compiled.settings, j->rate, j->svg)) return NXC_EXIT_USAGE;
  if (!j->rate || status != NXC_EXIT_GOOD) report(j, &r);
  if (has_finding(j->sink, "NX3900") || has_finding(obstacles, "NX3900")) return NXC_EXIT_INTERNAL;
  return j->compiled.unreadable ? NXC_EXIT_USAGE : status;
}

/* Histories instead of a plan: of a configuration with errors too, as far as it was read. */
static int tell_why(job *j, const nxc_texts *paths) {
  bool json = j->options->format == NXC_FORMAT_JSON, found = j->compiled.settings != NULL;
  json_t *list = json_array();
  if (!json) {
    nxc_render render = nxc_options_render(j->options);
    nxc_sink_print(j->sink, &render, stderr);
  }
  for (size_t i = 0; i < paths->n_items && j->compiled.settings != NULL; i++) {
    const char *nearest;
    const nxc_why *why = nxc_why_find(j->arena, &j->compiled, paths->items[i], &nearest);
    if (why == NULL) {
      fprintf(stderr, "nxcfg plan: there is no setting or option %s%s%s%s\n", paths->items[i],
              nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
      found = false;
      continue;
    }
    if (json) json_array_append_new(list, nxc_why_to_json(why));
    else nxc_why_print(why, stdout);
  }
  if (json) {
    json_dumpf(list, stdout, JSON_INDENT(2));
    putchar('\n');
  }
  json_decref(list);
  if (!found || j->compiled.unreadable) return NXC_EXIT_USAGE;
  return nxc_sink_count(j->sink, NXC_SEVERITY_ERROR) > 0 ? NXC_EXIT_FOUND : NXC_EXIT_GOOD;
}

/* What the options of this command alone ask for. */
typedef struct wish {
  const char *output, *html, *svg;
  bool reveal, all, rate;
  nxc_texts why;
  nxc_estimate_request estimate;
} wish;

/* Of a script that starts several programs each is told, where one is not asked for. */
static bool tells_each(const job *j, const wish *wished) {
  nxc_format format = j->options->format;
  bool of_one = wished->output != NULL || wished->svg != NULL || wished->rate || wished->why.n_items > 0;
  bool lists = format != NXC_FORMAT_JSON && nxc_document_format_of(format) != NULL;
  return !of_one && !lists && j->request->launch == 0 && has_finding(j->sink, "NX5921");
}

static int plan_request(const nxc_options *options, nxc_request request, const wish *wished,
                        json_t *gathered);

static bool write_gathered(const job *j, json_t *pages) {
  if (json_array_size(pages) == 0) return true; /* all have errors, which were told */
  json_t *first = nxc_plan_first_of(pages);
  bool good = write_page(j, first);
  json_decref(first);
  return good;
}

static void print_program(const nxc_document *document, size_t at) {
  printf("%sprogram %zu of %zu, at line %u (--launch %zu)\n", at ? "\n" : "", at + 1, document->n_launches,
         document->launches[at].line, at + 1);
  nxc_print_paragraph(stdout, 2, "its own: ", document->launches_differ[at]);
}

static int plan_each(const job *j, const wish *wished) {
  int status = NXC_EXIT_GOOD;
  const nxc_document *document = j->compiled.document;
  json_t *gathered = json_pack("{s:[], s:[]}", "reports", "pages");
  nxc_request request = *j->request;
  for (size_t i = 0; i < document->n_launches; i++) {
    if (j->options->format == NXC_FORMAT_TEXT) print_program(document, i);
    request.launch = i + 1;
    int own = plan_request(j->options, request, wished, gathered);
    if (own > status) status = own;
  }
  if (j->options->format == NXC_FORMAT_JSON) nxc_plan_print_each(json_object_get(gathered, "reports"));
  if (j->html != NULL && !write_gathered(j, json_object_get(gathered, "pages"))) status = NXC_EXIT_USAGE;
  json_decref(gathered);
  return status;
}

static int plan_request(const nxc_options *options, nxc_request request, const wish *wished,
                        json_t *gathered) {
  const char *output = wished->output;
  nxc_estimate_request asked = wished->estimate;
  asked.nxrun_alone = output != NULL;
  job j = {.arena = nxc_arena_new(),
           .options = options,
           .output = output,
           .html = wished->html,
           .svg = wished->svg,
           .rate = wished->rate,
           .reveal = wished->reveal,
           .all = wished->all,
           .gathered = gathered,
           .asked = &asked};
  j.sink = nxc_sink_new(j.arena);
  if (request.followed == NULL) nxc_request_keep(j.arena, &request);
  request.for_nxrun = output != NULL;
  request.judges_only = output == NULL;
  j.request = &request;
  if (options->warnings_are_errors) nxc_sink_warnings_are_errors(j.sink);
  nxc_compile_settings(j.arena, &request, j.sink, &j.compiled);
  int status;
  if (tells_each(&j, wished)) status = plan_each(&j, wished);
  else status = wished->why.n_items > 0 ? tell_why(&j, &wished->why) : plan_settings(&j);
  nxc_arena_free(j.arena);
  return status;
}

/* What is written is of one FILE, and replaces its like alone. */
static bool may_write(const nxc_options *options, const wish *wished) {
  const struct {
    const char *option, *path;
    nxc_output_kind kind;
  } written[] = {{"--html", wished->html, NXC_OUTPUT_PAGE},
                 {"--svg", wished->svg, NXC_OUTPUT_PICTURE},
                 {"-o", wished->output, NXC_OUTPUT_PLAN}};
  bool good = true;
  for (size_t i = 0; good && i < sizeof written / sizeof *written; i++) {
    if (written[i].path == NULL) continue;
    const char *option = written[i].option, *path = written[i].path;
    good = options->files.n_items <= 1;
    if (!good) fprintf(stderr, "nxcfg plan: %s takes one FILE; lay further files over it with -l\n", option);
    else good = nxc_output_may_replace("plan", option, path, written[i].kind, false);
  }
  return good;
}

static int plan_files(const nxc_options *options, const wish *wished) {
  int status = NXC_EXIT_GOOD;
  size_t n_files = options->files.n_items;
  if (!may_write(options, wished)) return NXC_EXIT_USAGE;
  if (wished->output != NULL && wished->why.n_items > 0) {
    fputs("nxcfg plan: --why writes no plan; leave -o out\n", stderr);
    return NXC_EXIT_USAGE;
  }
  for (size_t i = 0; i < n_files || (n_files == 0 && i == 0); i++) {
    const char *file = n_files ? options->files.items[i] : NULL;
    int own = plan_request(options, nxc_options_request(options, file), wished, NULL);
    if (own > status) status = own;
  }
  return status;
}

int nxc_command_plan(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  const char *memory = NULL, *machine = NULL;
  nxc_texts assume = {0};
  wish wished = {0};
  const nxc_extra_option extras[] = {{.name = "-o", .text = &wished.output},
                                     {.name = "--why", .list = &wished.why},
                                     {.name = "--all", .flag = &wished.all},
                                     {.name = "--html", .text = &wished.html},
                                     {.name = "--lr", .flag = &wished.rate},
                                     {.name = "--svg", .text = &wished.svg},
                                     {.name = "--reveal", .flag = &wished.reveal},
                                     {.name = "--memory", .text = &memory},
                                     {.name = "--machine", .text = &machine},
                                     {.name = "--assume", .list = &assume},
                                     {.name = "--system", .text = &wished.estimate.system},
                                     {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (!nxc_options_parse(arena, &options, "plan", argc - 1, argv + 1, extras, false)) {
    status = NXC_EXIT_USAGE;
  } else if (options.help) {
    nxc_options_print_usage(usage, stdout);
    status = NXC_EXIT_GOOD;
  } else if (options.files.n_items == 0 && options.arguments.n_items == 0) {
    nxc_options_print_usage(usage, stderr);
  } else if (nxc_estimate_read(arena, "plan", memory, machine, &wished.estimate) &&
             nxc_estimate_assume(arena, "plan", &assume, &wished.estimate)) {
    status = plan_files(&options, &wished);
  }
  nxc_arena_free(arena);
  return status;
}
