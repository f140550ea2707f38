/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a recipe that merges datasets: a line for each of them, in order, with the most tokens of a
 * document (0: any number), the pieces that it is cut into (0: none) and which of them is taken, and its
 * prefix.
 */
#ifndef NX_MERGE_H
#define NX_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nx_merge_part {
  uint64_t tokens;
  uint32_t pieces, piece;
  const char *prefix; /* [n_prefix], within the text */
  size_t n_prefix;
} nx_merge_part;

/* The next line of *text, which moves behind it; false at the end, and where a line is malformed: *text then
 * stands before it. */
bool nx_merge_next(const char **text, nx_merge_part *part);

#endif
