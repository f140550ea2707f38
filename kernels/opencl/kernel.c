/* SPDX-License-Identifier: Apache-2.0 */
/* Operators bound to their programs. What a call has of numbers is laid out once; enqueueing fills in places,
 * attributes behind constants and the seed. */
#include "kernels/opencl/product.h"

#include "kernels/moe.h"
#include "kernels/sized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED, STOCHASTIC, ROUND, FIRST_DIM };

static uint64_t groups_of(const nxk_device *device, const ocl_launch *launch, const nxk_operator *operator) {
  if (launch->over == OCL_ONE || launch->over == OCL_LIBRARY) return 1;
  if (launch->over == OCL_COUNTED) return launch->count(device, operator);
  const nxk_tensor *tensor = ocl_operand(operator, launch->operand);
  uint64_t n = (uint64_t)nxk_n_elements(tensor), last = (uint64_t)ocl_last_dim(tensor);
  switch (launch->over) {
  case OCL_GROUPS: return n;
  case OCL_RUNS: return ocl_ceil(ocl_ceil(n, OCL_RUN), device->local);
  case OCL_ROWS: return last ? n / last : 0;
  case OCL_COLUMNS: return ocl_ceil(last, device->local);
  default: return ocl_ceil(n, device->local);
  }
}

/* An attribute as programs take it: without fp64, what fp32 has of it and what that rounds off. */
static int64_t real_word(const nxk_device *device, double real) {
  int64_t word;
  const float near = (float)real, parts[2] = {near, isfinite(near) ? (float)(real - (double)near) : 0};
  if (device->fp64) memcpy(&word, &real, sizeof word);
  else memcpy(&word, parts, sizeof word);
  return word;
}

/* The words of struct call_values; dimensions stand from the right. */
static bool words_of(const nxk_device *device, nxk_kernel *kernel) {
  const nxk_operator *operator = &kernel->operator;
  uint32_t n_args = operator->n_in + operator->n_out, n_attrs = operator->n_attrs ? operator->n_attrs : 1;
  kernel->first_at = FIRST_DIM + 4 * n_args;
  kernel->first_int = kernel->first_at + n_args;
  kernel->n_words = kernel->first_int + 2 * n_attrs;
  int64_t *words = kernel->words = calloc(kernel->n_words, sizeof *words);
  if (!words) return false;
  for (uint32_t i = 0; i < n_args; i++) {
    const nxk_tensor *tensor = &operator->args[i];
    for (uint32_t dim = 0; dim < 4; dim++) words[FIRST_DIM + 4 * i + dim] = 1;
    for (uint32_t dim = 0; dim < tensor->n_dims; dim++)
      words[FIRST_DIM + 4 * i + 4 - tensor->n_dims + dim] = tensor->dims[dim];
  }
  for (uint32_t i = 0; i < operator->n_attrs; i++) {
    const nxk_attr *attr = &operator->attrs[i];
    if (attr->kind == NXK_INT) words[kernel->first_int + i] = attr->integer;
    if (attr->kind == NXK_REAL) words[kernel->first_int + n_attrs + i] = real_word(device, attr->real);
  }
  return true;
}

static bool add_launch(nxk_device *device, nxk_kernel *kernel, cl_program program, const ocl_launch *launch,
                       nxk_fault *fault) {
  cl_int error;
  if (kernel->operator.n_out<launch->min_out) return true;
  uint64_t n_groups = groups_of(device, launch, &kernel->operator);
  if (n_groups == 0) return true;
  if (launch->repeated && kernel->n_repeated++ == 0) kernel->first_repeated = kernel->n_launches;
  cl_kernel made = NULL;
  if (launch->over != OCL_LIBRARY) {
    made = clCreateKernel(program, launch->kernel, &error);
    if (error != CL_SUCCESS) return ocl_fault(fault, launch->kernel, error);
  }
  kernel->groups[kernel->n_launches] = n_groups;
  kernel->kernels[kernel->n_launches++] = made;
  return true;
}

static bool bind_row(nxk_device *device, const ocl_row *row, const nxk_operator *operator, nxk_kernel ** out,
                     nxk_fault *fault) {
  const nx_sized_operator sized = nxk_sized(operator);
  uint64_t n_bytes = nx_workspace_of(&sized, NX_TARGET_OPENCL, 1).most;
  if (!ocl_room_reserve(device, &device->scratch, n_bytes, fault)) return false;
  cl_program program = ocl_program_of(device, row, operator, fault);
  nxk_kernel *kernel = program ? calloc(1, sizeof *kernel) : NULL;
  if (!kernel) return fault->text[0] ? false : ocl_fault(fault, "kernel", CL_OUT_OF_HOST_MEMORY);
  kernel->operator = *operator;
  kernel->next = device->kernels;
  device->kernels = kernel;
  kernel->n_rounds = row->rounds ? row->rounds(operator) : 0;
  if (!words_of(device, kernel)) return ocl_fault(fault, "kernel", CL_OUT_OF_HOST_MEMORY);
  for (const ocl_launch *launch = row->launches; launch->kernel; launch++)
    if (!add_launch(device, kernel, program, launch, fault)) return false;
  *out = kernel;
  return true;
}

