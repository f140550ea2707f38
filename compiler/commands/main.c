/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg: the table of its subcommands. */
#include "compiler/commands/commands.h"
#include "compiler/diagnostics/diagnostics.h"
#include "compiler/diagnostics/nearest.h"
#include "schema/streams.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
  const char *name;
  nxc_command *run;
  const char *meaning;
} commands[] = {
    {"validate", nxc_command_validate, "judge configurations for the system that they are written for"},
    {"plan", nxc_command_plan, "tell what a configuration amounts to, and freeze it into a plan"},
    {"lint-sweep", nxc_command_lint_sweep, "judge the runs of a sweep as a whole, in one table"},
    {"tune", nxc_command_tune, "search the layouts of a training for the best on a machine"},
    {"convert", nxc_command_convert, "write a configuration in another dialect, or resolved in its own"},
    {"diff", nxc_command_diff, "tell how two configurations or plans differ in meaning"},
    {"show", nxc_command_show, "print what a plan holds"},
    {"explain", nxc_command_explain, "tell what a setting, an option, a rule or a diagnostic is"},
    {"schema", nxc_command_schema, "print a dialect's options as JSON Schema"},
    {"machines", nxc_command_machines, "list the machines that --machine knows by name"},
    {"resolve", nxc_command_resolve, "print a configuration with its references resolved"},
    {"sign", nxc_command_sign, "sign plans and weights, look at signatures, make keys"},
    {"init", nxc_command_init, "write a project file for the configurations below this folder"},
    {"lsp", nxc_command_lsp, "serve editors: findings, repairs, completion and more"},
    {"completion", nxc_command_completion, "print what completes command lines in a shell"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *out) {
  fputs("usage: nxcfg COMMAND [options]\n", out);
  for (int i = 0; i < N_COMMANDS; i++) fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].meaning);
  fputs("  -h, --help behind a COMMAND tells more; nxcfg --version prints the version.\n", out);
}

/* What other programs of this kind call it. */
static const struct {
  const char *word, *command;
} elsewhere[] = {
    {"check", "validate"},     {"lint", "validate"},    {"verify", "validate"}, {"fix", "validate --fix"},
    {"fmt", "validate --fix"}, {"compile", "plan"},     {"estimate", "plan"},   {"compare", "diff"},
    {"rule", "explain"},       {"sweep", "lint-sweep"}, {"server", "lsp"},      {"inspect", "show"},
};

static const char *nearest_command(const char *word) {
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
    if (strcmp(word, elsewhere[i].word) == 0) return elsewhere[i].command;
  const char *names[N_COMMANDS];
  for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i].name;
  return nxc_nearest(word, names, N_COMMANDS);
}

static int refuse_command(const char *word) {
  const char *nearest = nearest_command(word);
  if (nearest != NULL) fprintf(stderr, "nxcfg: there is no command %s; did you mean %s?\n", word, nearest);
  else if (access(word, F_OK) == 0)
    fprintf(stderr, "nxcfg: a command stands before the file: nxcfg validate %s judges it\n", word);
  else if (*word == '-')
    fprintf(stderr, "nxcfg: options stand behind a command, not %s before it (nxcfg --help)\n", word);
  else fprintf(stderr, "nxcfg: there is no command %s (nxcfg --help lists them)\n", word);
  return NXC_EXIT_USAGE;
}

/* What was printed must have arrived: a report that is cut short would pass for a whole one. */
static int finish(const char *command, int status) {
  if (nx_streams_arrived()) return status;
  fprintf(stderr, "nxcfg %s: cannot write all of its output to standard output: %s\n", command,
          strerror(errno));
  return status > NXC_EXIT_USAGE ? status : NXC_EXIT_USAGE;
}

/* `help COMMAND` is `COMMAND --help`. */
static int help(int argc, char **argv) {
  static char option[] = "--help";
  char *own[] = {argc > 1 ? argv[1] : NULL, option, NULL};
  for (int i = 0; argc > 1 && i < N_COMMANDS; i++)
    if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(2, own);
  if (argc > 1) return refuse_command(argv[1]);
  print_usage(stdout);
  return NXC_EXIT_GOOD;
}

int main(int argc, char **argv) {
  nx_streams_hold();
  signal(SIGXFSZ, SIG_IGN); /* a file that grows past the limit is an error like a full disk */
  if (argc < 2) {
    print_usage(stderr);
    return NXC_EXIT_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    print_usage(stdout);
    return finish(argv[1], NXC_EXIT_GOOD);
  }
  if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
    puts("nxcfg " NX_VERSION);
    return finish(argv[1], NXC_EXIT_GOOD);
  }
  if (strcmp(argv[1], "help") == 0) return finish(argv[1], help(argc - 1, argv + 1));
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp(argv[1], commands[i].name) == 0) return finish(argv[1], commands[i].run(argc - 1, argv + 1));
  return refuse_command(argv[1]);
}
