/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun: runs a plan. Reads its arguments, maps the plan, starts MPI, and leaves the rest to train.c (or,
 * without a plan, to calibrate.c). */
#include "runtime/calibrate.h"
#include "runtime/file.h"
#include "runtime/launch.h"
#include "runtime/mapping.h"
#include "runtime/train.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: nxrun PLAN [option]...       or: mpiexec -n RANKS nxrun PLAN [option]...\n"
    "       nxrun --calibrate [-o FILE]  or: mpiexec -n RANKS nxrun --calibrate [-o FILE]\n"
    "Trains what the plan says; nxcfg plan FILE -o PLAN makes one.\n"
    "  --backend cpu|ref      kernels: oneDNN and vector code, or plain C (slow; defines what is correct)\n"
    "  --dir DIR              folder of the run, instead of the plan's\n"
    "  --resume               go on from the newest checkpoint in the folder\n"
    "  --new-dataset          with --resume: although the dataset is another than the checkpoint's\n"
    "  --stop-after N         end, with a checkpoint, when N steps are done\n"
    "  --log text|json        a line for people, or a JSON object, per step\n"
    "  --metrics FILE         metrics file, instead of metrics.jsonl in the folder\n"
    "  --dump-gradients DIR   write the gradients of the first step there\n"
    "  --comm auto|p2p        p2p: move everything by messages, also within a host (for tests)\n"
    "  --dry-run              map, check and bind everything, say what it takes, and end\n"
    "  --calibrate            measure this machine instead, for the forecasts of nxcfg plan\n"
    "  -o FILE                with --calibrate: write its description there, instead of printing it\n"
    "  --threads N            with --calibrate: threads of a rank, instead of the cores over the ranks\n"
    "  --help, --version\n"
    "Exit status: 0 done (also when SIGTERM or SIGINT ended it after a checkpoint), 1 failed, 2 usage.\n";

enum { BACKEND = 1, DIRECTORY, RESUME, NEW_DATASET, STOP_AFTER, LOG, METRICS, DUMP_GRADIENTS, COMM, DRY_RUN, HELP,
       VERSION, CALIBRATE, OUTPUT, THREADS };

static const struct option long_options[] = {
    {"backend", required_argument, NULL, BACKEND},
    {"dir", required_argument, NULL, DIRECTORY},
    {"resume", no_argument, NULL, RESUME},
    {"new-dataset", no_argument, NULL, NEW_DATASET},
    {"stop-after", required_argument, NULL, STOP_AFTER},
    {"log", required_argument, NULL, LOG},
    {"metrics", required_argument, NULL, METRICS},
    {"dump-gradients", required_argument, NULL, DUMP_GRADIENTS},
    {"comm", required_argument, NULL, COMM},
    {"dry-run", no_argument, NULL, DRY_RUN},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {"calibrate", no_argument, NULL, CALIBRATE},
    {"threads", required_argument, NULL, THREADS},
    {NULL, 0, NULL, 0},
};

/* Only one rank of a launched run speaks before MPI is there. */
static int fail_usage(const char *what, const char *about) {
  if (nxr_launch_speaks()) fprintf(stderr, "nxrun: %s%s\n%s", what, about, usage);
  return NXR_EXIT_USAGE;
}

static int fail_value(int option, const char *value) {
  const struct option *at = long_options;
  while (at->val != option) at++;
  if (nxr_launch_speaks()) fprintf(stderr, "nxrun: --%s cannot be '%s'\n%s", at->name, value, usage);
  return NXR_EXIT_USAGE;
}

/* `value` is one of two words: *second says which. */
static bool choose(const char *value, const char *first_word, const char *second_word, bool *second) {
  *second = strcmp(value, second_word) == 0;
  return *second || strcmp(value, first_word) == 0;
}

static bool parse_count(const char *value, uint64_t *count) {
  char *end;
  if (value[0] < '0' || value[0] > '9') return false;
  *count = strtoull(value, &end, 10);
  return *end == '\0' && *count > 0;
}

