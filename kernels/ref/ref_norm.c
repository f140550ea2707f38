/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm and LayerNorm. Gradients sum over the tokens in ascending order. */
#include "kernels/norm.h"
#include "kernels/ref/ref.h"

#include <math.h>

/* What gains are kept around: element i of g stands for 1 + g_i where they are zero-centred. */
static double gain_of(const ref_call *call, const ref_operand *g, int64_t i) {
  return ref_load(g, i) + (ref_int(call, NX_rms_norm_zero_centred) ? 1 : 0);
}

void ref_rms_norm(const ref_call *call) {
  ref_operand x = ref_in(call, 0), g = ref_in(call, 1), y = ref_out(call, 0), rstd = ref_out(call, 1);
  int64_t h = g.n_elements;
  double epsilon = ref_real(call, NX_rms_norm_epsilon);
  for (int64_t t = 0; t < rstd.n_elements; t++) {
    double squares = 0;
    for (int64_t i = 0; i < h; i++) squares += ref_load(&x, t * h + i) * ref_load(&x, t * h + i);
    double scale = nxk_rstd(squares, squares / (double)h, epsilon);
    ref_store(&rstd, t, scale);
    for (int64_t i = 0; i < h; i++)
      ref_store(&y, t * h + i, ref_load(&x, t * h + i) * scale * gain_of(call, &g, i));
  }
}

/* y_i = x_i r g_i with r = 1 / rms: dx_i = r (g_i dy_i - x_i r^2 mean_j(g_j dy_j x_j)). */
void ref_rms_norm_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), x = ref_in(call, 1), g = ref_in(call, 2), rstd = ref_in(call, 3);
  ref_operand dx = ref_out(call, 0);
  int64_t h = g.n_elements;
  double *dg_sums = call->work;
  for (int64_t i = 0; i < h; i++) dg_sums[i] = 0;
  for (int64_t t = 0; t < rstd.n_elements; t++) {
    double scale = ref_load(&rstd, t), mean = 0;
    for (int64_t i = 0; i < h; i++) {
      double xi = ref_load(&x, t * h + i), dyi = ref_load(&dy, t * h + i);
      mean += gain_of(call, &g, i) * dyi * xi / (double)h;
      dg_sums[i] += dyi * xi * scale;
    }
    for (int64_t i = 0; i < h; i++) {
      double inner =
          gain_of(call, &g, i) * ref_load(&dy, t * h + i) - ref_load(&x, t * h + i) * scale * scale * mean;
      ref_store(&dx, t * h + i, scale * inner);
    }
  }
  if (call->operator->n_out<2) return;
  ref_operand dg = ref_out(call, 1);
  bool accumulate = ref_int(call, NX_rms_norm_grad_accumulate);
  for (int64_t i = 0; i < h; i++) ref_store_sum(&dg, i, dg_sums[i], accumulate);
}

static double length_of(const ref_operand *x, int64_t first, int64_t n) {
  double squares = 0;
  for (int64_t i = first; i < first + n; i++) squares += ref_load(x, i) * ref_load(x, i);
  return sqrt(squares);
}

void ref_scale_norm(const ref_call *call) {
  ref_operand x = ref_in(call, 0), g = ref_in(call, 1), y = ref_out(call, 0), factors = ref_out(call, 1);
  int64_t h = ref_last_dim(&x);
  double epsilon = ref_real(call, NX_scale_norm_epsilon);
  for (int64_t t = 0; t < factors.n_elements; t++) {
    double length = length_of(&x, t * h, h), factor = 1 / (length < epsilon ? epsilon : length);
    ref_store(&factors, t, factor);
    for (int64_t i = t * h; i < (t + 1) * h; i++)
      ref_store(&y, i, ref_load(&g, 0) * factor * ref_load(&x, i));
  }
}

/* With f = 1 / |x|: dx = g f (dy - x f^2 (dy . x)), and g f dy where the length is held; dg = sum f (dy .
 * x). */
