/* SPDX-License-Identifier: Apache-2.0 */
/* Products of each expert's rows with its own matrix. How many rows an expert gets is known only when
 * running.
 *
 * Where product.h computes them, parts of experts' products go to whichever thread is free: no element's sum
 * depends on that. Elsewhere they are made of matmul kernels of a few numbers of rows. An expert's rows are
 * taken in pieces of those sizes; a piece that the rows do not fill is copied to scratch and filled up with
 * zeros. A weight gradient sums over its rows: the first piece writes (or adds, where the operator does), the
 * next ones add; one that is narrower than fp32 is summed in scratch and rounded once. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/product.h"
#include "kernels/moe.h"

#include <omp.h>
#include <string.h>

enum { N_SIZES = 3, PART = 480 /* columns of y, rows of dw */, LEAST_K = 32 };
static const int64_t forward_sizes[N_SIZES] = {256, 64, 16}, gradient_sizes[N_SIZES] = {512, 128, 32};

typedef struct grouped {
  bool own; /* the next four, and nothing else */
  cpu_gemm_form form;
  cpu_product_room room;
  int64_t n_parts;
  const int64_t *sizes;
  nxk_kernel products[N_SIZES][2];             /* [..][0] overwrites, [..][1] adds */
  uint64_t left_at, right_at, sum_at, n_bytes; /* in scratch, after what the products use */
} grouped;

/* Blocks of rows, as ops.def has them. */
typedef struct blocks {
  const int32_t *counts;
  int64_t n_blocks, n_experts, n_rows;
} blocks;

static blocks blocks_of(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t x, uint32_t counts) {
  int64_t n_experts = cpu_columns(cpu_in(kernel, counts)), n = cpu_rows(cpu_in(kernel, counts));
  return (blocks){cpu_in_at(kernel, frame, counts), n, n_experts, cpu_rows(cpu_in(kernel, x)) / n};
}

/* Where an expert's rows of a block begin, and how many there are. */
static int64_t rows_of(const blocks *b, int64_t block, int64_t expert, int64_t *begin) {
  const int32_t *counts = b->counts + block * b->n_experts;
  int64_t end = (block + 1) * b->n_rows;
  *begin = block * b->n_rows;
  for (int64_t e = 0; e < expert; e++) *begin += nxk_moe_count(counts[e], end - *begin);
  return nxk_moe_count(counts[expert], end - *begin);
}

static uint64_t bytes_of(const nxk_tensor *tensor, int64_t n_elements) {
  return (uint64_t)n_elements * (tensor->dtype == NX_f32 ? 4 : 2);
}

static nxk_tensor matrix(nx_dtype type, int64_t rows, int64_t columns) {
  return (nxk_tensor){
      .dtype = type, .n_dims = 2, .dims = {rows, columns, 1, 1}, .shift_constant = UINT32_MAX};
}

static bool product_bind(nxk_kernel *kernel, grouped *g, int size, int adds, const nxk_operator *product,
                         nxk_fault *fault) {
  nxk_kernel *made = &g->products[size][adds];
  *made = (nxk_kernel){.device = kernel->device, .operator = *product};
  made->operator.attrs[NX_matmul_accumulate].integer = adds;
  if (!cpu_matmul_bind(made, fault)) return false;
  uint64_t n_bytes = cpu_align(cpu_matmul_scratch_bytes(made));
  if (n_bytes > g->n_bytes) g->n_bytes = n_bytes;
  return true;
}

static uint64_t take(grouped *g, uint64_t n_bytes) {
  uint64_t at = g->n_bytes;
  g->n_bytes += cpu_align(n_bytes);
  return at;
}

static grouped *grouped_new(nxk_kernel *kernel, const int64_t *sizes, nxk_fault *fault) {
  grouped *g = cpu_keep(kernel->device, sizeof *g, "grouped product", fault);
  if (g) *g = (grouped){.sizes = sizes};
  kernel->state = g;
  return g;
}

/* ---- by product.h ---- */

/* `split` is as long as what the parts are of. */
static bool own_bind(nxk_kernel *kernel, grouped *g, const cpu_gemm_form *form, int64_t split,
                     int64_t n_columns) {
  nxk_device *device = kernel->device;
  nxk_fault fault;
  if (!cpu_product_knows(device, form) || form->n < device->products->width || form->k < LEAST_K) return false;
  g->form = *form;
  g->room = device->products->room_of(form, n_columns);
  g->n_parts = (split + PART - 1) / PART;
  g->own =
      cpu_reserve(device, device->n_threads * cpu_product_room_bytes(&g->room), "grouped product", &fault);
  return g->own;
}

typedef struct grouped_run {
  const nxk_kernel *kernel;
  const grouped *g;
  blocks blocks;
  const char *left, *right;
  char *result;
  bool accumulate;
} grouped_run;

