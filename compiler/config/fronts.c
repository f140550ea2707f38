/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/fronts.h"

#include "compiler/config/front/megatron/front_megatron.h"
#include "compiler/config/front/neox/front_neox.h"
#include "compiler/config/front/nxdt/front_nxdt.h"
#include "compiler/config/front/xorl/front_xorl.h"

#include <ctype.h>
#include <string.h>

static const nxc_front fronts[] = {
    {.dialect = "megatron",
     .launcher = "torchrun",
     .versions = nxc_megatron_versions,
     .checks_all = true,
     .takes_arguments = true,
     .folds_dashes = true,
     .claims = nxc_megatron_claims,
     .read = nxc_megatron_read,
     .resolve = nxc_megatron_resolve,
     .prepare = nxc_megatron_prepare,
     .write = nxc_write_arguments},
    {.dialect = "nx",
     .takes_overrides = true,
     .read = nxc_front_read_yaml,
     .resolve = nxc_resolve,
     .write = nxc_write_yaml},
    {.dialect = "nxdt",
     .launcher = "torchrun",
     .takes_overrides = true,
     .read = nxc_front_read_yaml,
     .resolve = nxc_resolve,
     .one_family = true,
     .strict_sections = nxc_nxdt_strict_sections,
     .prepare = nxc_nxdt_prepare,
     .write = nxc_write_yaml},
    {.dialect = "neox",
     .launcher = "deepspeed",
     .versions = nxc_neox_versions,
     .dated = true,
     .whole_sections = true,
     .checks_all = true,
     .folds_dashes = true,
     .claims = nxc_neox_claims,
     .read = nxc_neox_read,
     .resolve = nxc_front_resolve_angles,
     .prepare = nxc_neox_prepare,
     .write = nxc_write_flow},
    {.dialect = "xorl",
     .launcher = "torchrun",
     .versions = nxc_xorl_versions,
     .checks_all = true,
     .takes_arguments = true,
     .claims = nxc_xorl_claims,
     .keys_tell = true,
     .read = nxc_xorl_read,
     .resolve = nxc_front_resolve_angles,
     .prepare = nxc_xorl_prepare,
     .write = nxc_write_yaml_plain,
     .model_option = "model.config_path"},
};
enum { N_FRONTS = sizeof fronts / sizeof *fronts };

static const char *first_version(const nxc_front *front) {
  return front->versions ? front->versions[0] : NULL;
}

/* YYYY-MM or YYYY-MM-DD */
static bool is_day(const char *name) {
  static const char form[] = "dddd-dd-dd";
  size_t n = strlen(name);
  for (size_t i = 0; i < n && n <= strlen(form); i++)
    if (form[i] == 'd' ? !isdigit((unsigned char)name[i]) : name[i] != form[i]) return false;
  return n == strlen("YYYY-MM") || n == strlen(form);
}

/* A version by its name, or by any day where they are named by days; `seed` is the oldest of those. */
static const char *version_named(nxc_arena *arena, const nxc_front *front, const char *name) {
  const char *oldest = NULL;
  for (const char *const *known = front->versions; known != NULL && *known != NULL; known++) {
    if (strcmp(*known, name) == 0) return *known;
    oldest = *known;
  }
  if (!front->dated) return NULL;
  return strcmp(name, "seed") == 0 ? oldest : is_day(name) ? nxc_arena_strdup(arena, name) : NULL;
}

const nxc_front *nxc_front_find(nxc_arena *arena, const char *name, const char **version) {
  size_t n_name = strcspn(name, "@");
  for (size_t i = 0; i < N_FRONTS; i++) {
    const nxc_front *front = &fronts[i];
    if (strcmp(front->dialect, nxc_arena_strndup(arena, name, n_name)) != 0) continue;
    *version = name[n_name] == '\0' ? first_version(front) : version_named(arena, front, name + n_name + 1);
    return name[n_name] == '\0' || *version != NULL ? front : NULL;
  }
  return NULL;
}

const nxc_front *nxc_front_claiming(const nxc_source *text, const char **version) {
  for (size_t i = 0; i < N_FRONTS; i++) {
    if (fronts[i].claims == NULL || !fronts[i].claims(text)) continue;
    *version = first_version(&fronts[i]);
    return &fronts[i];
  }
  return NULL;
}

bool nxc_front_told_by_keys(const char *dialect) {
  for (size_t i = 0; i < N_FRONTS; i++)
    if (strcmp(fronts[i].dialect, dialect) == 0) return fronts[i].claims == NULL || fronts[i].keys_tell;
  return false;
}

const char *nxc_front_names(nxc_arena *arena) {
  const char *names = "";
  for (size_t i = 0; i < N_FRONTS; i++) {
    names = nxc_arena_printf(arena, "%s%s%s", names, i ? ", " : "", fronts[i].dialect);
    if (fronts[i].dated) {
      names = nxc_arena_printf(arena, "%s@%s|YYYY-MM-DD", names, fronts[i].versions[0]);
      continue;
    }
    for (const char *const *version = fronts[i].versions; version != NULL && *version != NULL; version++)
      names = nxc_arena_printf(arena, "%s%s%s", names, version == fronts[i].versions ? "@" : "|", *version);
  }
  return names;
}
