/* SPDX-License-Identifier: Apache-2.0 */
/* Orthogonal bases of small matrices, for rules that keep some. Whoever includes this says before: in what it
 * is computed, `real`; where matrices lie, PLACE; EACH(i, n), a loop over what can be done side by side, and
 * MEET, where those that do it wait for each other. Whatever is summed is summed by one, so that how many
 * there are changes no bit. Matrices are [rows][columns]. */
#ifndef KERNELS_RULES_EIGEN_H
#define KERNELS_RULES_EIGEN_H

#include "schema/soap_room.h"

enum { EIGEN_TILE = SOAP_TILE, EIGEN_LANES = 16, EIGEN_MOST_ROUNDS = 60 };

/* What these work in: both of soap_tiles(n) tiles, vectors of n elements, and a panel. */
typedef struct eigen_room {
  PLACE real *tiles, *others, *vectors, *panel;
} eigen_room;

/* Matrices of n rows are worked on in tiles, [tile][n][EIGEN_TILE] of their columns; behind the last column
 * stand zeros. Reflections are made in panels of as many, [reflection][n], and a tile stays in the caches
 * while it meets all of a panel. */

static PLACE real *eigen_tile_at(PLACE real *tiles, int64_t n, int64_t column) {
  return tiles + column / EIGEN_TILE * n * EIGEN_TILE + column % EIGEN_TILE;
}

static void eigen_tile(const PLACE real *x, PLACE real *tiles, int64_t n, int64_t columns) {
  EACH(i, n)
    for (int64_t j = 0; j < soap_tiles(columns) * EIGEN_TILE; j++)
      eigen_tile_at(tiles, n, j)[i * EIGEN_TILE] = j < columns ? x[i * columns + j] : 0;
  MEET;
}

static void eigen_untile(PLACE real *tiles, PLACE real *x, int64_t n) {
  EACH(i, n)
    for (int64_t j = 0; j < n; j++) x[i * n + j] = eigen_tile_at(tiles, n, j)[i * EIGEN_TILE];
  MEET;
}

static void eigen_identity(PLACE real *tiles, int64_t n) {
  EACH(i, n)
    for (int64_t j = 0; j < soap_tiles(n) * EIGEN_TILE; j++)
      eigen_tile_at(tiles, n, j)[i * EIGEN_TILE] = i == j;
  MEET;
}

static real eigen_dot(const PLACE real *x, const PLACE real *y, int64_t n) {
  real lanes[EIGEN_LANES] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + EIGEN_LANES <= n; i += EIGEN_LANES)
    for (int64_t lane = 0; lane < EIGEN_LANES; lane++) lanes[lane] += x[i + lane] * y[i + lane];
  for (; i < n; i++) sum += x[i] * y[i];
  for (int64_t lane = 0; lane < EIGEN_LANES; lane++) sum += lanes[lane];
  return sum;
}

static void eigen_take_from(PLACE real *y, const PLACE real *x, real factor, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] -= factor * x[i];
}

/* A tile after Householder's reflection by v, of n elements of which the first one is 1. */
static void eigen_reflect_tile(const PLACE real *v, real share, PLACE real *y, int64_t n) {
  real sums[EIGEN_TILE];
  for (int64_t j = 0; j < EIGEN_TILE; j++) sums[j] = y[j];
  for (int64_t i = 1; i < n; i++)
    for (int64_t j = 0; j < EIGEN_TILE; j++) sums[j] += v[i] * y[i * EIGEN_TILE + j];
  for (int64_t j = 0; j < EIGEN_TILE; j++) y[j] -= sums[j] *= share;
  for (int64_t i = 1; i < n; i++)
    for (int64_t j = 0; j < EIGEN_TILE; j++) y[i * EIGEN_TILE + j] -= v[i] * sums[j];
}

/* Reflections `from` to `to` of a panel, each of the rows from its own number and `offset` on, of all tiles
 * from `first` on. */
typedef struct eigen_panel {
  const PLACE real *rows, *shares;
  int64_t from, to, offset;
} eigen_panel;

static void eigen_reflect(const eigen_panel *p, PLACE real *tiles, int64_t n, int64_t first, int64_t end,
                          bool backward) {
  EACH(tile, end - first) {
    PLACE real *y = tiles + (first + tile) * n * EIGEN_TILE;
    for (int64_t i = 0; i < p->to - p->from; i++) {
      const int64_t at = backward ? p->to - 1 - p->from - i : i, head = p->from + at + p->offset;
      eigen_reflect_tile(p->rows + at * n + head, p->shares[p->from + at], y + head * EIGEN_TILE, n - head);
    }
  }
  MEET;
}

