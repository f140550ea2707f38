/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernels: what each COMPUTE operator of ops.def means.
 *
 * A kernel sees its operands as numbers: any float type is loaded as a double, sums are kept in doubles, and
 * a result is rounded once, when it is stored. With f64 operands nothing is rounded, which is how gradients
 * are tested. Operands are dense; element i of [A,B,C] is i = (a B + b) C + c. Workspace is one buffer of the
 * device, as large as the greediest bound kernel asks for; nothing in it lives from one kernel to the
 * next. */
#ifndef REF_REF_H
#define REF_REF_H

#include "kernels/backend.h"
#include "schema/bf16.h"
#include "schema/f16.h"

#include <stdint.h>

typedef struct ref_operand {
  nx_dtype dtype;
  void *data;
  int64_t n_elements;
  const int64_t *dims;
  uint32_t n_dims;
} ref_operand;

typedef struct ref_call {
  const nxk_operator *operator;
  const nxk_frame *frame;
  double *work;
} ref_call;

static inline ref_operand ref_argument(const ref_call *call, uint32_t index) {
  const nxk_tensor *tensor = &call->operator->args[index];
  return (ref_operand){tensor->dtype, nxk_address(tensor, call->frame), nxk_n_elements(tensor), tensor->dims,
                       tensor->n_dims};
}

static inline ref_operand ref_in(const ref_call *call, uint32_t index) {
  return ref_argument(call, index);
}

static inline ref_operand ref_out(const ref_call *call, uint32_t index) {
  return ref_argument(call, call->operator->n_in + index);
}

static inline int64_t ref_int(const ref_call *call, uint32_t attribute) {
  return nxk_attr_int(&call->operator->attrs[attribute], call->frame);
}

static inline double ref_real(const ref_call *call, uint32_t attribute) {
  return call->operator->attrs[attribute].real;
}

static inline int64_t ref_last_dim(const ref_operand *x) {
  return x->dims[x->n_dims - 1];
}

static inline double ref_load(const ref_operand *x, int64_t i) {
  switch (x->dtype) {
  case NX_f32: return ((const float *)x->data)[i];
  case NX_bf16: return nx_bf16_to_float(((const uint16_t *)x->data)[i]);
  case NX_f16: return nx_f16_to_float(((const uint16_t *)x->data)[i]);
  case NX_i32: return ((const int32_t *)x->data)[i];
  case NX_u8: return ((const uint8_t *)x->data)[i];
  case NX_i64: return (double)((const int64_t *)x->data)[i];
  default: return ((const double *)x->data)[i];
  }
}

static inline void ref_store(const ref_operand *y, int64_t i, double value) {
  switch (y->dtype) {
  case NX_f32: ((float *)y->data)[i] = (float)value; return;
  case NX_bf16: ((uint16_t *)y->data)[i] = nx_bf16_from_double(value); return;
  case NX_f16: ((uint16_t *)y->data)[i] = nx_f16_from_double(value); return;
  case NX_i32: ((int32_t *)y->data)[i] = (int32_t)value; return;
  case NX_i64: ((int64_t *)y->data)[i] = (int64_t)value; return;
  default: ((double *)y->data)[i] = value; return;
  }
}

/* Of token t, from the statistics of all parts of the vocabulary (ref_loss.c); and the logit of its label. */
double ref_log_sum_exp(const ref_operand *stats, int64_t t, int64_t n_tokens, int64_t n_shards,
                       double *label);

/* y[i] = value, or y[i] + value where `accumulate`. */
static inline void ref_store_sum(const ref_operand *y, int64_t i, double value, bool accumulate) {
  ref_store(y, i, accumulate ? ref_load(y, i) + value : value);
}

/* row[k] = x[first + k stride], for k below n. */
void ref_load_row(const ref_operand *x, int64_t first, int64_t stride, int64_t n, double *row);
void ref_store_row(const ref_operand *y, int64_t first, int64_t n, const double *row);

static inline int64_t ref_index(const ref_operand *x, int64_t i) {
  return x->dtype == NX_i32 ? ((const int32_t *)x->data)[i] : ((const int64_t *)x->data)[i];
}

#define OP(number, name, class, signature, meaning) void ref_##name(const ref_call *call);
#define COLLECTIVE(number, name, signature, meaning)
#include "schema/ops.def"

/* Doubles of workspace, for the operators that need any. */
int64_t ref_update_tensor_work(const nxk_operator *operator);
int64_t ref_soap_work(const nxk_operator *operator);
int64_t ref_heads_work(const nxk_operator *operator);
int64_t ref_merge_latent_work(const nxk_operator *operator);
int64_t ref_attention_work(const nxk_operator *operator);
int64_t ref_attention_grad_work(const nxk_operator *operator);
int64_t ref_attention_relative_grad_work(const nxk_operator *operator);
int64_t ref_moe_route_work(const nxk_operator *operator);
int64_t ref_moe_quantile_work(const nxk_operator *operator);
int64_t ref_moe_route_grad_work(const nxk_operator *operator);
int64_t ref_moe_index_work(const nxk_operator *operator);
int64_t ref_grouped_matmul_work(const nxk_operator *operator);
int64_t ref_grouped_bias_grad_work(const nxk_operator *operator);
int64_t ref_grouped_wgrad_work(const nxk_operator *operator);

#endif
