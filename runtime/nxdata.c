/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata: makes indexed datasets from text, and looks at those that exist.
 *
 * Exit status: 0 done; 1 the dataset is damaged, or could not be written; 2 usage, or an input that cannot be
 * read. */
#include "runtime/dataset_split.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_DONE = 0, STATUS_DAMAGED = 1, STATUS_USAGE = 2, MAX_PREFIX = 4000 };

static const char help[] =
    "usage: nxdata build TEXT… -o PREFIX [--append-end] [--force]\n"
    "       nxdata split PREFIX SHARES -o PREFIX [--force]\n"
    "       nxdata info PREFIX\n"
    "       nxdata check PREFIX\n"
    "\n"
    "Indexed datasets, PREFIX.bin and PREFIX.idx, as nxrun and Megatron-LM read them.\n"
    "\n"
    "build   makes one from text files, each one document of its bytes, each byte one\n"
    "        token 0 … 255; - is standard input\n"
    "          -o PREFIX     where to write\n"
    "          --append-end  token 256 ends each document (model.vocab is then 257)\n"
    "          --force       replaces a dataset that exists\n"
    "split   divides the documents of one, in order, by shares as 969,30,1, and writes\n"
    "        PREFIX-train, PREFIX-valid and PREFIX-test; a part of no document is not\n"
    "        written. Options as for build\n"
    "info    says what the index says\n"
    "check   reads every token: least and greatest id, lengths of documents, damage\n"
    "\n"
    "  --help, --version\n"
    "\n"
    "exit status: 0 done; 1 the dataset is damaged or cannot be written; 2 usage, or an\n"
    "input that cannot be read\n";

static int usage(const char *what, const char *which) {
  fprintf(stderr, "nxdata: %s%s (see nxdata --help)\n", what, which);
  return STATUS_USAGE;
}

static int damaged(const nxr_fault *fault) {
  fprintf(stderr, "nxdata: %s\n", fault->text);
  return STATUS_DAMAGED;
}

/* Users complete file names: the ending of either file of the pair is taken off. */
static bool read_prefix(const char *name, char prefix[MAX_PREFIX]) {
  size_t length = strlen(name);
  bool ending =
      length > 4 && (strcmp(name + length - 4, ".bin") == 0 || strcmp(name + length - 4, ".idx") == 0);
  if (ending) length -= 4;
  if (length == 0 || length >= MAX_PREFIX) return false;
  memcpy(prefix, name, length);
  prefix[length] = '\0';
  return true;
}

static bool is_readable(const char *path) {
  if (access(path, R_OK) == 0) return true;
  fprintf(stderr, "nxdata: cannot read %s: %s\n", path, strerror(errno));
  return false;
}

/* Opens the one dataset that a subcommand takes; returns the status to leave with, or STATUS_DONE. */
static int open_only(int n, char **arguments, char prefix[MAX_PREFIX], nxr_dataset *dataset) {
  if (n != 1) return usage(n == 0 ? "which dataset? give its PREFIX" : "one dataset at a time, not also ",
                           n == 0 ? "" : arguments[1]);
  if (arguments[0][0] == '-') return usage("unknown option ", arguments[0]);
  if (!read_prefix(arguments[0], prefix)) return usage("no name of a dataset: ", arguments[0]);
  char path[MAX_PREFIX + 4];
  snprintf(path, sizeof path, "%s.idx", prefix);
  if (!is_readable(path)) return STATUS_USAGE;
  nxr_fault fault = {""};
  return nxr_dataset_open(prefix, dataset, &fault) ? STATUS_DONE : damaged(&fault);
}

static const char *type_name(const nxr_dataset *dataset) {
  static const char *const names[] = {[1] = "uint8", [2] = "int8",  [3] = "int16",
                                      [4] = "int32", [5] = "int64", [8] = "uint16"};
  return names[dataset->type_code];
}

static void print_info(const nxr_dataset *dataset) {
  printf("dataset      %s\n", dataset->prefix);
  printf("type         %s, %" PRIu32 " byte%s a token\n", type_name(dataset), dataset->token_bytes,
         dataset->token_bytes == 1 ? "" : "s");
  printf("documents    %" PRIu64 "\n", dataset->n_documents);
  if (dataset->n_sequences != dataset->n_documents)
    printf("sequences    %" PRIu64 "\n", dataset->n_sequences);
  printf("tokens       %" PRIu64 "\n", dataset->n_tokens);
}

static int command_info(int n, char **arguments) {
  char prefix[MAX_PREFIX];
  nxr_dataset dataset;
  int status = open_only(n, arguments, prefix, &dataset);
  if (status != STATUS_DONE) return status;
  print_info(&dataset);
  nxr_dataset_close(&dataset);
  return STATUS_DONE;
}

static int command_check(int n, char **arguments) {
  char prefix[MAX_PREFIX];
  nxr_dataset dataset;
  int status = open_only(n, arguments, prefix, &dataset);
  if (status != STATUS_DONE) return status;
  nxr_dataset_summary summary;
  nxr_fault fault = {""};
  if (nxr_dataset_summarize(&dataset, &summary, &fault)) {
    print_info(&dataset);
    if (dataset.n_tokens > 0)
      printf("token ids    %" PRId64 " … %" PRId64 " (model.vocab must be above %" PRId64 ")\n",
             summary.least_token, summary.greatest_token, summary.greatest_token);
    if (dataset.n_documents > 0)
      printf("lengths      %" PRIu64 " … %" PRIu64 " tokens, %.1f on average\n", summary.shortest,
             summary.longest, (double)dataset.n_tokens / (double)dataset.n_documents);
    if (summary.n_empty > 0) printf("empty        %" PRIu64 " documents have no token\n", summary.n_empty);
    if (summary.unused_bytes > 0)
      printf("unused       %" PRIu64 " bytes of %s.bin belong to no sequence\n", summary.unused_bytes,
             prefix);
    printf("no damage found\n");
  } else {
    status = damaged(&fault);
  }
  nxr_dataset_close(&dataset);
  return status;
}

