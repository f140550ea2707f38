/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun: runs a plan. Reads its arguments, maps the plan, starts MPI, and leaves the rest to train.c (or,
 * without a plan, to calibrate.c). */
#include "runtime/calibrate/calibrate.h"
#include "runtime/files/fault.h"
#include "runtime/files/file.h"
#include "runtime/guard.h"
#include "runtime/world/launch.h"
#include "runtime/files/mapping.h"
#include "runtime/logs/plot.h"
#include "runtime/logs/progress.h"
#include "runtime/rehearse.h"
#include "runtime/supervise.h"
#include "runtime/train.h"
#include "runtime/usage.h"
#include "runtime/world/clock.h"
#include "runtime/world/reading_watch.h"
#include "schema/streams.h"
#include "schema/targets.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  BACKEND = 1,
  DEVICE,
  DEVICES,
  DIRECTORY,
  RESUME,
  EVALUATE,
  CHECKPOINT,
  NEW_DATASET,
  STOP_AFTER,
  LOG,
  METRICS,
  DUMP_GRADIENTS,
  COMM,
  CHECK_NUMBERS,
  DRY_RUN,
  PROFILE,
  HELP,
  VERSION,
  CALIBRATE,
  OUTPUT,
  THREADS,
  GENERATE,
  TOKENS,
  TEMPERATURE,
  TOP_P,
  SEED,
  AS,
  TRUST,
  TRUST_WEIGHTS,
  ALLOW
};
enum { DEADLINE_S = 300 }; /* where no plan says it */
enum { MOST_TOKENS = 1 << 24, MOST_TEMPERATURE = 1000, USUAL_TOKENS = 100 };

static const struct option long_options[] = {
    {"backend", required_argument, NULL, BACKEND},
    {"device", required_argument, NULL, DEVICE},
    {"devices", no_argument, NULL, DEVICES},
    {"dir", required_argument, NULL, DIRECTORY},
    {"profile", required_argument, NULL, PROFILE},
    {"resume", no_argument, NULL, RESUME},
    {"evaluate", no_argument, NULL, EVALUATE},
    {"generate", required_argument, NULL, GENERATE},
    {"tokens", required_argument, NULL, TOKENS},
    {"temperature", required_argument, NULL, TEMPERATURE},
    {"top-p", required_argument, NULL, TOP_P},
    {"seed", required_argument, NULL, SEED},
    {"checkpoint", required_argument, NULL, CHECKPOINT},
    {"new-dataset", no_argument, NULL, NEW_DATASET},
    {"stop-after", required_argument, NULL, STOP_AFTER},
    {"log", required_argument, NULL, LOG},
    {"metrics", required_argument, NULL, METRICS},
    {"dump-gradients", required_argument, NULL, DUMP_GRADIENTS},
    {"comm", required_argument, NULL, COMM},
    {"check-numbers", no_argument, NULL, CHECK_NUMBERS},
    {"dry-run", no_argument, NULL, DRY_RUN},
    {"as", required_argument, NULL, AS},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {"calibrate", no_argument, NULL, CALIBRATE},
    {"threads", required_argument, NULL, THREADS},
    {"trust", required_argument, NULL, TRUST},
    {"trust-weights", no_argument, NULL, TRUST_WEIGHTS},
    {"allow", required_argument, NULL, ALLOW},
    {NULL, 0, NULL, 0},
};

typedef enum request_kind {
  TRAIN,
  MEASURE,
  PRINT_USAGE,
  PRINT_VERSION,
  PRINT_DEVICES,
  MISTAKE
} request_kind;

/* What the command line asks for. */
typedef struct request {
  request_kind kind;
  nxr_options options;
  nxr_calibrate_options calibrate;
  nxr_guard guard;
  char command[2048]; /* version and options, for the ranks to compare */
  nxr_fault mistake;  /* of the user */
} request;

/* ---- the command line ---- */

/* `value` is one of two words: *second says which. */
static bool choose(const char *value, const char *first_word, const char *second_word, bool *second) {
  *second = strcmp(value, second_word) == 0;
  return *second || strcmp(value, first_word) == 0;
}

static bool parse_number(const char *value, uint64_t *number) {
  char *end;
  if (value[0] < '0' || value[0] > '9') return false;
  errno = 0;
  *number = strtoull(value, &end, 10);
  return *end == '\0' && errno == 0;
}

static bool parse_count(const char *value, uint64_t *count) {
  return parse_number(value, count) && *count > 0;
}

/* From 0 to `most`. */
static bool parse_real(const char *value, double most, double *real) {
  char *end;
  *real = strtod(value, &end);
  return end != value && *end == '\0' && *real >= 0 && *real <= most;
}