/* Reflections `from` to `to`, with offset 1, of columns of a square. */
static void eigen_take_panel(const PLACE real *a, PLACE real *panel, int64_t n, int64_t from, int64_t to) {
  EACH(i, n)
    for (int64_t k = from; k < to; k++) panel[(k - from) * n + i] = a[i * n + k];
  MEET;
}

/* Makes a reflection of x, of n elements that stand so far from each other: what it leaves of it is `*left`,
 * at the first alone. */
static real eigen_reflector(PLACE real *x, int64_t stride, int64_t n, real *left) {
  real most = 0, sum = 0, head = x[0];
  for (int64_t i = 1; i < n; i++) most = fmax(most, fabs(x[i * stride]));
  *left = head;
  MEET;
  if (most == 0) return 0;
  most = fmax(most, fabs(head));
  for (int64_t i = 0; i < n; i++) sum += (x[i * stride] / most) * (x[i * stride] / most);
  *left = head > 0 ? -most * sqrt(sum) : most * sqrt(sum);
  MEET;
  EACH(i, n - 1) x[(1 + i) * stride] /= head - *left;
  MEET;
  return (*left - head) / *left;
}

/* Makes reflections `from` to `to` of the columns that a tile has; they stand in its place then, as rows. */
static void eigen_factor(PLACE real *tile, PLACE real *panel, PLACE real *shares, int64_t n, int64_t from,
                         int64_t to) {
  real left;
  EACH(i, n)
    for (int64_t j = 0; j < EIGEN_TILE; j++) panel[j * n + i] = tile[i * EIGEN_TILE + j];
  MEET;
  for (int64_t k = from; k < to; k++) {
    PLACE real *v = panel + (k - from) * n + k;
    const real share = eigen_reflector(v, 1, n - k, &left);
    EACH(only, 1) shares[k] = share;
    EACH(other, EIGEN_TILE - 1 - (k - from)) {
      PLACE real *y = v + (1 + other) * n;
      const real sum = share * (y[0] + eigen_dot(v + 1, y + 1, n - k - 1));
      y[0] -= sum;
      eigen_take_from(y + 1, v + 1, sum, n - k - 1);
    }
    MEET;
  }
  EACH(i, n * EIGEN_TILE) tile[i] = panel[i];
  MEET;
}

/* q[n,n]: of whose columns the first are an orthonormal basis of a's [n,columns], one by one; a is used up.
 * Room: tiles and others of n rows, as many shares as columns, a panel. `others` may be where a is. */
static void eigen_orthonormal(PLACE real *a, PLACE real *q, const eigen_room *room, int64_t n,
                              int64_t columns) {
  const int64_t most = columns < n - 1 ? columns : n - 1, n_tiles = soap_tiles(n);
  eigen_tile(a, room->tiles, n, columns);
  for (int64_t k = 0; k < most; k += EIGEN_TILE) {
    PLACE real *tile = room->tiles + k * n;
    const eigen_panel made = {tile, room->vectors, k, k + EIGEN_TILE < most ? k + EIGEN_TILE : most, 0};
    eigen_factor(tile, room->panel, room->vectors, n, k, made.to);
    eigen_reflect(&made, room->tiles, n, k / EIGEN_TILE + 1, soap_tiles(columns), false);
  }
  eigen_identity(room->others, n);
  for (int64_t k = (most - 1) / EIGEN_TILE * EIGEN_TILE; most > 0 && k >= 0; k -= EIGEN_TILE) {
    const eigen_panel made = {room->tiles + k * n, room->vectors, k,
                              k + EIGEN_TILE < most ? k + EIGEN_TILE : most, 0};
    eigen_reflect(&made, room->others, n, k / EIGEN_TILE, n_tiles, true);
  }
  eigen_untile(room->others, q, n);
}

