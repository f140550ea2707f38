/* SPDX-License-Identifier: Apache-2.0 */
/* SOAP in double, of all that a rank has of a matrix. */
#include "kernels/ref/ref_update.h"

#include <tgmath.h>

#define PLACE
#define EACH(i, n) for (int64_t i = 0; i < (n); i++)
#define MEET
#define WITH_ALL(statement) statement
#include "kernels/rules/soap.h"

static void soap_multiply(const rule_soap *s, soap_product product, const double *a, const double *b,
                          double *c) {
  const soap_form form = soap_form_of(product);
  const int64_t a_columns = form.a_columns_n ? s->n : s->m, b_columns = form.b_columns_n ? s->n : s->m;
  const int64_t rows = form.a_turned ? a_columns : form.a_rows_n ? s->n : s->m;
  const int64_t columns = form.b_turned ? (form.b_rows_n ? s->n : s->m) : b_columns;
  const int64_t inner = form.a_turned ? (form.a_rows_n ? s->n : s->m) : a_columns;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      double sum = 0;
      for (int64_t k = 0; k < inner; k++)
        sum += a[form.a_turned ? k * a_columns + i : i * a_columns + k] *
               b[form.b_turned ? j * b_columns + k : k * b_columns + j];
      c[i * columns + j] = sum;
    }
}

enum { LEFT = 3, RIGHT, GRADIENT }; /* inputs behind p and the moments */

int64_t ref_soap_work(const nxk_operator *operator) {
  const int64_t m = operator->args[0].dims[0], n = operator->args[0].dims[1];
  return 4 * m * n + 2 * m * m + 2 * n * n + soap_room(m, n);
}

static double *load(const ref_call *call, uint32_t input, double scale, double **room) {
  double *to = *room;
  ref_operand x = ref_in(call, input);
  ref_load_row(&x, 0, 1, x.n_elements, to);
  for (int64_t i = 0; i < x.n_elements; i++) to[i] *= scale;
  *room += x.n_elements;
  return to;
}

static void store(const ref_call *call, uint32_t output, const double *from) {
  ref_operand y = ref_out(call, output);
  for (int64_t i = 0; i < y.n_elements; i++) ref_store(&y, i, from[i]);
}

void ref_soap(const ref_call *call) {
  const rule_step step = ref_step(call);
  if (isnan(step.scale)) return;
  const ref_operand p = ref_in(call, 0);
  double *room = call->work;
  rule_soap s = rule_soap_of(&step, p.dims[0], p.dims[1]);
  s.p = load(call, 0, 1, &room);
  s.moment1 = load(call, 1, 1, &room);
  s.moment2 = load(call, 2, 1, &room);
  s.side[0] = load(call, LEFT, 1, &room), s.basis[0] = s.side[0] + s.m * s.m;
  s.side[1] = load(call, RIGHT, 1, &room), s.basis[1] = s.side[1] + s.n * s.n;
  s.g = load(call, GRADIENT, step.scale, &room);
  soap_place(&s, room);
  soap_update(&s, soap_is_first(&s));
  const double *const kept[] = {s.p, s.moment1, s.moment2, s.side[0], s.side[1]};
  for (uint32_t i = 0; i < sizeof kept / sizeof *kept; i++) store(call, i, kept[i]);
  ref_operand copy = {0}, param = ref_out(call, 0);
  if (call->operator->n_out > 1 + step.n_states) copy = ref_out(call, 1 + step.n_states);
  for (int64_t i = 0; copy.data && i < copy.n_elements; i++) ref_store(&copy, i, ref_load(&param, i));
}
