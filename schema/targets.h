/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets.def. */
#ifndef NX_TARGETS_H
#define NX_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum nx_target {
#define TARGET(number, name, text, backend, on_device, needs) NX_TARGET_##name = number,
#include "schema/targets.def"
#undef TARGET
  NX_TARGET_END
} nx_target;

typedef struct nx_target_row {
  nx_target target;
  const char *name, *backend, *needs;
  bool on_device;
} nx_target_row;

static const nx_target_row nx_targets[] = {
#define TARGET(number, name, text, backend, on_device, needs)                                                \
  {NX_TARGET_##name, text, backend, needs, on_device},
#include "schema/targets.def"
#undef TARGET
};

/* Each behind a space. */
static const char nx_target_names[] =
#define TARGET(number, name, text, backend, on_device, needs) " " text
#include "schema/targets.def"
#undef TARGET
    ;

/* NULL where there is none of that number, or name. */
static inline const nx_target_row *nx_target_find(uint32_t target) {
  for (size_t i = 0; i < sizeof nx_targets / sizeof *nx_targets; i++)
    if (nx_targets[i].target == target) return &nx_targets[i];
  return NULL;
}

/* Whether a plan may be made for a backend, built or not. */
static inline bool nx_target_knows_backend(const char *backend) {
  for (size_t i = 0; i < sizeof nx_targets / sizeof *nx_targets; i++)
    if (strcmp(nx_targets[i].backend, backend) == 0) return true;
  return false;
}

static inline const nx_target_row *nx_target_find_name(const char *name) {
  for (size_t i = 0; i < sizeof nx_targets / sizeof *nx_targets; i++)
    if (strcmp(nx_targets[i].name, name) == 0) return &nx_targets[i];
  return NULL;
}

#endif
