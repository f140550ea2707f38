/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/commands.h"
#include "compiler/commands/options.h"
#include "compiler/config/write/write.h"
#include "compiler/document/canon.h"
#include "compiler/render/screen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef void writer(nxc_buffer *text, const nxc_value *value);

static const struct format {
  const char *name;
  writer *write, *write_omegaconf;
  bool ends_line; /* ends its last line itself */
} formats[] = {
    {"yaml", nxc_write_yaml, nxc_write_yaml_omegaconf, true},
    {"json", nxc_write_json, nxc_write_json, false},
    {"canon", nxc_write_canon, nxc_write_canon, false},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static void print_usage(FILE *out) {
  nxc_print_usage(out, "usage: nxcfg resolve FILE [options]\n"
        "Prints FILE (- is standard input) with its ${...} and $<...> resolved, without any schema.\n"
        "  --at STEP            one step down: a key, or an index in a list (repeatable)\n"
        "  --format FORMAT      yaml (default), json, or canon: one typed line\n"
        "  -l FILE              lay this file over it (repeatable)\n"
        "  --set KEY=VALUE      set a dotted key (repeatable)\n"
        "  --compat omegaconf   exactly as OmegaConf: no warnings, $< stays text, nothing is redacted\n"
        "  -W error             warnings are errors\n"
        "The resolvers args and id give back their arguments, to see how they are read.\n"
        "Values from the environment and of keys like *token and *password are shown as a hash.\n");
}

static const struct format *choose_format(const char *name) {
  for (int i = 0; i < N_FORMATS; i++)
    if (name == NULL || strcmp(formats[i].name, name) == 0) return &formats[i];
  fprintf(stderr, "nxcfg resolve: --format takes yaml, json or canon, not %s\n", name);
  return NULL;
}

static nxc_document *read_file(nxc_arena *arena, const nxc_reading *reading, const char *path,
                               nxc_sink *sink) {
  const nxc_source *source = nxc_source_read(arena, path, NXC_DOCUMENT_BYTES_MAX);
  if (source) return nxc_document_read(arena, source, reading, sink);
  fprintf(stderr, "nxcfg resolve: cannot read %s: %s\n", path, strerror(errno));
  return NULL;
}

/* NULL (a message was printed) when a file cannot be read at all. */
static nxc_document *read_all(nxc_arena *arena, const nxc_options *options, nxc_sink *sink) {
  const nxc_reading reading = {.omegaconf = options->omegaconf};
  nxc_document *document = read_file(arena, &reading, options->files.items[0], sink);
  for (size_t i = 0; document && i < options->layers.n_items; i++) {
    nxc_document *layer = read_file(arena, &reading, options->layers.items[i], sink);
    if (layer == NULL) return NULL;
    nxc_document_layer(document, layer, sink);
  }
  for (size_t i = 0; document && i < options->sets.n_items; i++)
    nxc_document_set(document, options->sets.items[i], "--set", &reading, sink);
  return document;
}

static bool print_value(nxc_arena *arena, const nxc_options *options, const struct format *format,
                        const nxc_node *node) {
  const nxc_value *value =
      options->omegaconf ? nxc_node_value(arena, node) : nxc_node_public_value(arena, node);
  if (value == NULL) {
    fputs("nxcfg resolve: references copy lists and maps into too many values to print\n", stderr);
    return false;
  }
  nxc_buffer text = {.arena = arena};
  (options->omegaconf ? format->write_omegaconf : format->write)(&text, value);
  fwrite(text.bytes, 1, text.n_bytes, stdout);
  if (!format->ends_line) putchar('\n');
  return true;
}

static int resolve(nxc_arena *arena, const nxc_options *options, const nxc_texts *steps) {
  const struct format *format = choose_format(options->format_name);
  nxc_sink *sink = nxc_sink_new(arena);
  if (options->warnings_are_errors) nxc_sink_warnings_are_errors(sink);
  nxc_document *document = format ? read_all(arena, options, sink) : NULL;
  if (document == NULL) return NXC_EXIT_USAGE;
  bool ok = document->complete;
  nxc_node *found = NULL;
  if (ok) {
    const nxc_resolving resolving = {.omegaconf = options->omegaconf, .probes = true};
    ok = nxc_resolve_at(document, steps->items, steps->n_items, &resolving, sink, &found).ok;
  }
  if (ok && found) ok = print_value(arena, options, format, found);
  fflush(stdout);
  nxc_render render = nxc_options_render(options);
  render.format = NXC_FORMAT_TEXT;
  nxc_sink_print(sink, &render, stderr);
  return ok && nxc_sink_count(sink, NXC_SEVERITY_ERROR) == 0 ? NXC_EXIT_GOOD : NXC_EXIT_FOUND;
}

int nxc_command_resolve(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  nxc_texts steps = {0};
  const nxc_extra_option extras[] = {{.name = "--at", .list = &steps}, {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(arena, &options, "resolve", argc - 1, argv + 1, extras, true)) {
    if (options.help) {
      print_usage(stdout);
      status = NXC_EXIT_GOOD;
    } else if (options.files.n_items == 1) {
      status = resolve(arena, &options, &steps);
    } else {
      print_usage(stderr);
    }
  }
  nxc_arena_free(arena);
  return status;
}
