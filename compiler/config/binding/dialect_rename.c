/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/binding/dialect.h"
#include "compiler/document/repair.h"

#include <string.h>

static bool is_beside(const char *name, const char *other) {
  size_t n_section = (size_t)(nxc_name_last(name) - name);
  return n_section == (size_t)(nxc_name_last(other) - other) && strncmp(name, other, n_section) == 0;
}

nxc_repair nxc_binding_rename(nxc_binding *binding, const nxc_node *node, const char *name, const char *meant,
                              bool safe) {
  if (nxc_binding_is_given(binding, meant)) return (nxc_repair){0};
  if (is_beside(name, meant)) return nxc_repair_key(binding->arena, node, nxc_name_last(meant), safe);
  size_t n_section = (size_t)(nxc_name_last(meant) - meant);
  const nxc_node *section = binding->document->root;
  if (n_section > 0)
    section = nxc_node_lookup(section, nxc_arena_strndup(binding->arena, meant, n_section - 1));
  return nxc_repair_move(binding->arena, node, section, nxc_name_last(meant), safe);
}