static bool parse_generation(int option, nxr_generation *generation) {
  nxr_drawing *drawing = &generation->drawing;
  switch (option) {
    case GENERATE: generation->prompt = optarg; return true;
    case TOKENS: return parse_count(optarg, &generation->n_tokens) && generation->n_tokens <= MOST_TOKENS;
    case TEMPERATURE: return parse_real(optarg, MOST_TEMPERATURE, &drawing->temperature);
    case TOP_P: return parse_real(optarg, 1, &drawing->top_p);
    default: return parse_number(optarg, &drawing->seed);
  }
}

/* A-B:RANKS, or A alone. */
static bool parse_profile(const char *value, nxr_options *options) {
  char *end;
  errno = 0;
  options->profile_first = options->profile_last = strtoull(value, &end, 10);
  if (*end == '-') options->profile_last = strtoull(end + 1, &end, 10);
  options->profile_ranks = *end == ':' ? end + 1 : "";
  bool ranks = options->profile_ranks[strspn(options->profile_ranks, "0123456789,")] == '\0';
  return value[0] >= '0' && value[0] <= '9' && errno == 0 && (*end == ':' || *end == '\0') && ranks &&
         options->profile_first > 0 && options->profile_last >= options->profile_first;
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
    case BACKEND:
      options->backend = optarg;
      return nxk_backend_find(optarg) ||
             nx_target_knows_backend(optarg); /* said later where it was not built */
    case DEVICE: options->device = optarg; return optarg[0] != '\0';
    case DIRECTORY: options->directory = optarg; return optarg[0] != '\0';
    case RESUME: options->resume = true; return true;
    case EVALUATE: options->evaluate = true; return true;
    case CHECKPOINT: options->checkpoint = optarg; return optarg[0] != '\0';
    case NEW_DATASET: options->new_dataset = true; return true;
    case CHECK_NUMBERS: options->check_numbers = true; return true;
    case STOP_AFTER: return parse_count(optarg, &options->stop_after);
    case LOG: {
      bool known = choose(optarg, "text", "json", &second);
      options->log = second ? NXR_LOG_JSON : NXR_LOG_TEXT;
      return known;
    }
    case METRICS: options->metrics = optarg; return optarg[0] != '\0';
    case DUMP_GRADIENTS: options->dump_gradients = optarg; return optarg[0] != '\0';
    case PROFILE: return parse_profile(optarg, options);
    case GENERATE:
    case TOKENS:
    case TEMPERATURE:
    case TOP_P:
    case SEED: return parse_generation(option, &options->generation);
    case AS: return nxr_rehearse_parse(optarg, options);
    case COMM: return choose(optarg, "auto", "p2p", &options->force_p2p);
    default: options->dry_run = true; return true;
  }
}

static bool parse_guard(int option, nxr_guard *guard) {
  if (option == TRUST) guard->trust = optarg;
  if (option == TRUST_WEIGHTS) guard->weights = true;
  if (option == ALLOW && guard->n_allowed < NXR_MOST_ALLOWED) guard->allowed[guard->n_allowed++] = optarg;
  else if (option == ALLOW) return false;
  return option == TRUST_WEIGHTS || optarg[0] != '\0';
}

static void set_mistake(request *asked, const char *what, const char *about) {
  asked->kind = MISTAKE;
  nxr_fault_set(&asked->mistake, "%s%s", what, about);
}

static void note_option(request *asked, int option) {
  const struct option *at = long_options;
  while (at->name && at->val != option) at++;
  size_t n = strlen(asked->command), room = sizeof asked->command - n;
  snprintf(asked->command + n, room, " %s%s%s%s", at->name ? "--" : "-o", at->name ? at->name : "",
           optarg ? " " : "", optarg ? optarg : "");
}

/* Of options that were seen. */
#define BIT(option) (UINT64_C(1) << (option))

static const uint64_t looking = BIT(EVALUATE) | BIT(GENERATE);
static const struct {
  uint64_t options, owners; /* any of the first needs one of the second */
  const char *text;
} belongings[] = {
    {BIT(OUTPUT) | BIT(THREADS), BIT(CALIBRATE), "-o and --threads belong to --calibrate"},
    {BIT(AS), BIT(DRY_RUN), "--as belongs to --dry-run"},
    {BIT(CHECKPOINT), BIT(EVALUATE) | BIT(GENERATE), "--checkpoint belongs to --evaluate and --generate"},
    {BIT(TOKENS) | BIT(TEMPERATURE) | BIT(TOP_P) | BIT(SEED), BIT(GENERATE),
     "--tokens, --temperature, --top-p and --seed belong to --generate"},
    {BIT(TRUST_WEIGHTS), BIT(TRUST), "--trust-weights belongs to --trust"},
};

