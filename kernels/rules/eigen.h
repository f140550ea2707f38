/* SPDX-License-Identifier: Apache-2.0 */
/* Orthogonal bases of small matrices, for rules that keep some. Whoever includes this says before: in what it
 * is computed, `real`; where matrices lie, PLACE; EACH(i, n), a loop over what can be done side by side, and
 * MEET, where those that do it wait for each other. Whatever is summed is summed by one, so that how many
 * there are changes no bit. Matrices are [rows][columns]. */
#ifndef KERNELS_RULES_EIGEN_H
#define KERNELS_RULES_EIGEN_H

#include "kernels/rules/soap_room.h"

enum { EIGEN_TILE = 32, EIGEN_MOST_ROUNDS = 60 };

/* Householder's reflection by the column x of x_columns, from row `first` on, of columns `from` to `to` of y:
 * behind its first element, which is 1, stands the vector. */
static void eigen_reflect(const PLACE real *x, int64_t x_columns, real share, int64_t first, int64_t rows,
                          PLACE real *y, int64_t y_columns, int64_t from, int64_t to) {
  EACH(tile, (to - from + EIGEN_TILE - 1) / EIGEN_TILE) {
    const int64_t at = from + tile * EIGEN_TILE, left = to - at,
                  width = left < EIGEN_TILE ? left : EIGEN_TILE;
    PLACE real *top = y + first * y_columns + at;
    real sums[EIGEN_TILE];
    for (int64_t j = 0; j < width; j++) sums[j] = top[j];
    for (int64_t i = first + 1; i < rows; i++)
      for (int64_t j = 0; j < width; j++) sums[j] += x[i * x_columns] * y[i * y_columns + at + j];
    for (int64_t j = 0; j < width; j++) top[j] -= sums[j] *= share;
    for (int64_t i = first + 1; i < rows; i++)
      for (int64_t j = 0; j < width; j++) y[i * y_columns + at + j] -= x[i * x_columns] * sums[j];
  }
  MEET;
}

/* Makes a reflection of column x from row `first` on: what it leaves of it is `*left`, at that row alone. */
static real eigen_reflector(PLACE real *x, int64_t x_columns, int64_t first, int64_t rows, real *left) {
  real most = 0, sum = 0, head = x[first * x_columns];
  for (int64_t i = first + 1; i < rows; i++) most = fmax(most, fabs(x[i * x_columns]));
  *left = head;
  MEET;
  if (most == 0) return 0;
  most = fmax(most, fabs(head));
  for (int64_t i = first; i < rows; i++) sum += (x[i * x_columns] / most) * (x[i * x_columns] / most);
  *left = head > 0 ? -most * sqrt(sum) : most * sqrt(sum);
  MEET;
  EACH(i, rows - first - 1) x[(first + 1 + i) * x_columns] /= head - *left;
  MEET;
  return (*left - head) / *left;
}

static void eigen_identity(PLACE real *q, int64_t n) {
  EACH(i, n)
    for (int64_t j = 0; j < n; j++) q[i * n + j] = i == j;
  MEET;
}

/* q[n,n]: of whose columns the first are an orthonormal basis of a's [n,columns], one by one; a is used up.
 * shares: as many as columns. */
static void eigen_orthonormal(PLACE real *a, PLACE real *shares, PLACE real *q, int64_t n, int64_t columns) {
  const int64_t most = columns < n - 1 ? columns : n - 1;
  real left;
  for (int64_t k = 0; k < most; k++) {
    const real share = eigen_reflector(a + k, columns, k, n, &left);
    EACH(only, 1) shares[k] = share;
    eigen_reflect(a + k, columns, share, k, n, a, columns, k + 1, columns);
  }
  eigen_identity(q, n);
  for (int64_t k = most - 1; k >= 0; k--) eigen_reflect(a + k, columns, shares[k], k, n, q, n, k, n);
}

/* A symmetric a[n,n] is q t q^T: t has the diagonal d, and e beside it. */
static void eigen_tridiagonal(PLACE real *a, PLACE real *q, PLACE real *vectors, int64_t n) {
  PLACE real *d = vectors, *e = d + n, *shares = e + n, *v = shares + n, *w = v + n;
  real left;
  for (int64_t k = 0; k + 2 < n; k++) {
    const int64_t first = k + 1;
    const real share = eigen_reflector(a + k, n, first, n, &left);
    EACH(i, n - first) v[first + i] = i == 0 ? 1 : a[(first + i) * n + k];
    EACH(only, 1) shares[k] = share, e[k] = left;
    MEET;
    EACH(i, n - first) {
      real sum = 0;
      for (int64_t j = first; j < n; j++) sum += a[(first + i) * n + j] * v[j];
      w[first + i] = share * sum;
    }
    MEET;
    real both = 0;
    for (int64_t i = first; i < n; i++) both += w[i] * v[i];
    MEET;
    EACH(i, n - first) w[first + i] -= share / 2 * both * v[first + i];
    MEET;
    EACH(i, n - first)
      for (int64_t j = first; j < n; j++)
        a[(first + i) * n + j] -= v[first + i] * w[j] + w[first + i] * v[j];
    MEET;
  }
  EACH(i, n) d[i] = a[i * n + i];
  EACH(only, 1) {
    if (n > 1) e[n - 2] = a[(n - 1) * n + n - 2];
    e[n - 1] = 0;
  }
  eigen_identity(q, n);
  for (int64_t k = n - 3; k >= 0; k--) eigen_reflect(a + k, n, shares[k], k + 1, n, q, n, k + 1, n);
}