/* A symmetric a[n,n] is q t q^T: t has the diagonal d, and e beside it; tiles have q. */
static void eigen_tridiagonal(PLACE real *a, const eigen_room *room, int64_t n) {
  PLACE real *d = room->vectors, *e = d + n, *shares = e + n, *v = shares + n, *w = v + n;
  real left;
  for (int64_t k = 0; k + 2 < n; k++) {
    const int64_t first = k + 1, rest = n - first;
    const real share = eigen_reflector(a + first * n + k, n, rest, &left);
    EACH(i, rest) v[i] = i == 0 ? 1 : a[(first + i) * n + k];
    EACH(only, 1) shares[k] = share, e[k] = left;
    MEET;
    EACH(i, rest) w[i] = share * eigen_dot(a + (first + i) * n + first, v, rest);
    MEET;
    const real both = eigen_dot(w, v, rest);
    MEET;
    EACH(i, rest) w[i] -= share / 2 * both * v[i];
    MEET;
    EACH(i, rest) {
      PLACE real *row = a + (first + i) * n + first;
      const real x = v[i], y = w[i];
      for (int64_t j = 0; j < rest; j++) row[j] -= x * w[j] + y * v[j];
    }
    MEET;
  }
  EACH(i, n) d[i] = a[i * n + i];
  EACH(only, 1) {
    if (n > 1) e[n - 2] = a[(n - 1) * n + n - 2];
    e[n - 1] = 0;
  }
  eigen_identity(room->tiles, n);
  for (int64_t end = n - 2, k; end > 0; end = k) {
    k = (end - 1) / EIGEN_TILE * EIGEN_TILE;
    eigen_take_panel(a, room->panel, n, k, end);
    const eigen_panel made = {room->panel, shares, k, end, 1};
    eigen_reflect(&made, room->tiles, n, k / EIGEN_TILE, soap_tiles(n), true);
  }
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

/* Rounds that one makes before all turn q by them: of each its turns, from where to where, and behind them
 * how many there are, and where to go on. */
enum { EIGEN_ROUNDS = 8, EIGEN_N_ROUNDS = 2 * EIGEN_ROUNDS, EIGEN_FIRST, EIGEN_TRIED };

static void eigen_some_rounds(PLACE real *d, PLACE real *e, PLACE real *rounds, PLACE real *spans,
                              int64_t n) {
  int64_t first = (int64_t)spans[EIGEN_FIRST], tried = (int64_t)spans[EIGEN_TRIED], made = 0;
  while (first < n && made < EIGEN_ROUNDS) {
    const int64_t end = eigen_end(d, e, first, n);
    if (end == first || tried == EIGEN_MOST_ROUNDS) {
      first++, tried = 0;
      continue;
    }
    spans[2 * made] = (real)eigen_round(d, e, rounds + made * 2 * n, first, end);
    spans[2 * made + 1] = (real)end;
    made++, tried++;
  }
  spans[EIGEN_N_ROUNDS] = (real)made, spans[EIGEN_FIRST] = (real)first, spans[EIGEN_TRIED] = (real)tried;
}

/* Columns of q after one round. */
static void eigen_turn(PLACE real *q, const PLACE real *turns, int64_t first, int64_t end, int64_t n,
                       int64_t width) {
  for (int64_t i = end - 1; i >= first; i--) {
    PLACE real *x = q + i * n, *y = x + n;
    const real c = turns[2 * i], s = turns[2 * i + 1];
    for (int64_t k = 0; k < width; k++) {
      const real of_x = x[k], of_y = y[k];
      y[k] = s * of_x + c * of_y;
      x[k] = c * of_x - s * of_y;
    }
  }
}

/* The rows of q become eigenvectors of the tridiagonal matrix d, e, as its rows were: d are its eigenvalues.
 */
static void eigen_diagonal(PLACE real *q, const eigen_room *room, int64_t n) {
  PLACE real *d = room->vectors, *e = d + n, *rounds = room->panel, *spans = rounds + EIGEN_ROUNDS * 2 * n;
  if (n < 2) return;
  EACH(only, 1) spans[EIGEN_FIRST] = spans[EIGEN_TRIED] = 0;
  for (int64_t made = 1; made > 0;) {
    EACH(only, 1) eigen_some_rounds(d, e, rounds, spans, n);
    MEET;
    made = (int64_t)spans[EIGEN_N_ROUNDS];
    EACH(tile, soap_tiles(n)) {
      const int64_t left = n - tile * EIGEN_TILE, width = left < EIGEN_TILE ? left : EIGEN_TILE;
      for (int64_t round = 0; round < made; round++)
        eigen_turn(q + tile * EIGEN_TILE, rounds + round * 2 * n, (int64_t)spans[2 * round],
                   (int64_t)spans[2 * round + 1], n, width);
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
 * up. */
static void eigen_vectors(PLACE real *a, PLACE real *q, const eigen_room *room, int64_t n) {
  PLACE real *order = room->vectors + n;
  eigen_tridiagonal(a, room, n);
  EACH(j, n)
    for (int64_t i = 0; i < n; i++) a[j * n + i] = eigen_tile_at(room->tiles, n, j)[i * EIGEN_TILE];
  MEET;
  eigen_diagonal(a, room, n);
  eigen_order(room->vectors, order, n);
  EACH(i, n)
    for (int64_t j = 0; j < n; j++) q[i * n + j] = a[(int64_t)order[j] * n + i];
  MEET;
}

#endif
