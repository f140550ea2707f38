/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that the script does not set: those of nxcfg's own environment, and those that only a run has. */
#include "compiler/config/front/shell/shell.h"
#include "compiler/document/names.h"

#include <stdlib.h>
#include <string.h>

bool nxc_shell_is_given(const char *name) {
  static const char *const names[] = {"MASTER_ADDR",  "MASTER_PORT", "WORLD_SIZE",
                                      "RANK",         "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                      "NODE_RANK",    "HOSTNAME",    "HOST",
                                      "RANDOM",       "SECONDS",     "LINENO",
                                      "UID",          "EUID",        "USER",
                                      "HOME",         "PWD",         "OLDPWD",
                                      "PATH",         "PYTHONPATH",  "LD_LIBRARY_PATH",
                                      "BASH_SOURCE",  "FUNCNAME",    "PIPESTATUS",
                                      "BASHPID",      "OSTYPE",      "TMPDIR",
                                      "EPOCHSECONDS", "PPID",        "SHELL",
                                      "OPTARG",       "OPTIND",      "BASH_REMATCH",
                                      "REPLY",        "BASH"};
  static const char *const beginnings[] = {"SLURM_", "OMPI_", "PMI_", "PMIX_",
                                           "PBS_",   "LSB_",  "SGE_", "PET_"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], name) == 0) return true;
  for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
    if (strncmp(beginnings[i], name, strlen(beginnings[i])) == 0) return true;
  return false;
}

/* What bash itself keeps is no part of the environment that a configuration depends on. */
static bool is_of_bash(const char *name) {
  static const char *const names[] = {"RANDOM",   "SECONDS",    "LINENO",       "UID",    "EUID",
                                      "FUNCNAME", "PIPESTATUS", "OPTARG",       "OPTIND", "PPID",
                                      "OLDPWD",   "REPLY",      "EPOCHSECONDS", "OSTYPE"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], name) == 0) return true;
  return strncmp(name, "BASH", 4) == 0;
}

const char *nxc_shell_read_environment(nxc_shell *s, const char *name, size_t at, bool default_taken) {
  nxc_script *script = s->script;
  const char *value = is_of_bash(name) ? NULL : getenv(name);
  if (is_of_bash(name)) return value;
  if (script->variables_by_name == NULL) script->variables_by_name = nxc_names_new(script->arena);
  void **position = nxc_names_slot(script->variables_by_name, name, strlen(name));
  if (*position != NULL) return value;
  script->variables =
      nxc_arena_grow(script->arena, script->variables, script->n_variables, sizeof *script->variables);
  script->variables[script->n_variables++] = (nxc_variable){.name = name,
                                                            .value = value,
                                                            .default_taken = value == NULL && default_taken,
                                                            .at = nxc_shell_place(s, at, strlen(name))};
  *position = script;
  return value;
}
