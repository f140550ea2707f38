/* SPDX-License-Identifier: Apache-2.0 */
/* The matmul family: oneDNN products of blocks of the operands, most often of one block that is everything.
 *
 * A product is made in bf16 where both operands are and the machine is fast in it, else in fp32. An operand
 * of another type than its product is widened block by block into scratch. A right side is packed first where
 * enough rows read it (a transposed one only for AMX, where packed products are 1.4 times as fast: elsewhere
 * oneDNN copies it as well as we do), at most PACK_BYTES at a time, which splits N and K; product.h packs as
 * it goes, and takes what it multiplies faster. A result narrower than its sum (bf16 summed over several
 * blocks of K, or by an fp32 product) is summed in an fp32 block and rounded once. */
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/product.h"
#include "schema/plan.h"

#include <string.h>

enum {
  BLOCK_M = 1024,
  BLOCK_N = 2048,
  BLOCK_K = 2048,
  PACK_ROWS = 512,
  PACK_BYTES = 16 << 20,
  PACK_COLUMNS = 4096
};

typedef struct matmul_state {
  int64_t m, n, k;
  bool trans_a, trans_b, accumulate, has_bias, pack_b;
  nx_dtype type;                                /* of the product */
  bool widen_a, widen_b, widen_bias, sum_apart; /* in scratch, as fp32 */
  int64_t block_m, block_n, block_k;
  const cpu_gemm *blocks[2][2][2][2];                /* [last of m][last of n][last of k][first of k] */
  uint64_t a_at, b_at, c_at, bias_at, scratch_bytes; /* places in scratch, after the products' own */
} matmul_state;

static int64_t type_bytes(const nxk_tensor *tensor) {
  return tensor->dtype == NX_f32 ? 4 : 2;
}

static bool state_read(const nxk_kernel *kernel, matmul_state *state) {
  const nxk_tensor *a = cpu_in(kernel, 0), *c = cpu_out(kernel, 0);
  for (uint32_t attr = 0; attr < 3; attr++)
    if (kernel->operator.attrs[attr].kind != NXK_INT) return false;
  state->m = cpu_rows(c);
  state->n = cpu_columns(c);
  state->trans_a = kernel->operator.attrs[NX_matmul_trans_a].integer;
  state->trans_b = kernel->operator.attrs[NX_matmul_trans_b].integer;
  state->accumulate = kernel->operator.attrs[NX_matmul_accumulate].integer;
  state->has_bias = kernel->operator.n_in > 2;
  state->k = state->trans_a ? cpu_rows(a) : cpu_columns(a);
  return state->m > 0 && state->n > 0 && state->k > 0;
}

static int64_t at_most(int64_t n, int64_t limit) {
  return n < limit ? n : limit;
}

/* The extent of the last block (`last`) or of every other. */
static int64_t extent(int64_t n, int64_t block, int last) {
  return last ? n - (n - 1) / block * block : block;
}

static cpu_gemm_form block_form(const nxk_kernel *kernel, const matmul_state *s, int last_m, int last_n,
                                int last_k, int first_k) {
  int64_t m = extent(s->m, s->block_m, last_m), n = extent(s->n, s->block_n, last_n);
  int64_t k = extent(s->k, s->block_k, last_k);
  cpu_gemm_form form = {.m = m,
                        .n = n,
                        .k = k,
                        .trans_a = s->trans_a,
                        .trans_b = s->trans_b,
                        .pack_b = s->pack_b,
                        .type = s->type};
  form.a_stride = s->widen_a ? (s->trans_a ? m : k) : s->trans_a ? s->m : s->k;
  form.b_stride = s->widen_b ? (s->trans_b ? k : n) : s->trans_b ? s->k : s->n;
  form.c_stride = s->sum_apart ? n : s->n;
  form.c_type = s->sum_apart ? NX_f32 : cpu_out(kernel, 0)->dtype;
  form.accumulate = !first_k || s->accumulate;
  if (s->has_bias && first_k) form.bias_type = s->widen_bias ? NX_f32 : cpu_in(kernel, 2)->dtype;
  return form;
}

