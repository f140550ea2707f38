/* SPDX-License-Identifier: Apache-2.0 */
/* SOAP: Adam in the bases in which the gradients of a matrix have been independent so far. Of each side of a
 * matrix a mean of products of gradients is kept, and a basis of its eigenvectors, which one step of the
 * orthogonal iteration follows it with. Whoever includes this says what eigen.h asks for, and
 * WITH_ALL(statement), which does it with all that share an EACH, and has soap_multiply. */
#ifndef KERNELS_RULES_SOAP_H
#define KERNELS_RULES_SOAP_H

#include "kernels/rules/eigen.h"
#include "schema/soap_room.h"
#ifndef __OPENCL_VERSION__
#include "kernels/rules/step.h"
#endif

/* The products of m x n matrices x, y, and the bases of their sides. */
typedef enum soap_product {
  SOAP_LEFT,       /* l q, [m,m] */
  SOAP_RIGHT,      /* r q, [n,n] */
  SOAP_IN_LEFT,    /* q^T x, where q is of m */
  SOAP_OUT_LEFT,   /* q x */
  SOAP_IN_RIGHT,   /* x q, where q is of n */
  SOAP_OUT_RIGHT,  /* x q^T */
  SOAP_GRAM_LEFT,  /* x y^T */
  SOAP_GRAM_RIGHT, /* x^T y */
  SOAP_N_PRODUCTS
} soap_product;

typedef struct rule_soap {
  real lr, decay, beta1, beta2, left1, left2, epsilon, rest;
  bool kl; /* products are weighed by what the other side's eigenvalues leave (arXiv:2509.03378) */
  int64_t m, n;
  PLACE real *p, *moment1, *moment2, *g;
  PLACE real *side[2], *basis[2];            /* of m and of n: the mean, and its basis */
  const void *context;                       /* of soap_multiply */
  PLACE real *turned[2], *x, *y, *z, *vectors, *panel; /* room: as the sides; of the matrix, and x and y as
                                                          much as a side in tiles at least; eigen.h's */
} rule_soap;

/* c = a b, as the product says. */
static void soap_multiply(const rule_soap *s, soap_product product, const PLACE real *a, const PLACE real *b,
                          PLACE real *c);

/* Rows and columns of each operand of a product: an extent is m or n. */
typedef struct soap_form {
  bool a_rows_n, a_columns_n, b_rows_n, b_columns_n, a_turned, b_turned;
} soap_form;

static inline soap_form soap_form_of(soap_product product) {
  switch (product) {
  case SOAP_LEFT: return (soap_form){false, false, false, false, false, false};
  case SOAP_RIGHT: return (soap_form){true, true, true, true, false, false};
  case SOAP_IN_LEFT: return (soap_form){false, false, false, true, true, false};
  case SOAP_OUT_LEFT: return (soap_form){false, false, false, true, false, false};
  case SOAP_IN_RIGHT: return (soap_form){false, true, true, true, false, false};
  case SOAP_OUT_RIGHT: return (soap_form){false, true, true, true, false, true};
  case SOAP_GRAM_LEFT: return (soap_form){false, true, false, true, false, true};
  default: return (soap_form){false, true, false, true, true, false};
  }
}

#ifndef __OPENCL_VERSION__
static inline rule_soap rule_soap_of(const rule_step *step, int64_t m, int64_t n) {
  const double *number = step->number, *power = step->power;
  return (rule_soap){.lr = (real)step->lr,
                     .decay = (real)step->decay,
                     .beta1 = (real)number[NX_soap_beta1],
                     .beta2 = (real)number[NX_soap_beta2],
                     .left1 = (real)(1 - power[NX_soap_beta1]),
                     .left2 = (real)(1 - power[NX_soap_beta2]),
                     .epsilon = (real)number[NX_soap_basis_epsilon],
                     .rest = (real)((1 - number[NX_soap_factor_beta]) / (1 - power[NX_soap_factor_beta])),
                     .kl = number[NX_soap_kl_factors] != 0,
                     .m = m,
                     .n = n};
}
#endif

/* A basis of which the first vector is none is there not yet. */
static bool soap_is_first(const rule_soap *s) {
  for (int64_t i = 0; i < s->m; i++)
    if (s->basis[0][i * s->m] != 0) return false;
  return true;
}

