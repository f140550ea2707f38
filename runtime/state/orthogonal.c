/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/orthogonal.h"

#include "runtime/world/world.h"
#include "schema/normal.h"

#include <stdlib.h>

static bool is_wide(const nxr_orthogonal *m) {
  return m->rows <= m->columns;
}

static int64_t n_vectors(const nxr_orthogonal *m) {
  return is_wide(m) ? m->rows : m->columns;
}

static int64_t length_of(const nxr_orthogonal *m) {
  return is_wide(m) ? m->columns : m->rows;
}

static void draw(nxr_orthogonal *m) {
  for (int64_t row = 0; row < m->rows; row++) {
    nx_philox bits = {{0}};
    for (int64_t column = 0; column < m->columns; column++) {
      if (column % 4 == 0)
        bits = nx_normal_bits(m->seed, m->tensor_id, (uint64_t)row, (uint32_t)(column / 4));
      int64_t at = is_wide(m) ? row * m->columns + column : column * m->rows + row;
      m->vectors[at] = nx_normal(bits.word[column % 4]);
    }
  }
}

/* Sums in 16 lanes, which the compiler makes vectors of. */
static double dot(const double *a, const double *b, int64_t n) {
  enum { LANES = 16 };
  double sums[LANES] = {0}, sum = 0;
  int64_t whole = n / LANES * LANES;
  for (int64_t i = 0; i < whole; i += LANES)
    for (int lane = 0; lane < LANES; lane++) sums[lane] += a[i + lane] * b[i + lane];
  for (int64_t i = whole; i < n; i++) sum += a[i] * b[i];
  for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
  return sum;
}

/* Gram and Schmidt's process, as modified: what is left of a vector at its turn is scaled to length 1, and
 * taken out of those behind it. The factors that make it of the drawn matrix have a positive diagonal, as
 * those of PyTorch's orthogonal_ have. */
static void make_orthonormal(nxr_orthogonal *m) {
  int64_t n = n_vectors(m), length = length_of(m);
  for (int64_t i = 0; i < n; i++) {
    double *own = m->vectors + i * length, scale = 1 / sqrt(dot(own, own, length));
    for (int64_t k = 0; k < length; k++) own[k] *= scale;
    for (int64_t j = i + 1; j < n; j++) {
      double *other = m->vectors + j * length, share = dot(own, other, length);
      for (int64_t k = 0; k < length; k++) other[k] -= share * own[k];
    }
    nxr_world_beat();
  }
}

bool nxr_orthogonal_make(nxr_orthogonal *m, uint64_t seed, uint32_t tensor_id, int64_t rows,
                         int64_t columns) {
  bool same = m->seed == seed && m->tensor_id == tensor_id && m->rows == rows && m->columns == columns;
  if (m->vectors && same) return true;
  nxr_orthogonal_free(m);
  *m = (nxr_orthogonal){.rows = rows, .columns = columns, .seed = seed, .tensor_id = tensor_id};
  m->vectors = calloc((size_t)rows * (size_t)columns, sizeof *m->vectors);
  if (m->vectors == NULL) return false;
  draw(m);
  make_orthonormal(m);
  return true;
}

double nxr_orthogonal_at(const nxr_orthogonal *m, int64_t row, int64_t column) {
  return m->vectors[is_wide(m) ? row * m->columns + column : column * m->rows + row];
}

void nxr_orthogonal_free(nxr_orthogonal *m) {
  free(m->vectors);
  *m = (nxr_orthogonal){0};
}
