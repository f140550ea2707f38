/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/merge.h"

#include <string.h>

/* Digits and the space behind them. */
static bool read_number(const char **text, uint64_t most, uint64_t *number) {
  const char *at = *text;
  for (*number = 0; *at >= '0' && *at <= '9' && *number <= most; at++)
    *number = 10 * *number + (uint64_t)(*at - '0');
  if (at == *text || *at != ' ' || *number > most) return false;
  *text = at + 1;
  return true;
}

bool nx_merge_next(const char **text, nx_merge_part *part) {
  const char *at = *text;
  uint64_t pieces, piece;
  if (!read_number(&at, INT32_MAX, &part->tokens) || !read_number(&at, INT32_MAX, &pieces) ||
      !read_number(&at, INT32_MAX, &piece))
    return false;
  part->pieces = (uint32_t)pieces, part->piece = (uint32_t)piece;
  part->prefix = at, part->n_prefix = strcspn(at, "\n");
  if (part->n_prefix == 0 || at[part->n_prefix] != '\n' || (pieces ? piece >= pieces : piece > 0))
    return false;
  *text = at + part->n_prefix + 1;
  return true;
}
