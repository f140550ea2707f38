/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/shares.h"

#include <stdlib.h>
#include <string.h>

/* A kind of storage holds a box, or this rank's shard of it: these are shared out apart. */
enum { WHOLE, SHARDED, N_MANNERS };

typedef struct sharing {
  const nxr_pieces *pieces;
  uint64_t *loads;     /* [ranks], bytes that each writes so far */
  nxr_holder *holders; /* [ranks], of one piece */
} sharing;

static int by_place(const void *left, const void *right) {
  const nxr_holder *a = left, *b = right;
  if (a->row != b->row) return a->row < b->row ? -1 : 1;
  if (a->column != b->column) return a->column < b->column ? -1 : 1;
  if (a->element != b->element) return a->element < b->element ? -1 : 1;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

uint32_t nxr_shares_holders(const nxr_pieces *pieces, uint32_t index, nxr_kind kind, nxr_holder *holders) {
  const nx_plan *plan = pieces->plan;
  const nx_piece *piece = &plan->pieces[index];
  const nx_range *range = &plan->ranges[piece->range];
  bool sharded = nxr_pieces_is_sharded(pieces, kind, index);
  uint32_t n = 0;
  for (uint32_t rank = 0; rank < plan->run->n_ranks; rank++) {
    if (nx_plan_stage(plan, rank) != plan->chunks[piece->chunk].stage) continue;
    nxr_pieces of_rank = *pieces;
    of_rank.rank = rank, of_rank.stage = plan->chunks[piece->chunk].stage;
    holders[n++] = (nxr_holder){
        .row = nx_constant_value(plan, piece->row_start, rank, piece->chunk),
        .column = nx_constant_value(plan, piece->column_start, rank, piece->chunk),
        .element = sharded ? nx_constant_value(plan, range->shard_start, rank, piece->chunk) : 0,
        .rank = rank,
        .owner = nxr_pieces_writes(&of_rank, kind, index)};
  }
  qsort(holders, n, sizeof *holders, by_place);
  return n;
}

/* Of the holders of one place; NX_NONE where another piece has its elements. */
static uint32_t choose(const sharing *all, const nxr_holder *first, const nxr_holder *end) {
  uint32_t least = first->rank;
  bool owned = false;
  for (const nxr_holder *at = first; at < end; at++) {
    owned = owned || at->owner;
    if (all->loads[at->rank] < all->loads[least]) least = at->rank;
  }
  return owned ? least : NX_NONE;
}

/* Bytes of all kinds that are held in this manner; *kind is one of them. */
static uint64_t count_bytes(const nxr_pieces *pieces, uint32_t index, bool sharded, nxr_kind *kind) {
  const nx_piece *piece = &pieces->plan->pieces[index];
  const nx_range *range = &pieces->plan->ranges[piece->range];
  uint64_t elements = (uint64_t)piece->rows * (uint64_t)piece->columns, bytes = 0;
  if (sharded && elements > range->n_shard) elements = range->n_shard;
  for (nxr_kind at = NXR_PARAM; at < NXR_N_KINDS; at++) {
    bool counts = at != NXR_GRAD && nxr_pieces_has(pieces, at, index) &&
                  nxr_pieces_is_sharded(pieces, at, index) == sharded;
    if (counts) *kind = at, bytes += elements * nx_dtype_bits(nxr_pieces_dtype(pieces, at, index)) / 8;
  }
  return bytes;
}

static void share_piece(sharing *all, uint32_t index, uint8_t *shares) {
  for (unsigned manner = WHOLE; manner < N_MANNERS; manner++) {
    nxr_kind kind = NXR_PARAM;
    uint64_t bytes = count_bytes(all->pieces, index, manner == SHARDED, &kind);
    uint32_t n = bytes > 0 ? nxr_shares_holders(all->pieces, index, kind, all->holders) : 0;
    for (const nxr_holder *at = all->holders, *end = at + n, *next = at; at < end; at = next) {
      while (next < end && nxr_holder_same(at, next)) next++;
      uint32_t writer = choose(all, at, next);
      if (writer == NX_NONE) continue;
      all->loads[writer] += bytes;
      if (writer == all->pieces->rank) shares[index] |= (uint8_t)(1u << manner);
    }
  }
}

bool nxr_shares_find(const nxr_pieces *pieces, uint8_t *shares, nxr_fault *fault) {
  const nx_plan *plan = pieces->plan;
  uint32_t n_ranks = plan->run->n_ranks, n_pieces = plan->n[NX_SECTION_PIECES];
  sharing all = {.pieces = pieces,
                 .loads = calloc(n_ranks, sizeof *all.loads),
                 .holders = calloc(n_ranks, sizeof *all.holders)};
  bool good = all.loads && all.holders;
  if (!good) nxr_fault_set(fault, "out of memory");
  memset(shares, 0, n_pieces);
  for (uint32_t i = 0; good && i < n_pieces; i++) share_piece(&all, i, shares);
  free(all.loads);
  free(all.holders);
  return good;
}

bool nxr_shares_write(const nxr_pieces *pieces, const uint8_t *shares, nxr_kind kind, uint32_t piece) {
  if (kind == NXR_GRAD) return nxr_pieces_writes(pieces, kind, piece);
  return shares[piece] & 1u << (nxr_pieces_is_sharded(pieces, kind, piece) ? SHARDED : WHOLE);
}
