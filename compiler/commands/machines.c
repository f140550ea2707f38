/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg machines: those that --machine knows by name, or the descriptions of some. */
#include "compiler/commands/commands.h"
#include "compiler/commands/options.h"
#include "compiler/machine/machine.h"
#include "compiler/machine/names.h"
#include "compiler/render/screen.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg machines [NAME...] [--format text|json]\n"
    "Lists the machines that --machine knows by name; of a rank its memory, the peak of its products\n"
    "in bf16, the rate of its memory, and what it receives from its host (or the domain that one\n"
    "switch joins) and from others. With names, prints their descriptions, each number with its source;\n"
    "they may be copied, changed and given as a file (man nx-machine).\n";

/* What a list tells of a machine, a number to a rank. */
typedef struct facts {
  double memory_gib, peak, bandwidth, inside, between;
} facts;

static facts facts_of(const nxc_machine *m) {
  double peak = m->device ? m->device->peak : nxc_rate_peak(&m->products[NX_bf16]);
  const nxc_rate_point *last = m->bandwidth.n_points ? &m->bandwidth.points[m->bandwidth.n_points - 1] : NULL;
  double bandwidth = m->device ? m->device->memory_bandwidth : last != NULL ? last->rate : 0;
  return (facts){(double)m->memory_bytes / (1 << 30), peak, bandwidth, nxc_rate_peak(&m->inside.bandwidth),
                 nxc_rate_peak(&m->between.bandwidth)};
}

static void print_row(const char *name, const nxc_machine *m) {
  facts f = facts_of(m);
  printf("%-10s %6.0f GiB %8.0f %10.0f %6u %9.0f %10.1f\n", name, f.memory_gib, f.peak * 1e-12,
         f.bandwidth * 1e-9, m->ranks_per_host, f.inside * 1e-9, f.between * 1e-9);
}

static json_t *row_json(const nxc_machine_text *known, const nxc_machine *m) {
  facts f = facts_of(m);
  json_t *object = json_pack("{s:s, s:s, s:i, s:I}", "name", known->name, "title", m->name, "ranks_per_host",
                             (int)m->ranks_per_host, "memory_bytes", (json_int_t)m->memory_bytes);
  json_object_set_new(object, "peak_flops", json_real(f.peak));
  json_object_set_new(object, "memory_bytes_per_second", json_real(f.bandwidth));
  json_object_set_new(object, "inside_bytes_per_second", json_real(f.inside));
  json_object_set_new(object, "between_bytes_per_second", json_real(f.between));
  json_object_set_new(object, "description", json_string(known->text));
  return object;
}

static void list(nxc_arena *arena, bool json) {
  json_t *rows = json_array();
  nxc_sink *sink = nxc_sink_new(arena);
  if (!json) {
    printf("%-10s %10s %8s %10s %6s %9s %10s\n", "", "memory", "TFLOP/s", "GB/s of", "ranks", "GB/s in",
           "GB/s");
    printf("%-10s %10s %8s %10s %6s %9s %10s\n", "machine", "of a rank", "bf16", "memory", "a host",
           "a domain", "between");
  }
  for (size_t i = 0; i < nxc_machine_texts_n; i++) {
    const nxc_machine *machine = nxc_machine_read(arena, nxc_machine_texts[i].name, sink);
    if (machine == NULL) continue;
    if (json) json_array_append_new(rows, row_json(&nxc_machine_texts[i], machine));
    else print_row(nxc_machine_texts[i].name, machine);
  }
  if (json) {
    json_dumpf(rows, stdout, JSON_INDENT(2));
    putchar('\n');
  } else {
    puts("`nxcfg machines NAME` prints a description, with the sources of its numbers.");
  }
  json_decref(rows);
}

static int print_descriptions(const nxc_texts *names) {
  for (size_t i = 0; i < names->n_items; i++) {
    const nxc_machine_text *known = nxc_machine_named(names->items[i]);
    const char *nearest = nxc_machine_nearest(names->items[i]);
    if (known == NULL) {
      fprintf(stderr, "nxcfg machines: there is no machine %s%s%s; nxcfg machines lists them\n",
              names->items[i], nearest ? ", but " : "", nearest ? nearest : "");
      return NXC_EXIT_USAGE;
    }
    fputs(known->text, stdout);
  }
  return NXC_EXIT_GOOD;
}

int nxc_command_machines(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(arena, &options, "machines", argc - 1, argv + 1, NULL, false)) {
    status = NXC_EXIT_GOOD;
    if (options.help) nxc_print_usage(stdout, usage);
    else if (options.files.n_items > 0) status = print_descriptions(&options.files);
    else list(arena, options.format == NXC_FORMAT_JSON);
  }
  nxc_arena_free(arena);
  return status;
}
