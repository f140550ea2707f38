/* SPDX-License-Identifier: Apache-2.0 */
/* The matmul family: one oneDNN product where it reads the operands' types fast, else fp32 products of blocks.
 *
 * The blocked form serves bf16 where the machine multiplies it slowly, and mixed types. A block of each operand is
 * widened into scratch (at most BLOCK_M x BLOCK_K, BLOCK_K x BLOCK_N), multiplied in fp32, summed over k in an fp32
 * block of c and rounded once. */
#include "kernels/cpu/gemm.h"

#include <string.h>

enum { BLOCK_M = 1024, BLOCK_N = 2048, BLOCK_K = 2048, PACK_ROWS = 256 };

typedef struct matmul_shape {
  int64_t m, n, k;
  bool trans_a, trans_b, accumulate, has_bias;
} matmul_shape;

typedef struct matmul_state {
  matmul_shape shape;
  const cpu_gemm *direct; /* NULL: blocked */
  /* [last of m][last of n][last of k][first of k, without accumulation] */
  const cpu_gemm *blocks[2][2][2][2];
  int64_t block_m, block_n, block_k;
  uint64_t a_at, b_at, c_at, bias_at; /* places in scratch, after the products' own */
} matmul_state;

static bool shape_read(const nxk_kernel *kernel, matmul_shape *shape) {
  const nxk_tensor *a = cpu_in(kernel, 0), *b = cpu_in(kernel, 1), *c = cpu_out(kernel, 0);
  for (uint32_t attr = 0; attr < 3; attr++)
    if (kernel->operator.attrs[attr].kind != NXK_INT) return false;
  *shape = (matmul_shape){.m = cpu_rows(c), .n = cpu_columns(c)};
  shape->trans_a = kernel->operator.attrs[NX_matmul_trans_a].integer;
  shape->trans_b = kernel->operator.attrs[NX_matmul_trans_b].integer;
  shape->accumulate = kernel->operator.attrs[NX_matmul_accumulate].integer;
  shape->has_bias = kernel->operator.n_in > 2;
  shape->k = shape->trans_a ? cpu_rows(a) : cpu_columns(a);
  return (shape->trans_a ? cpu_columns(a) : cpu_rows(a)) == shape->m &&
         (shape->trans_b ? cpu_columns(b) : cpu_rows(b)) == shape->k &&
         (shape->trans_b ? cpu_rows(b) : cpu_columns(b)) == shape->n &&
         (!shape->has_bias || nxk_n_elements(cpu_in(kernel, 2)) == shape->n);
}

static bool matmul_bind_direct(nxk_kernel *kernel, matmul_state *state, nxk_fault *fault) {
  const matmul_shape *shape = &state->shape;
  cpu_gemm_form form = {
    .m = shape->m, .n = shape->n, .k = shape->k,
    .a_stride = shape->trans_a ? shape->m : shape->k, .b_stride = shape->trans_b ? shape->k : shape->n,
    .c_stride = shape->n, .trans_a = shape->trans_a, .trans_b = shape->trans_b, .accumulate = shape->accumulate,
    .type = cpu_in(kernel, 0)->dtype, .c_type = cpu_out(kernel, 0)->dtype,
    .bias_type = shape->has_bias ? cpu_in(kernel, 2)->dtype : 0};
  cpu_gemm *gemm = cpu_gemm_find(kernel->device, &form, fault);
  if (!gemm || !cpu_reserve(kernel->device, cpu_gemm_scratch_bytes(gemm), "matmul", fault)) return false;
  state->direct = gemm;
  return true;
}

static int64_t block_size(int64_t n, int64_t limit) {
  return n < limit ? n : limit;
}

/* The extent of the last (`last`) or of every other block. */
static int64_t block_extent(int64_t n, int64_t block, int last) {
  return last ? n - (n - 1) / block * block : block;
}

static bool matmul_bind_blocks(nxk_kernel *kernel, matmul_state *state, uint64_t *scratch_bytes, nxk_fault *fault) {
  const matmul_shape *shape = &state->shape;
  for (int i = 0; i < 16; i++) {
    int last_m = i >> 3, last_n = i >> 2 & 1, last_k = i >> 1 & 1, first = i & 1;
    int64_t m = block_extent(shape->m, state->block_m, last_m), n = block_extent(shape->n, state->block_n, last_n);
    int64_t k = block_extent(shape->k, state->block_k, last_k);
    cpu_gemm_form form = {.m = m, .n = n, .k = k, .a_stride = shape->trans_a ? m : k,
                          .b_stride = shape->trans_b ? k : n, .c_stride = n, .trans_a = shape->trans_a,
                          .trans_b = shape->trans_b, .accumulate = !first || shape->accumulate, .type = NX_f32,
                          .c_type = NX_f32, .bias_type = first && shape->has_bias ? NX_f32 : 0};
    cpu_gemm *gemm = cpu_gemm_find(kernel->device, &form, fault);
    if (!gemm) return fault->text[0] ? false : cpu_fail(fault, "oneDNN has no fp32 product");
    state->blocks[last_m][last_n][last_k][first] = gemm;
    if (cpu_gemm_scratch_bytes(gemm) > *scratch_bytes) *scratch_bytes = cpu_gemm_scratch_bytes(gemm);
  }
  return true;
}

