/* SPDX-License-Identifier: Apache-2.0 */
/* The backend `ref`: binds ops.def to the plain kernels. Kernels run at once, in the calling thread. */
#include "kernels/ref/ref.h"

#include "kernels/host.h"
#include "kernels/operator_check.h"

#include <stdio.h>
#include <stdlib.h>

struct nxk_kernel {
  nxk_operator operator;
  nxk_kernel *next;
};

struct nxk_device {
  nxk_host host;
  uint64_t workspace_limit, workspace_bytes;
  double *work;
  nxk_kernel *kernels;
};

typedef void ref_kernel(const ref_call *call);
typedef int64_t ref_work(const nxk_operator *operator);

static ref_kernel *const kernels[NX_OP_END] = {
#define OP(number, name, min_in, max_in, min_out, max_out, kind, meaning) REF_ROW_##kind(name)
#define ATTR(op, index, name, type, meaning)
#define REF_ROW_COMPUTE(name) [NX_OP_##name] = ref_##name,
#define REF_ROW_COMM(name)
#include "schema/ops.def"
#undef REF_ROW_COMPUTE
#undef REF_ROW_COMM
#undef OP
#undef ATTR
};

static ref_work *const works[NX_OP_END] = {
  [NX_OP_bias_grad] = ref_row_work,
  [NX_OP_embedding_grad] = ref_row_work,
  [NX_OP_position_grad] = ref_row_work,
  [NX_OP_rms_norm_grad] = ref_row_work,
  [NX_OP_layer_norm_grad] = ref_row_work,
  [NX_OP_split_qkv] = ref_heads_work,
  [NX_OP_merge_qkv] = ref_heads_work,
  [NX_OP_split_heads] = ref_heads_work,
  [NX_OP_merge_heads] = ref_heads_work,
  [NX_OP_attention] = ref_attention_work,
  [NX_OP_attention_grad] = ref_attention_grad_work,
};

int64_t ref_row_work(const nxk_operator *operator) {
  const nxk_tensor *first_out = &operator->args[operator->n_in];
  return 2 * first_out->dims[first_out->n_dims - 1];
}

void ref_load_row(const ref_operand *x, int64_t first, int64_t stride, int64_t n, double *row) {
  switch (x->dtype) {
  case NX_f32:
    for (int64_t k = 0; k < n; k++) row[k] = ((const float *)x->data)[first + k * stride];
    return;
  case NX_bf16:
    for (int64_t k = 0; k < n; k++) row[k] = nx_bf16_to_float(((const uint16_t *)x->data)[first + k * stride]);
    return;
  default:
    for (int64_t k = 0; k < n; k++) row[k] = ref_load(x, first + k * stride);
    return;
  }
}

void ref_store_row(const ref_operand *y, int64_t first, int64_t n, const double *row) {
  for (int64_t k = 0; k < n; k++) ref_store(y, first + k, row[k]);
}

static bool device_open(const nxk_device_options *options, nxk_device **device, nxk_fault *fault) {
  *device = calloc(1, sizeof **device);
  if (!*device) {
    snprintf(fault->text, sizeof fault->text, "ref: out of memory");
    return false;
  }
  (*device)->workspace_limit = options->workspace_bytes;
  nxk_host_flush_denormals();
  return true;
}

static void device_close(nxk_device *device) {
  nxk_host_close(&device->host);
  while (device->kernels) {
    nxk_kernel *kernel = device->kernels;
    device->kernels = kernel->next;
    free(kernel);
  }
  free(device->work);
  free(device);
}

static bool arena_open(nxk_device *device, nx_arena_kind kind, uint64_t n_bytes, void *shared, void **base,
                       nxk_fault *fault) {
  return nxk_host_arena_open(&device->host, kind, n_bytes, shared, base, fault);
}

/* Makes the device's workspace large enough for one more operator. */
static bool workspace_reserve(nxk_device *device, const nxk_operator *operator, nxk_fault *fault) {
  uint64_t n_bytes = works[operator->op] ? (uint64_t)works[operator->op](operator) * sizeof(double) : 0;
  if (n_bytes <= device->workspace_bytes) return true;
  double *work = n_bytes <= device->workspace_limit ? malloc(n_bytes) : NULL;
  if (!work) {
    snprintf(fault->text, sizeof fault->text, "%s: needs %llu bytes of workspace, the limit is %llu",
             nx_op_find(operator->op)->name, (unsigned long long)n_bytes,
             (unsigned long long)device->workspace_limit);
    return false;
  }
  free(device->work);
  device->work = work;
  device->workspace_bytes = n_bytes;
  return true;
}

static bool kernel_bind(nxk_device *device, const nxk_operator *operator, nxk_kernel **kernel, nxk_fault *fault) {
  if (!nxk_operator_check(operator, fault) || !workspace_reserve(device, operator, fault)) return false;
  *kernel = malloc(sizeof **kernel);
  if (!*kernel) {
    snprintf(fault->text, sizeof fault->text, "ref: out of memory");
    return false;
  }
  **kernel = (nxk_kernel){*operator, device->kernels};
  device->kernels = *kernel;
  return true;
}

static void kernel_enqueue(nxk_device *device, nxk_stream *stream, nxk_kernel *kernel, const nxk_frame *frame) {
  (void)stream;
  kernels[kernel->operator.op](&(ref_call){&kernel->operator, frame, device->work});
}

static void device_sum(nxk_device *device, nxk_stream *stream, void *y, nx_dtype y_dtype, const void *const *x,
                       uint32_t n_sources, nx_dtype x_dtype, uint64_t n_elements) {
  (void)device;
  (void)stream;
  ref_operand out = {.dtype = y_dtype, .data = y};
  for (uint64_t i = 0; i < n_elements; i++) {
    float narrow = 0;
    double wide = 0;
    for (uint32_t source = 0; source < n_sources; source++) {
      ref_operand in = {.dtype = x_dtype, .data = (void *)(uintptr_t)x[source]};
      double value = ref_load(&in, (int64_t)i);
      narrow = source ? narrow + (float)value : (float)value;
      wide = source ? wide + value : value;
    }
    ref_store(&out, (int64_t)i, x_dtype == NX_f32 || x_dtype == NX_bf16 ? narrow : wide);
  }
}

static uint64_t workspace_bytes(const nxk_device *device) {
  return device->workspace_bytes;
}

const nxk_backend nxk_ref = {
  .name = "ref",
  .host_addressable = true,
  .open = device_open,
  .close = device_close,
  .arena_open = arena_open,
  .copy_in = nxk_host_copy_in,
  .copy_out = nxk_host_copy_out,
  .bind = kernel_bind,
  .enqueue = kernel_enqueue,
  .sum = device_sum,
  .stream = nxk_host_stream,
  .event_record = nxk_host_event_record,
  .event_wait = nxk_host_event_wait,
  .synchronize = nxk_host_synchronize,
  .workspace_bytes = workspace_bytes,
};
