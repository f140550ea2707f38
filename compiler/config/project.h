/* SPDX-License-Identifier: Apache-2.0 */
/* The project file .nxcfg.yaml: what a team's configurations have in common, so that no command needs flags.
 *
 *   dialect: nxdt                            # for every file below this folder
 *   keys: [model.ours.*]                     # keys of the team's own modules
 *   allow: [NX1302]                          # findings that the team does not want
 *   rules: [policy.yaml]                     # as --rules
 *   exclude: [archive/, "*.tmpl.yaml"]       # what folders on a command line do not stand for
 *   hermetic: true                           # as --hermetic; env: [NAME] declares variables
 *   files:                                   # for some files; later entries win, lists add up
 *     - match: "*_neox.yml"
 *       dialect: neox@today
 *       world_size: 32
 *       model_config: models/7b/config.json
 *     - match: local_setup.yml
 *       partial: true                      # as --partial, where no -l completes it
 *     - match: run_*.sh
 *       args: 8 7b                         # as --args; or a list of words
 *
 * It is the nearest one at or above the configuration's folder; patterns and paths in it start at its own
 * folder. The command line wins over it, and it wins over the configuration. */
#ifndef NXC_CONFIG_PROJECT_H
#define NXC_CONFIG_PROJECT_H

#include "compiler/document/document.h"
#include "compiler/texts.h"

typedef struct nxc_project {
  const char *path; /* of the project file, as shown; NULL: there is none */
  const char *folder; /* its folder, as an absolute path that ends in / */
  const char *dialect, *model_config;
  const char *script_arguments; /* as a shell reads them; NULL: not said */
  const nxc_node *world_size; /* an integer; NULL: not said */
  nxc_texts keys, allow, rules, env, exclude;
  bool hermetic;
  bool partial; /* judged as a part where no other file is given with it */
} nxc_project;

#define NXC_PROJECT_FILE ".nxcfg.yaml"

/* What the project says about one configuration; "-" and NULL stand for the current folder. False (reported)
 * when the project file is wrong. */
bool nxc_project_read(nxc_arena *arena, const char *file, nxc_sink *sink, nxc_project *project);

/* Whether it leaves out a file, or a folder (ending in /), by its absolute path. */
bool nxc_project_excludes(nxc_arena *arena, const nxc_project *project, const char *path);

#endif
