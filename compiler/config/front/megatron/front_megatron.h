/* SPDX-License-Identifier: Apache-2.0 */
/* Megatron-LM's texts: arguments (a file of them, a script that starts a training, or what stands behind
 * `--`), and the YAML forms that its tests, recipes and --yaml-cfg use.
 *
 * All become one map: an option as on the command line without its hyphens, beside it `launch` (what torchrun
 * was told, and the keys of --yaml-cfg's sections) and `environment` (variables that the text sets). Layers,
 * --set and arguments take the place of what the file says; within one of them an option stands once. */
#ifndef NXC_CONFIG_FRONT_MEGATRON_H
#define NXC_CONFIG_FRONT_MEGATRON_H

#include "compiler/config/front/arguments.h"
#include "compiler/config/front/front.h"

extern const char *const nxc_megatron_versions[];

bool nxc_megatron_claims(const nxc_source *text);
nxc_document *nxc_megatron_read(const nxc_front_texts *texts);
/* Variables were filled in while reading; this tells which, and resolves our own $<...>. */
nxc_resolution nxc_megatron_resolve(nxc_document *document, const nxc_resolving *resolving, nxc_sink *sink);

/* Reads the files of data-args-path and per-split-data-args-path (megatron_blends.c), and the arguments of a
 * checkpoint (checkpoint_args.h). */
void nxc_megatron_prepare(struct nxc_binding *binding);

/* Reports options that torchrun and Slurm do not have. */
void nxc_megatron_check_launcher(nxc_arguments *to, const nxc_launch *launch);
/* What launches the training: `launch`. Of torchrun and srun in front of it the later word counts. */
void nxc_megatron_read_launcher(nxc_arguments *to, const nxc_launch *launch);
/* A program of a relative, which may have several. */
void nxc_megatron_put_program(nxc_arguments *to, const nxc_launch *launch, const char *name);
/* Variables that the text sets: `launch` takes the number of ranks, `environment` the others where the launch
 * is `whole`. */
void nxc_megatron_read_environment(nxc_arguments *to, const nxc_launch *launch, const nxc_source *first,
                                   bool whole);
/* One of them, over what the text sets. */
void nxc_megatron_set_variable(nxc_arguments *to, const char *name, const char *value, nxc_span at);
/* Reads the file of deepspeed_config, which the script may write itself (deepspeed_config.c). */
void nxc_megatron_read_deepspeed(nxc_arguments *to, nxc_script *script);
/* deepspeed_config.KEY=VALUE over what that file says. False: it is another option's, or no file is read. */
bool nxc_megatron_set_deepspeed(nxc_arguments *to, const char *assignment);

/* -- YAML (front_megatron_yaml.c) -- */

/* The option behind a name of argparse's namespace, and whether it says the opposite; "": the name is no
 * argument. */
const char *nxc_megatron_option_of(nxc_arena *arena, const char *name, bool *opposite);
/* Whether a text is one of the YAML forms, and not arguments. */
bool nxc_megatron_is_yaml(const nxc_source *text);
/* Puts the options of a YAML form into `to`, and variables that it sets into the script. False (reported):
 * the text is no YAML map. */
bool nxc_megatron_read_yaml(nxc_arguments *to, const nxc_source *text, nxc_script *script);

#endif
