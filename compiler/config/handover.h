/* SPDX-License-Identifier: Apache-2.0 */
/* A script that starts a program which reads files: which those are, and what is laid over them. */
#ifndef NXC_HANDOVER_H
#define NXC_HANDOVER_H

#include "compiler/document/document.h"

typedef struct nxc_handover {
  const char **files; /* that are here: the first, and those laid over it */
  size_t n_files;
  const char **overrides; /* KEY=VALUE */
  size_t n_overrides;
  const char **arguments; /* words behind the files */
  size_t n_arguments;
  const char *shown; /* "GPT-NeoX training (deepy.py train.py) with configs/125M.yml" */
} nxc_handover;

/* False: the script names no file, or one that is not here. `script` is its path; files are looked for where
 * nxcfg runs, and beside the script and above it. */
bool nxc_handover_read(nxc_arena *arena, const nxc_document *document, const char *script,
                       nxc_handover *handover);

#endif
