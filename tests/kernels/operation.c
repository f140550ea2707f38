/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/operation.h"

#include "schema/bf16.h"
#include "schema/f16.h"
#include "schema/plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  GUARD_BYTES = 128,
  GUARD = 0xFF /* a NaN to whoever reads it */,
  FRAME_MOVE_BYTES = 4096 + 192,
  SHIFT_BYTES = 64
};

tensor tensor_new(const record_value *value, test_variant variant) {
  tensor x = {.dtype = record_dtype(value, variant), .n_dims = value->n_dims, .n_elements = 1};
  for (uint32_t dim = 0; dim < NX_MAX_DIMS; dim++) x.n_elements *= x.dims[dim] = value->dims[dim];
  x.n_bytes = (uint64_t)x.n_elements * nx_dtype_bits(x.dtype) / 8;
  x.data = calloc(1, x.n_bytes + 1);
  assert(x.data);
  return x;
}

tensor tensor_copy(const tensor *from) {
  tensor x = *from;
  x.data = malloc(x.n_bytes + 1);
  assert(x.data);
  memcpy(x.data, from->data, x.n_bytes);
  return x;
}

double tensor_get(const tensor *x, int64_t i) {
  switch (x->dtype) {
  case NX_f32: return ((float *)x->data)[i];
  case NX_bf16: return nx_bf16_to_float(((uint16_t *)x->data)[i]);
  case NX_f16: return nx_f16_to_float(((uint16_t *)x->data)[i]);
  case NX_f64: return ((double *)x->data)[i];
  case NX_i32: return ((int32_t *)x->data)[i];
  case NX_u8: return ((uint8_t *)x->data)[i];
  default: return (double)((int64_t *)x->data)[i];
  }
}

void tensor_set(const tensor *x, int64_t i, double value) {
  switch (x->dtype) {
  case NX_f32: ((float *)x->data)[i] = (float)value; return;
  case NX_bf16: ((uint16_t *)x->data)[i] = nx_bf16_from_double(value); return;
  case NX_f16: ((uint16_t *)x->data)[i] = nx_f16_from_double(value); return;
  case NX_f64: ((double *)x->data)[i] = value; return;
  case NX_i32: ((int32_t *)x->data)[i] = (int32_t)value; return;
  case NX_u8: ((uint8_t *)x->data)[i] = (uint8_t)value; return;
  default: ((int64_t *)x->data)[i] = (int64_t)value; return;
  }
}

/* The best that this machine has, or what NX_TEST_TARGET (a number of nx_target) asks for. */
static uint32_t host_target(void) {
  const char *asked = getenv("NX_TEST_TARGET");
  if (asked) return (uint32_t)strtoul(asked, NULL, 10);
  static const struct {
    const char *flag;
    uint32_t target;
  } targets[] = {{" amx_bf16", NX_TARGET_CPU_AMX}, {" avx512f", NX_TARGET_CPU_AVX512}};
  char line[8192];
  uint32_t target = NX_TARGET_CPU_AVX2;
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && target == NX_TARGET_CPU_AVX2 && fgets(line, sizeof line, file))
    for (int index = 1; index >= 0; index--)
      if (strncmp(line, "flags", 5) == 0 && strstr(line, targets[index].flag)) target = targets[index].target;
  if (file) fclose(file);
  return target;
}

static uint32_t host_threads(void) {
  const char *asked = getenv("NX_TEST_THREADS");
  return asked ? (uint32_t)strtoul(asked, NULL, 10) : 2;
}

bool bench_open(test_bench *b, const nxk_backend *backend, uint64_t n_bytes) {
  nxk_fault fault = {{0}};
  nxk_device_options options = {.n_threads = host_threads(), .target = host_target()};
  void *base;
  *b = (test_bench){.backend = backend};
  b->n_bytes =
      n_bytes + (NX_MAX_ARGS + 1) * (GUARD_BYTES + NX_PLAN_ALIGNMENT) + FRAME_MOVE_BYTES + SHIFT_BYTES;
  if (!backend->open(&options, &b->device, &fault) ||
      !backend->arena_open(b->device, NX_ARENA_scratch, b->n_bytes, NULL, &base, &fault)) {
    fprintf(stderr, "# %s: %s\n", backend->name, fault.text);
    return false;
  }
  b->arena = base;
  return true;
}

void bench_close(test_bench *b) {
  b->backend->close(b->device);
}

static void attributes_set(test_operation *o, const record_operator *op, bool moved) {
  const nx_op_row *row = nx_op_find(op->op);
  for (uint32_t index = 0; index < op->n_attrs; index++) {
    o->operator.attrs[index] = op->attrs[index];
    if (!moved || !row->attrs[index].may_vary) continue;
    o->constants[index] = op->attrs[index].integer;
    o->operator.attrs[index] =(nxk_attr){.kind = NXK_CONSTANT, .constant = index};
  }
}

