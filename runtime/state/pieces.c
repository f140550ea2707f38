/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/pieces.h"

#include "schema/bf16.h"
#include "schema/f16.h"
#include "schema/quantized.h"
#include "schema/stochastic.h"

#include <assert.h>
#include <string.h>

/* The value that holds a kind of storage. */
static uint32_t value_of(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece) {
  const nx_range *range = &pieces->plan->ranges[pieces->plan->pieces[piece].range];
  switch (kind) {
    case NXR_PARAM: return range->param;
    case NXR_MASTER: return range->master;
    case NXR_GRAD: return range->grad;
    case NXR_N_KINDS: return NX_NONE;
    default: return range->states[kind - NXR_STATE];
  }
}

static int64_t constant(const nxr_pieces *pieces, const nx_piece *piece, uint32_t index) {
  return nx_constant_value(pieces->plan, index, pieces->rank, piece->chunk);
}

static const nx_chunk *chunk_of(const nxr_pieces *pieces, const nx_piece *piece) {
  return &pieces->plan->chunks[piece->chunk];
}

bool nxr_pieces_has(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece) {
  return value_of(pieces, kind, piece) != NX_NONE;
}

nx_dtype nxr_pieces_dtype(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece) {
  return pieces->plan->values[value_of(pieces, kind, piece)].dtype;
}

static const nx_range *range_of(const nxr_pieces *pieces, uint32_t piece) {
  return &pieces->plan->ranges[pieces->plan->pieces[piece].range];
}

bool nxr_pieces_is_sharded(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece) {
  const nx_range *range = range_of(pieces, piece);
  uint64_t n = (uint64_t)pieces->plan->values[value_of(pieces, kind, piece)].dims[0];
  return range->shard_group != NX_NONE && (kind == NXR_GRAD || n == range->n_shard);
}

/* The owner of a box writes it. Where it is sharded over a group, each member writes its shard if the group
 * is the owner's. */
bool nxr_pieces_writes(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece) {
  const nx_piece *at = &pieces->plan->pieces[piece];
  uint32_t rank = pieces->rank;
  if (chunk_of(pieces, at)->stage != pieces->stage) return false;
  if (nxr_pieces_is_sharded(pieces, kind, piece))
    rank = nx_group_member(pieces->plan, pieces->plan->ranges[at->range].shard_group, rank, 0);
  return nx_constant_value(pieces->plan, at->owner, rank, at->chunk) == 1;
}

static uint8_t *value_address(const nxr_pieces *pieces, const nx_piece *piece, const nx_value *value) {
  int64_t shift = value->offset_shift == NX_NONE ? 0 : constant(pieces, piece, value->offset_shift);
  return (uint8_t *)pieces->base[value->arena] + chunk_of(pieces, piece)->arena_base[value->arena] +
         value->offset + shift;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Keeps of `span`, whose first element is `element` of its range, what lies in this rank's shard. */
static void clip_to_shard(const nxr_pieces *pieces, const nx_piece *piece, const nx_range *range,
                          int64_t *element, nxr_span *span) {
  int64_t first = constant(pieces, piece, range->shard_start), end = first + (int64_t)range->n_shard;
  int64_t skipped = *element < first ? first - *element : 0;
  span->n = least(*element + span->n, end) - (*element + skipped);
  if (span->n < 0) span->n = 0;
  span->column += skipped;
  *element += skipped;
}

nxr_span nxr_pieces_row(const nxr_pieces *pieces, nxr_kind kind, uint32_t piece, int64_t row) {
  const nx_plan *plan = pieces->plan;
  const nx_piece *at = &plan->pieces[piece];
  const nx_range *range = &plan->ranges[at->range];
  const nx_value *value = &plan->values[value_of(pieces, kind, piece)];
  nxr_span span = {.row = constant(pieces, at, at->row_start) + row,
                   .column = constant(pieces, at, at->column_start)};
  span.n = span.row < at->logical_rows ? least(at->columns, at->logical_columns - span.column) : 0;
  if (span.n <= 0 || chunk_of(pieces, at)->stage != pieces->stage)
    return (nxr_span){.row = span.row, .column = span.column};
  int64_t element = (int64_t)at->range_offset + row * at->columns;
  if (nxr_pieces_is_sharded(pieces, kind, piece)) clip_to_shard(pieces, at, range, &element, &span);
  if ((uint64_t)value->dims[0] == range->n_shard) element -= constant(pieces, at, range->shard_start);
  if (span.n == 0) return span;
  span.address = value_address(pieces, at, value) + (uint64_t)element * (nx_dtype_bits(value->dtype) / 8);
  return span;
}

void nxr_pieces_get(const nxr_pieces *pieces, nx_dtype dtype, const nxr_span *span, void *host) {
  if (span->n) pieces->backend->copy_out(pieces->device, host, span->address,
                                         (uint64_t)span->n * (nx_dtype_bits(dtype) / 8));
}

void nxr_pieces_put(const nxr_pieces *pieces, nx_dtype dtype, const nxr_span *span, const void *host) {
  if (span->n) pieces->backend->copy_in(pieces->device, span->address, host,
                                        (uint64_t)span->n * (nx_dtype_bits(dtype) / 8));
}

void nxr_pieces_put_floats(const nxr_pieces *pieces, nx_dtype dtype, const nxr_span *span,
                           const float *values, void *room) {
  uint16_t *rounded = room;
  if (span->n == 0) return;
  assert(nx_dtype_is_real(dtype));
  if (dtype == NX_bf16)
    for (int64_t i = 0; i < span->n; i++) rounded[i] = nx_bf16_from_float(values[i]);
  if (dtype == NX_f16)
    for (int64_t i = 0; i < span->n; i++) rounded[i] = nx_f16_from_float(values[i]);
  nxr_pieces_put(pieces, dtype, span, dtype == NX_f32 ? (const void *)values : rounded);
}

/* As the update that made it stored it. */
static void put_drawn(const nxr_pieces *pieces, const nxr_span *span, const float *values, void *room) {
  uint16_t *rounded = room;
  for (int64_t i = 0; i < span->n; i++)
    rounded[i] = nx_bf16_from_drawn(values[i], pieces->plan->run->seed, pieces->step, 0, 0);
  nxr_pieces_put(pieces, NX_bf16, span, rounded);
}

nxr_span nxr_pieces_elements(const nxr_pieces *pieces, uint32_t piece, const nxr_span *span) {
  int64_t n = nx_form_elements(pieces->plan->pieces[piece].form);
  return (nxr_span){.row = span->row, .column = span->column * n, .n = span->n * n, .address = span->address};
}

size_t nxr_pieces_widest(const nx_plan *plan) {
  int64_t widest = 1;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    int64_t n = plan->pieces[i].columns * nx_form_elements(plan->pieces[i].form);
    if (n > widest) widest = n;
  }
  return (size_t)widest;
}

