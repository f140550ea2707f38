/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does between two looks at whether others have come: it spins, then yields its core, then
 * naps. Where ranks share cores, or other programs run on them, a yield often gives the core to another that
 * waits; a nap leaves it to one that works. */
#ifndef NXR_PAUSE_H
#define NXR_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

/* One wait. The first four (spin_s to crowded) are for the caller to say, the rest begins as zeros. */
typedef struct nxr_pause {
  double spin_s;   /* so long, where the cores are its own: a yield may bring the core back too late */
  uint32_t yields; /* then at most so many before it naps */
  uint32_t nap_us;
  bool crowded;   /* they are not: nxr_world.crowded */
  uint32_t polls; /* pauses so far */
  double began_s;
  uint32_t spins; /* of them, those that were spent so; 0: it still spins */
  uint32_t naps;  /* how often it napped: naps grow with the wait, up to LONGEST_NAP_US */
  long switched;  /* how often another had run, by the kernel's count, when it looked last */
  bool shared;    /* another runs on this core */
} nxr_pause;

void nxr_pause_once(nxr_pause *pause);
/* Something has come, and more will. */
void nxr_pause_anew(nxr_pause *pause);

#endif