static void soap_place(rule_soap *s, PLACE real *room) {
  const int64_t most = s->m > s->n ? s->m : s->n, square = most * soap_tiles(most) * SOAP_TILE;
  s->turned[0] = room;
  s->turned[1] = s->turned[0] + s->m * s->m;
  s->x = s->turned[1] + s->n * s->n;
  s->y = s->x + square;
  s->z = s->y + square;
  s->vectors = s->z + s->m * s->n;
  s->panel = s->vectors + EIGEN_VECTORS * most;
}

static eigen_room soap_eigen_room(const rule_soap *s) {
  return (eigen_room){.tiles = s->y, .others = s->x, .vectors = s->vectors, .panel = s->panel};
}

static void soap_mean(const rule_soap *s, int which, const PLACE real *now) {
  const int64_t n = which ? s->n : s->m;
  PLACE real *mean = s->side[which];
  EACH(i, n * n) mean[i] += s->rest * (now[i] - mean[i]);
  MEET;
}

/* Of each column of a basis what the mean is there: their product is there. */
static void soap_values(const rule_soap *s, int which, PLACE real *values) {
  const int64_t n = which ? s->n : s->m;
  EACH(i, n) {
    real sum = 0;
    for (int64_t k = 0; k < n; k++) sum += s->basis[which][k * n + i] * s->turned[which][k * n + i];
    values[i] = sum;
  }
  MEET;
}

/* y: x with its rows (columns) divided by the eigenvalues of its side, and the elements of that. */
static void soap_weigh(const rule_soap *s, int which, bool first, const PLACE real *x, PLACE real *y) {
  const int64_t n = which ? s->n : s->m;
  if (!first) soap_values(s, which, s->vectors);
  EACH(i, s->m * s->n) {
    const real value = first ? 0 : s->vectors[which ? i % s->n : i / s->n];
    y[i] = x[i] / ((value > s->epsilon ? value : s->epsilon) * (real)n);
  }
  MEET;
}

/* The means of both sides: what each weighs the other's by is from before. */
static void soap_means(const rule_soap *s, bool first) {
  if (!s->kl) {
    soap_multiply(s, SOAP_GRAM_LEFT, s->g, s->g, s->x);
    soap_multiply(s, SOAP_GRAM_RIGHT, s->g, s->g, s->y);
    WITH_ALL(soap_mean(s, 0, s->x));
    WITH_ALL(soap_mean(s, 1, s->y));
    return;
  }
  const PLACE real *left = s->g, *right = s->g;
  for (int which = 0; !first && which < 2; which++)
    soap_multiply(s, which ? SOAP_RIGHT : SOAP_LEFT, s->side[which], s->basis[which], s->turned[which]);
  if (!first) soap_multiply(s, SOAP_IN_LEFT, s->basis[0], s->g, s->x), left = s->x;
  WITH_ALL(soap_weigh(s, 0, first, left, s->z));
  soap_multiply(s, SOAP_GRAM_RIGHT, left, s->z, s->y);
  WITH_ALL(soap_mean(s, 1, s->y));
  if (!first) soap_multiply(s, SOAP_IN_RIGHT, s->g, s->basis[1], s->x), right = s->x;
  WITH_ALL(soap_weigh(s, 1, first, right, s->z));
  soap_multiply(s, SOAP_GRAM_LEFT, s->z, right, s->y);
  WITH_ALL(soap_mean(s, 0, s->y));
}

static void soap_copy(const PLACE real *x, PLACE real *y, int64_t n) {
  EACH(i, n) y[i] = x[i];
  MEET;
}

static void soap_transpose(const PLACE real *x, PLACE real *y, int64_t rows, int64_t columns) {
  EACH(i, rows)
    for (int64_t j = 0; j < columns; j++) y[j * rows + i] = x[i * columns + j];
  MEET;
}

/* The first bases: the eigenvectors of the shorter side, and what the gradient makes of them; what it says
 * nothing of is filled up. */