static float of_tile(const nxr_greatest *most, int64_t column) {
  return most->tiles ? most->tiles[column / NX_FP8_TILE] : most->all;
}

static float tile_scale(float most) {
  return nx_fp8_scale_of(NX_FP8_SCALE_DIVIDE, &nx_fp8_rows[NX_FP8_E4M3], most, 0).down;
}

/* `column`: of the first value. */
static void encode_fp8(const float *values, int64_t n, int64_t column, const nxr_greatest *most,
                       uint8_t *codes) {
  float scale = 1;
  for (int64_t i = 0; i < n; i++) {
    if (i == 0 || (column + i) % NX_FP8_TILE == 0) scale = tile_scale(of_tile(most, column + i));
    codes[i] = nx_e4m3_encode(nx_fp8_round(&nx_fp8_rows[NX_FP8_E4M3], values[i] / scale));
  }
}

/* Entries of a frozen row; a shard begins and ends between blocks. */
static void put_quantized(const nxr_pieces *pieces, nx_form form, const nxr_span *span, const float *values,
                          const nxr_greatest *most, void *room) {
  int64_t size = nx_form_elements(form), n = span->n;
  float *scales = room;
  uint8_t *codes = room;
  switch (form) {
    case NX_FORM_NF4: nx_nf4_encode(values, n * size, codes); break;
    case NX_FORM_NVFP4: nx_nvfp4_encode(values, n * size, codes); break;
    case NX_FORM_MXFP4: nx_mxfp4_encode(values, n * size, codes); break;
    case NX_FORM_FP8: encode_fp8(values, n, span->column, most, codes); break;
    case NX_FORM_NF4_ABSMAX:
      for (int64_t i = 0; i < n; i++)
        scales[i] = most->nested ? most->nested[span->column + i] : nx_nf4_absmax(values + i * size, size);
      break;
    case NX_FORM_NVFP4_SCALE:
      for (int64_t i = 0; i < n; i++) scales[i] = nx_nvfp4_scale(values + i * size, most->all);
      break;
    case NX_FORM_MXFP4_SCALE:
      for (int64_t i = 0; i < n; i++) codes[i] = nx_mxfp4_scale(values + i * size);
      break;
    default:
      for (int64_t i = 0; i < n; i++) scales[i] = tile_scale(of_tile(most, (span->column + i) * size));
  }
  nxr_pieces_put(pieces, (nx_dtype)nx_form_find(form)->dtype, span, room);
}

void nxr_pieces_set(const nxr_pieces *pieces, uint32_t piece, int64_t row, const float *values,
                    const nxr_greatest *most, void *room) {
  nxr_span whole = nxr_pieces_row(pieces, NXR_PARAM, piece, row);
  nx_form form = pieces->plan->pieces[piece].form;
  if (form != NX_FORM_PLAIN) {
    put_quantized(pieces, form, &whole, values, most, room);
    return;
  }
  nx_dtype dtype = nxr_pieces_dtype(pieces, NXR_PARAM, piece);
  if (dtype == NX_bf16 && pieces->plan->run->stochastic) put_drawn(pieces, &whole, values, room);
  else nxr_pieces_put_floats(pieces, dtype, &whole, values, room);
  if (!nxr_pieces_has(pieces, NXR_MASTER, piece)) return;
  nxr_span part = nxr_pieces_row(pieces, NXR_MASTER, piece, row);
  nxr_pieces_put_floats(pieces, nxr_pieces_dtype(pieces, NXR_MASTER, piece), &part,
                        values + (part.column - whole.column), room);
}
