/* SPDX-License-Identifier: Apache-2.0 */
/* The backend `ref`: binds ops.def to the plain kernels. Kernels run at once, in the calling thread. */
#include "kernels/ref/ref.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

struct nxk_kernel {
  nxk_operator operator;
  nxk_kernel *next;
};

typedef struct ref_arena {
  void *base;        /* NULL: not open */
  uint64_t n_mapped; /* 0: memory of a shared window */
} ref_arena;

struct nxk_device {
  ref_arena arenas[NX_N_ARENAS];
  uint64_t workspace_limit, workspace_bytes;
  double *work;
  nxk_kernel *kernels;
};

typedef void ref_kernel(const ref_call *call);
typedef int64_t ref_work(const nxk_operator *operator);

static ref_kernel *const kernels[NX_OP_END] = {
#define OP(number, name, class, signature, meaning) [NX_OP_##name] = ref_##name,
#define COLLECTIVE(number, name, signature, meaning)
#include "schema/ops.def"
};

/* Two rows of the first output. */
static int64_t two_rows_work(const nxk_operator *operator) {
  const nxk_tensor *first_out = &operator->args[operator->n_in];
  return 2 * first_out->dims[first_out->n_dims - 1];
}

static ref_work *const works[NX_OP_END] = {
    [NX_OP_bias_grad] = two_rows_work,
    [NX_OP_embedding_grad] = two_rows_work,
    [NX_OP_position_grad] = two_rows_work,
    [NX_OP_rms_norm_grad] = two_rows_work,
    [NX_OP_layer_norm_grad] = two_rows_work,
    [NX_OP_split_qkv] = ref_heads_work,
    [NX_OP_merge_qkv] = ref_heads_work,
    [NX_OP_split_heads] = ref_heads_work,
    [NX_OP_merge_heads] = ref_heads_work,
    [NX_OP_rotate] = ref_heads_work,
    [NX_OP_split_latent] = ref_heads_work,
    [NX_OP_merge_latent] = ref_merge_latent_work,
    [NX_OP_attention] = ref_attention_work,
    [NX_OP_attention_grad] = ref_attention_grad_work,
    [NX_OP_attention_relative] = ref_attention_work,
    [NX_OP_attention_relative_grad] = ref_attention_relative_grad_work,
    [NX_OP_attention_sparse] = ref_attention_work,
    [NX_OP_attention_sparse_grad] = ref_attention_grad_work,
    [NX_OP_moe_route] = ref_moe_route_work,
    [NX_OP_moe_route_grad] = ref_moe_route_grad_work,
    [NX_OP_moe_quantile] = ref_moe_quantile_work,
    [NX_OP_moe_index] = ref_moe_index_work,
    [NX_OP_grouped_matmul] = ref_grouped_matmul_work,
    [NX_OP_grouped_wgrad] = ref_grouped_wgrad_work,
    [NX_OP_grouped_bias_grad] = ref_grouped_bias_grad_work,
#define TENSOR(number, name, n_states, meaning) [NX_OP_##name] = ref_update_tensor_work,
#define MATRIX(number, name, n_states, meaning) [NX_OP_##name] = ref_update_tensor_work,
#include "schema/optimizers.def"
};

static bool device_open(const nxk_device_options *options, nxk_device **device, nxk_fault *fault) {
  *device = calloc(1, sizeof **device);
  if (!*device) {
    snprintf(fault->text, sizeof fault->text, "ref: out of memory");
    return false;
  }
  (*device)->workspace_limit = options->workspace_bytes;
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ and DAZ */
#endif
  return true;
}

static void device_close(nxk_device *device) {
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++)
    if (device->arenas[kind].n_mapped) munmap(device->arenas[kind].base, device->arenas[kind].n_mapped);
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
  ref_arena *arena = &device->arenas[kind];
  assert(!arena->base);
  arena->base = shared;
  if (!shared) {
    arena->n_mapped = n_bytes ? n_bytes : 1;
    void *pages = mmap(NULL, arena->n_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
      arena->n_mapped = 0;
      snprintf(fault->text, sizeof fault->text, "arena %s: %llu bytes: %s", nx_arena_name(kind),
               (unsigned long long)n_bytes, strerror(errno));
      return false;
    }
    arena->base = pages;
  }
  memset(arena->base, 0, n_bytes);
  *base = arena->base;
  return true;
}

/* Makes the device's workspace large enough for one more operator. */
static bool workspace_reserve(nxk_device *device, const nxk_operator *operator, nxk_fault *fault) {
  uint64_t n_bytes = works[operator->op] ? (uint64_t)works[operator->op](operator) * sizeof(double) : 0;
  if (n_bytes <= device->workspace_bytes) return true;
  bool allowed = device->workspace_limit == 0 || n_bytes <= device->workspace_limit;
  double *work = allowed ? malloc(n_bytes) : NULL;
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

/* Shapes were verified with the plan; some operators admit types that no kernel here loads. */
static bool types_known(const nxk_operator *operator, nxk_fault *fault) {
  for (uint32_t index = 0; index < operator->n_in + operator->n_out; index++) {
    uint32_t dtype = operator->args[index].dtype;
    if (nx_dtype_is_real(dtype) || dtype == NX_f64 || dtype == NX_i32 || dtype == NX_i64 || dtype == NX_u8)
      continue;
    snprintf(fault->text, sizeof fault->text, "ref: %s: no kernel for type %s",
             nx_op_find(operator->op)->name, nx_dtype_name(dtype));
    return false;
  }
  return true;
}

static bool kernel_bind(nxk_device *device, const nxk_operator *operator, nxk_kernel **kernel,
                        nxk_fault *fault) {
  if (!types_known(operator, fault) || !workspace_reserve(device, operator, fault)) return false;
  *kernel = malloc(sizeof **kernel);
  if (!*kernel) {
    snprintf(fault->text, sizeof fault->text, "ref: out of memory");
    return false;
  }
  **kernel = (nxk_kernel){*operator, device->kernels};
  device->kernels = *kernel;
  return true;
}

static void kernel_enqueue(nxk_device *device, nxk_kernel *kernel, const nxk_frame *frame) {
  kernels[kernel->operator.op](&(ref_call){&kernel->operator, frame, device->work});
}

static void device_sum(nxk_device *device, void *y, nx_dtype y_dtype, const void *const *x,
                       uint32_t n_sources, nx_dtype x_dtype, uint64_t n_elements) {
  (void)device;
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
    ref_store(&out, (int64_t)i, nx_dtype_is_real(x_dtype) ? narrow : wide);
  }
}

static uint64_t workspace_bytes(const nxk_device *device) {
  return device->workspace_bytes;
}

static void copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes) {
  (void)device;
  memcpy(destination, host, n_bytes);
}

static void copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes) {
  (void)device;
  memcpy(host, source, n_bytes);
}

const nxk_backend nxk_ref = {
    .name = "ref",
    .host_addressable = true,
    .open = device_open,
    .close = device_close,
    .arena_open = arena_open,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .bind = kernel_bind,
    .enqueue = kernel_enqueue,
    .sum = device_sum,
    .workspace_bytes = workspace_bytes,
};
