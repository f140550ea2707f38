/* SPDX-License-Identifier: Apache-2.0 */
/* What Muon multiplies the learning rate of a tensor of this shape by: `form` is the place of a name in
 * update_scale of optimizers.def. For nxcfg, and for every backend. */
#ifndef NX_MUON_SCALE_H
#define NX_MUON_SCALE_H

#ifndef __OPENCL_VERSION__
#include <math.h>
#endif

static inline double nx_muon_scale(int form, double rows, double columns) {
  switch (form) {
  case 1: return sqrt(fmax(1.0, rows / columns));
  case 2: return sqrt(fmax(rows, columns));
  case 3: return sqrt(rows / columns);
  default: return 1;
  }
}

#endif
