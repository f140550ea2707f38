/* SPDX-License-Identifier: Apache-2.0 */
/* Muon: what ref does, in fp32, with matmul's products. A tall matrix is not turned over: X (b X^T X + c (X^T
 * X)^2) is the same. */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <omp.h>

typedef float real;

#include "kernels/rules/muon.h"

typedef struct muon {
  int64_t rows, columns;            /* of the tensor */
  int64_t width, least;             /* columns of a part of it, and the smaller of those and of its rows */
  nxk_kernel gram, square, product; /* X X^T, its square, and what is added to X */
  uint64_t x_at, y_at, m_at, gram_at, square_at, n_bytes; /* in scratch, after what the products use */
} muon;

static nxk_tensor matrix(int64_t rows, int64_t columns) {
  return (nxk_tensor){
      .dtype = NX_f32, .n_dims = 2, .dims = {rows, columns, 1, 1}, .shift_constant = UINT32_MAX};
}

static bool bind_product(nxk_kernel *made, muon *u, nxk_device *device, const nxk_tensor args[3],
                         bool trans_a, bool trans_b, nxk_fault *fault) {
  nxk_operator product = {
      .op = NX_OP_matmul, .n_in = 2, .n_out = 1, .n_attrs = 3, .args = {args[0], args[1], args[2]}};
  product.attrs[NX_matmul_trans_a].integer = trans_a;
  product.attrs[NX_matmul_trans_b].integer = trans_b;
  *made = (nxk_kernel){.device = device, .operator = product};
  if (!cpu_matmul_bind(made, fault)) return false;
  uint64_t n_bytes = cpu_align(cpu_matmul_scratch_bytes(made));
  if (n_bytes > u->n_bytes) u->n_bytes = n_bytes;
  return true;
}

static bool bind_products(muon *u, nxk_device *device, nxk_fault *fault) {
  bool tall = u->rows > u->width;
  const nxk_tensor x = matrix(u->rows, u->width), square = matrix(u->least, u->least);
  return bind_product(&u->gram, u, device, (const nxk_tensor[]){x, x, square}, tall, !tall, fault) &&
         bind_product(&u->square, u, device, (const nxk_tensor[]){square, square, square}, false, false,
                      fault) &&
         bind_product(&u->product, u, device, (const nxk_tensor[]){tall ? x : square, tall ? square : x, x},
                      false, false, fault);
}

static uint64_t take(muon *u, int64_t n_elements) {
  uint64_t at = u->n_bytes;
  u->n_bytes += cpu_align(4 * (uint64_t)n_elements);
  return at;
}

/* Of p, states and gradient the `index`-th, of the whole tensor. */
static uint32_t whole_of(const rule_step *step, uint32_t index) {
  return step->parted ? rule_input(step, NX_UPDATE_END) + index : index;
}

bool cpu_muon_bind(nxk_kernel *kernel, nxk_fault *fault) {
  rule_step step = rule_step_of(&kernel->operator);
  for (uint32_t i = 0; i <= rule_input(&step, NX_UPDATE_GRADIENT); i++)
    if (!cpu_is_real(cpu_in(kernel, i))) return false;
  for (uint32_t i = 0; i < kernel->operator.n_out; i++)
    if (!cpu_is_real(cpu_out(kernel, i))) return false;
  muon *u = cpu_keep(kernel->device, sizeof *u, "muon", fault);
  if (u == NULL) return false;
  const nxk_tensor *all = cpu_in(kernel, whole_of(&step, 0));
  *u = (muon){.rows = all->dims[0], .columns = all->dims[1]};
  u->width = u->columns / (int64_t)step.number[NX_muon_column_parts];
  u->least = u->rows < u->width ? u->rows : u->width;
  kernel->state = u;
  if (!bind_products(u, kernel->device, fault)) return false;
  u->x_at = take(u, u->rows * u->columns);
  u->y_at = take(u, u->rows * u->columns + 2 * (u->rows + u->columns));
  u->m_at = take(u, u->rows * u->columns);
  u->gram_at = take(u, u->least * u->least);
  u->square_at = take(u, u->least * u->least);
  return cpu_reserve(kernel->device, u->n_bytes, "muon", fault);
}

static float *scratch_at(const nxk_kernel *kernel, uint64_t at) {
  return (float *)(void *)(kernel->device->scratch + at);
}

/* x = x times `factor`, y times `other` added. */
static void blend(const nxk_device *device, float *x, float factor, const float *y, float other, int64_t n) {
#pragma omp parallel for simd num_threads(device->n_threads)
  for (int64_t i = 0; i < n; i++) x[i] = factor * x[i] + other * y[i];
}

static void normalize(const nxk_device *device, float *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
  blend(device, x, (float)(1 / fmax(sqrt(sum), rule_muon_epsilon)), x, 0, n);
}

/* x, a part of the matrix; y is as large. */
static void orthogonalize(const nxk_kernel *kernel, const rule_step *step, float *x, float *y) {
  const muon *u = kernel->state;
  float *gram = scratch_at(kernel, u->gram_at), *square = scratch_at(kernel, u->square_at);
  int64_t n = u->rows * u->width, n_square = u->least * u->least;
  bool tall = u->rows > u->width;
  normalize(kernel->device, x, n);
  for (int64_t i = 0; i < (int64_t)step->number[NX_muon_ns_steps]; i++) {
    const double *k = rule_muon_coefficients_of(step, i);
    cpu_matmul_apply(&u->gram, x, x, NULL, gram);
    cpu_matmul_apply(&u->square, gram, gram, NULL, square);
    blend(kernel->device, gram, (float)k[1], square, (float)k[2], n_square);
    cpu_matmul_apply(&u->product, tall ? x : gram, tall ? gram : x, NULL, y);
    blend(kernel->device, x, (float)k[0], y, 1, n);
  }
}

