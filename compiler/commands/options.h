/* SPDX-License-Identifier: Apache-2.0 */
/* The command-line options that nxcfg's commands share, parsed once and in one place.
 *
 * Everything points into argv. FILEs are independent configurations; an argument of the form KEY=VALUE that
 * is no file is an override. A command adds its own options as extras: a flag, a text, or a list of texts.
 * Options may stand before and after FILEs; `--` ends them, and what follows is FILEs, or the arguments of
 * a dialect that takes arguments or of the scripts in front of it. `--name=value` and `--name value` are
 * alike. */
#ifndef NXC_COMMANDS_OPTIONS_H
#define NXC_COMMANDS_OPTIONS_H

#include "compiler/config/compile_settings.h"
#include "compiler/diagnostics/diagnostics.h"
#include "compiler/texts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* One of flag, text and list is set. */
typedef struct nxc_extra_option {
  const char *name; /* "--at" */
  bool *flag;
  const char **text;
  nxc_texts *list;
} nxc_extra_option;

typedef struct nxc_options {
  nxc_texts files, layers, sets, overrides, arguments, rules, allow;
  const char *dialect, *script_arguments, *world_size, *model_config;
  size_t launch; /* --launch; 0: none */
  bool omegaconf, hermetic;
  nxc_format format;
  const char *format_name; /* as given; NULL: not given */
  bool warnings_are_errors;
  bool notes;
  bool help;
  const char *colour; /* --color; NULL: auto */
} nxc_options;

/* `command` is its name, for messages; argv starts behind it. Extras end with a row without a name. False,
 * with a message on stderr, when the command line makes no sense (exit 2). Names of other formats are
 * left to the command where `own_formats`. */
bool nxc_options_parse(nxc_arena *arena, nxc_options *options, const char *command, int argc, char **argv,
                       const nxc_extra_option *extras, bool own_formats);
/* A command's usage, and that of the common options. */
void nxc_options_print_usage(const char *usage, FILE *out);
/* All files that the command line names to be read: FILEs, layers, rules, the model's config.json. */
nxc_texts nxc_options_inputs(nxc_arena *arena, const nxc_options *options);
nxc_request nxc_options_request(const nxc_options *options, const char *file);
/* How findings are to be printed: colour on a terminal only, so that a file or a pipe gets plain text. */
nxc_render nxc_options_render(const nxc_options *options);

#endif
