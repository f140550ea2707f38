/* SPDX-License-Identifier: Apache-2.0 */
/* SOAP in fp32: what ref does, with matmul's products; all else threads share. What lies in fp32 is worked on
 * where it lies. */
#include "kernels/cpu/update.h"

#include <omp.h>
#include <tgmath.h>

typedef float real;

#define PLACE
/* The share of a thread of a loop. */
#define EACH(i, n)                                                                                           \
  for (int64_t i = (n) * omp_get_thread_num() / omp_get_num_threads(),                                       \
               i##_end = (n) * (omp_get_thread_num() + 1) / omp_get_num_threads();                           \
       i < i##_end; i++)
#define MEET _Pragma("omp barrier")
#define WITH_ALL(statement)                                                                                  \
  do {                                                                                                       \
    _Pragma("omp parallel num_threads(threads_of(s->context))") {                                            \
      statement;                                                                                             \
    }                                                                                                        \
  } while (0)
static uint32_t threads_of(const void *context);

#include "kernels/rules/soap.h"

enum { MOMENT1 = 1, MOMENT2, LEFT, RIGHT, GRADIENT, N_OPERANDS }; /* inputs; the last is none */

typedef struct soap {
  const nxk_device *device;
  int64_t m, n;
  nxk_kernel products[SOAP_N_PRODUCTS];
  uint64_t room_at, at[N_OPERANDS], n_bytes; /* in scratch, behind what the products use */
} soap;

static uint32_t threads_of(const void *context) {
  return ((const soap *)context)->device->n_threads;
}

static void soap_multiply(const rule_soap *s, soap_product product, const float *a, const float *b,
                          float *c) {
  cpu_matmul_apply(&((const soap *)s->context)->products[product], a, b, NULL, c);
}

static nxk_tensor matrix(int64_t rows, int64_t columns) {
  return (nxk_tensor){
      .dtype = NX_f32, .n_dims = 2, .dims = {rows, columns, 1, 1}, .shift_constant = UINT32_MAX};
}

static bool bind_product(soap *u, soap_product product, nxk_device *device, nxk_fault *fault) {
  const soap_form form = soap_form_of(product);
  const int64_t side[2] = {u->m, u->n};
  const nxk_tensor a = matrix(side[form.a_rows_n], side[form.a_columns_n]),
                   b = matrix(side[form.b_rows_n], side[form.b_columns_n]);
  nxk_operator made = {.op = NX_OP_matmul, .n_in = 2, .n_out = 1, .n_attrs = 3, .args = {a, b}};
  made.args[2] = matrix(a.dims[form.a_turned], b.dims[!form.b_turned]);
  made.attrs[NX_matmul_trans_a].integer = form.a_turned;
  made.attrs[NX_matmul_trans_b].integer = form.b_turned;
  u->products[product] = (nxk_kernel){.device = device, .operator = made};
  if (!cpu_matmul_bind(&u->products[product], fault)) return false;
  uint64_t n_bytes = cpu_align(cpu_matmul_scratch_bytes(&u->products[product]));
  if (n_bytes > u->n_bytes) u->n_bytes = n_bytes;
  return true;
}

static uint64_t take(soap *u, int64_t n_elements) {
  uint64_t at = u->n_bytes;
  u->n_bytes += cpu_align(sizeof(float) * (uint64_t)n_elements);
  return at;
}

/* A gradient is scaled, and so copied. */
static bool lies_there(const nxk_kernel *kernel, uint32_t input) {
  return input != GRADIENT && cpu_in(kernel, input)->dtype == NX_f32;
}

bool CPU_NAME(cpu_soap_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  for (uint32_t i = 0; i < N_OPERANDS; i++)
    if (!cpu_is_real(cpu_in(kernel, i))) return false;
  for (uint32_t i = 0; i < kernel->operator.n_out; i++)
    if (!cpu_is_real(cpu_out(kernel, i))) return false;
  soap *u = cpu_keep(kernel->device, sizeof *u, "soap", fault);
  if (u == NULL) return false;
  *u = (soap){.device = kernel->device, .m = cpu_in(kernel, 0)->dims[0], .n = cpu_in(kernel, 0)->dims[1]};
  kernel->state = u;
  for (soap_product product = 0; product < SOAP_N_PRODUCTS; product++)
    if (!bind_product(u, product, kernel->device, fault)) return false;
  u->room_at = take(u, soap_room(u->m, u->n));
  for (uint32_t i = 0; i < N_OPERANDS; i++)
    if (!lies_there(kernel, i)) u->at[i] = take(u, nxk_n_elements(cpu_in(kernel, i)));
  return cpu_reserve(kernel->device, u->n_bytes, "soap", fault);
}

static float *scratch_at(const nxk_kernel *kernel, uint64_t at) {
  return (float *)(void *)(kernel->device->scratch + at);
}

static void convert(const nxk_kernel *kernel, void *y, nx_dtype y_type, const void *x, nx_dtype x_type,
                    const nxk_tensor *as) {
  CPU_NAME(cpu_convert_box)
  (kernel->device, y, y_type, as->dims[1], x, x_type, as->dims[1], as->dims[0], as->dims[1]);
}

static float *operand(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t input) {
  const soap *u = kernel->state;
  const nxk_tensor *x = cpu_in(kernel, input);
  if (lies_there(kernel, input)) return (float *)cpu_in_at(kernel, frame, input);
  float *to = scratch_at(kernel, u->at[input]);
  convert(kernel, to, NX_f32, cpu_in_at(kernel, frame, input), x->dtype, x);
  return to;
}

void CPU_NAME(cpu_soap)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const soap *u = kernel->state;
  const rule_step step = cpu_update_step(kernel, frame);
  if (isnan(step.scale)) return;
  float *of[N_OPERANDS];
  for (uint32_t i = 0; i < N_OPERANDS; i++) of[i] = operand(kernel, frame, i);
  const float scale = (float)step.scale;
#pragma omp parallel for simd num_threads(u->device->n_threads)
  for (int64_t i = 0; i < u->m * u->n; i++) of[GRADIENT][i] *= scale;
  rule_soap s = rule_soap_of(&step, u->m, u->n);
  s.context = u;
  s.p = of[0], s.moment1 = of[MOMENT1], s.moment2 = of[MOMENT2], s.g = of[GRADIENT];
  s.side[0] = of[LEFT], s.basis[0] = s.side[0] + u->m * u->m;
  s.side[1] = of[RIGHT], s.basis[1] = s.side[1] + u->n * u->n;
  soap_place(&s, scratch_at(kernel, u->room_at));
  soap_update(&s, soap_is_first(&s));
  for (uint32_t i = 0; i < GRADIENT; i++)
    if (!lies_there(kernel, i))
      convert(kernel, cpu_out_at(kernel, frame, i), cpu_out(kernel, i)->dtype, of[i], NX_f32,
              cpu_out(kernel, i));
  if (kernel->operator.n_out > 1 + step.n_states)
    convert(kernel, cpu_out_at(kernel, frame, GRADIENT), cpu_out(kernel, GRADIENT)->dtype, of[0], NX_f32,
            cpu_out(kernel, GRADIENT));
}
