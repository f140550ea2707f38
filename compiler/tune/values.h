/* SPDX-License-Identifier: Apache-2.0 */
/* Values of knobs that the file's system does not take at all, however many ranks there are. */
#ifndef NXC_TUNE_VALUES_H
#define NXC_TUNE_VALUES_H

#include "compiler/tune/say.h"

/* A value that a rule of the system refuses wherever it stands. */
typedef struct nxc_left_out {
  nxc_knob knob;
  nxc_knob_value value;
  const char *id, *message, *remedy; /* of the finding; remedy NULL: nobody knows one */
} nxc_left_out;

typedef struct nxc_left_outs {
  nxc_left_out *list;
  size_t n;
} nxc_left_outs;

typedef struct nxc_values {
  nxc_space *space;
  nxc_speaker *speaker;
  const nxc_compiled *compiled;
  nxc_arena *arena, *scratch;
  nxc_left_outs *left_out;
  bool *elsewhere; /* of each knob: another text gives an option of it */
  bool (*is_late)(void *context);
  void *context;
} nxc_values;

/* Takes them out of the space, and of values that are the same but one. */
void nxc_values_drop_unknown(const nxc_values *values, nxc_knob knob);

#endif