static void choose_blocks(const nxk_kernel *kernel, matmul_state *state, bool in_bf16, bool pack) {
  const nxk_tensor *a = cpu_in(kernel, 0), *b = cpu_in(kernel, 1), *c = cpu_out(kernel, 0);
  state->type = in_bf16 ? NX_bf16 : NX_f32;
  state->widen_a = a->dtype != state->type;
  state->widen_b = b->dtype != state->type;
  state->widen_bias = state->has_bias && !in_bf16 && cpu_in(kernel, 2)->dtype != NX_f32;
  bool widen = state->widen_a || state->widen_b;
  state->block_m = widen ? at_most(state->m, BLOCK_M) : state->m;
  state->block_n = widen ? at_most(state->n, BLOCK_N) : state->n;
  state->block_k = widen ? at_most(state->k, BLOCK_K) : state->k;
  state->sum_apart = c->dtype != NX_f32 && c->dtype != state->type;
  cpu_gemm_form whole = block_form(kernel, state, 1, 1, 1, 1);
  bool own = pack && !widen && cpu_product_takes(kernel->device, &whole);
  state->pack_b = own || (pack && state->m >= PACK_ROWS &&
                          (!state->trans_b || kernel->device->target == NX_TARGET_CPU_AMX));
  if (state->pack_b && !own) {
    int64_t room = PACK_BYTES / (in_bf16 ? 2 : 4);
    state->block_k = at_most(state->block_k, room / at_most(state->block_n, PACK_COLUMNS) / 64 * 64);
    state->block_n = at_most(state->block_n, room / state->block_k / 64 * 64);
  }
  state->sum_apart |= c->dtype != NX_f32 && state->block_k < state->k;
}

static bool bind_blocks(nxk_kernel *kernel, matmul_state *s, nxk_fault *fault) {
  bool several_k = s->block_k < s->k;
  s->scratch_bytes = 0;
  for (int i = 0; i < 16; i++) {
    int last_m = i >> 3, last_n = i >> 2 & 1, last_k = i >> 1 & 1, first_k = i & 1;
    if (several_k ? last_k && first_k : !(last_k && first_k)) continue; /* there is no such block */
    cpu_gemm_form form = block_form(kernel, s, last_m, last_n, last_k, first_k);
    cpu_gemm *gemm = cpu_gemm_find(kernel->device, &form, fault);
    if (!gemm) return false;
    s->blocks[last_m][last_n][last_k][first_k] = gemm;
    uint64_t n_bytes = cpu_gemm_scratch_bytes(kernel->device, gemm);
    if (n_bytes > s->scratch_bytes) s->scratch_bytes = n_bytes;
  }
  return true;
}

static uint64_t reserve(matmul_state *s, bool used, int64_t n_elements) {
  uint64_t at = s->scratch_bytes;
  if (used) s->scratch_bytes += cpu_align(4 * (uint64_t)n_elements);
  return at;
}

/* False where oneDNN has no such product, or where it does not fit. */
static bool matmul_try(nxk_kernel *kernel, matmul_state *s, bool in_bf16, bool pack, nxk_fault *fault) {
  fault->text[0] = 0;
  choose_blocks(kernel, s, in_bf16, pack);
  if (!bind_blocks(kernel, s, fault)) return false;
  s->a_at = reserve(s, s->widen_a, s->block_m * s->block_k);
  s->b_at = reserve(s, s->widen_b, s->block_k * s->block_n);
  s->c_at = reserve(s, s->sum_apart, s->block_m * s->block_n);
  s->bias_at = reserve(s, s->widen_bias, s->block_n);
  return !pack || cpu_fits(kernel->device, s->scratch_bytes);
}

bool cpu_matmul_bind(nxk_kernel *kernel, nxk_fault *fault) {
  for (uint32_t i = 0; i < kernel->operator.n_in + 1; i++)
    if (!cpu_is_real(&kernel->operator.args[i])) return false;
  matmul_state *state = cpu_keep(kernel->device, sizeof *state, "matmul", fault);
  if (!state || !state_read(kernel, state)) return false;
  kernel->state = state;
  bool in_bf16 = cpu_in(kernel, 0)->dtype == NX_bf16 && cpu_in(kernel, 1)->dtype == NX_bf16 &&
                 kernel->device->native_bf16;
  bool made = (in_bf16 && (matmul_try(kernel, state, true, true, fault) ||
                           matmul_try(kernel, state, true, false, fault))) ||
              matmul_try(kernel, state, false, true, fault) || matmul_try(kernel, state, false, false, fault);
  if (!made) return false;
  return cpu_reserve(kernel->device, state->scratch_bytes, "matmul", fault);
}

