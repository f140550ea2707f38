/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NX_SCHEDULED_H
#define NX_SCHEDULED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether the setting says a part of the schedule that another value of it changes. same_decay: the decay of
 * both is over behind the same step, whatever steps there are. */
static inline bool nx_is_scheduled(const char *path, bool same_decay) {
  static const char *const others[] = {"optimizer.lr", "optimizer.weight_decay",
                                       "optimizer.start_weight_decay", "optimizer.weight_decay_growth",
                                       "optimizer.weight_decay_steps"};
  if (strcmp(path, "schedule.max_steps") == 0 || strcmp(path, "schedule.constant_steps") == 0)
    return !same_decay;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(path, others[i]) == 0) return true;
  return strncmp(path, "schedule.", strlen("schedule.")) == 0;
}

#endif
