/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/opencl/product.h"

#include <clblast_c.h>
#include <stdlib.h>
#include <string.h>

/* y[m, n] = sum over k, as CLBlast takes it; places in elements. */
typedef struct product {
  CLBlastTranspose trans_a, trans_b;
  size_t m, n, k, a_row, b_row;
  bool wide_a, wide_b, wide_y; /* lie in scratch, in fp32, one behind the other */
} product;

static uint64_t wide_elements(const nxk_operator *operator, int operand, bool wide) {
  return wide ? (uint64_t)ocl_elements(operator, operand) : 0;
}

static product product_of(const nxk_operator *operator) {
  const nxk_tensor *a = &operator->args[0], *b = &operator->args[1], *y = ocl_operand(operator, OCL_OUT(0));
  product p = {.a_row = (size_t)ocl_last_dim(a), .b_row = (size_t)ocl_last_dim(b)};
  bool turned_a = operator->attrs[NX_matmul_trans_a].integer,
       turned_b = operator->attrs[NX_matmul_trans_b].integer;
  p.trans_a = turned_a ? CLBlastTransposeYes : CLBlastTransposeNo;
  p.trans_b = turned_b ? CLBlastTransposeYes : CLBlastTransposeNo;
  p.n = (size_t)ocl_last_dim(y);
  p.m = p.n ? (size_t)nxk_n_elements(y) / p.n : 0;
  p.k = p.m ? (size_t)nxk_n_elements(a) / p.m : 0;
  p.wide_a = a->dtype != NX_f32, p.wide_b = b->dtype != NX_f32;
  p.wide_y = y->dtype != NX_f32 || operator->n_in > 2;
  return p;
}

static uint64_t wide_bytes(const nxk_operator *operator) {
  product p = product_of(operator);
  return sizeof(float) * (wide_elements(operator, 0, p.wide_a) + wide_elements(operator, 1, p.wide_b) +
                          wide_elements(operator, OCL_OUT(0), p.wide_y));
}

static uint64_t groups_if(const nxk_device *device, const nxk_operator *operator, int operand, bool wide) {
  return ocl_ceil(wide_elements(operator, operand, wide), device->local);
}

static uint64_t wide_a_groups(const nxk_device *device, const nxk_operator *operator) {
  return groups_if(device, operator, 0, product_of(operator).wide_a);
}

static uint64_t wide_b_groups(const nxk_device *device, const nxk_operator *operator) {
  return groups_if(device, operator, 1, product_of(operator).wide_b);
}

static uint64_t wide_y_groups(const nxk_device *device, const nxk_operator *operator) {
  return groups_if(device, operator, OCL_OUT(0), product_of(operator).wide_y);
}

static void product_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  product p = product_of(operator);
  fprintf(text, "#define WIDE_A %d\n#define WIDE_B %d\n", p.wide_a, p.wide_b);
}

static const ocl_row product_row = {"product",
                                    {{"widen_a", OCL_COUNTED, 0, 0, wide_a_groups, false},
                                     {"widen_b", OCL_COUNTED, 0, 0, wide_b_groups, false},
                                     {"CLBlast", OCL_LIBRARY, 0, 0, NULL, false},
                                     {"narrow", OCL_COUNTED, 0, 0, wide_y_groups, false}},
                                    product_define,
                                    NULL};

/* ---- at bind ---- */

static bool can_multiply(const nxk_operator *operator) {
  if (operator->op != NX_OP_matmul) return false;
  for (uint32_t i = 0; i < operator->n_in + operator->n_out; i++) {
    nx_dtype type = operator->args[i].dtype;
    if (type != NX_f32 && type != NX_bf16 && type != NX_f16) return false;
  }
  product p = product_of(operator);
  return p.m > 0 && p.n > 0 && p.k > 0;
}

static bool is_asked(const char *answer) {
  const char *asked = getenv("NXRUN_CLBLAST");
  return asked && strcmp(asked, answer) == 0;
}

