/* SPDX-License-Identifier: Apache-2.0 */
/* Logical tensors as this rank holds them: what initialisation, import, checkpoints and dumps read and write.
 *
 * A plan's piece is a box of a logical tensor. A rank holds a box row by row: of row r, in each kind of
 * storage, one *span* of consecutive columns, or nothing (a ZeRO shard may begin in the middle of a row).
 * Spans are clipped to the logical tensor, so padding never appears. Rows and columns are as the products
 * read them: where the piece is NX_PIECE_TRANSPOSED, the file's tensor has them the other way round.
 * Addresses are the backend's: move bytes with get and put alone. With a pipeline a rank holds nothing of the
 * pieces of other stages' chunks. */
#ifndef NXR_PIECES_H
#define NXR_PIECES_H

#include "kernels/backend.h"
#include "schema/plan.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum nxr_kind {
  NXR_PARAM,
  NXR_MASTER,
  NXR_GRAD,
  NXR_STATE,
  NXR_N_KINDS = NXR_STATE + NX_MAX_STATES /* a kind that no piece has */
} nxr_kind;

typedef struct nxr_pieces {
  const nx_plan *plan;
  uint32_t rank;
  uint32_t stage; /* of the rank: it holds the pieces of that stage's chunks */
  const nxk_backend *backend;
  nxk_device *device;
  void *base[NX_N_ARENAS]; /* where each arena begins */
  uint64_t step;           /* steps behind what is written */
} nxr_pieces;

typedef struct nxr_span {
  int64_t row, column; /* of its first element, in the logical tensor */
  int64_t n;           /* elements; 0: this rank holds nothing of the row */
  void *address;
} nxr_span;

/* Whether the plan keeps this kind of storage for the piece. */
bool nxr_pieces_has(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece);
nx_dtype nxr_pieces_dtype(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece);
/* Whether this rank's copy counts in its shard alone: what is stored as a shard, and gradients, which are
 * summed only there. */
bool nxr_pieces_is_sharded(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece);
/* Whether this rank owns its spans of the piece: every element of every logical tensor is owned by exactly
 * one rank. Who writes it may be another that has the same (shares.h). */
bool nxr_pieces_writes(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece);
/* The span of local row `row` (below the piece's rows). Gradients of a sharded range count only in the shard,
 * where they are summed. */
nxr_span nxr_pieces_row(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece, int64_t row);
void nxr_pieces_get(const nxr_pieces *pieces, nx_dtype dtype, const nxr_span *span, void *host);
void nxr_pieces_put(const nxr_pieces *pieces, nx_dtype dtype, const nxr_span *span, const void *host);
/* The same of floats, rounded to the type; `room` holds as many halves. */
void nxr_pieces_put_floats(const nxr_pieces *pieces, nx_dtype dtype, const nxr_span *span,
                           const float *values, void *room);
/* The elements of the tensor that a span's entries stand for (nx_form). */
nxr_span nxr_pieces_elements(const nxr_pieces *pieces, uint32_t piece, const nxr_span *span);
/* Elements of the longest row of any piece. */
size_t nxr_pieces_widest(const nx_plan *plan);
/* The greatest magnitudes that scales of quantized weights follow. */
typedef struct nxr_greatest {
  float all;          /* in the whole tensor (NVFP4) */
  const float *tiles; /* in the tiles of the row, of NX_FP8_TILE columns each, from column 0; NULL: all */
  const float *nested; /* of NF4, quantized once more: the row's from column 0; NULL: they are not */
} nxr_greatest;

/* Sets the weights of local row `row`: `values` are the row's columns of the box that lie in the logical
 * tensor (as the NXR_PARAM span says; its elements). The parameter is rounded or quantized from them, the
 * master copy is exact. `room` is the caller's, for as many floats as the row has. */
void nxr_pieces_set(const nxr_pieces *pieces, uint32_t piece, int64_t row, const float *values,
                    const nxr_greatest *most, void *room);

#endif