/* The operand before `index` that lies in the same place, or index. */
static uint32_t operand_first(const record_operator *op, tensor *const *args, const test_layout *layout,
                              uint32_t index) {
  if (layout->aliased && index == op->n_in + layout->out) return layout->in;
  for (uint32_t before = 0; before < index; before++)
    if (args[before] == args[index]) return before;
  return index;
}

static void operands_place(test_operation *o, const record_operator *op, tensor *const *args,
                           const test_layout *layout) {
  uint64_t first = layout->moved ? FRAME_MOVE_BYTES : 0, at = first + GUARD_BYTES;
  for (uint32_t index = 0; index < op->n_in + op->n_out; index++) {
    uint32_t same = operand_first(op, args, layout, index);
    o->places[index] = same == index ? at : o->places[same];
    if (same == index)
      at += (args[index]->n_bytes + NX_PLAN_ALIGNMENT - 1) / NX_PLAN_ALIGNMENT * NX_PLAN_ALIGNMENT +
            GUARD_BYTES;
    nxk_tensor *operand = &o->operator.args[index];
    *operand = (nxk_tensor){args[index]->dtype, args[index]->n_dims,      {0},
                            NX_ARENA_scratch,   o->places[index] - first, UINT32_MAX};
    memcpy(operand->dims, args[index]->dims, sizeof operand->dims);
    if (!layout->moved) continue;
    operand->shift_constant = NX_MAX_ATTRS + index;
    o->constants[NX_MAX_ATTRS + index] = index % 2 ? SHIFT_BYTES : 0;
    operand->offset = o->places[index] - first - (uint64_t)o->constants[NX_MAX_ATTRS + index];
  }
  o->n_used = at;
  assert(at <= o->bench->n_bytes);
}

bind_result operation_bind(test_operation *o, test_bench *b, const record_operator *op, tensor *const *args,
                           const test_layout *layout) {
  nxk_fault fault = {{0}};
  *o = (test_operation){
      .bench = b, .operator= {.op = op->op, .n_in = op->n_in, .n_out = op->n_out, .n_attrs = op->n_attrs} };
  attributes_set(o, op, layout->moved);
  operands_place(o, op, args, layout);
  o->frame.base[NX_ARENA_scratch] = b->arena + (layout->moved ? FRAME_MOVE_BYTES : 0);
  o->frame.seed = UINT64_C(0x123456789ABCDEF0);
  if (b->backend->bind(b->device, &o->operator, & o->kernel, &fault)) return BIND_DONE;
  if (!fault.text[0]) return BIND_DECLINED;
  fprintf(stderr, "# %s: bind: %s\n", b->backend->name, fault.text);
  return BIND_FAILED;
}

void operation_repeat(test_operation *o) {
  const test_bench *b = o->bench;
  o->frame.constants = o->constants;
  b->backend->enqueue(b->device, o->kernel, &o->frame);
  nxk_synchronize(b->backend, b->device);
}

/* The arena as it must look: guards, and the bytes of the operands. `outputs` overwrite what lies there. */
static void image_fill(const test_operation *o, char *image, tensor *const *args, const tensor *outputs) {
  memset(image, GUARD, o->n_used);
  for (uint32_t index = 0; index < o->operator.n_in + o->operator.n_out; index++)
    memcpy(image + o->places[index], args[index]->data, args[index]->n_bytes);
  for (uint32_t out = 0; outputs && out < o->operator.n_out; out++)
    memcpy(image + o->places[o->operator.n_in + out], outputs[out].data, outputs[out].n_bytes);
}

bool operation_run(test_operation *o, tensor *const *args, tensor *results, const test_layout *layout) {
  const test_bench *b = o->bench;
  uint32_t n_in = o->operator.n_in;
  char *image = malloc(o->n_used), *after = malloc(o->n_used);
  assert(image && after);
  image_fill(o, image, args, NULL);
  if (layout->aliased)
    memcpy(image + o->places[layout->in], args[layout->in]->data, args[layout->in]->n_bytes);
  b->backend->copy_in(b->device, b->arena, image, o->n_used);
  operation_repeat(o);
  b->backend->copy_out(b->device, after, b->arena, o->n_used);
  for (uint32_t out = 0; out < o->operator.n_out; out++)
    memcpy(results[out].data, after + o->places[n_in + out], results[out].n_bytes);
  image_fill(o, image, args, results);
  uint64_t at = 0;
  while (at < o->n_used && image[at] == after[at]) at++;
  bool good = at == o->n_used;
  if (!good)
    fprintf(stderr, "# %s: %s wrote outside its outputs, at byte %llu of %llu\n", b->backend->name,
            nx_op_find(o->operator.op)->name, (unsigned long long)at, (unsigned long long)o->n_used);
  free(image);
  free(after);
  return good;
}
