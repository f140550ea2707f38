/* SPDX-License-Identifier: Apache-2.0 */
/* The same training on different meshes: `test_meshes RECORDED WHICH...` trains, for each family whose name
 * begins so (or, `1of4`, for the first of every four), a small model on one rank and on each mesh of the
 * family's list, and demands the same losses and gradient norms at every step and the same gradient of every
 * logical tensor at the first, and the same weights after the last; the same bits where only the pipeline's
 * stages differ. `delays` delays communication at random, `broken` breaks a plan on purpose and demands that
 * the comparison sees it. TAP. */
#include "tests/parity/training.h"
#include "tests/plan_edit.h"
#include "tests/tap.h"

#include "tests/parity/mesh_cases.h" /* its short names are those of tables above too */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double tolerance = 1e-5; /* relative, fp32 */
static const double weight_tolerance = 1e-4;
static const double norm_tolerance = 1e-13; /* of sums in fp64 over the same gradients, divided otherwise */

static const char *recorded;

/* ---- training ---- */

typedef struct job {
  char folder[256];
  const mesh *at;
  int delay; /* NXRUN_DELAY; 0: none */
} job;

enum { JOBS_MAX = 1024, WORDS_BYTES = 32768, JOBS_TOGETHER = 40 };
static job jobs[JOBS_MAX];
static size_t n_jobs;

static training request_of(const char *folder, const mesh *at, const char *overrides) {
  return (training){.folder = folder,
                    .config = base,
                    .overrides = overrides,
                    .arguments = at->arguments,
                    .n_ranks = at->n_ranks,
                    .gradients = true};
}

static void compile_on(const char *data, const char *name, const char *family, const mesh *at, int delay) {
  char overrides[4096];
  snprintf(overrides, sizeof overrides, "--set 'nx:data.path=[%s/%s]' %s %s", recorded, data, family,
           at->overrides);
  if (n_jobs == JOBS_MAX) tap_bail("more than %d trainings", JOBS_MAX);
  job *made = &jobs[n_jobs++];
  *made = (job){.at = at, .delay = delay};
  snprintf(made->folder, sizeof made->folder, "meshes-%s", name);
  const training request = request_of(made->folder, at, overrides);
  training_compile(&request);
}

static void compile(const char *name, const char *family, const mesh *at, int delay) {
  compile_on("tokens", name, family, at, delay);
}

/* All jobs, those of as many ranks together. */
static void train_all(const char *name) {
  for (unsigned n_ranks = 1; n_ranks <= 8; n_ranks++) {
    static char words[WORDS_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < n_jobs; i++) {
      if (jobs[i].at->n_ranks != n_ranks) continue;
      bool p2p = jobs[i].at->arguments != NULL && strcmp(jobs[i].at->arguments, "--comm p2p") == 0;
      used += (size_t)snprintf(words + used, sizeof words - used, "comm=%s delay=%d %s ",
                               p2p ? "p2p" : "auto", jobs[i].delay, jobs[i].folder);
      if (used >= sizeof words) tap_bail("too many trainings on %u ranks", n_ranks);
    }
    if (used > 0) training_together(n_ranks, name, words);
  }
}

/* ---- comparing ---- */

static bool same_gradients(const char *expected, const char *actual, double allowed) {
  char a[512], b[512];
  snprintf(a, sizeof a, "meshes-%s/gradients/gradients.safetensors", expected);
  snprintf(b, sizeof b, "meshes-%s/gradients/gradients.safetensors", actual);
  return training_compare_tensors(a, b, allowed);
}

/* What was trained: the model, or the adapters beside it. */
static bool same_weights(const char *expected, const char *actual) {
  char a[512], b[512];
  const char *file = "model.safetensors";
  snprintf(a, sizeof a, "meshes-%s/run/checkpoints/step-000006/%s", expected, file);
  if (access(a, F_OK) != 0) file = "adapter_model.safetensors";
  snprintf(a, sizeof a, "meshes-%s/run/checkpoints/step-000006/%s", expected, file);
  snprintf(b, sizeof b, "meshes-%s/run/checkpoints/step-000006/%s", actual, file);
  return training_compare_tensors(a, b, weight_tolerance);
}

/* The checkpoint at the end: weights and all that the optimizer keeps, byte by byte. */
static bool same_checkpoint(const char *expected, const char *actual) {
  char command[1024];
  snprintf(command, sizeof command,
           "diff -r -x manifest.json meshes-%s/run/checkpoints/step-000006 "
           "meshes-%s/run/checkpoints/step-000006 >&2",
           expected, actual);
  return system(command) == 0;
}

static void read_result(const char *name, training_result *result) {
  char folder[256];
  snprintf(folder, sizeof folder, "meshes-%s", name);
  training_read(folder, result);
}

/* ---- families ---- */

static const mesh *like(const struct family *family) {
  static const mesh one = {"one", 1, WORLD("1"), NULL};
  return family->like ? family->like : &one;
}

static void compile_family(const struct family *family) {
  const char *data = family->data ? family->data : "tokens";
  char name[128];
  snprintf(name, sizeof name, "%s-%s", family->name, like(family)->name);
  compile_on(data, name, family->overrides, like(family), 0);
  for (size_t i = 0; i < family->n_meshes; i++) {
    snprintf(name, sizeof name, "%s-%s", family->name, family->meshes[i].name);
    compile_on(data, name, family->overrides, &family->meshes[i], 0);
  }
}

