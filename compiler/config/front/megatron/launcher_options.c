/* SPDX-License-Identifier: Apache-2.0 */
/* Options that launchers have of their own: torchrun stops at one that it does not have, and so does Slurm,
 * whose plugins may have more. */
#include "compiler/config/front/megatron/front_megatron.h"

#include "compiler/diagnostics/nearest.h"

#include <string.h>

/* With hyphens; torchrun takes _ for - in all of them, and the beginning of one. */
static const char *const of_torchrun[] = {"duplicate-stderr-filters",
                                      "duplicate-stdout-filters",
                                      "event-log-handler",
                                      "help",
                                      "local-addr",
                                      "local-ranks-filter",
                                      "log-dir",
                                      "logs-specs",
                                      "master-addr",
                                      "master-port",
                                      "max-restarts",
                                      "module",
                                      "monitor-interval",
                                      "nnodes",
                                      "no-python",
                                      "node-rank",
                                      "nproc-per-node",
                                      "numa-binding",
                                      "rdzv-backend",
                                      "rdzv-conf",
                                      "rdzv-endpoint",
                                      "rdzv-id",
                                      "redirects",
                                      "role",
                                      "run-path",
                                      "shutdown-timeout",
                                      "signals-to-handle",
                                      "standalone",
                                      "start-method",
                                      "tee",
                                      "use-env",
                                      "virtual-local-rank"};
/* Of srun and sbatch, which take the beginning of one, and of their plugin for containers. */
static const char *const of_slurm[] = {
    "accel-bind",
    "account",
    "acctg-freq",
    "array",
    "batch",
    "bb",
    "bbf",
    "bcast",
    "bcast-exclude",
    "begin",
    "chdir",
    "cluster-constraint",
    "clusters",
    "comment",
    "compress",
    "consolidate-segments",
    "constraint",
    "container",
    "container-entrypoint",
    "container-env",
    "container-id",
    "container-image",
    "container-mount-home",
    "container-mounts",
    "container-name",
    "container-readonly",
    "container-remap-root",
    "container-save",
    "container-workdir",
    "container-writable",
    "contiguous",
    "core-spec",
    "cores-per-socket",
    "cpu-bind",
    "cpu-freq",
    "cpu_bind",
    "cpus-per-gpu",
    "cpus-per-task",
    "deadline",
    "delay-boot",
    "dependency",
    "disable-status",
    "distribution",
    "epilog",
    "error",
    "exact",
    "exclude",
    "exclusive",
    "export",
    "export-file",
    "external",
    "extra-node-info",
    "get-user-env",
    "gid",
    "gpu-bind",
    "gpu-freq",
    "gpus",
    "gpus-per-node",
    "gpus-per-socket",
    "gpus-per-task",
    "gres",
    "gres-flags",
    "help",
    "het-group",
    "hint",
    "hold",
    "ignore-pbs",
    "immediate",
    "input",
    "job-name",
    "jobid",
    "kill-on-bad-exit",
    "kill-on-invalid-dep",
    "label",
    "licenses",
    "mail-type",
    "mail-user",
    "mcs-label",
    "mem",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mem_bind",
    "mincpus",
    "mpi",
    "msg-timeout",
    "multi-prog",
    "network",
    "nice",
    "no-allocate",
    "no-container-entrypoint",
    "no-container-mount-home",
    "no-container-remap-root",
    "no-kill",
    "no-requeue",
    "nodefile",
    "nodelist",
    "nodes",
    "ntasks",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-node",
    "ntasks-per-socket",
    "oom-kill-step",
    "open-mode",
    "output",
    "overcommit",
    "overlap",
    "oversubscribe",
    "parsable",
    "partition",
    "power",
    "prefer",
    "preserve-env",
    "priority",
    "profile",
    "prolog",
    "propagate",
    "pty",
    "qos",
    "quiet",
    "quit-on-interrupt",
    "reboot",
    "relative",
    "requeue",
    "reservation",
    "resv-ports",
    "segment",
    "send-libs",
    "share",
    "signal",
    "slurmd-debug",
    "sockets-per-node",
    "spread-job",
    "stepmgr",
    "switches",
    "task-epilog",
    "task-prolog",
    "test-only",
    "thread-spec",
    "threads",
    "threads-per-core",
    "time",
    "time-min",
    "tmp",
    "tres-bind",
    "tres-per-task",
    "uid",
    "unbuffered",
    "usage",
    "use-min-nodes",
    "verbose",
    "version",
    "wait",
    "wait-all-nodes",
    "wckey",
    "wrap",
    "x11",
};
enum {
  N_OF_TORCHRUN = sizeof of_torchrun / sizeof *of_torchrun,
  N_OF_SLURM = sizeof of_slurm / sizeof *of_slurm
};