typedef struct matmul_run {
  const nxk_kernel *kernel;
  const matmul_state *state;
  const char *a, *b, *bias;
  char *c, *scratch;
} matmul_run;

/* Rows [i, i + rows) and columns [j, j + columns) of op(operand): where they lie, or widened at `at` in
 * scratch. */
static const char *operand_block(const matmul_run *run, const nxk_tensor *tensor, const char *data,
                                 bool transposed, int64_t i, int64_t j, int64_t rows, int64_t columns,
                                 bool widen, uint64_t at) {
  const nxk_device *device = run->kernel->device;
  int64_t stride = cpu_columns(tensor), row = transposed ? j : i, column = transposed ? i : j;
  const char *block = data + type_bytes(tensor) * (row * stride + column);
  if (!widen) return block;
  int64_t n_rows = transposed ? columns : rows, n_columns = transposed ? rows : columns;
  device->table->convert_box(device, run->scratch + at, NX_f32, n_columns, block, tensor->dtype, stride,
                             n_rows, n_columns);
  return run->scratch + at;
}

/* c[i.., j..] over all of k. */
static void block_run(const matmul_run *run, int64_t i, int64_t j) {
  const matmul_state *s = run->state;
  const nxk_device *device = run->kernel->device;
  const nxk_tensor *a = cpu_in(run->kernel, 0), *b = cpu_in(run->kernel, 1), *c = cpu_out(run->kernel, 0);
  int last_m = i + s->block_m >= s->m, last_n = j + s->block_n >= s->n;
  int64_t m = last_m ? s->m - i : s->block_m, n = last_n ? s->n - j : s->block_n;
  char *c_block = run->c + type_bytes(c) * (i * s->n + j),
       *sum = s->sum_apart ? run->scratch + s->c_at : c_block;
  const char *bias = NULL;
  if (s->has_bias)
    bias = operand_block(run, cpu_in(run->kernel, 2), run->bias, false, 0, j, 1, n, s->widen_bias,
                         s->bias_at);
  if (s->sum_apart && s->accumulate)
    device->table->convert_box(device, sum, NX_f32, n, c_block, c->dtype, s->n, m, n);
  for (int64_t p = 0; p < s->k; p += s->block_k) {
    int last_k = p + s->block_k >= s->k;
    int64_t k = last_k ? s->k - p : s->block_k;
    const char *left = operand_block(run, a, run->a, s->trans_a, i, p, m, k, s->widen_a, s->a_at);
    const char *right = operand_block(run, b, run->b, s->trans_b, p, j, k, n, s->widen_b, s->b_at);
    cpu_gemm_run(device, s->blocks[last_m][last_n][last_k][p == 0], left, right, bias, sum, run->scratch);
  }
  if (s->sum_apart) device->table->convert_box(device, c_block, c->dtype, s->n, sum, NX_f32, n, m, n);
}

uint64_t cpu_matmul_scratch_bytes(const nxk_kernel *kernel) {
  const matmul_state *s = kernel->state;
  return s->scratch_bytes;
}

void cpu_matmul_apply(const nxk_kernel *kernel, const void *a, const void *b, const void *bias, void *c) {
  const matmul_state *s = kernel->state;
  const matmul_run run = {
      .kernel = kernel, .state = s, .a = a, .b = b, .bias = bias, .c = c, .scratch = kernel->device->scratch};
  for (int64_t j = 0; j < s->n; j += s->block_n)
    for (int64_t i = 0; i < s->m; i += s->block_m) block_run(&run, i, j);
}

void cpu_matmul_run(const nxk_kernel *kernel, const nxk_frame *frame) {
  const matmul_state *s = kernel->state;
  const void *bias = s->has_bias ? cpu_in_at(kernel, frame, 2) : NULL;
  cpu_matmul_apply(kernel, cpu_in_at(kernel, frame, 0), cpu_in_at(kernel, frame, 1), bias,
                   cpu_out_at(kernel, frame, 0));
}
