/* SPDX-License-Identifier: Apache-2.0 */
/* A list of texts. */
#ifndef NXC_TEXTS_H
#define NXC_TEXTS_H

#include <stddef.h>

typedef struct nxc_texts {
  const char **items;
  size_t n_items;
} nxc_texts;

#endif