/* Where from `first` on the tridiagonal matrix falls apart. */
static int64_t eigen_end(const PLACE real *d, const PLACE real *e, int64_t first, int64_t n) {
  const real least = sizeof(real) > 4 ? (real)2.220446e-16f : (real)1.1920929e-7f; /* a digit of it */
  int64_t end = first;
  while (end < n - 1 && fabs(e[end]) > least * (fabs(d[end]) + fabs(d[end + 1]))) end++;
  return end;
}

/* One round of the implicit QL iteration from `first` to `end`: its rotations from the last one on, each a
 * cosine and a sine; returns where it stopped. */
static int64_t eigen_round(PLACE real *d, PLACE real *e, PLACE real *turns, int64_t first, int64_t end) {
  real g = (d[first + 1] - d[first]) / (2 * e[first]), r = hypot(g, (real)1), s = 1, c = 1, p = 0;
  g = d[end] - d[first] + e[first] / (g + (g < 0 ? -r : r));
  for (int64_t i = end - 1; i >= first; i--) {
    const real f = s * e[i], b = c * e[i];
    e[i + 1] = r = hypot(f, g);
    if (r == 0) {
      d[i + 1] -= p;
      e[end] = 0;
      return i + 1;
    }
    s = f / r, c = g / r;
    g = d[i + 1] - p;
    r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
    turns[2 * i] = c, turns[2 * i + 1] = s;
  }
  d[first] -= p;
  e[first] = g;
  e[end] = 0;
  return first;
}

/* The columns of q become eigenvectors of the tridiagonal matrix d, e: d are its eigenvalues. */
static void eigen_diagonal(PLACE real *q, PLACE real *vectors, int64_t n) {
  PLACE real *d = vectors, *e = d + n, *turns = e + n, *stopped = turns + 2 * n;
  for (int64_t first = 0; first < n; first++)
    for (int64_t round = 0; round < EIGEN_MOST_ROUNDS; round++) {
      const int64_t end = eigen_end(d, e, first, n);
      MEET;
      if (end == first) break;
      EACH(only, 1) *stopped = (real)eigen_round(d, e, turns, first, end);
      MEET;
      const int64_t last = (int64_t)*stopped;
      EACH(k, n)
        for (int64_t i = end - 1; i >= last; i--) {
          const real x = q[k * n + i], y = q[k * n + i + 1], c = turns[2 * i], s = turns[2 * i + 1];
          q[k * n + i + 1] = s * x + c * y;
          q[k * n + i] = c * x - s * y;
        }
      MEET;
    }
}

/* order: which of n numbers is the greatest, the next one, and so on; something of them where one is none. */
static void eigen_order(const PLACE real *numbers, PLACE real *order, int64_t n) {
  EACH(i, n) order[i] = (real)i;
  MEET;
  EACH(i, n) {
    int64_t before = 0;
    for (int64_t k = 0; k < n; k++)
      before += numbers[k] > numbers[i] || (!(numbers[i] > numbers[k]) && k < i);
    order[before] = (real)i;
  }
  MEET;
}

static void eigen_columns(const PLACE real *x, const PLACE real *order, PLACE real *y, int64_t rows,
                          int64_t columns) {
  EACH(i, rows)
    for (int64_t j = 0; j < columns; j++) y[i * columns + j] = x[i * columns + (int64_t)order[j]];
  MEET;
}

/* q: the eigenvectors of a symmetric a[n,n] as columns, those of the greatest eigenvalues first; a is used
 * up, and vectors has room for EIGEN_VECTORS of them. */
static void eigen_vectors(PLACE real *a, PLACE real *q, PLACE real *vectors, int64_t n) {
  eigen_tridiagonal(a, q, vectors, n);
  eigen_diagonal(q, vectors, n);
  eigen_order(vectors, vectors + n, n);
  eigen_columns(q, vectors + n, a, n, n);
  EACH(i, n * n) q[i] = a[i];
  MEET;
}

#endif