static void compare_family(const struct family *family) {
  training_result expected, actual;
  char one_name[128], name[128];
  snprintf(one_name, sizeof one_name, "%s-%s", family->name, like(family)->name);
  read_result(one_name, &expected);
  for (size_t i = 0; i < family->n_meshes; i++) {
    snprintf(name, sizeof name, "%s-%s", family->name, family->meshes[i].name);
    read_result(name, &actual);
    double allowed = family->exact ? 0 : tolerance;
    double norm_allowed = family->exact && family->like ? norm_tolerance : allowed;
    bool good = training_compare(&expected, &actual, allowed, norm_allowed);
    good = same_gradients(one_name, name, allowed) && good;
    good = (family->exact ? same_checkpoint(one_name, name) : same_weights(one_name, name)) && good;
    tap_report(good, "%s", name);
  }
}

/* A plan whose gradients are twice too large: AdamW hardly notices, the comparison of gradients must. */
static void test_broken(void) {
  static const mesh one = {"one", 1, WORLD("1") SET("optimizer.clip_norm", "null"), NULL};
  uint64_t n_bytes;
  compile("right", "", &one, 0);
  compile("broken", "", &one, 0);
  uint8_t *bytes = plan_read("meshes-broken/plan.bin", &n_bytes);
  nx_operator *op = bytes ? plan_operator(bytes, NX_OP_ce_grad) : NULL;
  if (op == NULL) tap_bail("the plan has no ce_grad");
  plan_attribute(bytes, op, NX_ce_grad_scale)->real *= 2;
  plan_seal(bytes);
  if (!plan_write("meshes-broken/plan.bin", bytes, n_bytes)) tap_bail("the plan cannot be written");
  free(bytes);
  train_all("broken");
  tap_report(!same_gradients("right", "broken", tolerance), "gradients twice too large are noticed");
}

/* The same training, three times with other random delays before communication: nothing hangs, and no bit
 * differs. */
static void test_delays(void) {
  static const mesh layouts[] = {
      {"pp2-vpp2", 2, WORLD("2") STAGES("2") CHUNKS("2") LAYERS("4"), NULL},
      {"pp2-tp2-messages", 4, WORLD("4") STAGES("2") TENSOR("2") SEQUENCE LAYERS("4"), "--comm p2p"},
      {"zbv2-messages", 2, WORLD("2") STAGES("2") ZBV LAYERS("4"), "--comm p2p"},
      {"pp4-gpipe", 4, WORLD("4") STAGES("4") LAYERS("4") SET("pipeline.schedule", "gpipe"), NULL},
      {"ring4", 4, WORLD("4") RING("4"), NULL},
      {"ulysses2-ring2-messages", 4, WORLD("4") BOTH("4", "2"), "--comm p2p"},
      {"dp4-zero1-overlap", 4, WORLD("4") ZERO1 OVERLAP BUCKETS, NULL},
      {"dp2-zero3-overlap", 2, WORLD("2") ZERO("3") OVERLAP, NULL},
      {"pp2-dp2-zero2-messages", 4, WORLD("4") STAGES("2") ZERO("2") OVERLAP, "--comm p2p"},
      {"ep2", 2, WORLD("2") EXPERT("2") MIXTURE("2"), NULL},
      {"ring2-ep4-gather", 4, WORLD("4") RING("2") EXPERT("4") GATHER MIXTURE("2"), "--comm p2p"},
  };
  enum { N_LAYOUTS = sizeof layouts / sizeof *layouts, N_DELAYS = 3 };
  char name[128], plain_name[128];
  for (size_t i = 0; i < N_LAYOUTS; i++)
    for (int delay = 0; delay <= N_DELAYS; delay++) {
      snprintf(name, sizeof name, "delay%d-%s", delay, layouts[i].name);
      compile(name, SET("schedule.max_steps", "3"), &layouts[i], delay);
    }
  train_all("delays");
  for (size_t i = 0; i < N_LAYOUTS; i++) {
    training_result plain, delayed;
    snprintf(plain_name, sizeof plain_name, "delay0-%s", layouts[i].name);
    read_result(plain_name, &plain);
    for (int delay = 1; delay <= N_DELAYS; delay++) {
      snprintf(name, sizeof name, "delay%d-%s", delay, layouts[i].name);
      read_result(name, &delayed);
      bool good = training_compare(&plain, &delayed, 0, 0) && same_gradients(plain_name, name, 0);
      tap_report(good, "%s", name);
    }
  }
}

/* "1of4": the first of every four families; else those whose names begin so. */
static bool is_meant(const char *which, size_t family) {
  training_share share = training_share_of(which);
  if (share.n > 1) return training_is_in(&share, family);
  return strncmp(families[family].name, which, strlen(which)) == 0;
}

/* Some families together, so that what they are found to be is said before all are trained. */
static bool test_families(const char *which) {
  size_t n_families = sizeof families / sizeof *families, first = 0;
  bool any = false;
  for (size_t i = 0; i < n_families; i++) {
    if (is_meant(which, i)) compile_family(&families[i]);
    if (n_jobs < JOBS_TOGETHER && i + 1 < n_families) continue;
    train_all(which);
    any = any || n_jobs > 0;
    for (n_jobs = 0; first <= i; first++)
      if (is_meant(which, first)) compare_family(&families[first]);
  }
  return any;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  recorded = argv[1];
  for (int i = 2; i < argc; i++) {
    n_jobs = 0;
    if (strcmp(argv[i], "delays") == 0) test_delays();
    else if (strcmp(argv[i], "broken") == 0) test_broken();
    else if (!test_families(argv[i])) tap_bail("no such family: %s", argv[i]);
  }
  return tap_end();
}