static bool is_torchrun(const char *word) {
  static const char *const names[] = {"torchrun", "torch.distributed.run", "torch.distributed.launch"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t n = strlen(names[i]), n_word = strlen(word);
    bool ends = n_word >= n && strcmp(word + n_word - n, names[i]) == 0;
    if (ends && (n_word == n || word[n_word - n - 1] == '/')) return true;
  }
  return false;
}

static bool is_option(const char *const *options, size_t n_options, const char *name) {
  for (size_t i = 0; i < n_options; i++)
    if (strncmp(options[i], name, strlen(name)) == 0) return true;
  return false;
}

/* NULL: it is no long option whose name is seen. */
static char *name_of(nxc_arguments *to, const nxc_launch_word *word) {
  if (word->unset != NULL || strncmp(word->text, "--", 2) != 0 || word->text[2] == '\0') return NULL;
  return nxc_arena_strndup(to->arena, word->text + 2, strcspn(word->text + 2, "="));
}

static void check_torchrun(nxc_arguments *to, const nxc_launch_word *word) {
  char *name = name_of(to, word);
  for (char *c = name; c != NULL && *c != '\0'; c++)
    if (*c == '_') *c = '-';
  if (name == NULL || is_option(of_torchrun, N_OF_TORCHRUN, name)) return;
  const char *fix = nxc_did_you_mean(to->arena, "--", nxc_nearest(name, of_torchrun, N_OF_TORCHRUN));
  if (fix == NULL) fix = "leave it out, or write it behind the program";
  nxc_report(to->sink, "NX5924", NXC_SEVERITY_ERROR, word->at, fix, "torchrun has no option %.*s",
             (int)strcspn(word->text, "="), word->text);
}

/* What is near to none may be a plugin's. */
static void check_slurm(nxc_arguments *to, const nxc_launch_word *word) {
  const char *name = name_of(to, word);
  if (name == NULL || is_option(of_slurm, N_OF_SLURM, name)) return;
  nxc_near near = nxc_near_find(name, of_slurm, N_OF_SLURM);
  if (!near.certain) return;
  nxc_report(to->sink, "NX5926", NXC_SEVERITY_WARNING, word->at, nxc_did_you_mean(to->arena, "--", near.name),
             "Slurm has no option --%s", name);
}

static bool is_srun(const char *word) {
  const char *slash = strrchr(word, '/');
  return strcmp(slash ? slash + 1 : word, "srun") == 0;
}

/* A bare option may have a value behind it; the next word that is none is what srun starts. */
static bool is_value(const nxc_launch_word *word, const nxc_launch_word *before) {
  return *word->text == '-' || (*before->text == '-' && strchr(before->text, '=') == NULL);
}

/* Words that are no option are values, or belong to what is started. */
void nxc_megatron_check_launcher(nxc_arguments *to, const nxc_launch *launch) {
  enum { NOTHING, SLURM, TORCHRUN } who = NOTHING;
  const nxc_launch_word *words = launch->launcher.items;
  for (size_t i = 0; i < launch->n_in_front; i++) {
    if (who == TORCHRUN) check_torchrun(to, &words[i]);
    else if (is_torchrun(words[i].text)) who = TORCHRUN;
    else if (is_srun(words[i].text)) who = SLURM;
    else if (who == SLURM && !is_srun(words[i - 1].text) && !is_value(&words[i], &words[i - 1]))
      who = NOTHING;
    else if (who == SLURM) check_slurm(to, &words[i]);
  }
  for (size_t i = launch->n_in_front; i < launch->launcher.n_items; i++) check_slurm(to, &words[i]);
}
