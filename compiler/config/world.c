/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/world.h"

#include "compiler/settings/catalogue.h"

#include <string.h>

enum { RANKS_OF_HOST_MAX = 128 };

/* The ranks that the file itself speaks of, by the first rule of its dialect that derives them. NULL:
 * unknown. */
static const nxc_value *own_world(const nxc_compiled *compiled, const nxc_rule_row **by) {
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    bool own = rule->dialect != NULL && strcmp(rule->dialect, compiled->dialect->name) == 0;
    if (rule->derives != NX_SETTING_MESH_WORLD || !own) continue;
    const nxc_value *holds = rule->when ? nxc_binding_evaluate(compiled->binding, NULL, rule->when) : NULL;
    if (holds != NULL && !(holds->kind == NXC_BOOL && holds->boolean)) continue;
    const nxc_value *world = nxc_binding_evaluate(compiled->binding, NULL, rule->derive);
    *by = rule;
    if (world != NULL && world->kind == NXC_INT && world->integer > 0) return world;
  }
  return NULL;
}

static bool is_told(const nxc_settings *settings, nxc_setting_id id) {
  return nxc_settings_from(settings, id)->kind >= NXC_FROM_PROJECT && nxc_settings_known(settings, id);
}

/* 0: unknown. */
static int64_t hosts_of(const nxc_compiled *compiled, int64_t world, int64_t hosts) {
  const nxc_rule_row *by;
  const nxc_value *own = own_world(compiled, &by);
  if (own == NULL || own->integer % hosts != 0) return world / hosts > RANKS_OF_HOST_MAX ? 0 : hosts;
  int64_t of_host = own->integer / hosts;
  return world <= of_host ? 1 : world % of_host == 0 ? world / of_host : 0;
}

void nxc_world_spread(nxc_arena *arena, const nxc_compiled *compiled, nxc_sink *sink) {
  nxc_settings *settings = compiled->settings;
  bool from_outside = is_told(settings, NX_SETTING_MESH_WORLD) && !is_told(settings, NX_SETTING_MESH_NODES);
  if (!from_outside || !nxc_settings_known(settings, NX_SETTING_MESH_NODES)) return;
  nxc_provenance from = *nxc_settings_from(settings, NX_SETTING_MESH_WORLD);
  int64_t before = nxc_int(settings, NX_SETTING_MESH_NODES);
  int64_t hosts = hosts_of(compiled, nxc_int(settings, NX_SETTING_MESH_WORLD), before);
  if (hosts == before || (hosts == 0 && compiled->binding->for_nxrun))
    return; /* nxrun asks no host how large it is */
  nxc_value *value = nxc_arena_alloc(arena, sizeof *value);
  *value = (nxc_value){.kind = NXC_INT, .integer = hosts};
  if (hosts == 0) nxc_settings_forget(settings, NX_SETTING_MESH_NODES, from.option, from.at);
  else nxc_settings_set(settings, NX_SETTING_MESH_NODES, value, &from, sink);
}

void nxc_world_note_other(nxc_arena *arena, const nxc_compiled *compiled, nxc_sink *sink) {
  const nxc_settings *settings = compiled->settings;
  const nxc_rule_row *by;
  if (nxc_settings_from(settings, NX_SETTING_MESH_WORLD)->kind != NXC_FROM_CLI) return;
  const nxc_value *world = nxc_settings_value(settings, NX_SETTING_MESH_WORLD),
                  *own = own_world(compiled, &by);
  if (own == NULL || nxc_value_equal(own, world)) return;
  nxc_report(sink, "NX1319", NXC_SEVERITY_NOTE, (nxc_span){0}, NULL,
             "the command line gives %s ranks; by the file there are %s (%s)", nxc_value_show(arena, world),
             nxc_value_show(arena, own), by->id);
}