/* The parts of x one by one, in y: there are two at least, or there is x alone. */
static void orthogonalize_parts(const nxk_kernel *kernel, const rule_step *step, float *x, float *y) {
  const muon *u = kernel->state;
  void (*const copy)(const nxk_device *, void *, nx_dtype, int64_t, const void *, nx_dtype, int64_t, int64_t,
                     int64_t) = kernel->device->table->convert_box;
  if (u->width == u->columns) orthogonalize(kernel, step, x, y);
  else
    for (int64_t first = 0; first < u->columns; first += u->width) {
      copy(kernel->device, y, NX_f32, u->width, x + first, NX_f32, u->columns, u->rows, u->width);
      orthogonalize(kernel, step, y, y + u->rows * u->width);
      copy(kernel->device, x + first, NX_f32, u->columns, y, NX_f32, u->width, u->rows, u->width);
    }
}

static rule_step read_step(const nxk_kernel *kernel, const nxk_frame *frame) {
  rule_step step = rule_step_of(&kernel->operator);
  const double *const lr = cpu_in_at(kernel, frame, rule_input(&step, NX_UPDATE_LR));
  const double *const decay = cpu_in_at(kernel, frame, rule_input(&step, NX_UPDATE_DECAY));
  const double *const scale = cpu_in_at(kernel, frame, rule_input(&step, NX_UPDATE_SCALE));
  step.lr = *lr, step.decay = *decay, step.scale = *scale;
  return step;
}

/* Part of a matrix in scratch, as an operand or out of one. */
static void convert(const nxk_kernel *kernel, void *y, const nxk_tensor *y_is, int64_t y_stride,
                    const void *x, nx_dtype x_type, int64_t x_stride) {
  kernel->device->table->convert_box(kernel->device, y, y_is->dtype, y_stride, x, x_type, x_stride,
                                     y_is->dims[0], y_is->dims[1]);
}

static void load(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t input, float *to) {
  const nxk_tensor *from = cpu_in(kernel, input), as = matrix(from->dims[0], from->dims[1]);
  convert(kernel, to, &as, as.dims[1], cpu_in_at(kernel, frame, input), from->dtype, as.dims[1]);
}

/* Of the update of an adaptive rule; `v` and `sums` have room for the second moment and for sums in fp64. */
static void adapt(const nxk_kernel *kernel, const nxk_frame *frame, const rule_step *step, double scale,
                  float *x, float *v, float *sums, int64_t at) {
  const muon *u = kernel->state;
  const nxk_tensor *box = cpu_out(kernel, 2);
  load(kernel, frame, whole_of(step, 2), v);
  rule_muon_adapt(step, scale, x, v, (double *)(void *)sums, u->rows, u->columns);
  convert(kernel, cpu_out_at(kernel, frame, 2), box, box->dims[1], v + at, NX_f32, u->columns);
}

static void apply(const nxk_device *device, const rule_step *step, double scale, float *p, const float *x,
                  int64_t n) {
#pragma omp parallel num_threads(device->n_threads)
  {
    cpu_span span = cpu_share(n, 1, omp_get_thread_num(), device->n_threads);
    rule_muon_apply(step, scale, p + span.begin, x + span.begin, span.end - span.begin);
  }
}

void cpu_muon_run(const nxk_kernel *kernel, const nxk_frame *frame) {
  const muon *u = kernel->state;
  rule_step step = read_step(kernel, frame);
  if (isnan(step.scale)) return;
  float *x = scratch_at(kernel, u->x_at), *y = scratch_at(kernel, u->y_at), *m = scratch_at(kernel, u->m_at);
  const nxk_tensor *box = cpu_out(kernel, 0);
  uint32_t copy = 1 + step.n_states;
  int64_t at = 0;
  if (step.parted)
    at =
        cpu_int(kernel, frame, NX_muon_row_start) * u->columns + cpu_int(kernel, frame, NX_muon_column_start);
  load(kernel, frame, whole_of(&step, 1), m);
  load(kernel, frame, whole_of(&step, 1 + step.n_states), y);
  rule_muon_direction(&step, m, y, x, u->rows * u->columns);
  convert(kernel, cpu_out_at(kernel, frame, 1), cpu_out(kernel, 1), box->dims[1], m + at, NX_f32, u->columns);
  orthogonalize_parts(kernel, &step, x, y);
  double scale = rule_muon_scale(&step, (double)u->rows, (double)u->width);
  if (step.n_states > 1) adapt(kernel, frame, &step, scale, x, m, y, at);
  const nxk_tensor as = matrix(box->dims[0], box->dims[1]);
  convert(kernel, y, &as, box->dims[1], x + at, NX_f32, u->columns);
  load(kernel, frame, 0, m);
  apply(kernel->device, &step, scale, m, y, box->dims[0] * box->dims[1]);
  convert(kernel, cpu_out_at(kernel, frame, 0), box, box->dims[1], m, NX_f32, box->dims[1]);
  if (kernel->operator.n_out > copy)
    convert(kernel, cpu_out_at(kernel, frame, copy), cpu_out(kernel, copy), box->dims[1], m, NX_f32,
            box->dims[1]);
}