typedef struct build_options {
  const char *prefix;
  bool append_end, force;
  uint32_t n_texts; /* the texts are moved to the front of the arguments */
} build_options;

static int read_build_options(int n, char **arguments, build_options *options) {
  bool only_texts = false;
  for (int i = 0; i < n; i++) {
    char *argument = arguments[i];
    if (only_texts || argument[0] != '-' || argument[1] == '\0') arguments[options->n_texts++] = argument;
    else if (strcmp(argument, "--") == 0) only_texts = true;
    else if (strcmp(argument, "--append-end") == 0) options->append_end = true;
    else if (strcmp(argument, "--force") == 0) options->force = true;
    else if (strcmp(argument, "-o") != 0) return usage("unknown option ", argument);
    else if (i + 1 == n) return usage("-o needs a PREFIX", "");
    else if (options->prefix) return usage("-o is given twice", "");
    else options->prefix = arguments[++i];
  }
  if (options->n_texts == 0) return usage("which text? give at least one file, or - for standard input", "");
  if (options->prefix == NULL) return usage("where to? give -o PREFIX", "");
  return STATUS_DONE;
}

static int command_build(int n, char **arguments) {
  build_options options = {0};
  int status = read_build_options(n, arguments, &options);
  if (status != STATUS_DONE) return status;
  char prefix[MAX_PREFIX];
  if (!read_prefix(options.prefix, prefix)) return usage("no name for a dataset: ", options.prefix);
  for (uint32_t i = 0; i < options.n_texts; i++)
    if (strcmp(arguments[i], "-") != 0 && !is_readable(arguments[i])) return STATUS_USAGE;
  nxr_fault fault = {""};
  nxr_dataset written;
  if (!nxr_dataset_build((const char *const *)arguments, options.n_texts, prefix, options.append_end,
                         options.force, &written, &fault))
    return damaged(&fault);
  print_info(&written);
  return STATUS_DONE;
}

/* -- split ----------------------------------------------------------------------------------------------- */

static bool write_part(const nxr_dataset *from, uint64_t first, uint64_t end, const char *prefix, bool force,
                       nxr_fault *fault) {
  nxr_dataset written;
  if (first == end) return true;
  if (!nxr_dataset_copy(from, first, end, prefix, force, &written, fault)) return false;
  print_info(&written);
  return true;
}

static int write_all_parts(const nxr_dataset *from, const double shares[NX_PARTS], const char *prefix,
                           bool force) {
  static const char *const names[NX_PARTS] = {"train", "valid", "test"};
  uint64_t borders[NX_PARTS + 1];
  nxr_fault fault = {""};
  char path[MAX_PREFIX + 8];
  nxr_split_borders(shares, from->n_documents, borders);
  for (int i = 0; i < NX_PARTS; i++) {
    snprintf(path, sizeof path, "%s-%s", prefix, names[i]);
    if (!write_part(from, borders[i], borders[i + 1], path, force, &fault)) return damaged(&fault);
  }
  return STATUS_DONE;
}

static int command_split(int n, char **arguments) {
  build_options options = {0};
  double shares[NX_PARTS];
  char prefix[MAX_PREFIX], out[MAX_PREFIX];
  nxr_dataset dataset;
  int status = read_build_options(n, arguments, &options);
  if (status != STATUS_DONE) return status;
  if (options.append_end) return usage("unknown option ", "--append-end");
  if (options.n_texts != 2) return usage("split takes a PREFIX and SHARES, as in 969,30,1", "");
  if (!nxr_split_parse(arguments[1], shares)) return usage("no shares as in 969,30,1: ", arguments[1]);
  if (!read_prefix(options.prefix, out)) return usage("no name for a dataset: ", options.prefix);
  status = open_only(1, arguments, prefix, &dataset);
  if (status != STATUS_DONE) return status;
  status = write_all_parts(&dataset, shares, out, options.force);
  nxr_dataset_close(&dataset);
  return status;
}

typedef struct command {
  const char *name;
  int (*run)(int n, char **arguments);
} command;

static const command commands[] = {
    {"build", command_build}, {"split", command_split}, {"info", command_info}, {"check", command_check}};

/* What was printed must have arrived. */
static int finish(int status) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  fprintf(stderr, "nxdata: cannot write to standard output: %s\n", strerror(errno));
  return STATUS_DAMAGED;
}

int main(int n, char **arguments) {
  signal(SIGXFSZ, SIG_IGN); /* a file that grows past the limit is an error like a full disk */
  nxr_mapping_guard("nxdata", 0);
  for (int i = 1; i < n && strcmp(arguments[i], "--") != 0; i++) {
    if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) {
      fputs(help, stdout);
      return finish(STATUS_DONE);
    }
    if (strcmp(arguments[i], "--version") == 0) {
      puts("nxdata " NX_VERSION);
      return finish(STATUS_DONE);
    }
  }
  if (n < 2) return usage("what to do? build, split, info or check", "");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(arguments[1], commands[i].name) == 0) return finish(commands[i].run(n - 2, arguments + 2));
  return usage("unknown command ", arguments[1]);
}
