/* SPDX-License-Identifier: Apache-2.0 */
/* Values of knobs that the file's system does not take at all, however many ranks there are. */
#ifndef NXC_TUNE_VALUES_H
#define NXC_TUNE_VALUES_H

#include "compiler/tune/say.h"

typedef struct nxc_values {
  nxc_space *space;
  nxc_speaker *speaker;
  const nxc_compiled *compiled;
  nxc_arena *scratch;
  bool *elsewhere; /* of each knob: another text gives an option of it */
  bool (*is_late)(void *context);
  void *context;
} nxc_values;

/* Takes them out of the space, and of values that are the same but one. */
void nxc_values_drop_unknown(const nxc_values *values, nxc_knob knob);

#endif
