/* SPDX-License-Identifier: Apache-2.0 */
/* Options by their names. */
#include "compiler/config/binding/dialect.h"

#include <string.h>

nxc_bound *nxc_binding_find(const nxc_binding *binding, const char *name) {
  const nxc_option_row *row = nxc_option_find(binding->dialect, name);
  return row ? &binding->options[row - binding->dialect->options] : NULL;
}

const nxc_bound *nxc_binding_find_model(const nxc_binding *binding, const char *name) {
  const nxc_option_row *row = binding->model_dialect ? nxc_option_find(binding->model_dialect, name) : NULL;
  return row ? &binding->model_options[row - binding->model_dialect->options] : NULL;
}

/* The first option whose name is not less than `section.`, by bisection. */
size_t nxc_dialect_section(const nxc_dialect *dialect, const char *section, size_t *first) {
  size_t n_bytes = strlen(section), low = 0, high = dialect->n_options;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const char *name = dialect->options[middle].name;
    int order = strncmp(name, section, n_bytes);
    if (order < 0 || (order == 0 && (unsigned char)name[n_bytes] < '.')) low = middle + 1;
    else high = middle;
  }
  *first = low;
  while (low < dialect->n_options && strncmp(dialect->options[low].name, section, n_bytes) == 0 &&
         dialect->options[low].name[n_bytes] == '.')
    low++;
  return low;
}

bool nxc_dialect_has_section(const nxc_dialect *dialect, const char *name) {
  size_t first;
  return nxc_dialect_section(dialect, name, &first) > first;
}

const char *nxc_name_below(nxc_arena *arena, const char *section, const char *key) {
  size_t n_section = strlen(section), n_key = strlen(key);
  if (n_section == 0) return key;
  char *name = nxc_arena_alloc(arena, n_section + n_key + 2);
  memcpy(name, section, n_section);
  name[n_section] = '.';
  memcpy(name + n_section + 1, key, n_key);
  return name;
}

const char *nxc_name_last(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot ? dot + 1 : name;
}

bool nxc_binding_is_given(const nxc_binding *binding, const char *name) {
  const nxc_bound *bound = nxc_binding_find(binding, name);
  if (bound != NULL && bound->given) return true;
  size_t first, end = nxc_dialect_section(binding->dialect, name, &first);
  while (first < end && !binding->options[first].given) first++;
  return first < end;
}
