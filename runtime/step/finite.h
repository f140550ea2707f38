/* SPDX-License-Identifier: Apache-2.0 */
/* --check-numbers: which operator is the first to make what is no number.
 *
 * After each kernel its outputs are read; the first NaN, or infinity where only numbers belong, is kept with
 * the step, the operator, the layer and the value. It costs several times the step: a run that ended at such
 * a loss goes on from its newest checkpoint with it, makes the same steps, and says where. What is moved
 * between ranks is not read, as the operator behind it is. */
#ifndef NXR_FINITE_H
#define NXR_FINITE_H

#include "runtime/step/bind.h"

typedef struct nxr_finite {
  bool looks;
  char found[256]; /* "": nothing yet */
  uint64_t place;  /* of what was found, in the order in which numbers spread through the model */
  void *room;      /* a part of a value, on the host */
} nxr_finite;

bool nxr_finite_open(nxr_finite *finite, nxr_fault *fault);
void nxr_finite_close(nxr_finite *finite);
/* What this operator of an item has just made. */
void nxr_finite_look(nxr_finite *finite, const nxr_machine *machine, const nx_item *item, uint32_t operator,
                     uint64_t step);
/* On all ranks, after each step: whether any has found something. The first that did keeps it, the others,
 * which it came to, have found nothing. */
bool nxr_finite_agree(nxr_finite *finite, nxr_world *world);

#endif