typedef void (*grouped_unit)(const grouped_run *run, int64_t unit, char *room);

/* Units in whatever order threads come to them. */
static void own_run(const grouped_run *run, int64_t n_units, grouped_unit one) {
  const nxk_device *device = run->kernel->device;
  int64_t next = 0;
#pragma omp parallel num_threads(device->n_threads)
  {
    char *room = device->scratch + (uint64_t)omp_get_thread_num() * cpu_product_room_bytes(&run->g->room);
    for (int64_t unit; (unit = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < n_units;)
      one(run, unit, room);
  }
}

/* Some columns of y of an expert's rows of a block. */
static void multiply_unit(const grouped_run *run, int64_t unit, char *room) {
  const grouped *g = run->g;
  const cpu_products *products = run->kernel->device->products;
  const nxk_tensor *x = cpu_in(run->kernel, 0), *w = cpu_in(run->kernel, 2), *y = cpu_out(run->kernel, 0);
  int64_t expert = unit / g->n_parts % run->blocks.n_experts, row;
  int64_t n = rows_of(&run->blocks, unit / g->n_parts / run->blocks.n_experts, expert, &row);
  const cpu_product_operands operands = {
    .a = run->left + bytes_of(x, row * cpu_columns(x)),
    .b = run->right + bytes_of(w, expert * w->dims[1] * w->dims[2]),
    .c = run->result + bytes_of(y, row * cpu_columns(y))};
  cpu_span columns = cpu_share(g->form.n, products->width, unit % g->n_parts, g->n_parts);
  products->part_run(&g->form, &operands, (cpu_span){0, n}, columns, &g->room, room);
}

/* Some rows of an expert's gradient, over all blocks. */
static void wgrad_unit(const grouped_run *run, int64_t unit, char *room) {
  const grouped *g = run->g;
  const cpu_products *products = run->kernel->device->products;
  const nxk_tensor *dy = cpu_in(run->kernel, 0), *x = cpu_in(run->kernel, 1), *dw = cpu_out(run->kernel, 0);
  int64_t expert = unit / g->n_parts;
  char *result = run->result + bytes_of(dw, expert * g->form.m * g->form.n);
  cpu_span rows = cpu_share(g->form.m, products->width, unit % g->n_parts, g->n_parts);
  cpu_gemm_form form = g->form;
  form.accumulate = run->accumulate;
  for (int64_t block = 0; block < run->blocks.n_blocks; block++) {
    int64_t row;
    form.k = rows_of(&run->blocks, block, expert, &row);
    if (form.k == 0) continue;
    const cpu_product_operands operands = {.a = run->left + bytes_of(dy, row * cpu_columns(dy)),
                                           .b = run->right + bytes_of(x, row * cpu_columns(x)),
                                           .c = result};
    products->part_run(&form, &operands, rows, (cpu_span){0, form.n}, &g->room, room);
    form.accumulate = true;
  }
  if (!form.accumulate)
    memset(result + bytes_of(dw, rows.begin * form.n), 0, bytes_of(dw, (rows.end - rows.begin) * form.n));
}

bool cpu_grouped_matmul_bind(nxk_kernel *kernel, nxk_fault *fault) {
  const nxk_tensor *x = cpu_in(kernel, 0), *w = cpu_in(kernel, 2), *y = cpu_out(kernel, 0);
  if (!cpu_is_real(x) || !cpu_is_real(w) || !cpu_is_real(y)) return false;
  grouped *g = grouped_new(kernel, forward_sizes, fault);
  bool trans_b = kernel->operator.attrs[NX_grouped_matmul_trans_b].integer;
  const cpu_gemm_form form = {.m = cpu_rows(x), .n = cpu_columns(y), .k = cpu_columns(x),
                              .a_stride = cpu_columns(x), .b_stride = w->dims[2], .c_stride = cpu_columns(y),
                              .trans_b = trans_b, .type = x->dtype,
                              .c_type = y->dtype};
  if (g && x->dtype == w->dtype && own_bind(kernel, g, &form, form.n, PART)) return true;
  nxk_operator product = {.op = NX_OP_matmul, .n_in = 2, .n_out = 1, .n_attrs = 3};
  product.attrs[NX_matmul_trans_b] = kernel->operator.attrs[NX_grouped_matmul_trans_b];
  product.args[1] = matrix(w->dtype, w->dims[1], w->dims[2]);
  for (int i = 0; g && i < N_SIZES; i++) {
    product.args[0] = matrix(x->dtype, g->sizes[i], cpu_columns(x));
    product.args[2] = matrix(y->dtype, g->sizes[i], cpu_columns(y));
    if (!product_bind(kernel, g, i, 0, &product, fault)) return false;
  }
  if (!g) return false;
  g->left_at = take(g, bytes_of(x, g->sizes[0] * cpu_columns(x)));
  g->right_at = take(g, bytes_of(y, g->sizes[0] * cpu_columns(y)));
  return cpu_reserve(kernel->device, g->n_bytes, "grouped_matmul", fault);
}

/* Which size takes the next of n rows: the smallest that holds all of them if they fill half of it, else the
 * largest that they fill; the smallest always. */
static int size_for(const grouped *g, int64_t n) {
  int size = N_SIZES - 1;
  while (size > 0 && g->sizes[size] < n) size--;
  while (size < N_SIZES - 1 && g->sizes[size] > n && 2 * n < g->sizes[size]) size++;
  return size;
}

/* The rows themselves, or `size` rows in scratch that begin with them. */
static const void *filled(const nxk_kernel *kernel, uint64_t at, const nxk_tensor *tensor, const void *rows,
                          int64_t n, int64_t size) {
  uint64_t row_bytes = bytes_of(tensor, cpu_columns(tensor));
  if (n == size) return rows;
  char *room = kernel->device->scratch + at;
  memcpy(room, rows, (uint64_t)n * row_bytes);
  memset(room + (uint64_t)n * row_bytes, 0, (uint64_t)(size - n) * row_bytes);
  return room;
}

static void multiply(const nxk_kernel *kernel, const char *x, const void *w, char *y, int64_t n_rows) {
  const grouped *g = kernel->state;
  const nxk_tensor *x_is = cpu_in(kernel, 0), *y_is = cpu_out(kernel, 0);
  uint64_t x_bytes = bytes_of(x_is, cpu_columns(x_is)), y_bytes = bytes_of(y_is, cpu_columns(y_is));
  for (int64_t row = 0; row < n_rows;) {
    int size = size_for(g, n_rows - row);
    int64_t n = g->sizes[size] < n_rows - row ? g->sizes[size] : n_rows - row;
    const void *left = filled(kernel, g->left_at, x_is, x + (uint64_t)row * x_bytes, n, g->sizes[size]);
    char *room = n == g->sizes[size] ? y + (uint64_t)row * y_bytes : kernel->device->scratch + g->right_at;
    cpu_matmul_apply(&g->products[size][0], left, w, NULL, room);
    if (n < g->sizes[size]) memcpy(y + (uint64_t)row * y_bytes, room, (uint64_t)n * y_bytes);
    row += n;
  }
}

static void multiply_all(const nxk_kernel *kernel, const blocks *b, const char *x, const char *w, char *y) {
  const nxk_tensor *x_is = cpu_in(kernel, 0), *w_is = cpu_in(kernel, 2), *y_is = cpu_out(kernel, 0);
  for (int64_t block = 0; block < b->n_blocks; block++)
    for (int64_t e = 0; e < b->n_experts; e++) {
      int64_t row, n = rows_of(b, block, e, &row);
      multiply(kernel, x + bytes_of(x_is, row * cpu_columns(x_is)),
               w + bytes_of(w_is, e * w_is->dims[1] * w_is->dims[2]),
               y + bytes_of(y_is, row * cpu_columns(y_is)), n);
    }
}

void cpu_grouped_matmul_run(const nxk_kernel *kernel, const nxk_frame *frame) {
  const grouped *g = kernel->state;
  const nxk_tensor *y_is = cpu_out(kernel, 0);
  const char *x = cpu_in_at(kernel, frame, 0), *w = cpu_in_at(kernel, frame, 2);
  char *y = cpu_out_at(kernel, frame, 0);
  const grouped_run run = {kernel, g, blocks_of(kernel, frame, 0, 1), x, w, y, false};
  const blocks *b = &run.blocks;
  if (g->own) own_run(&run, b->n_blocks * b->n_experts * g->n_parts, multiply_unit);
  else multiply_all(kernel, b, x, w, y);
  for (int64_t block = 0; block < b->n_blocks; block++) {
    int64_t row, n = rows_of(b, block, b->n_experts - 1, &row), end = (block + 1) * b->n_rows;
    memset(y + bytes_of(y_is, (row + n) * cpu_columns(y_is)), 0,
           bytes_of(y_is, (end - row - n) * cpu_columns(y_is)));
  }
}

/* ---- weight gradients ---- */

bool cpu_grouped_wgrad_bind(nxk_kernel *kernel, nxk_fault *fault) {
  const nxk_tensor *dy = cpu_in(kernel, 0), *x = cpu_in(kernel, 1), *dw = cpu_out(kernel, 0);
  if (!cpu_is_real(x) || !cpu_is_real(dy) || !cpu_is_real(dw)) return false;
  grouped *g = grouped_new(kernel, gradient_sizes, fault);
  const cpu_gemm_form form = {.m = dw->dims[1], .n = dw->dims[2], .k = cpu_rows(x),
                              .a_stride = dw->dims[1], .b_stride = dw->dims[2], .c_stride = dw->dims[2],
                              .trans_a = true, .type = x->dtype,
                              .c_type = dw->dtype};
  bool once = dw->dtype == NX_f32 || cpu_rows(cpu_in(kernel, 2)) == 1; /* is it rounded */
  if (g && once && x->dtype == dy->dtype && own_bind(kernel, g, &form, form.m, form.n)) return true;
  nxk_operator product = {.op = NX_OP_matmul, .n_in = 2, .n_out = 1, .n_attrs = 3};
  product.attrs[NX_matmul_trans_a].integer = 1;
  product.args[2] = matrix(NX_f32, dw->dims[1], dw->dims[2]);
  for (int i = 0; g && i < 2 * N_SIZES; i++) {
    product.args[0] = matrix(dy->dtype, g->sizes[i / 2], cpu_columns(dy));
    product.args[1] = matrix(x->dtype, g->sizes[i / 2], cpu_columns(x));
    if (!product_bind(kernel, g, i / 2, i % 2, &product, fault)) return false;
  }
  if (!g) return false;
  g->left_at = take(g, bytes_of(dy, g->sizes[0] * cpu_columns(dy)));
  g->right_at = take(g, bytes_of(x, g->sizes[0] * cpu_columns(x)));
  if (dw->dtype != NX_f32) g->sum_at = take(g, 4 * (uint64_t)(dw->dims[1] * dw->dims[2]));
  return cpu_reserve(kernel->device, g->n_bytes, "grouped_wgrad", fault);
}

/* dw (+)= dy^T x over some rows; `adds` says whether dw has something already, and is true afterwards. */
static void add_rows(const nxk_kernel *kernel, const char *dy, const char *x, int64_t n_rows, void *dw,
                     bool *adds) {
  const grouped *g = kernel->state;
  const nxk_tensor *dy_is = cpu_in(kernel, 0), *x_is = cpu_in(kernel, 1);
  uint64_t dy_bytes = bytes_of(dy_is, cpu_columns(dy_is)), x_bytes = bytes_of(x_is, cpu_columns(x_is));
  for (int64_t row = 0; row < n_rows;) {
    int size = size_for(g, n_rows - row);
    int64_t n = g->sizes[size] < n_rows - row ? g->sizes[size] : n_rows - row;
    const void *left = filled(kernel, g->left_at, dy_is, dy + (uint64_t)row * dy_bytes, n, g->sizes[size]);
    const void *right = filled(kernel, g->right_at, x_is, x + (uint64_t)row * x_bytes, n, g->sizes[size]);
    cpu_matmul_apply(&g->products[size][*adds], left, right, NULL, dw);
    *adds = true;
    row += n;
  }
}

/* By matmul kernels. */
static void wgrad_all(const grouped_run *run) {
  const grouped *g = run->g;
  const nxk_device *device = run->kernel->device;
  const nxk_tensor *dy = cpu_in(run->kernel, 0), *x = cpu_in(run->kernel, 1), *is = cpu_out(run->kernel, 0);
  int64_t rows = is->dims[1], columns = is->dims[2];
  for (int64_t e = 0; e < run->blocks.n_experts; e++) {
    char *dw = run->result + bytes_of(is, e * rows * columns);
    char *sum = is->dtype == NX_f32 ? dw : device->scratch + g->sum_at;
    bool adds = run->accumulate;
    if (sum != dw && adds)
      device->table->convert_box(device, sum, NX_f32, columns, dw, is->dtype, columns, rows, columns);
    for (int64_t block = 0; block < run->blocks.n_blocks; block++) {
      int64_t row, n = rows_of(&run->blocks, block, e, &row);
      add_rows(run->kernel, run->left + bytes_of(dy, row * cpu_columns(dy)),
               run->right + bytes_of(x, row * cpu_columns(x)), n, sum, &adds);
    }
    if (!adds) memset(dw, 0, bytes_of(is, rows * columns));
    else if (sum != dw)
      device->table->convert_box(device, dw, is->dtype, columns, sum, NX_f32, columns, rows, columns);
  }
}

void cpu_grouped_wgrad_run(const nxk_kernel *kernel, const nxk_frame *frame) {
  const grouped *g = kernel->state;
  const grouped_run run = {kernel,
                           g,
                           blocks_of(kernel, frame, 0, 2),
                           cpu_in_at(kernel, frame, 0),
                           cpu_in_at(kernel, frame, 1),
                           cpu_out_at(kernel, frame, 0),
                           cpu_int(kernel, frame, NX_grouped_wgrad_accumulate)};
  if (g->own) own_run(&run, run.blocks.n_experts * g->n_parts, wgrad_unit);
  else wgrad_all(&run);
}
