/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/exports.h"
#include "compiler/config/fronts.h"

#include "compiler/config/rules/presets.h"

#include <stdlib.h>
#include <string.h>

typedef struct list {
  nxc_arena *arena;
  nxc_export *items;
  size_t n_items;
} list;

static const char not_shown[] = "(not shown)";

static bool is_joined(const char *name) {
  return strcmp(name, "NEURON_CC_FLAGS") == 0;
}

static void add(list *l, const char *name, const char *value, const char *from, nxc_span at) {
  for (size_t i = 0; i < l->n_items; i++) {
    nxc_export *known = &l->items[i];
    if (strcmp(known->name, name) != 0) continue;
    known->value = nxc_arena_printf(l->arena, "%s %s", known->value, value);
    known->from = nxc_arena_printf(l->arena, "%s, %s", known->from, from);
    return;
  }
  l->items = nxc_arena_grow(l->arena, l->items, l->n_items, sizeof *l->items);
  l->items[l->n_items++] =
      (nxc_export){.name = name, .value = value, .from = from, .at = at, .joined = is_joined(name)};
}

static void add_preset(list *l, const nxc_compiled *compiled) {
  const nxc_settings *settings = compiled->settings;
  if (!nxc_has(settings, NX_SETTING_PRECISION_PRESET)) return;
  const nxc_preset_row *preset =
      nxc_preset_find(compiled->dialect, nxc_text(settings, NX_SETTING_PRECISION_PRESET));
  for (size_t i = 0; preset != NULL && i < preset->n_environment; i++) {
    const char *text = preset->environment[i], *value = strchr(text, '=') + 1;
    add(l, nxc_arena_strndup(l->arena, text, (size_t)(value - 1 - text)), value,
        nxc_arena_printf(l->arena, "preset %s", preset->name),
        nxc_settings_span(settings, NX_SETTING_PRECISION_PRESET));
  }
}

/* NULL: there is no value. */
static const char *text_of(const list *l, const nxc_value *value) {
  if (value == NULL || value->kind == NXC_NULL) return NULL;
  return value->kind == NXC_STRING ? value->text : nxc_value_show(l->arena, value);
}

static void add_options(list *l, nxc_binding *binding) {
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    const nxc_option_row *row = &binding->dialect->options[i];
    const nxc_bound *bound = &binding->options[i];
    for (size_t j = 0; j < row->n_exports && !bound->inactive; j++) {
      const char *text = text_of(l, nxc_binding_evaluate(binding, bound, row->exports[j].expression));
      if (text == NULL) continue;
      add(l, row->exports[j].name, bound->secret ? not_shown : text, row->name, bound->at);
    }
  }
}

/* What a launcher gives every process itself. */
static const struct {
  const char *launcher, *name, *expression;
  bool keeps; /* a variable that is set already stays */
} launched[] = {
    {"torchrun", "WORLD_SIZE", "mesh.world", false},
    {"torchrun", "LOCAL_WORLD_SIZE", "mesh.world // mesh.nodes", false},
    {"torchrun", "GROUP_WORLD_SIZE", "mesh.nodes", false},
    {"torchrun", "RANK", "'0 to ' + str(mesh.world - 1)", false},
    {"torchrun", "LOCAL_RANK", "'0 to ' + str(mesh.world // mesh.nodes - 1)", false},
    {"torchrun", "OMP_NUM_THREADS", "mesh.world // mesh.nodes > 1 ? 1 : null", true},
    {"deepspeed", "WORLD_SIZE", "mesh.world", false},
    {"deepspeed", "LOCAL_SIZE", "mesh.world // mesh.nodes", false},
    {"deepspeed", "CROSS_SIZE", "mesh.nodes", false},
    {"deepspeed", "RANK", "'0 to ' + str(mesh.world - 1)", false},
    {"deepspeed", "LOCAL_RANK", "'0 to ' + str(mesh.world // mesh.nodes - 1)", false},
};
enum { N_LAUNCHED = sizeof launched / sizeof *launched };

static void add_launched(list *l, nxc_binding *binding, const char *launcher) {
  const nxc_bound none = {0};
  for (size_t i = 0; i < N_LAUNCHED; i++) {
    if (strcmp(launched[i].launcher, launcher) != 0) continue;
    const char *text = text_of(l, nxc_binding_evaluate(binding, &none, launched[i].expression));
    if (text == NULL) continue;
    add(l, launched[i].name, text, launcher, (nxc_span){0});
    l->items[l->n_items - 1].fixed = !launched[i].keeps;
  }
}

const nxc_export *nxc_exports(nxc_arena *arena, const nxc_compiled *compiled, size_t *n_exports) {
  list l = {.arena = arena};
  const char *version;
  const nxc_front *front =
      compiled->dialect ? nxc_front_find(arena, compiled->dialect->name, &version) : NULL;
  const char *launcher = front ? front->launcher : NULL;
  if (launcher != NULL && compiled->binding != NULL) add_launched(&l, compiled->binding, launcher);
  if (compiled->binding != NULL) add_options(&l, compiled->binding);
  if (launcher != NULL && compiled->settings != NULL) add_preset(&l, compiled);
  for (size_t i = 0; i < l.n_items; i++) {
    const char *ambient = getenv(l.items[i].name);
    bool compared = ambient != NULL && !l.items[i].fixed && l.items[i].value != not_shown;
    if (compared && strcmp(ambient, l.items[i].value) != 0)
      l.items[i].ambient = nxc_arena_strdup(arena, ambient);
  }
  *n_exports = l.n_items;
  return l.items;
}