/* Items with wide vectors, which processors have, multiply faster by our tiles. */
static bool is_wanted(const nxk_device *device) {
  return is_asked("1") || (!is_asked("0") && device->width == OCL_RUN);
}

/* A first product, of one number, has it build its kernels. */
static bool builds(nxk_device *device) {
  cl_mem room = device->scratch.buffer;
  if (device->products != OCL_UNKNOWN) return device->products == OCL_BY_LIBRARY;
  bool well =
      is_wanted(device) &&
      CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, 1, 1, 1, 1, room, 0, 1,
                   room, 1, 1, 0, room, 2, 1, &device->queues[NXK_KERNELS], NULL) == CLBlastSuccess &&
      clFinish(device->queues[NXK_KERNELS]) == CL_SUCCESS;
  device->products = well ? OCL_BY_LIBRARY : OCL_BY_TILES;
  return well;
}

/* As much as it needs wherever operands lie: at places that are no multiples of anything. Half of the
 * workspace at most, since operators without a choice need some too. */
static bool reserve_room(nxk_device *device, const nxk_operator *operator) {
  product p = product_of(operator);
  size_t n_bytes = 0;
  uint64_t limit = device->workspace_limit;
  nxk_fault none;
  return CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, p.trans_a, p.trans_b, p.m, p.n, p.k, 1, p.a_row, 1,
                                    p.b_row, 1, p.n, &device->queues[NXK_KERNELS],
                                    &n_bytes) == CLBlastSuccess &&
         (limit == 0 || n_bytes + wide_bytes(operator) <= limit / 2) &&
         ocl_room_reserve(device, &device->product_room, n_bytes, &none) &&
         ocl_room_reserve(device, &device->scratch, wide_bytes(operator), &none);
}

const ocl_row *ocl_product_row(nxk_device *device, const nxk_operator *operator, nxk_fault * fault) {
  if (!can_multiply(operator)) return NULL;
  if (builds(device) && reserve_room(device, operator)) return &product_row;
  if (is_asked("1"))
    snprintf(fault->text, sizeof fault->text,
             "NXRUN_CLBLAST=1, and CLBlast does not work on this device or needs more of "
             "run.workspace_bytes");
  return NULL;
}

/* ---- at a call ---- */

static size_t element(int64_t place) {
  return (size_t)place / sizeof(float);
}

static void add_marker(nxk_device *device, ocl_command *command) {
  cl_event event;
  ocl_check(device, clEnqueueMarkerWithWaitList(device->queues[NXK_KERNELS], 0, NULL, &event), "event");
  ocl_command_add(command, event);
}

void ocl_product(nxk_device *device, const nxk_operator *operator, const cl_mem * buffers,
                 const int64_t *places, ocl_command *command) {
  product p = product_of(operator);
  uint32_t y = operator->n_in;
  size_t wide_b = wide_elements(operator, 0, p.wide_a);
  size_t wide_y = wide_b + wide_elements(operator, 1, p.wide_b);
  float kept = !p.wide_y && operator->attrs[NX_matmul_accumulate].integer ? 1 : 0;
  if (command) add_marker(device, command); /* it says when its last kernel ran, and not its first */
  CLBlastStatusCode status = CLBlastSgemmWithTempBuffer(
      CLBlastLayoutRowMajor, p.trans_a, p.trans_b, p.m, p.n, p.k, 1,
      p.wide_a ? device->scratch.buffer : buffers[0], p.wide_a ? 0 : element(places[0]), p.a_row,
      p.wide_b ? device->scratch.buffer : buffers[1], p.wide_b ? wide_b : element(places[1]), p.b_row,
      kept, p.wide_y ? device->scratch.buffer : buffers[y], p.wide_y ? wide_y : element(places[y]), p.n,
      &device->queues[NXK_KERNELS], NULL, device->product_room.buffer);
  ocl_check(device, (cl_int)status, "a product by CLBlast");
  if (command) add_marker(device, command);
}

void ocl_products_close(nxk_device *device) {
  if (device->products == OCL_BY_LIBRARY) CLBlastClearCache();
}
