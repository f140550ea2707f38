/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/commands.h"
#include "compiler/commands/output.h"
#include "compiler/show/plan_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct view {
  const char *name;
  nxc_plan_dump *dump;
  const char *meaning;
} views[] = {
    {"settings", nxc_dump_settings, "every setting, its value and where that came from"},
    {"ops", nxc_dump_ops, "every operator: operands, shapes, bytes, cost, origin"},
    {"schedule", nxc_dump_schedule, "what each stage does in a step"},
    {"data", nxc_dump_data, "datasets of training and evaluation, with weights and documents"},
    {"memory", nxc_dump_memory, "arenas and their largest values"},
    {"tensors", nxc_dump_tensors, "logical tensors and the parameters that hold them"},
};
enum { N_VIEWS = sizeof views / sizeof *views };

static void print_usage(FILE *out) {
  fputs("usage: nxcfg show PLAN [--settings|--ops|--schedule|--data|--memory|\n"
        "                       --tensors|--svg FILE]\n"
        "Prints what a plan holds; without an option, a summary.\n",
        out);
  for (int i = 0; i < N_VIEWS; i++) fprintf(out, "  --%-10s %s\n", views[i].name, views[i].meaning);
  fputs("  --svg FILE   writes the schedule as a picture instead\n", out);
}

/* Maps a plan; NULL, and a message, when it can not be read. */
static const void *map_plan(const char *path, uint64_t *n_bytes) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe cannot be mapped */
  struct stat status;
  void *bytes = MAP_FAILED;
  if (file >= 0 && fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
  } else if (file >= 0 && fstat(file, &status) == 0) {
    *n_bytes = (uint64_t)status.st_size;
    bytes = mmap(NULL, status.st_size ? (size_t)status.st_size : 1, PROT_READ, MAP_PRIVATE, file, 0);
  }
  if (bytes == MAP_FAILED) fprintf(stderr, "nxcfg show: cannot read %s: %s\n", path, strerror(errno));
  if (file >= 0) close(file);
  return bytes == MAP_FAILED ? NULL : bytes;
}

static int draw(const nx_plan *plan, const char *path) {
  if (!nxc_output_may_replace("show", "--svg", path, NXC_OUTPUT_PICTURE, false)) return NXC_EXIT_USAGE;
  char *picture = NULL;
  size_t n_bytes = 0;
  FILE *out = open_memstream(&picture, &n_bytes);
  bool good = out != NULL && nxc_draw_svg(plan, out);
  if (out != NULL && fclose(out) != 0) good = false;
  nxc_arena *arena = nxc_arena_new();
  if (good) good = nxc_output_write(arena, "show", path, picture, n_bytes);
  else fputs("nxcfg show: out of memory\n", stderr);
  nxc_arena_free(arena);
  free(picture);
  return good ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
}

static int show(const char *path, nxc_plan_dump *dump, const char *svg) {
  uint64_t n_bytes = 0;
  const void *bytes = map_plan(path, &n_bytes);
  if (bytes == NULL) return NXC_EXIT_USAGE;
  nx_plan plan;
  nx_fault fault;
  if (!nx_plan_check(bytes, n_bytes, &plan, &fault) || !nx_plan_prove(&plan, &fault)) {
    fprintf(stderr, "nxcfg show: %s is no valid plan: %s (byte %llu)\n", path, fault.text,
            (unsigned long long)fault.offset);
    if (fault.offset == 0)
      fprintf(stderr, "if it is a configuration, nxcfg plan %s -o PLAN makes one\n", path);
    return NXC_EXIT_FOUND;
  }
  if (svg != NULL) return draw(&plan, svg);
  dump(&plan, stdout);
  return NXC_EXIT_GOOD;
}

int nxc_command_show(int argc, char **argv) {
  struct option options[N_VIEWS + 3] = {{"help", no_argument, NULL, 'h'}};
  for (int i = 0; i < N_VIEWS; i++)
    options[i + 1] = (struct option){views[i].name, no_argument, NULL, 256 + i};
  options[N_VIEWS + 1] = (struct option){"svg", required_argument, NULL, 's'};
  nxc_plan_dump *dump = nxc_dump_summary;
  const char *svg = NULL;
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
    if (option == 'h') return print_usage(stdout), NXC_EXIT_GOOD;
    if (option == 's') {
      svg = optarg;
      continue;
    }
    if (option < 256) {
      fprintf(stderr, "nxcfg show: unknown option %s, or it lacks a value (nxcfg show --help)\n",
              argv[optind - 1]);
      return NXC_EXIT_USAGE;
    }
    dump = views[option - 256].dump;
  }
  if (optind + 1 != argc) return print_usage(stderr), NXC_EXIT_USAGE;
  return show(argv[optind], dump, svg);
}
