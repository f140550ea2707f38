/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg convert: a configuration in another dialect's words, and a list of what could not be said there. */
#include "compiler/convert/convert.h"
#include "compiler/config/fronts.h"

#include "compiler/commands/commands.h"
#include "compiler/commands/options.h"
#include "compiler/commands/output.h"
#include "compiler/diagnostics/characters.h"
#include "compiler/render/screen.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg convert FILE --to D[@V] [-o OUTPUT] [options]\n"
    "Writes the training of FILE (- is standard input) in the words of the dialect D, and lists what could\n"
    "not be said there. To the dialect of FILE itself: the same file resolved, with its layers and what the\n"
    "command line sets. Exit status: 0 everything is said, 1 something is not, or FILE has an error.\n"
    "  --to D[@V]           nx, nxdt, megatron, neox or xorl; of this version\n"
    "  --format FORMAT      of findings: text, short, json, sarif, github or gitlab\n"
    "  -o OUTPUT            write this file instead of standard output\n"
    "  --model-config-out F  write the model's config.json too, for xorl, which reads the model there\n"
    "  --force              replace what is there; else a converted configuration alone is replaced\n"
    "  --reveal             write secrets and values of environment variables too\n";

typedef struct job {
  nxc_arena *arena;
  const nxc_options *options;
  const char *to, *output, *model_output;
  bool reveal, force;
} job;

static bool write_texts(const job *j, const nxc_conversion *conversion) {
  const char *model = conversion->model_text, *text = conversion->text;
  if (model != NULL && !nxc_output_write(j->arena, "convert", j->model_output, model, strlen(model)))
    return false;
  if (j->output != NULL) return nxc_output_write(j->arena, "convert", j->output, text, strlen(text));
  fputs(text, stdout);
  return true;
}

static const char *file_of(const job *j) {
  return j->options->files.n_items > 0 ? j->options->files.items[0] : NULL;
}

static void report(const job *j, const nxc_conversion *conversion) {
  const char *file = file_of(j) ? file_of(j) : "arguments";
  fprintf(stderr, "%s: %s%s%s: %zu settings said, %zu not%s\n", nxc_characters_shown(j->arena, file),
          conversion->dialect, conversion->version ? "@" : "", conversion->version ? conversion->version : "",
          conversion->n_said, conversion->n_unsaid, conversion->n_unsaid ? ":" : "");
  for (size_t i = 0; i < conversion->n_unsaid; i++)
    nxc_print_filled(stderr, 4, "  ", 0, nxc_unsaid_show(j->arena, &conversion->unsaid[i]), "");
  if (*conversion->filled != '\0') {
    const char *label = nxc_arena_printf(j->arena, "filled in, since %s demands it: ", conversion->dialect);
    nxc_print_filled(stderr, 2, label, 0, conversion->filled, "");
  }
  if (*conversion->left != '\0') {
    const char *label = nxc_arena_printf(j->arena, "left out, since %s alone reads it: ", conversion->first);
    nxc_print_filled(stderr, 2, label, 0, conversion->left, "");
  }
}

static int convert(const job *j) {
  const nxc_texts inputs = nxc_options_inputs(j->arena, j->options);
  if (!nxc_output_spares("convert", j->output, &inputs) ||
      !nxc_output_spares("convert", j->model_output, &inputs) ||
      !nxc_output_may_replace("convert", "-o", j->output, NXC_OUTPUT_CONVERTED, j->force) ||
      !nxc_output_may_replace("convert", "--model-config-out", j->model_output, NXC_OUTPUT_TEXT, j->force))
    return NXC_EXIT_USAGE;
  nxc_sink *sink = nxc_sink_new(j->arena);
  if (j->options->warnings_are_errors) nxc_sink_warnings_are_errors(sink);
  const nxc_conversion_request request = {.from = nxc_options_request(j->options, file_of(j)),
                                          .to = j->to,
                                          .model_path = j->model_output,
                                          .reveal = j->reveal};
  nxc_conversion conversion;
  bool good = nxc_convert(j->arena, &request, sink, &conversion);
  if (!good) {
    const nxc_render render = nxc_options_render(j->options);
    nxc_sink_print(sink, &render, stderr);
    return conversion.unreadable ? NXC_EXIT_USAGE : NXC_EXIT_FOUND;
  }
  if (!write_texts(j, &conversion)) return NXC_EXIT_USAGE;
  report(j, &conversion);
  return conversion.n_unsaid > 0 ? NXC_EXIT_FOUND : NXC_EXIT_GOOD;
}

static int complain(const char *what, const char *about) {
  fprintf(stderr, "nxcfg convert: %s%s (nxcfg convert --help)\n", what, about);
  return NXC_EXIT_USAGE;
}

static int check_and_convert(const job *j) {
  const char *version;
  size_t n_files = j->options->files.n_items, n_arguments = j->options->arguments.n_items;
  if (n_files > 1 || n_files + n_arguments == 0) return complain("one FILE is converted at a time", "");
  if (j->to == NULL) return complain("--to is missing: it names the dialect", "");
  if (nxc_front_find(j->arena, j->to, &version) == NULL)
    return complain("there is no dialect ", nxc_arena_printf(j->arena, "%s; there are %s", j->to,
                                                             nxc_front_names(j->arena)));
  return convert(j);
}

int nxc_command_convert(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  job j = {.arena = arena, .options = &options};
  const nxc_extra_option extras[] = {{.name = "--to", .text = &j.to},
                                     {.name = "-o", .text = &j.output},
                                     {.name = "--model-config-out", .text = &j.model_output},
                                     {.name = "--force", .flag = &j.force},
                                     {.name = "--reveal", .flag = &j.reveal},
                                     {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(arena, &options, "convert", argc - 1, argv + 1, extras, false)) {
    status = NXC_EXIT_GOOD;
    if (options.help) nxc_options_print_usage(usage, stdout);
    else status = check_and_convert(&j);
  }
  nxc_arena_free(arena);
  return status;
}