static void soap_first_bases(const rule_soap *s) {
  const int shorter = s->m <= s->n ? 0 : 1, longer = 1 - shorter;
  const int64_t least = shorter ? s->n : s->m, most = shorter ? s->m : s->n;
  const eigen_room room = soap_eigen_room(s);
  WITH_ALL(soap_copy(s->side[shorter], s->x, least * least));
  WITH_ALL(eigen_vectors(s->x, s->basis[shorter], &room, least));
  if (shorter) soap_multiply(s, SOAP_IN_RIGHT, s->g, s->basis[1], s->z);
  else soap_multiply(s, SOAP_IN_LEFT, s->basis[0], s->g, s->x);
  if (shorter == 0) WITH_ALL(soap_transpose(s->x, s->z, s->m, s->n));
  WITH_ALL(eigen_orthonormal(s->z, s->basis[longer], &room, most, least));
}

/* The columns of a basis in the order of their eigenvalues, once multiplied by the mean. */
static void soap_next_basis(const rule_soap *s, int which) {
  const int64_t n = which ? s->n : s->m;
  PLACE real *order = s->vectors + n;
  const eigen_room room = soap_eigen_room(s);
  soap_values(s, which, s->vectors);
  eigen_order(s->vectors, order, n);
  eigen_columns(s->turned[which], order, s->x, n, n);
  if (which) eigen_columns(s->moment2, order, s->y, s->m, n);
  EACH(i, which ? 0 : s->m)
    for (int64_t j = 0; j < s->n; j++) s->y[i * s->n + j] = s->moment2[(int64_t)order[i] * s->n + j];
  MEET;
  soap_copy(s->y, s->moment2, s->m * s->n);
  eigen_orthonormal(s->x, s->basis[which], &room, n, n);
}

/* x in the bases, or out of them, by way of y. */
static void soap_in(const rule_soap *s, const PLACE real *x, PLACE real *y, PLACE real *to) {
  soap_multiply(s, SOAP_IN_LEFT, s->basis[0], x, y);
  soap_multiply(s, SOAP_IN_RIGHT, y, s->basis[1], to);
}

static void soap_out(const rule_soap *s, const PLACE real *x, PLACE real *y, PLACE real *to) {
  soap_multiply(s, SOAP_OUT_LEFT, s->basis[0], x, y);
  soap_multiply(s, SOAP_OUT_RIGHT, y, s->basis[1], to);
}

/* Adam there: g becomes the update. */
static void soap_adam(const rule_soap *s, PLACE real *g) {
  EACH(i, s->m * s->n) {
    const real first = s->beta1 * s->moment1[i] + (1 - s->beta1) * g[i];
    const real second = s->beta2 * s->moment2[i] + (1 - s->beta2) * g[i] * g[i];
    s->moment1[i] = first;
    s->moment2[i] = second;
    g[i] = first / s->left1 / (sqrt(second / s->left2) + s->epsilon);
  }
  MEET;
}

static void soap_apply(const rule_soap *s, const PLACE real *update) {
  EACH(i, s->m * s->n) s->p[i] = s->p[i] * (1 - s->lr * s->decay) - s->lr * update[i];
  MEET;
}

static void soap_zero(PLACE real *x, int64_t n) {
  EACH(i, n) x[i] = 0;
  MEET;
}

/* `first`: there are no bases yet. */
static void soap_update(const rule_soap *s, bool first) {
  soap_means(s, first);
  if (first) {
    WITH_ALL(soap_zero(s->moment1, s->m * s->n));
    WITH_ALL(soap_zero(s->moment2, s->m * s->n));
    soap_first_bases(s);
  } else {
    soap_out(s, s->moment1, s->x, s->z);
    WITH_ALL(soap_copy(s->z, s->moment1, s->m * s->n));
    for (int which = 0; which < 2; which++)
      soap_multiply(s, which ? SOAP_RIGHT : SOAP_LEFT, s->side[which], s->basis[which], s->turned[which]);
    WITH_ALL(soap_next_basis(s, 0));
    WITH_ALL(soap_next_basis(s, 1));
    soap_in(s, s->moment1, s->x, s->z);
    WITH_ALL(soap_copy(s->z, s->moment1, s->m * s->n));
  }
  soap_in(s, s->g, s->x, s->z);
  WITH_ALL(soap_adam(s, s->z));
  soap_out(s, s->z, s->x, s->y);
  WITH_ALL(soap_apply(s, s->y));
}

#endif
