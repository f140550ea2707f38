/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/replicas.h"

#include "runtime/state/shares.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_compared(const nxr_pieces *pieces, uint32_t piece) {
  return !(pieces->plan->pieces[piece].flags & NX_PIECE_MEMORY) &&
         nxr_pieces_has(pieces, NXR_PARAM, piece);
}

static size_t row_bytes(const nx_plan *plan) {
  size_t most = 1;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    const nx_piece *piece = &plan->pieces[i];
    size_t n = (size_t)piece->columns * nx_dtype_bits(plan->values[piece->value].dtype) / 8;
    if (n > most) most = n;
  }
  return most;
}

/* A piece's places, in the order of what is held; this rank's, and who else has it. */
static void find_place(nxr_replicas *r, const nxr_pieces *pieces, uint32_t piece, const nxr_holder *holders,
                       uint32_t n) {
  uint32_t first = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0 && !nxr_holder_same(&holders[i], &holders[i - 1])) first = i, r->n_places++;
    if (holders[i].rank != pieces->rank) continue;
    r->places[piece] = r->n_places;
    r->firsts[piece] = holders[first].rank;
  }
  r->n_places += n > 0;
}

bool nxr_replicas_open(nxr_replicas *r, const nxr_pieces *pieces, nxr_fault *fault) {
  const nx_plan *plan = pieces->plan;
  uint32_t n_pieces = plan->n[NX_SECTION_PIECES], n_ranks = plan->run->n_ranks;
  nxr_holder *holders = calloc(n_ranks, sizeof *holders);
  *r = (nxr_replicas){.places = calloc(n_pieces + 1, sizeof *r->places),
                      .firsts = calloc(n_pieces + 1, sizeof *r->firsts),
                      .row = malloc(row_bytes(plan))};
  for (uint32_t i = 0; holders && r->places && r->firsts && i < n_pieces; i++) {
    r->places[i] = NX_NONE;
    if (is_compared(pieces, i))
      find_place(r, pieces, i, holders, nxr_shares_holders(pieces, i, NXR_PARAM, holders));
  }
  r->hashes = calloc((size_t)r->n_places + 1, 2 * sizeof *r->hashes);
  bool good = holders && r->places && r->firsts && r->row && r->hashes;
  free(holders);
  return good || nxr_fault_set(fault, "out of memory");
}

void nxr_replicas_close(nxr_replicas *r) {
  free(r->places);
  free(r->firsts);
  free(r->hashes);
  free(r->row);
}

/* The first bytes of a SHA-256 over the rows that the rank holds; never 0. */
static uint64_t hash_of(const nxr_replicas *r, const nxr_pieces *pieces, uint32_t piece) {
  struct sha256_ctx hash;
  uint8_t digest[SHA256_DIGEST_SIZE];
  uint64_t word;
  nx_dtype type = nxr_pieces_dtype(pieces, NXR_PARAM, piece);
  sha256_init(&hash);
  for (int64_t row = 0; row < pieces->plan->pieces[piece].rows; row++) {
    const nxr_span span = nxr_pieces_row(pieces, NXR_PARAM, piece, row);
    nxr_pieces_get(pieces, type, &span, r->row);
    sha256_update(&hash, (size_t)span.n * nx_dtype_bits(type) / 8, r->row);
  }
  sha256_digest(&hash, sizeof digest, digest);
  memcpy(&word, digest, sizeof word);
  return word | 1;
}

/* NXRUN_FLIP=RANK:STEP: a test that the comparison sees a bit which is not as it should be. */
static void flip(const nxr_replicas *r, const nxr_pieces *pieces, uint64_t step) {
  const char *asked = getenv("NXRUN_FLIP");
  unsigned long long rank, at;
  if (asked == NULL || sscanf(asked, "%llu:%llu", &rank, &at) != 2) return;
  for (uint32_t i = pieces->plan->n[NX_SECTION_PIECES]; i-- > 0 && rank == pieces->rank && at == step;) {
    const nxr_span span =
        r->places[i] == NX_NONE ? (nxr_span){.n = 0} : nxr_pieces_row(pieces, NXR_PARAM, i, 0);
    nx_dtype type = span.n ? nxr_pieces_dtype(pieces, NXR_PARAM, i) : NX_f32;
    nxr_pieces_get(pieces, type, &span, r->row);
    *(uint8_t *)r->row ^= 1;
    nxr_pieces_put(pieces, type, &span, r->row);
    if (span.n) return;
  }
}

bool nxr_replicas_compare(nxr_replicas *r, const nxr_pieces *pieces, nxr_world *world, uint64_t step,
                          nxr_fault *fault) {
  const nx_plan *plan = pieces->plan;
  uint32_t n_pieces = plan->n[NX_SECTION_PIECES];
  uint64_t *of_all = r->hashes, *of_firsts = r->hashes + r->n_places;
  flip(r, pieces, step);
  memset(r->hashes, 0, 2 * (size_t)r->n_places * sizeof *r->hashes);
  for (uint32_t i = 0; i < n_pieces; i++) {
    if (r->places[i] == NX_NONE) continue;
    nxr_world_beat();
    of_all[r->places[i]] = hash_of(r, pieces, i);
    if (r->firsts[i] == pieces->rank) of_firsts[r->places[i]] = of_all[r->places[i]];
  }
  nxr_world_max(world, of_firsts, r->n_places);
  for (uint32_t i = 0; i < n_pieces; i++) {
    if (r->places[i] == NX_NONE || of_all[r->places[i]] == of_firsts[r->places[i]]) continue;
    return nxr_fault_set(
        fault,
        "step %llu: %s of rank %u (%s) has other bits than that of rank %u (%s), and both should "
        "be the same: memory or a link of one of them cannot be trusted. The run ends, and the "
        "newest checkpoint stays as it is",
        (unsigned long long)step, nx_plan_string(plan, plan->pieces[i].name), pieces->rank,
        nxr_world_host(world, pieces->rank), r->firsts[i], nxr_world_host(world, r->firsts[i]));
  }
  return true;
}