static bool parse_option(int option, nxr_options *options, nxr_calibrate_options *calibrate) {
  bool second = false;
  switch (option) {
    case CALIBRATE: return true;
    case OUTPUT: calibrate->path = optarg; return optarg[0] != '\0';
    case THREADS: {
      uint64_t n_threads = 0;
      bool number = parse_count(optarg, &n_threads) && n_threads <= 1024;
      calibrate->n_threads = (uint32_t)n_threads;
      return number;
    }
    case BACKEND: options->backend = optarg; return choose(optarg, "cpu", "ref", &second);
    case DIRECTORY: options->directory = optarg; return optarg[0] != '\0';
    case RESUME: options->resume = true; return true;
    case NEW_DATASET: options->new_dataset = true; return true;
    case STOP_AFTER: return parse_count(optarg, &options->stop_after);
    case LOG: {
      bool known = choose(optarg, "text", "json", &second);
      options->log = second ? NXR_LOG_JSON : NXR_LOG_TEXT;
      return known;
    }
    case METRICS: options->metrics = optarg; return optarg[0] != '\0';
    case DUMP_GRADIENTS: options->dump_gradients = optarg; return optarg[0] != '\0';
    case COMM: return choose(optarg, "auto", "p2p", &options->force_p2p);
    default: options->dry_run = true; return true;
  }
}

static int run(const nxr_options *options, char **argv) {
  nxr_fault fault = {""};
  nxr_world world;
  nxr_file file = {0};
  bool mapped = nxr_file_open(options->plan_path, &file, &fault);
  if (mapped) nxr_launch_prepare(file.plan.run, argv);
  if (!nxr_world_open(&world, &fault)) {
    fprintf(stderr, "nxrun: %s\n", fault.text);
    return NXR_EXIT_FAILED;
  }
  nxr_mapping_guard("nxrun", world.rank);
  int status = NXR_EXIT_FAILED;
  if (nxr_world_agree(&world, &fault) && nxr_world_check_same(&world, &file.plan) &&
      nxr_world_check_launch(&world, &file.plan, options->plan_path))
    status = nxr_train(&world, &file.plan, options);
  nxr_world_close(&world);
  nxr_file_close(&file);
  return status;
}

static int calibrate_machine(const nxr_calibrate_options *options, char **argv) {
  const nx_run run = {.n_threads = nxr_calibrate_threads(options)};
  nxr_fault fault = {""};
  nxr_world world;
  nxr_launch_prepare(&run, argv);
  if (!nxr_world_open(&world, &fault)) {
    fprintf(stderr, "nxrun: %s\n", fault.text);
    return NXR_EXIT_FAILED;
  }
  int status = nxr_calibrate(&world, options);
  nxr_world_close(&world);
  return status;
}

/* Which options go together; `seen` has a bit for each. */
static int dispatch(uint32_t seen, int n_plans, nxr_options *options, nxr_calibrate_options *calibrate,
                    char **argv) {
  const uint32_t own = 1u << OUTPUT | 1u << THREADS, both = 1u << BACKEND | 1u << COMM;
  if (seen & 1u << CALIBRATE) {
    if (n_plans > 0) return fail_usage("--calibrate takes no plan", "");
    if (seen & ~(own | both | 1u << CALIBRATE))
      return fail_usage("an option is of no use to --calibrate", "");
    calibrate->backend = options->backend, calibrate->force_p2p = options->force_p2p;
    return calibrate_machine(calibrate, argv);
  }
  if (seen & own) return fail_usage("-o and --threads belong to --calibrate", "");
  if (n_plans != 1) return fail_usage(n_plans == 0 ? "no plan" : "more than one plan", "");
  options->plan_path = argv[optind];
  nxr_train_catch_signals();
  return run(options, argv);
}

int main(int argc, char **argv) {
  nxr_options options = {0};
  nxr_calibrate_options calibrate = {0};
  uint32_t seen = 0;
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "o:", long_options, NULL)) != -1;) {
    if (option == 'o') option = OUTPUT;
    if (option == HELP || option == VERSION) {
      if (nxr_launch_speaks()) fputs(option == HELP ? usage : "nxrun " NX_VERSION "\n", stdout);
      return NXR_EXIT_OK;
    }
    if (option == '?') return fail_usage("no such option, or its value is missing: ", argv[optind - 1]);
    if (!parse_option(option, &options, &calibrate)) return fail_value(option, optarg);
    seen |= 1u << option;
  }
  return dispatch(seen, argc - optind, &options, &calibrate, argv);
}
