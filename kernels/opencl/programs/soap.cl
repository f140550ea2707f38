/* SPDX-License-Identifier: Apache-2.0 */
/* SOAP (update_tensor.cl). */
#include "kernels/opencl/programs/update_tensor.cl"

/* One item does it all, on copies in ROOM: compilers take exponentially long over barriers within loops
 * within loops. */
typedef float real;
#define PLACE global
#define EACH(i, n) for (long i = 0; i < (n); i++)
#define MEET
#define WITH_ALL(statement) statement
#include "schema/soap_room.h"
#include "kernels/rules/eigen.h"
#include "kernels/rules/soap.h"

#define SOAP_EXTENT(is_columns) ((is_columns) ? s->n : s->m)
static void soap_multiply(const rule_soap *s, soap_product product, const global float *a,
                          const global float *b, global float *c) {
  const soap_form form = soap_form_of(product);
  const long a_columns = SOAP_EXTENT(form.a_columns_n), b_columns = SOAP_EXTENT(form.b_columns_n);
  const long rows = form.a_turned ? a_columns : SOAP_EXTENT(form.a_rows_n);
  const long columns = form.b_turned ? SOAP_EXTENT(form.b_rows_n) : b_columns;
  const long inner = form.a_turned ? SOAP_EXTENT(form.a_rows_n) : a_columns;
  EACH(i, rows * columns) {
    const long row = i / columns, column = i % columns;
    float sum = 0;
    for (long k = 0; k < inner; k++)
      sum += a[form.a_turned ? k * a_columns + row : row * a_columns + k] *
             b[form.b_turned ? column * b_columns + k : k * b_columns + column];
    c[i] = sum;
  }
}

#define SOAP_TAKE(name, n, from) \
  name = room; \
  room += (n); \
  EACH(i, n) name[i] = from

kernel void soap_step(OPERANDS) {
  if (SKIPPED || get_global_id(0) != 0) return;
  const long m = XDIM(0, 2), n = COLUMNS;
  global float *room = ROOM;
  rule_soap s = {.lr = (float)AT_STEP->lr,
                 .decay = (float)AT_STEP->decay,
                 .beta1 = (float)A_beta1,
                 .beta2 = (float)A_beta2,
                 .left1 = (float)LEFT(beta1, AT_STEP->count),
                 .left2 = (float)LEFT(beta2, AT_STEP->count),
                 .epsilon = (float)A_basis_epsilon,
                 .rest = (float)(REST(factor_beta) / LEFT(factor_beta, AT_STEP->count)),
                 .kl = A_kl_factors != 0,
                 .m = m,
                 .n = n};
  SOAP_TAKE(s.p, m * n, P(i));
  SOAP_TAKE(s.moment1, m * n, STATE_0(i));
  SOAP_TAKE(s.moment2, m * n, STATE_1(i));
  SOAP_TAKE(s.g, m * n, SCALED(i));
  SOAP_TAKE(s.side[0], 2 * m * m, STATE_2(i));
  SOAP_TAKE(s.side[1], 2 * n * n, STATE_3(i));
  s.basis[0] = s.side[0] + m * m, s.basis[1] = s.side[1] + n * n;
  soap_place(&s, room);
  soap_update(&s, soap_is_first(&s));
  EACH(i, m * n) {
    SET_Y0(i, s.p[i]);
    SET_Y1(i, s.moment1[i]);
    SET_Y2(i, s.moment2[i]);
  }
  EACH(i, 2 * m * m) SET_Y3(i, s.side[0][i]);
  EACH(i, 2 * n * n) SET_Y4(i, s.side[1][i]);
}
