/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/init.h"

#include "runtime/world/world.h"
#include "schema/normal.h"

#include <stdlib.h>

static void draw_row(uint64_t seed, uint32_t tensor_id, const nx_piece *piece, const nxr_span *span,
                     float *values) {
  nx_philox bits = {{0}};
  for (int64_t i = 0; i < span->n; i++) {
    uint64_t column = (uint64_t)(span->column + i);
    if (i == 0 || column % 4 == 0)
      bits = nx_normal_bits(seed, tensor_id, (uint64_t)span->row, (uint32_t)(column / 4));
    uint32_t word = bits.word[column % 4];
    values[i] =
        (float)(piece->init_std * (piece->init == NX_INIT_UNIFORM ? nx_uniform(word) : nx_normal(word)));
  }
}

/* No number that is drawn is larger. */
static nxr_greatest greatest(const nx_piece *piece) {
  return (nxr_greatest){.all = (float)(piece->init_std * (piece->init == NX_INIT_NORMAL ? 6.5 : 1.75))};
}

static void init_piece(const nxr_pieces *pieces, uint32_t index, float *values, void *room) {
  const nx_piece *piece = &pieces->plan->pieces[index];
  const nxr_greatest most = greatest(piece);
  uint32_t tensor_id =
      (uint32_t)nx_constant_value(pieces->plan, piece->tensor_id, pieces->rank, piece->chunk);
  for (int64_t row = 0; row < piece->rows; row++) {
    nxr_span span = nxr_pieces_row(pieces, NXR_PARAM, index, row);
    nxr_world_beat();
    if (span.n == 0) continue;
    span = nxr_pieces_elements(pieces, index, &span);
    if (piece->init == NX_INIT_NORMAL || piece->init == NX_INIT_UNIFORM)
      draw_row(pieces->plan->run->seed, tensor_id, piece, &span, values);
    else
      for (int64_t i = 0; i < span.n; i++) values[i] = piece->init == NX_INIT_ONES ? 1.0f : 0.0f;
    nxr_pieces_set(pieces, index, row, values, &most, room);
  }
}

bool nxr_init_weights(const nxr_pieces *pieces, nxr_fault *fault) {
  const nx_plan *plan = pieces->plan;
  size_t widest = nxr_pieces_widest(plan);
  float *values = malloc(widest * sizeof *values), *room = malloc(widest * sizeof *room);
  bool enough = values && room;
  for (uint32_t i = 0; enough && i < plan->n[NX_SECTION_PIECES]; i++) init_piece(pieces, i, values, room);
  free(values);
  free(room);
  return enough || nxr_fault_set(fault, "out of memory");
}
