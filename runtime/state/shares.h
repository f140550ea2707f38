/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank writes which box of a logical tensor.
 *
 * Ranks that hold the same (copies of the model, members of groups that share a tensor) could all write it.
 * Every element is written by exactly one, and the ranks write about as many bytes each: so that a checkpoint
 * is written as fast as all disks, links and processors together allow. All ranks find the same. */
#ifndef NXR_SHARES_H
#define NXR_SHARES_H

#include "runtime/files/fault.h"
#include "runtime/state/pieces.h"

/* shares[piece] of the plan says what this rank writes of it; weights and what an optimizer keeps alone,
 * since gradients count on the owner only (nxr_pieces_writes). */
bool nxr_shares_find(const nxr_pieces *pieces, uint8_t *shares, nxr_fault *fault);
/* What a rank holds of a piece; who has the same place holds the same. */
typedef struct nxr_holder {
  int64_t row, column, element;
  uint32_t rank;
  bool owner;
} nxr_holder;

static inline bool nxr_holder_same(const nxr_holder *a, const nxr_holder *b) {
  return a->row == b->row && a->column == b->column && a->element == b->element;
}

/* Those of a piece, by place and rank; `holders` has room for all ranks. Returns how many. */
uint32_t nxr_shares_holders(const nxr_pieces *pieces, uint32_t piece, nxr_kind kind, nxr_holder *holders);
bool nxr_shares_write(const nxr_pieces *pieces, const uint8_t *shares, nxr_kind kind, uint32_t piece);

#endif
