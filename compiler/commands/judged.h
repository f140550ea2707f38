/* SPDX-License-Identifier: Apache-2.0 */
/* One configuration judged for the system that it is written for, and the verdict in words: what was found,
 * then one line that says what the configuration is, then one line for each thing that the verdict leaves
 * open (notes, nxrun, rules on unknown settings, the world size, the environment). */
#ifndef NXC_COMMANDS_JUDGED_H
#define NXC_COMMANDS_JUDGED_H

#include "compiler/commands/estimate.h"
#include "compiler/commands/options.h"

/* How each file is to be judged. */
typedef struct nxc_standard {
  const nxc_options *options;
  bool for_nxrun, partial;
  bool measures; /* memory and time are estimated, whatever is demanded of them */
  nxc_estimate_request estimate;
} nxc_standard;

typedef struct nxc_judged {
  nxc_arena *arena;
  const nxc_standard *standard;
  const char *file;
  nxc_sink *sink;
  nxc_compiled compiled;
  nxc_assumed assumed; /* for the memory's estimate */
  nxc_column column;   /* that estimate, of who would run it: nxrun, where it was asked for, or runs there */
} nxc_judged;

/* The arena is the caller's, all else is written. A file NULL: arguments alone. `below`: it was found below a
 * folder, and what is no training's is left alone. Runs in any thread. */
void nxc_judge(nxc_judged *judged, const nxc_standard *standard, const char *file, bool below);
/* The verdict, without the findings. */
void nxc_judged_print(const nxc_judged *judged);

#endif
