/* SPDX-License-Identifier: Apache-2.0 */
/* Norms: a group for each row; gradients of gains are sums of columns. */
#include "kernels/norm.h"

#define GAIN(g) ((g) + (A_zero_centred ? 1.0f : 0.0f))

#ifdef IS_rms_norm
kernel void rms_norm(OPERANDS) {
  local float room[LOCAL];
  long t = get_group_id(0), h = XDIM(0, 3);
  float squares = 0;
  for (long i = get_local_id(0); i < h; i += LOCAL) squares += X0(t * h + i) * X0(t * h + i);
  squares = group_sum(squares, room);
  float scale = (float)nxk_rstd(squares, squares / (float)h, A_epsilon);
  if (get_local_id(0) == 0) SET_Y1(t, scale);
  for (long i = get_local_id(0); i < h; i += LOCAL) SET_Y0(t * h + i, X0(t * h + i) * scale * GAIN(X1(i)));
}
#endif

#ifdef IS_rms_norm_grad
kernel void rms_norm_grad(OPERANDS) {
  local float room[LOCAL];
  long t = get_group_id(0), h = XDIM(0, 3);
  float scale = X3(t), mean = 0;
  for (long i = get_local_id(0); i < h; i += LOCAL) mean += GAIN(X2(i)) * X0(t * h + i) * X1(t * h + i);
  mean = group_sum(mean, room) / (float)h;
  for (long i = get_local_id(0); i < h; i += LOCAL)
    SET_Y0(t * h + i, scale * (GAIN(X2(i)) * X0(t * h + i) - X1(t * h + i) * scale * scale * mean));
}

#if N_OUT > 1
#include "kernels/opencl/programs/columns.cl"

kernel void rms_norm_gain(OPERANDS) {
  long h = XDIM(0, 3);
  COLUMN_PLACE(h, XN(3))
  float sum = 0;
  if (i >= h) return;
  for (long t = begin; t < end; t++) sum += X0(t * h + i) * X1(t * h + i) * X3(t);
  ((global float *)scratch)[block * h + i] = sum;
}

kernel void rms_norm_total(OPERANDS) {
  long i = get_global_id(0), h = XDIM(0, 3);
  if (i >= h) return;
  float sum = column_total((global const float *)scratch, i, h, XN(3));
  SET_Y1(i, A_accumulate ? Y1(i) + sum : sum);
}
#endif
#endif

#ifdef IS_layer_norm
kernel void layer_norm(OPERANDS) {
  local float room[LOCAL];
  long t = get_group_id(0), h = XDIM(0, 3);
  float sum = 0, squares = 0;
  for (long i = get_local_id(0); i < h; i += LOCAL) sum += X0(t * h + i);
  float middle = group_sum(sum, room) / (float)h;
  for (long i = get_local_id(0); i < h; i += LOCAL)
    squares += (X0(t * h + i) - middle) * (X0(t * h + i) - middle);
  squares = group_sum(squares, room);
  float scale = (float)nxk_rstd(squares, squares / (float)h, A_epsilon);
  if (get_local_id(0) == 0) SET_Y1(t, middle), SET_Y2(t, scale);
  for (long i = get_local_id(0); i < h; i += LOCAL) {
    float value = (X0(t * h + i) - middle) * scale * GAIN(X1(i));
#if N_IN > 2
    value += X2(i);
#endif
    SET_Y0(t * h + i, value);
  }
}
#endif

#ifdef IS_layer_norm_grad
kernel void layer_norm_grad(OPERANDS) {
  local float room[LOCAL];
  long t = get_group_id(0), h = XDIM(0, 3);
  float middle = X3(t), scale = X4(t), mean = 0, mean_z = 0;
  for (long i = get_local_id(0); i < h; i += LOCAL) {
    float dz = GAIN(X2(i)) * X0(t * h + i);
    mean += dz;
    mean_z += dz * (X1(t * h + i) - middle) * scale;
  }
  mean = group_sum(mean, room) / (float)h;
  mean_z = group_sum(mean_z, room) / (float)h;
  for (long i = get_local_id(0); i < h; i += LOCAL) {
    float z = (X1(t * h + i) - middle) * scale;
    SET_Y0(t * h + i, scale * (GAIN(X2(i)) * X0(t * h + i) - mean - z * mean_z));
  }
}

#if N_OUT > 1
#include "kernels/opencl/programs/columns.cl"

kernel void layer_norm_gain(OPERANDS) {
  long h = XDIM(0, 3);
  COLUMN_PLACE(h, XN(3))
  global float *dgs = (global float *)scratch, *dbs = dgs + SECOND(h, XN(3));
  float dg = 0, db = 0;
  if (i >= h) return;
  for (long t = begin; t < end; t++) {
    float dy = X0(t * h + i);
    dg += dy * (X1(t * h + i) - X3(t)) * X4(t);
    db += dy;
  }
  dgs[block * h + i] = dg, dbs[block * h + i] = db;
}

kernel void layer_norm_total(OPERANDS) {
  long i = get_global_id(0), h = XDIM(0, 3);
  global const float *dgs = (global const float *)scratch, *dbs = dgs + SECOND(h, XN(3));
  if (i >= h) return;
  float dg = column_total(dgs, i, h, XN(3)), db = column_total(dbs, i, h, XN(3));
  SET_Y1(i, A_accumulate ? Y1(i) + dg : dg);
#if N_OUT > 2
  SET_Y2(i, A_accumulate ? Y2(i) + db : db);
#endif
}
#endif
#endif

#ifdef IS_scale_norm
kernel void scale_norm(OPERANDS) {
  local float room[LOCAL];
  long t = get_group_id(0), h = XDIM(0, 3);
  float squares = 0;
  for (long i = get_local_id(0); i < h; i += LOCAL) squares += X0(t * h + i) * X0(t * h + i);
  float length = sqrt(group_sum(squares, room)), least = (float)A_epsilon;
  float factor = 1 / (length < least ? least : length);
  if (get_local_id(0) == 0) SET_Y1(t, factor);
  for (long i = get_local_id(0); i < h; i += LOCAL) SET_Y0(t * h + i, X1(0) * factor * X0(t * h + i));
}
#endif

#ifdef IS_scale_norm_grad
/* scratch: what each row adds to the gradient of the gain */
kernel void scale_norm_grad(OPERANDS) {
  local float room[LOCAL];
  long t = get_group_id(0), h = XDIM(0, 3);
  float squares = 0, product = 0, factor = X3(t);
  for (long i = get_local_id(0); i < h; i += LOCAL) {
    squares += X1(t * h + i) * X1(t * h + i);
    product += X0(t * h + i) * X1(t * h + i);
  }
  bool held = sqrt(group_sum(squares, room)) < (float)A_epsilon;
  product = group_sum(product, room);
  float back = held ? 0 : factor * factor * product;
  for (long i = get_local_id(0); i < h; i += LOCAL)
    SET_Y0(t * h + i, X2(0) * factor * (X0(t * h + i) - back * X1(t * h + i)));
  if (get_local_id(0) == 0) ((global float *)scratch)[t] = factor * product;
}

#if N_OUT > 1
kernel void scale_norm_gain(OPERANDS) {
  local float room[LOCAL];
  long n_rows = XN(3);
  float sum = 0;
  for (long t = get_local_id(0); t < n_rows; t += LOCAL) sum += ((global const float *)scratch)[t];
  sum = group_sum(sum, room);
  if (get_local_id(0) == 0) SET_Y1(0, A_accumulate ? Y1(0) + sum : sum);
}
#endif
#endif
