/* SPDX-License-Identifier: Apache-2.0 */
/* Two configurations or plans side by side, as nxcfg diff reads and prints them. */
#ifndef NXC_COMMANDS_DIFF_H
#define NXC_COMMANDS_DIFF_H

#include "compiler/commands/estimate.h"
#include "compiler/commands/options.h"
#include "compiler/compare/compare.h"

typedef struct nxc_diff_side {
  const char *name;       /* as it is shown: a file, or REVISION:FILE */
  const char *file;       /* as it is on disk */
  const nxc_source *text; /* of a configuration, read already: a pipe is read once */
  nxc_compiled compiled;  /* of a plan: nothing */
  nxc_side values;
  const char *lacks;     /* why its own system is not estimated, or NULL */
  nxc_column columns[2]; /* its own system's, and nxrun's; of a plan the second alone */
} nxc_diff_side;

typedef struct nxc_diff {
  nxc_arena *arena;
  const nxc_options *options;
  const nxc_estimate_request *asked;
  nxc_diff_side sides[2];
  nxc_comparison found;
  struct json_t *wrong; /* what is wrong with a side, where that is to be JSON; else it goes to stderr */
} nxc_diff;

typedef enum nxc_diff_format {
  NXC_DIFF_TEXT,
  NXC_DIFF_JSON,
  NXC_DIFF_GITHUB,
  NXC_DIFF_MARKDOWN
} nxc_diff_format;

/* For people: by what a checkpoint is worth; as a comment to a pull request; as annotations of its second
 * file. */
void nxc_diff_print(const nxc_diff *diff, nxc_diff_format format);
struct json_t *nxc_diff_json(const nxc_diff *diff);

/* A text of a file as it was at a revision of the repository around it, called REVISION:FILE. NULL, with a
 * message, where git does not give it; *absent: the file was not there then, which is no trouble. */
const nxc_source *nxc_revision_read(nxc_arena *arena, const char *revision, const char *file, bool *absent);

/* The names, from the folder on, of all files below it at a revision. False, with a message: git has none. */
bool nxc_revision_list(nxc_arena *arena, const char *revision, const char *folder, nxc_texts *names);

#endif
