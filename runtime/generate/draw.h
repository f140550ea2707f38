/* SPDX-License-Identifier: Apache-2.0 */
/* One token, drawn from what a model predicts. */
#ifndef NXR_DRAW_H
#define NXR_DRAW_H

#include <stdint.h>

typedef struct nxr_drawing {
  double temperature; /* logits are divided by it; 0: the likeliest token is taken */
  double top_p;       /* of the likeliest tokens only so many are drawn from as have this share together */
  uint64_t seed;
} nxr_drawing;

/* The token at place `index` of a text. It hangs on nothing but the logits, the seed and the index. Of equal
 * tokens the lower number is the likelier one. `order` is room for n. */
uint32_t nxr_draw(const nxr_drawing *drawing, const double *logits, uint32_t n, uint64_t index,
                  uint32_t *order);

#endif
