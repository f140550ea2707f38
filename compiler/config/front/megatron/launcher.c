/* SPDX-License-Identifier: Apache-2.0 */
/* The options of torchrun, in front of the program: it stops at one that it does not have. */
#include "compiler/config/front/megatron/front_megatron.h"

#include <string.h>

/* With hyphens; torchrun takes _ for - in all of them, and the beginning of one. */
static const char *const options[] = {"duplicate-stderr-filters",
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
enum { N_OPTIONS = sizeof options / sizeof *options };

static bool is_torchrun(const char *word) {
  static const char *const names[] = {"torchrun", "torch.distributed.run", "torch.distributed.launch"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t n = strlen(names[i]), n_word = strlen(word);
    bool ends = n_word >= n && strcmp(word + n_word - n, names[i]) == 0;
    if (ends && (n_word == n || word[n_word - n - 1] == '/')) return true;
  }
  return false;
}

static bool is_option(const char *name) {
  for (size_t i = 0; i < N_OPTIONS; i++)
    if (strncmp(options[i], name, strlen(name)) == 0) return true;
  return false;
}

/* Words that are no option are values, or belong to what is started. */
void nxc_megatron_check_launcher(nxc_arguments *to, const nxc_launch *launch) {
  bool behind = false;
  for (size_t i = 0; i < launch->n_in_front; i++) {
    const nxc_launch_word *word = &launch->launcher.items[i];
    bool option = behind && strncmp(word->text, "--", 2) == 0 && word->text[2] != '\0';
    behind = behind || is_torchrun(word->text);
    if (!option || word->unset != NULL) continue;
    char *name = nxc_arena_strndup(to->arena, word->text + 2, strcspn(word->text + 2, "="));
    for (char *c = name; *c != '\0'; c++)
      if (*c == '_') *c = '-';
    if (is_option(name)) continue;
    const char *nearest = nxc_nearest(name, options, N_OPTIONS);
    const char *fix = nearest ? nxc_arena_printf(to->arena, "did you mean --%s?", nearest)
                              : "leave it out, or write it behind the program";
    nxc_report(to->sink, "NX5924", NXC_SEVERITY_ERROR, word->at, fix, "torchrun has no option %.*s",
               (int)strcspn(word->text, "="), word->text);
  }
}
