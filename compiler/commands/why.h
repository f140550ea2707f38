/* SPDX-License-Identifier: Apache-2.0 */
/* The history of one value: everything that spoke about a setting or an option, weakest first, and what it
 * read.
 *
 * A step is one voice: a default, a preset, a rule, a place in a file, a layer, the command line. The last
 * step that counts is marked; those before it lost. A step that was an interpolation has what it read below
 * it, to the end of the chain. Values of secrets and from the environment are not shown. */
#ifndef NXC_COMMANDS_WHY_H
#define NXC_COMMANDS_WHY_H

#include "compiler/config/compile_settings.h"

typedef struct nxc_why_step nxc_why_step;
struct nxc_why_step {
  const char *kind;  /* as nxc_provenance_kind_name; "reference", "environment" for what was read */
  const char *name;  /* of the option, rule, preset, path or variable; may be NULL */
  const char *value; /* as people read it; of what lost as it was written */
  const char *text;  /* the interpolation that the value came from, as it is written; NULL: none to show */
  const char *inputs; /* of a rule; else NULL */
  nxc_span at;
  bool counts;
  nxc_why_step *reads;
  size_t n_reads;
};

typedef struct nxc_why {
  const char *path;
  bool is_setting;
  const char *value;
  nxc_why_step *steps;
  size_t n_steps;
} nxc_why;

/* `path` is a setting, an option of the dialect, or the last part of just one option. NULL where there is
 * none; *nearest then receives a name that may be meant, or NULL. */
const nxc_why *nxc_why_find(nxc_arena *arena, const nxc_compiled *compiled, const char *path,
                            const char **nearest);
void nxc_why_print(const nxc_why *why, FILE *out);
struct json_t *nxc_why_to_json(const nxc_why *why);

#endif
