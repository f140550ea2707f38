/* SPDX-License-Identifier: Apache-2.0 */
/* Trains plans one after the other on the ranks of one job, since MPI takes longer to start than these
 * trainings: train_plans WORD... A word is a folder with plan.bin, where the run, its metrics and its first
 * gradients go; or says how the folders behind it are trained: comm=auto, comm=p2p, delay=N (NXRUN_DELAY; 0:
 * none). NX_BACKEND in the environment names the backend. */
#include "runtime/files/file.h"
#include "runtime/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool train(nxr_world *world, const char *folder, bool force_p2p) {
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
                               .force_p2p = force_p2p,
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

int main(int argc, char **argv) {
  nxr_world world;
  nxr_fault fault = {""};
  bool good = nxr_world_open(&world, 60, &fault), force_p2p = false;
  for (int i = 1; i < argc && good; i++) {
    if (strncmp(argv[i], "comm=", 5) == 0) force_p2p = strcmp(argv[i] + 5, "p2p") == 0;
    else if (strcmp(argv[i], "delay=0") == 0) unsetenv("NXRUN_DELAY");
    else if (strncmp(argv[i], "delay=", 6) == 0) setenv("NXRUN_DELAY", argv[i] + 6, 1);
    else good = train(&world, argv[i], force_p2p);
    if (!good && world.rank == 0) fprintf(stderr, "train_plans: %s failed %s\n", argv[i], fault.text);
  }
  if (!good) nxr_world_abort(EXIT_FAILURE);
  nxr_world_close(&world);
  return EXIT_SUCCESS;
}