static const char *lost_option(uint64_t seen) {
  for (size_t i = 0; i < sizeof belongings / sizeof *belongings; i++)
    if (seen & belongings[i].options && !(seen & belongings[i].owners)) return belongings[i].text;
  return NULL;
}

static const char *wrong_together(const request *asked, uint64_t seen, int n_plans) {
  const uint64_t measuring = BIT(CALIBRATE) | BIT(OUTPUT) | BIT(THREADS) | BIT(BACKEND) | BIT(DEVICE) |
                             BIT(COMM), training = BIT(RESUME) | BIT(STOP_AFTER) | BIT(DUMP_GRADIENTS);
  bool measures = asked->kind == MEASURE;
  if (measures && n_plans > 0) return "--calibrate takes no plan";
  if (measures && seen & ~measuring) return "an option is of no use to --calibrate";
  if (lost_option(seen)) return lost_option(seen);
  if ((seen & looking) == looking) return "--evaluate and --generate do not go together";
  if (seen & looking && seen & training)
    return "with --evaluate and --generate nothing is trained: leave --resume, --stop-after and "
           "--dump-gradients out";
  if (measures || n_plans == 1) return NULL;
  return n_plans == 0 ? "no plan" : "more than one plan";
}

/* The option that begins most like the word; NULL: none does by three letters, or several do alike. */
static const char *likeliest(const char *word) {
  enum { LEAST = 5 }; /* with the dashes */
  const char *best = NULL;
  size_t most = LEAST - 1;
  for (const struct option *at = long_options; at->name; at++) {
    char name[64];
    size_t n = 0;
    snprintf(name, sizeof name, "--%s", at->name);
    while (word[n] && word[n] == name[n]) n++;
    if (n == most) best = NULL;
    if (n > most) best = at->name, most = n;
  }
  return best;
}

static void refuse_option(request *asked, const char *word, bool lacks_value) {
  char text[200];
  const char *near = likeliest(word);
  snprintf(text, sizeof text, near ? "%.100s; did you mean --%s?" : "%.100s", word, near);
  bool restarts = strncmp(word, "--restarts", strlen("--restarts")) == 0;
  if (restarts) set_mistake(asked, word, " stands before all else: nxrun --restarts N PLAN");
  else if (lacks_value) set_mistake(asked, "a value is missing behind ", word);
  else set_mistake(asked, "no such option: ", text);
}

static void parse(int argc, char **argv, request *asked) {
  uint64_t seen = 0;
  asked->options.generation = (nxr_generation){.n_tokens = USUAL_TOKENS, .drawing = {1, 1, 0}};
  opterr = 0;
  snprintf(asked->command, sizeof asked->command, "nxrun " NX_VERSION);
  for (int option; (option = getopt_long(argc, argv, ":o:", long_options, NULL)) != -1;) {
    if (option == 'o') option = OUTPUT;
    if (option == '?' || option == ':') {
      refuse_option(asked, argv[optind - 1], option == ':');
      return;
    }
    note_option(asked, option);
    if (option == HELP || option == VERSION || option == DEVICES) {
      asked->kind = option == HELP ? PRINT_USAGE : option == VERSION ? PRINT_VERSION : PRINT_DEVICES;
      return;
    }
    bool guards = option >= TRUST && option <= ALLOW;
    if (guards ? !parse_guard(option, &asked->guard)
               : !parse_option(option, &asked->options, &asked->calibrate)) {
      const struct option *at = long_options;
      while (at->name && at->val != option) at++;
      asked->kind = MISTAKE;
      nxr_fault_set(&asked->mistake, "%s%s cannot be '%s'", at->name ? "--" : "-o", at->name ? at->name : "",
                    optarg);
      return;
    }
    seen |= BIT(option);
  }
  if (seen & BIT(CALIBRATE)) asked->kind = MEASURE;
  const char *wrong = wrong_together(asked, seen, argc - optind);
  if (wrong) set_mistake(asked, wrong, "");
  asked->options.plan_path = argv[optind];
  asked->calibrate.device = asked->options.device;
  asked->calibrate.backend = asked->options.backend, asked->calibrate.force_p2p = asked->options.force_p2p;
}

/* ---- what is asked for ---- */

/* A line for each device of each backend. */
static void print_devices(void) {
  static nxk_description described[64];
  const nxk_backend *backend;
  for (uint32_t index = 0; (backend = nxk_backend_at(index)); index++) {
    uint32_t room = sizeof described / sizeof *described,
             n = backend->devices ? backend->devices(described, room) : 0;
    if (!backend->devices) printf("%s    the processors of this host\n", backend->name);
    else if (n == 0) printf("%s no device: is its driver installed?\n", backend->name);
    for (uint32_t i = 0; i < n && i < room; i++) printf("%s %u  %s\n", backend->name, i, described[i].text);
  }
}

