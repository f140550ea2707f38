/* SPDX-License-Identifier: Apache-2.0 */
/* The fast CPU backend: its device, kernels and tables, shared by the files of this folder.
 *
 * A device owns everything: the kernels bound to it, the tables they keep (cpu_keep) and one scratch block as
 * large as the greediest kernel needs (cpu_reserve), for the kernels of a rank run one after another. All of
 * it counts against the plan's workspace ceiling and nothing of it grows after the last bind.
 *
 * Families of operators are compiled from the same source for AVX2, for AVX-512, and for AVX-512 with the
 * instructions of bf16; CPU_NAME gives each copy its own symbols, and a device reads the table of its target.
 * A kernel computes in fp32 whatever its operands' types are, and splits its work by thread number alone:
 * equal bits for equal thread counts. */
#ifndef CPU_H
#define CPU_H

#include "kernels/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef CPU_SUFFIX
#define CPU_JOIN2(a, b) a##_##b
#define CPU_JOIN(a, b) CPU_JOIN2(a, b)
#define CPU_NAME(name) CPU_JOIN(name, CPU_SUFFIX)
#endif

enum { CPU_ALIGNMENT = 64 };

typedef struct cpu_gemm cpu_gemm;
typedef struct cpu_table cpu_table;
typedef struct cpu_products cpu_products;

typedef void (*cpu_run)(const nxk_kernel *kernel, const nxk_frame *frame);
/* False with an empty fault: declined. Sets nothing in the kernel but `state`. */
typedef bool (*cpu_bind)(nxk_kernel *kernel, nxk_fault *fault);

typedef struct cpu_family {
  cpu_bind bind;
  cpu_run run;
} cpu_family;

struct nxk_kernel {
  nxk_device *device;
  cpu_run run;
  void *state; /* what bind made, kept by the device */
  nxk_operator operator;
};

/* A block of memory that the device frees when it is closed. */
typedef struct cpu_block {
  struct cpu_block *next;
  size_t n_bytes; /* this header included */
} cpu_block;

struct nxk_device {
  uint32_t n_threads, target;
  bool native_bf16; /* oneDNN multiplies bf16 faster than it multiplies fp32 here */
  uint64_t ceiling_bytes, kept_bytes, scratch_bytes;
  char *scratch;
  cpu_block *blocks;
  char *slab; /* what is left of the block that small things share */
  uint64_t slab_left;
  const cpu_table *table;
  const cpu_products *products; /* where they are faster than oneDNN's. NULL: nowhere */
  const cpu_table *faster; /* asked first; it has few families, and they take few types. NULL: none */
  cpu_gemm *gemms;         /* one per shape */
  struct cpu_rope *ropes;  /* one per form of the rotary table */
  struct dnnl_engine *engine;
  struct dnnl_stream *stream;
};

/* What a target's copy of the families offers. */
struct cpu_table {
  cpu_family families[NX_OP_END];
  void (*sum)(const nxk_device *device, void *y, nx_dtype y_dtype, const void *const *x, uint32_t n_sources,
              nx_dtype x_dtype, uint64_t n_elements);
  /* A box of n_rows x n_columns from rows `x_stride` elements apart to rows `y_stride` apart. */
  void (*convert_box)(const nxk_device *device, void *y, nx_dtype y_dtype, int64_t y_stride, const void *x,
                      nx_dtype x_dtype, int64_t x_stride, int64_t n_rows, int64_t n_columns);
};

extern const cpu_table cpu_table_avx2, cpu_table_avx512, cpu_table_avx512bf16, cpu_table_bf16, cpu_table_amx;

/* Zeroed memory that lives as long as the device; NULL with a fault where the ceiling or memory forbids
 * it. */
