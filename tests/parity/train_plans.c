/* SPDX-License-Identifier: Apache-2.0 */
/* Trains plans one after the other on the ranks of one job, since MPI takes longer to start than these
 * trainings: train_plans WORD... A word is a folder with plan.bin, where the run, its metrics and its first
 * gradients go; or says how the folders behind it are trained: comm=auto, comm=p2p, delay=N (NXRUN_DELAY; 0:
 * none), stop=N (after so many steps; 0: the plan's), from=start, from=checkpoint (the newest in the run's
 * folder). NX_BACKEND in the environment names the backend. */
#include "runtime/files/file.h"
#include "runtime/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { /* how folders are trained */
  bool force_p2p, resume;
  uint64_t stop_after;
} training_way;

static bool train(nxr_world *world, const char *folder, const training_way *way) {
  char plan[512], run[512], metrics[512], gradients[512];
  snprintf(plan, sizeof plan, "%s/plan.bin", folder);
  snprintf(run, sizeof run, "%s/run", folder);
  snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", folder);
  snprintf(gradients, sizeof gradients, "%s/gradients", folder);
  const nxr_options options = {.plan_path = plan,
                               .backend = getenv("NX_BACKEND"),
                               .directory = run,
                               .metrics = metrics,
                               .dump_gradients = gradients,
                               .force_p2p = way->force_p2p,
                               .resume = way->resume,
                               .stop_after = way->stop_after,
                               .log = NXR_LOG_JSON};
  nxr_file file;
  nxr_fault fault = {""};
  nxr_file_open(plan, NULL, &file, &fault);
  if (!nxr_world_agree(world, &fault)) return false;
  bool good = nxr_world_check_same(world, &file.plan) && nxr_world_check_launch(world, &file.plan, plan) &&
              nxr_train(world, &file.plan, &options) == NXR_EXIT_OK;
  nxr_file_close(&file);
  return good;
}

/* Whether the word says how the folders behind it are trained, and is followed. */
static bool follow_word(const char *word, training_way *way) {
  const char *value = strchr(word, '=');
  const size_t length = value ? (size_t)(value++ - word) : 0;
  if (!value || strcspn(word, "/") < length) return false;
  if (strncmp(word, "comm", length) == 0) way->force_p2p = strcmp(value, "p2p") == 0;
  else if (strncmp(word, "from", length) == 0) way->resume = strcmp(value, "checkpoint") == 0;
  else if (strncmp(word, "stop", length) == 0) way->stop_after = strtoull(value, NULL, 10);
  else if (strncmp(word, "delay", length) != 0) return false;
  else if (strcmp(value, "0") == 0) unsetenv("NXRUN_DELAY");
  else setenv("NXRUN_DELAY", value, 1);
  return true;
}

int main(int argc, char **argv) {
  nxr_world world;
  nxr_fault fault = {""};
  training_way way = {0};
  bool good = nxr_world_open(&world, 60, &fault);
  for (int i = 1; i < argc && good; i++) {
    good = follow_word(argv[i], &way) || train(&world, argv[i], &way);
    if (!good && world.rank == 0) fprintf(stderr, "train_plans: %s failed %s\n", argv[i], fault.text);
  }
  if (!good) nxr_world_abort(EXIT_FAILURE);
  nxr_world_close(&world);
  return EXIT_SUCCESS;
}
