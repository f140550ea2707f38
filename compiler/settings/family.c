/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/family.h"

#include <string.h>

const nxc_family *nxc_family_find(const char *name) {
  for (size_t i = 0; i < nxc_n_families; i++)
    if (strcmp(nxc_families[i].name, name) == 0) return &nxc_families[i];
  return NULL;
}

const nxc_family *nxc_family_of_type(const char *model_type) {
  for (size_t i = 0; i < nxc_n_families; i++)
    for (size_t j = 0; j < nxc_families[i].n_model_types; j++)
      if (strcmp(nxc_families[i].model_types[j], model_type) == 0) return &nxc_families[i];
  return NULL;
}

bool nxc_family_same_tensors(const nxc_family *a, const nxc_family *b) {
  return memcmp(a->tensors, b->tensors, sizeof a->tensors) == 0;
}

bool nxc_families_set(nxc_setting_id id) {
  for (size_t i = 0; i < nxc_n_families; i++)
    for (size_t j = 0; j < nxc_families[i].n_sets; j++)
      if (nxc_families[i].sets[j].setting == id) return true;
  return false;
}

const char *nxc_part_name(nxc_part part) {
  static const char *const names[NXC_N_PARTS] = {
#define PART(id, name, kind) [NXC_PART_##id] = #name,
#include "compiler/settings/parts.def"
#undef PART
  };
  return names[part];
}