void ref_scale_norm_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), x = ref_in(call, 1), g = ref_in(call, 2), factors = ref_in(call, 3);
  ref_operand dx = ref_out(call, 0);
  int64_t h = ref_last_dim(&x);
  double sum = 0, gain = ref_load(&g, 0), epsilon = ref_real(call, NX_scale_norm_grad_epsilon);
  for (int64_t t = 0; t < factors.n_elements; t++) {
    double factor = ref_load(&factors, t), product = 0;
    bool held = length_of(&x, t * h, h) < epsilon;
    for (int64_t i = t * h; i < (t + 1) * h; i++) product += ref_load(&dy, i) * ref_load(&x, i);
    sum += factor * product;
    double back = held ? 0 : factor * factor * product;
    for (int64_t i = t * h; i < (t + 1) * h; i++)
      ref_store(&dx, i, gain * factor * (ref_load(&dy, i) - back * ref_load(&x, i)));
  }
  if (call->operator->n_out<2) return;
  ref_operand dg = ref_out(call, 1);
  ref_store_sum(&dg, 0, sum, ref_int(call, NX_scale_norm_grad_accumulate));
}

void ref_layer_norm(const ref_call *call) {
  ref_operand x = ref_in(call, 0), g = ref_in(call, 1), y = ref_out(call, 0);
  ref_operand mean = ref_out(call, 1), rstd = ref_out(call, 2), b = {0};
  bool with_bias = call->operator->n_in == 3;
  if (with_bias) b = ref_in(call, 2);
  int64_t h = g.n_elements;
  for (int64_t t = 0; t < mean.n_elements; t++) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < h; i++) sum += ref_load(&x, t * h + i);
    double middle = sum / (double)h;
    for (int64_t i = 0; i < h; i++) {
      double away = ref_load(&x, t * h + i) - middle;
      squares += away * away;
    }
    double scale = nxk_rstd(squares, squares / (double)h, ref_real(call, NX_layer_norm_epsilon));
    ref_store(&mean, t, middle);
    ref_store(&rstd, t, scale);
    for (int64_t i = 0; i < h; i++) {
      double value = (ref_load(&x, t * h + i) - middle) * scale * gain_of(call, &g, i);
      ref_store(&y, t * h + i, with_bias ? value + ref_load(&b, i) : value);
    }
  }
}

/* With z = (x - mean) r: dx_i = r (g_i dy_i - mean_j(g_j dy_j) - z_i mean_j(g_j dy_j z_j)). */
void ref_layer_norm_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), x = ref_in(call, 1), g = ref_in(call, 2), mean = ref_in(call, 3);
  ref_operand rstd = ref_in(call, 4), dx = ref_out(call, 0);
  int64_t h = g.n_elements;
  double *dg_sums = call->work, *db_sums = call->work + h;
  for (int64_t i = 0; i < 2 * h; i++) dg_sums[i] = 0;
  for (int64_t t = 0; t < mean.n_elements; t++) {
    double scale = ref_load(&rstd, t), middle = ref_load(&mean, t), mean_dz = 0, mean_dz_z = 0;
    for (int64_t i = 0; i < h; i++) {
      double z = (ref_load(&x, t * h + i) - middle) * scale, dyi = ref_load(&dy, t * h + i);
      double dz = gain_of(call, &g, i) * dyi;
      mean_dz += dz / (double)h;
      mean_dz_z += dz * z / (double)h;
      dg_sums[i] += dyi * z;
      db_sums[i] += dyi;
    }
    for (int64_t i = 0; i < h; i++) {
      double z = (ref_load(&x, t * h + i) - middle) * scale;
      double dz = gain_of(call, &g, i) * ref_load(&dy, t * h + i);
      ref_store(&dx, t * h + i, scale * (dz - mean_dz - z * mean_dz_z));
    }
  }
  if (call->operator->n_out<2) return;
  ref_operand dg = ref_out(call, 1);
  bool accumulate = ref_int(call, NX_layer_norm_grad_accumulate);
  for (int64_t i = 0; i < h; i++) ref_store_sum(&dg, i, dg_sums[i], accumulate);
  if (call->operator->n_out<3) return;
  ref_operand db = ref_out(call, 2);
  for (int64_t i = 0; i < h; i++) ref_store_sum(&db, i, db_sums[i], accumulate);
}