static int answer(const request *asked) {
  if (asked->kind == PRINT_DEVICES) print_devices();
  if (asked->kind == PRINT_USAGE) fputs(nxr_usage, stdout);
  if (asked->kind == PRINT_VERSION) puts("nxrun " NX_VERSION);
  return NXR_EXIT_OK;
}

static int train(nxr_world *world, const nx_plan *plan, const nxr_options *options) {
  if (options->as_ranks) return nxr_rehearse(world, plan, options);
  if (!nxr_world_check_same(world, plan) || !nxr_world_check_launch(world, plan, options->plan_path))
    return NXR_EXIT_FAILED;
  return nxr_train(world, plan, options);
}

/* The mistake stays in sight: the usage is longer than many screens. */
static const char see_help[] = "nxrun --help lists the options\n";

/* A mistake on one rank must end them all, so even that is told through MPI. */
static int run_together(request *asked, char **argv) {
  /* Whoever reads what is printed may go: a training goes on, and says so at its end. */
  if (asked->options.generation.prompt == NULL) signal(SIGPIPE, SIG_IGN);
  const nx_run measured = {.n_threads = nxr_calibrate_threads(&asked->calibrate)};
  nxr_fault fault = asked->mistake;
  nxr_world world;
  nxr_file file = {0};
  bool mapped = asked->kind == TRAIN && nxr_guard_open(&asked->guard, &asked->options, &fault) &&
                nxr_file_open(asked->options.plan_path, asked->guard.keys, &file, &fault);
  asked->options.opened_s = nxr_clock_s();
  if (mapped || asked->kind == MEASURE) nxr_launch_prepare(mapped ? file.plan.run : &measured, argv);
  if (!nxr_world_open(&world, mapped ? file.plan.run_names->deadline_s : DEADLINE_S, &fault)) {
    nxr_print(stderr, "nxrun: %s\n", fault.text);
    return NXR_EXIT_FAILED;
  }
  nxr_mapping_guard("nxrun", world.rank);
  nxr_reading_watch_begin(&world);
  uint64_t status_of_all = asked->kind == MISTAKE ? NXR_EXIT_USAGE : NXR_EXIT_FAILED;
  nxr_world_max(&world, &status_of_all, 1);
  int status = (int)status_of_all;
  if (nxr_world_agree(&world, &fault) && nxr_world_check_command(&world, asked->command)) {
    if (asked->kind == TRAIN) status = train(&world, &file.plan, &asked->options);
    else if (asked->kind == MEASURE) status = nxr_calibrate(&world, &asked->calibrate);
    else status = world.rank == 0 ? answer(asked) : NXR_EXIT_OK;
  } else if (asked->kind == MISTAKE && world.rank == 0) {
    fputs(see_help, stderr);
  }
  nxr_reading_watch_end();
  nxr_world_close(&world);
  nxr_file_close(&file);
  return status;
}

static int finish(int status) {
  if (nx_streams_arrived()) return status;
  nxr_print(stderr, "nxrun: cannot write to standard output: %s\n", strerror(errno));
  return NXR_EXIT_FAILED;
}

/* Programs of their own: they need no MPI. */
static int print_status(int argc, char **argv) {
  if (argc == 2) return nxr_status_print(argv[1]);
  fputs("usage: nxrun status DIR\n", stderr);
  return NXR_EXIT_USAGE;
}

static const struct {
  const char *word;
  int (*run)(int argc, char **argv);
} programs[] = {{"status", print_status}, {"plot", nxr_plot}, {"--restarts", nxr_supervise}};

int main(int argc, char **argv) {
  static request asked;
  asked.options.begun_s = nxr_clock_s();
  nx_streams_hold();
  signal(SIGXFSZ, SIG_IGN); /* a file that grows past the limit is an error like a full disk */
  for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
    if (strcmp(argv[1], programs[i].word) == 0) return finish(programs[i].run(argc - 1, argv + 1));
  signal(SIGUSR1,
         SIG_IGN); /* asks a run that trains for a checkpoint, and nothing of one that begins or ends */
  parse(argc, argv, &asked);
  bool alone = nxr_launch_ranks() == 1;
  if (alone && asked.kind == MISTAKE) {
    nxr_print(stderr, "nxrun: %s\n%s", asked.mistake.text, see_help);
    return NXR_EXIT_USAGE;
  }
  if (alone && asked.kind > MEASURE) return finish(answer(&asked));
  return finish(run_together(&asked, argv));
}
