/* SPDX-License-Identifier: Apache-2.0 */
/* Which records a piece of a dataset has that was shuffled and cut: numpy's default_rng(seed).permutation of
 * their numbers, and of that the piece-th of runs that differ by one at most, the longer ones first
 * (datasets' Dataset.shuffle and shard). */
#ifndef NXD_PIECES_H
#define NXD_PIECES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct nxd_piece {
  uint64_t seed;
  uint32_t n, which; /* n is 0: there are no pieces */
} nxd_piece;

/* numpy's Generator over PCG64. */
typedef struct nxd_pcg64 {
  unsigned __int128 state, step;
  bool has_half;
  uint32_t half;
} nxd_pcg64;

nxd_pcg64 nxd_pcg64_of(uint64_t seed);
uint64_t nxd_pcg64_next(nxd_pcg64 *random);
/* order[i] becomes the i-th of a permutation of 0 to n. */
void nxd_permutation(nxd_pcg64 *random, uint64_t *order, uint64_t n);

/* datasets' shard: items [first, first + n) of `all` are of the piece. */
uint64_t nxd_piece_span(uint32_t n_pieces, uint32_t which, uint64_t all, uint64_t *first);

/* A byte for each of n records, 1 for those of the piece, for the caller to free; NULL: no memory. */
uint8_t *nxd_piece_choose(const nxd_piece *piece, uint64_t n);

#endif
