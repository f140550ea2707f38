/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed reductions of 1-bit Adam: signs in bits and their error. A vector with its error is kept in
 * the place of the error until its size is known. */
#include "kernels/ref/ref.h"

#include <math.h>
#include <string.h>

static double sign_at(const uint8_t *bits, int64_t i) {
  return bits[i / 8] >> i % 8 & 1 ? 1 : -1;
}

/* What `error` holds becomes bits and their size, and `error` what they do not stand for. */
static void compress(const ref_operand *error, const ref_operand *bits, const ref_operand *size) {
  int64_t n = error->n_elements;
  float *x = error->data;
  uint8_t *to = bits->data;
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
  float scale = (float)sqrt(sum / (double)n);
  memset(to, 0, (size_t)bits->n_elements);
  for (int64_t i = 0; i < n; i++) {
    to[i / 8] |= (uint8_t)((x[i] >= 0) << i % 8);
    x[i] -= x[i] >= 0 ? scale : -scale;
  }
  ref_store(size, 0, scale);
}

static bool is_skipped(const ref_call *call, uint32_t scale) {
  ref_operand x = ref_in(call, scale);
  return isnan(ref_load(&x, 0));
}

static void skip(const ref_operand *bits, const ref_operand *size) {
  memset(bits->data, 0, (size_t)bits->n_elements);
  ref_store(size, 0, 0);
}

void ref_onebit_pack(const ref_call *call) {
  enum { MOMENT, GRADIENT, ERROR, SCALE };
  ref_operand m = ref_in(call, MOMENT), g = ref_in(call, GRADIENT), scale = ref_in(call, SCALE);
  ref_operand error = ref_out(call, 0), bits = ref_out(call, 1), size = ref_out(call, 2);
  double beta1 = ref_real(call, NX_onebit_pack_beta1);
  double factor = (1 - beta1) * (double)ref_int(call, NX_onebit_pack_workers) * ref_load(&scale, 0);
  if (is_skipped(call, SCALE)) {
    skip(&bits, &size);
    return;
  }
  for (int64_t i = 0; i < m.n_elements; i++)
    ref_store(&error, i, beta1 * ref_load(&m, i) + factor * ref_load(&g, i) + ref_load(&error, i));
  compress(&error, &bits, &size);
}

void ref_onebit_sum(const ref_call *call) {
  enum { BITS, SIZES, ERROR, SCALE };
  ref_operand from = ref_in(call, BITS), sizes = ref_in(call, SIZES);
  ref_operand error = ref_out(call, 0), bits = ref_out(call, 1), size = ref_out(call, 2);
  int64_t n = error.n_elements, n_workers = sizes.n_elements;
  if (is_skipped(call, SCALE)) {
    skip(&bits, &size);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    double sum = 0;
    for (int64_t worker = 0; worker < n_workers; worker++)
      sum += ref_load(&sizes, worker) * sign_at(from.data, worker * n + i);
    ref_store(&error, i, sum / (double)n_workers + ref_load(&error, i));
  }
  compress(&error, &bits, &size);
}

void ref_onebit_apply(const ref_call *call) {
  enum { PARAM, MOMENT1, MOMENT2, BITS, SIZES, LR, DECAY, SCALE, STEP };
  ref_operand v = ref_in(call, MOMENT2), bits = ref_in(call, BITS), sizes = ref_in(call, SIZES),
              rate = ref_in(call, LR), decay = ref_in(call, DECAY), p = ref_out(call, 0),
              m = ref_out(call, 1);
  double lr = ref_load(&rate, 0), kept = 1 - lr * ref_load(&decay, 0),
         epsilon = ref_real(call, NX_onebit_apply_epsilon);
  int64_t part = p.n_elements / sizes.n_elements;
  if (is_skipped(call, SCALE)) return;
  for (int64_t i = 0; i < p.n_elements; i++) {
    double second = ref_load(&v, i);
    double first = second == 0 ? 0 : sign_at(bits.data, i) * ref_load(&sizes, i / part);
    ref_store(&m, i, first);
    ref_store(&p, i, ref_load(&p, i) * kept - lr * (first / (sqrt(second) + epsilon)));
  }
  if (call->operator->n_out < 3) return;
  ref_operand copy = ref_out(call, 2);
  for (int64_t i = 0; i < p.n_elements; i++) ref_store(&copy, i, ref_load(&p, i));
}