void *cpu_keep(nxk_device *device, uint64_t n_bytes, const char *what, nxk_fault *fault);
/* Makes device->scratch at least that large. Its address may change at every bind: read it when running. */
bool cpu_reserve(nxk_device *device, uint64_t n_bytes, const char *what, nxk_fault *fault);
/* What schema/workspace.c says of the operator. */
bool cpu_reserve_said(nxk_kernel *kernel, nxk_fault *fault);
/* Pages of a device, freed with it, behind CPU_ALIGNMENT bytes of their own. NULL: there are none. */
cpu_block *cpu_block_new(nxk_device *device, uint64_t n_bytes);
/* What cpu_block_new, or cpu_reserve, has mapped for so many bytes. */
void cpu_unmap(void *pages, uint64_t n_bytes);
/* Whether cpu_reserve would succeed. */
bool cpu_fits(const nxk_device *device, uint64_t n_bytes);
/* Memory that oneDNN holds for us. */
bool cpu_count(nxk_device *device, uint64_t n_bytes, const char *what, nxk_fault *fault);
bool cpu_fail(nxk_fault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* False with a message where this machine can not run the target. */
bool cpu_target_check(uint32_t target, nxk_fault *fault);
bool cpu_has_fast_bf16(uint32_t target);
/* Linux gives AMX's registers to a process that asks. */
bool cpu_amx_permit(nxk_fault *fault);

/* oneDNN's half of the device, and the matmul family. */
bool cpu_dnnl_open(nxk_device *device, nxk_fault *fault);
void cpu_dnnl_close(nxk_device *device);
bool cpu_matmul_bind(nxk_kernel *kernel, nxk_fault *fault);
void cpu_matmul_run(const nxk_kernel *kernel, const nxk_frame *frame);
/* A bound product on other operands of the same shapes. It uses the first scratch_bytes of the device's
 * scratch. */
void cpu_matmul_apply(const nxk_kernel *kernel, const void *a, const void *b, const void *bias, void *c);
uint64_t cpu_matmul_scratch_bytes(const nxk_kernel *kernel);
/* Products of each expert's rows with its own matrix, made of matmul's. */
bool cpu_grouped_matmul_bind(nxk_kernel *kernel, nxk_fault *fault);
void cpu_grouped_matmul_run(const nxk_kernel *kernel, const nxk_frame *frame);
bool cpu_grouped_wgrad_bind(nxk_kernel *kernel, nxk_fault *fault);
void cpu_grouped_wgrad_run(const nxk_kernel *kernel, const nxk_frame *frame);
bool cpu_muon_bind(nxk_kernel *kernel, nxk_fault *fault);
void cpu_muon_run(const nxk_kernel *kernel, const nxk_frame *frame);

static inline uint64_t cpu_align(uint64_t n_bytes) {
  return (n_bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

static inline const nxk_tensor *cpu_in(const nxk_kernel *kernel, uint32_t index) {
  return &kernel->operator.args[index];
}

static inline const nxk_tensor *cpu_out(const nxk_kernel *kernel, uint32_t index) {
  return &kernel->operator.args[kernel->operator.n_in + index];
}

static inline void *cpu_in_at(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t index) {
  return nxk_address(cpu_in(kernel, index), frame);
}

static inline void *cpu_out_at(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t index) {
  return nxk_address(cpu_out(kernel, index), frame);
}

static inline int64_t cpu_int(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t attr) {
  return nxk_attr_int(&kernel->operator.attrs[attr], frame);
}

static inline double cpu_real(const nxk_kernel *kernel, uint32_t attr) {
  return kernel->operator.attrs[attr].real;
}

/* The last dimension, and the product of the others. */
static inline int64_t cpu_columns(const nxk_tensor *tensor) {
  return tensor->n_dims ? tensor->dims[tensor->n_dims - 1] : 1;
}

static inline int64_t cpu_rows(const nxk_tensor *tensor) {
  int64_t columns = cpu_columns(tensor);
  return columns ? nxk_n_elements(tensor) / columns : 0;
}

static inline bool cpu_is_real(const nxk_tensor *tensor) {
  return nx_dtype_is_real(tensor->dtype);
}

/* A thread's share of n items in whole units; the shares are in thread order and differ by at most one
 * unit. */
typedef struct cpu_span {
  int64_t begin, end;
} cpu_span;

static inline cpu_span cpu_share(int64_t n_items, int64_t unit, int64_t index, int64_t n_shares) {
  int64_t n_units = (n_items + unit - 1) / unit;
  int64_t begin = n_units * index / n_shares * unit, end = n_units * (index + 1) / n_shares * unit;
  return (cpu_span){begin < n_items ? begin : n_items, end < n_items ? end : n_items};
}

#endif
