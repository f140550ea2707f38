/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/summary.h"

const char *nxc_mesh_show(nxc_arena *arena, const nxc_settings *settings) {
  static const struct {
    nxc_setting_id id;
    const char *name;
  } axes[] = {
      {NX_SETTING_MESH_TENSOR, "tensor"},
      {NX_SETTING_MESH_PIPELINE, "pipeline"},
      {NX_SETTING_MESH_CONTEXT, "context"},
      {NX_SETTING_MESH_DATA, "data"},
  };
  if (!nxc_has(settings, NX_SETTING_MESH_WORLD)) return "world size unknown";
  long long world = nxc_int(settings, NX_SETTING_MESH_WORLD);
  const char *text = nxc_arena_printf(arena, world == 1 ? "%lld rank" : "%lld ranks", world);
  const char *joint = " = ";
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
    if (!nxc_has(settings, axes[i].id) || nxc_int(settings, axes[i].id) == 1) continue;
    text = nxc_arena_printf(arena, "%s%s%s %lld", text, joint, axes[i].name,
                            (long long)nxc_int(settings, axes[i].id));
    joint = " x ";
  }
  return text;
}

const char *nxc_batches_show(nxc_arena *arena, const nxc_settings *settings) {
  if (!nxc_has(settings, NX_SETTING_BATCH_MICRO)) return "batch unknown";
  if (!nxc_has(settings, NX_SETTING_BATCH_ACCUMULATION)) {
    return nxc_arena_printf(arena, "micro-batches of %lld",
                            (long long)nxc_int(settings, NX_SETTING_BATCH_MICRO));
  }
  long long n_batches = nxc_int(settings, NX_SETTING_BATCH_ACCUMULATION);
  return nxc_arena_printf(arena, "%lld micro-batch%s of %lld a step", n_batches,
                          n_batches == 1 ? "" : "es", (long long)nxc_int(settings, NX_SETTING_BATCH_MICRO));
}

const char *nxc_assumed_show(nxc_arena *arena, const nxc_assumed *assumed) {
  const char *text = assumed->defaults ? "defaults of what other texts may give" : "";
  if (assumed->arguments != NULL)
    text = nxc_arena_printf(arena, "%s%sarguments of the script (as a comment of it shows): %s", text,
                            *text ? ", " : "", assumed->arguments);
  if (assumed->model != NULL)
    text = nxc_arena_printf(arena, "%s%sthe shape of %s", text, *text ? ", " : "", assumed->model);
  for (size_t i = 0; i < assumed->n_items; i++)
    text = nxc_arena_printf(arena, "%s%s%s = %s (%s)", text, *text ? ", " : "",
                            nxc_setting_path(assumed->items[i].setting), assumed->items[i].value,
                            assumed->items[i].why);
  return text;
}
