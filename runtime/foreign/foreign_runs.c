/* SPDX-License-Identifier: Apache-2.0 */
/* What Megatron's distributed optimizer keeps of a weight on a rank is a run of its elements, which begins
 * and ends anywhere; torch_dist has it as a piece with a dimension more ("fully_sharded_model_space"). As
 * boxes: of a matrix the rest of a row, whole rows, the beginning of a row. */
#include "runtime/foreign/foreign_shards.h"

enum { MOST_PARTS = 1 << 16 }; /* in one piece */

typedef struct run {
  uint32_t n_dims;
  uint64_t part[NXR_TENSOR_DIMS];  /* how large a part is, */
  uint64_t first[NXR_TENSOR_DIMS]; /* where this one begins, */
  nxr_torch_tensor box;            /* and what a box of it has in common with all */
  uint64_t start, stride;          /* of the run: its first element, and from one to the next */
  const uint8_t *bytes;
  nxr_box *take;
  void *of;
} run;

static uint64_t elements_below(const run *r, uint32_t dim) {
  uint64_t n = 1;
  for (uint32_t i = dim + 1; i < r->n_dims; i++) n *= r->part[i];
  return n;
}

/* `n` of dimension `dim` from `index` on, all of those below it. */
static bool take_box(run *r, uint32_t dim, uint64_t index, uint64_t n, uint64_t element,
                     const uint64_t indices[NXR_TENSOR_DIMS]) {
  uint64_t at[NXR_TENSOR_DIMS];
  for (uint32_t i = 0; i < r->n_dims; i++) {
    at[i] = r->first[i] + (i < dim ? indices[i] : i == dim ? index : 0);
    r->box.dims[i] = i < dim ? 1 : i == dim ? n : r->part[i];
    r->box.strides[i] = elements_below(r, i) * r->stride;
  }
  r->box.bytes = r->bytes + (element - r->start) * r->stride * (nx_dtype_bits(r->box.dtype) / 8);
  return r->take(r->of, &r->box, at);
}

/* Elements [from, to) of what has the indices so far; `element` is its own first. */
static bool cut(run *r, uint32_t dim, uint64_t element, uint64_t from, uint64_t to,
                uint64_t indices[NXR_TENSOR_DIMS]) {
  uint64_t n_each = elements_below(r, dim);
  while (from < to) {
    uint64_t index = from / n_each, end = (index + 1) * n_each;
    if (from % n_each == 0 && end <= to) {
      uint64_t n = to / n_each - index;
      if (!take_box(r, dim, index, n, element + from, indices)) return false;
      from += n * n_each;
      continue;
    }
    if (end > to) end = to;
    indices[dim] = index;
    uint64_t begin = index * n_each;
    if (!cut(r, dim + 1, element + begin, from - begin, end - begin, indices)) return false;
    from = end;
  }
  return true;
}

bool nxr_foreign_boxes(const nxr_torch_tensor *piece, const uint64_t *at, const uint64_t *dims,
                       const uint64_t *parts, uint32_t n_dims, nxr_box *take, void *of) {
  run r = {.n_dims = n_dims, .box = {.dtype = piece->dtype, .n_dims = n_dims}, .take = take, .of = of};
  uint64_t n_parts = 1, n_elements = 1, indices[NXR_TENSOR_DIMS] = {0};
  for (uint32_t i = 0; i <= n_dims; i++)
    if (parts[i] == 0 || piece->dims[i] > parts[i] || at[i] > parts[i] - piece->dims[i]) return false;
  for (uint32_t i = 0; i < n_dims; i++) {
    r.part[i] = dims[i] / parts[i];
    if (dims[i] % parts[i] != 0 || __builtin_mul_overflow(n_parts, piece->dims[i], &n_parts) ||
        n_parts > MOST_PARTS || __builtin_mul_overflow(n_elements, r.part[i], &n_elements))
      return false;
  }
  r.start = at[n_dims], r.stride = piece->strides[n_dims];
  if (parts[n_dims] != n_elements) return false;
  for (uint64_t i = 0; i < n_parts; i++) { /* Megatron's pieces are of one part */
    uint64_t left = i, offset = 0;
    for (uint32_t dim = n_dims; dim-- > 0; left /= piece->dims[dim]) {
      r.first[dim] = (at[dim] + left % piece->dims[dim]) * r.part[dim];
      offset += left % piece->dims[dim] * piece->strides[dim];
    }
    r.bytes = piece->bytes + offset * (nx_dtype_bits(piece->dtype) / 8);
    if (!cut(&r, 0, 0, r.start, r.start + piece->dims[n_dims], indices)) return false;
  }
  return true;
}