bool ocl_bind(nxk_device *device, const nxk_operator *operator, nxk_kernel ** kernel, nxk_fault *fault) {
  if (!device->fp64 && ocl_needs_fp64(operator)) {
    snprintf(
        fault->text, sizeof fault->text,
        "needs arithmetic in fp64 (cl_khr_fp64), which %s lacks: give --device another, of nxrun --devices",
        device->name);
    return false;
  }
  const ocl_row *row = ocl_product_row(device, operator, fault);
  if (!row && fault->text[0] == '\0') row = ocl_row_of(operator);
  return row && bind_row(device, row, operator, kernel, fault);
}

static void set_operands(const nxk_device *device, cl_kernel kernel, const nxk_operator *operator,
                         const cl_mem * buffers, const int64_t *words, uint32_t n_words) {
  cl_uint index = 0;
  for (uint32_t i = 0; i < operator->n_in + operator->n_out; i++)
    ocl_check(device, clSetKernelArg(kernel, index++, sizeof buffers[i], &buffers[i]), "operand");
  ocl_check(device, clSetKernelArg(kernel, index++, sizeof(cl_mem), &device->scratch.buffer), "scratch");
  ocl_check(device, clSetKernelArg(kernel, index++, sizeof device->status, &device->status), "status");
  ocl_check(device, clSetKernelArg(kernel, index, n_words * sizeof *words, words), "values of a call");
}

static void launch(nxk_device *device, const nxk_kernel *kernel, uint32_t index, const cl_mem *buffers,
                   ocl_command *command) {
  if (!kernel->kernels[index]) {
    ocl_product(device, &kernel->operator, buffers, kernel->words + kernel->first_at, command);
    return;
  }
  size_t local = device->local, global = kernel->groups[index] * local;
  cl_event event;
  set_operands(device, kernel->kernels[index], &kernel->operator, buffers, kernel->words, kernel->n_words);
  ocl_check(device,
            clEnqueueNDRangeKernel(device->queues[NXK_KERNELS], kernel->kernels[index], 1, NULL, &global,
                                   &local, 0, NULL, command ? &event : NULL),
            nx_op_find(kernel->operator.op)->name);
  if (command) ocl_command_add(command, event);
}

void ocl_enqueue(nxk_device *device, nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_operator *operator = &kernel->operator;
  cl_mem buffers[NX_MAX_ARGS];
  int64_t *words = kernel->words;
  words[SEED] = (int64_t)frame->seed, words[STOCHASTIC] = frame->stochastic;
  for (uint32_t i = 0; i < operator->n_in + operator->n_out; i++) {
    const ocl_arena *arena = &device->arenas[operator->args[i].arena];
    buffers[i] = arena->buffer;
    words[kernel->first_at + i] = (uint8_t *)nxk_address(&operator->args[i], frame) - arena->base;
  }
  for (uint32_t i = 0; i < operator->n_attrs; i++)
    if (operator->attrs[i].kind == NXK_CONSTANT)
      words[kernel->first_int + i] = nxk_attr_int(&operator->attrs[i], frame);
  words[ROUND] = 0;
  device->alarm = frame->alarm;
  ocl_command *command = ocl_command_begin(device, NXK_KERNELS, device->times.label, 0);
  for (uint32_t i = 0; i < kernel->n_launches; i++) {
    launch(device, kernel, i, buffers, command);
    bool last = kernel->n_repeated > 0 && i + 1 == kernel->first_repeated + kernel->n_repeated;
    if (last && ++words[ROUND] < kernel->n_rounds) i = kernel->first_repeated - 1;
  }
  if (operator->op != NX_OP_moe_index) return;
  device->reports = true;
  device->rows = operator->attrs[NX_moe_index_rows].integer;
}

void ocl_kernels_close(nxk_device *device) {
  while (device->kernels) {
    nxk_kernel *at = device->kernels;
    device->kernels = at->next;
    for (uint32_t i = 0; i < at->n_launches; i++)
      if (at->kernels[i]) clReleaseKernel(at->kernels[i]);
    free(at->words);
    free(at);
  }
}