static bool matmul_bind_blocked(nxk_kernel *kernel, matmul_state *state, nxk_fault *fault) {
  state->block_m = block_size(state->shape.m, BLOCK_M);
  state->block_n = block_size(state->shape.n, BLOCK_N);
  state->block_k = block_size(state->shape.k, BLOCK_K);
  uint64_t scratch_bytes = 0;
  if (!matmul_bind_blocks(kernel, state, &scratch_bytes, fault)) return false;
  state->a_at = scratch_bytes;
  state->b_at = state->a_at + cpu_align(4 * (uint64_t)(state->block_m * state->block_k));
  state->c_at = state->b_at + cpu_align(4 * (uint64_t)(state->block_k * state->block_n));
  state->bias_at = state->c_at + cpu_align(4 * (uint64_t)(state->block_m * state->block_n));
  return cpu_reserve(kernel->device, state->bias_at + cpu_align(4 * (uint64_t)state->block_n), "matmul", fault);
}

static bool operands_are_native(const nxk_kernel *kernel) {
  const nxk_tensor *a = cpu_in(kernel, 0), *b = cpu_in(kernel, 1), *c = cpu_out(kernel, 0);
  if (a->dtype != b->dtype) return false;
  if (a->dtype == NX_bf16) return kernel->device->native_bf16;
  return c->dtype == NX_f32 && (kernel->operator.n_in < 3 || cpu_in(kernel, 2)->dtype == NX_f32);
}

bool cpu_matmul_bind(nxk_kernel *kernel, nxk_fault *fault) {
  for (uint32_t i = 0; i < kernel->operator.n_in + 1; i++)
    if (!cpu_is_real(&kernel->operator.args[i])) return false;
  matmul_state *state = cpu_keep(kernel->device, sizeof *state, "matmul", fault);
  if (!state) return false;
  if (!shape_read(kernel, &state->shape)) return false;
  kernel->state = state;
  if (operands_are_native(kernel)) {
    if (matmul_bind_direct(kernel, state, fault)) return true;
    if (fault->text[0]) return false;
  }
  return matmul_bind_blocked(kernel, state, fault);
}

typedef struct matmul_run {
  const nxk_kernel *kernel;
  const matmul_state *state;
  const char *a, *b, *bias;
  char *c;
} matmul_run;

static uint64_t type_bytes(const nxk_tensor *tensor) {
  return tensor->dtype == NX_f32 ? 4 : 2;
}

/* Widens the stored box of an operand that covers rows [i, i + rows) and columns [j, j + columns) of op(operand). */
static void block_widen(const nxk_kernel *kernel, const nxk_tensor *tensor, const char *data, bool transposed,
                        int64_t i, int64_t j, int64_t rows, int64_t columns, char *place) {
  int64_t stride = cpu_columns(tensor), n_rows = transposed ? columns : rows;
  int64_t row = transposed ? j : i, column = transposed ? i : j, n_columns = transposed ? rows : columns;
  kernel->device->table->convert_box(kernel->device, place, NX_f32, n_columns,
                                     data + type_bytes(tensor) * (uint64_t)(row * stride + column), tensor->dtype,
                                     stride, n_rows, n_columns);
}

static void block_run(const matmul_run *run, int64_t i, int64_t j) {
  const matmul_state *state = run->state;
  const matmul_shape *shape = &state->shape;
  const nxk_device *device = run->kernel->device;
  const nxk_tensor *c = cpu_out(run->kernel, 0);
  char *scratch = device->scratch, *c_block = scratch + state->c_at;
  int last_m = i + state->block_m >= shape->m, last_n = j + state->block_n >= shape->n;
  int64_t m = last_m ? shape->m - i : state->block_m, n = last_n ? shape->n - j : state->block_n;
  char *c_place = run->c + type_bytes(c) * (uint64_t)(i * shape->n + j);
  if (shape->accumulate) device->table->convert_box(device, c_block, NX_f32, n, c_place, c->dtype, shape->n, m, n);
  if (shape->has_bias) {
    const nxk_tensor *bias = cpu_in(run->kernel, 2);
    device->table->convert_box(device, scratch + state->bias_at, NX_f32, n,
                               run->bias + type_bytes(bias) * (uint64_t)j, bias->dtype, shape->n, 1, n);
  }
  for (int64_t p = 0; p < shape->k; p += state->block_k) {
    int last_k = p + state->block_k >= shape->k;
    int64_t k = last_k ? shape->k - p : state->block_k;
    block_widen(run->kernel, cpu_in(run->kernel, 0), run->a, shape->trans_a, i, p, m, k, scratch + state->a_at);
    block_widen(run->kernel, cpu_in(run->kernel, 1), run->b, shape->trans_b, p, j, k, n, scratch + state->b_at);
    cpu_gemm_run(device, state->blocks[last_m][last_n][last_k][p == 0], scratch + state->a_at,
                 scratch + state->b_at, scratch + state->bias_at, c_block, scratch);
  }
  device->table->convert_box(device, c_place, c->dtype, shape->n, c_block, NX_f32, n, m, n);
}

void cpu_matmul_run(const nxk_kernel *kernel, const nxk_frame *frame) {
  const matmul_state *state = kernel->state;
  matmul_run run = {kernel, state, cpu_in_at(kernel, frame, 0), cpu_in_at(kernel, frame, 1), NULL,
                    cpu_out_at(kernel, frame, 0)};
  if (state->shape.has_bias) run.bias = cpu_in_at(kernel, frame, 2);
  if (state->direct) {
    cpu_gemm_run(kernel->device, state->direct, run.a, run.b, run.bias, run.c, kernel->device->scratch);
    return;
  }
  for (int64_t j = 0; j < state->shape.n; j += state->block_n)
    for (int64_t i = 0; i < state->shape.m; i += state->block_m) block_run(&run, i, j);
}
