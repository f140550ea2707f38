/* SPDX-License-Identifier: Apache-2.0 */
/* kernels [THREADS] [ROUNDS]: how many bytes a second each update rule moves on the cpu backend, in fp32,
 * beside a copy of as large an array. Each rule takes turns with the copy; medians count. A rule of elements
 * at memory speed has a share of 1; below 0.85 something else holds it up. Rules of tensors read some arrays
 * more than once, which is not counted. Muon's are left out: products take their time. */
#include "kernels/backend.h"
#include "schema/optimizers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1 << 24, COLUMNS = 1 << 12, MOST_ARRAYS = 2 + NX_MAX_STATES, MOST_ROUNDS = 64 };

static const char *const rules[] = {
#define OPTIMIZER(number, name, kind, n_states, meaning) #name,
#include "schema/optimizers.def"
};

typedef struct bench {
  nxk_device *device;
  char *memory;
  uint32_t n_rounds;
} bench;

static void fail(const char *why) {
  fprintf(stderr, "kernels: %s\n", why);
  exit(1);
}

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The i-th of the large arrays; behind them stand numbers, 64 bytes each. */
static nxk_tensor array(uint32_t i) {
  return (nxk_tensor){.dtype = NX_f32, .n_dims = 1, .dims = {N, 1, 1, 1}, .arena = NX_ARENA_slot,
                      .offset = (uint64_t)i * N * sizeof(float), .shift_constant = UINT32_MAX};
}

static nxk_tensor number(uint32_t i, nx_dtype type) {
  return (nxk_tensor){.dtype = type,
                      .n_dims = 1,
                      .dims = {1, 1, 1, 1},
                      .arena = NX_ARENA_slot,
                      .offset = (uint64_t)MOST_ARRAYS * N * sizeof(float) + 64 * i,
                      .shift_constant = UINT32_MAX};
}

static nxk_kernel *bind(const bench *b, const nxk_operator *op) {
  nxk_kernel *kernel;
  nxk_fault fault = {""};
  if (!nxk_cpu.bind(b->device, op, &kernel, &fault))
    fail(fault.text[0] ? fault.text : "the backend declines a rule");
  return kernel;
}

/* Any numbers that the rule takes; speed does not hang on them. */
static nxk_attr attribute(const nx_attr_row *row) {
  if (strcmp(row->name, "tensor_rows") == 0) return (nxk_attr){.kind = NXK_INT, .integer = N / COLUMNS};
  if (row->type != NX_REAL) return (nxk_attr){.kind = NXK_INT, .integer = row->least > 0 ? 1 : 0};
  return (nxk_attr){.kind = NXK_REAL, .real = row->lowest >= 1 ? 1.2 : 0.5};
}

static nxk_kernel *bind_rule(const bench *b, const nx_optimizer_row *rule) {
  const nx_op_row *row = nx_op_find(rule->op);
  uint32_t n_kept = 1 + nx_optimizer_n_states(rule);
  nxk_operator op = {
      .op = rule->op, .n_in = n_kept + NX_UPDATE_END, .n_out = n_kept, .n_attrs = nx_op_n_attrs(row)};
  for (uint32_t i = 0; i <= n_kept; i++) {
    op.args[i] = array(i);
    if (rule->kind != NX_ELEMENT) op.args[i].n_dims = 2, op.args[i].dims[0] = N / COLUMNS;
    if (rule->kind != NX_ELEMENT) op.args[i].dims[1] = COLUMNS;
  }
  for (uint32_t i = 0; i < n_kept; i++) op.args[op.n_in + i] = op.args[i];
  for (uint32_t i = NX_UPDATE_LR; i < NX_UPDATE_END; i++)
    op.args[n_kept + i] = number(i, i == NX_UPDATE_STEP ? NX_i64 : NX_f64);
  for (uint32_t i = 0; i < op.n_attrs; i++) op.attrs[i] = attribute(&row->attrs[i]);
  return bind(b, &op);
}

static double run(const bench *b, nxk_kernel *kernel) {
  const nxk_frame frame = {.base = {[NX_ARENA_slot] = b->memory}};
  double start = now_s();
  nxk_cpu.enqueue(b->device, kernel, &frame);
  return now_s() - start;
}

static int ascending(const void *a, const void *b) {
  double one = *(const double *)a, other = *(const double *)b;
  return (one > other) - (one < other);
}

static double median(double *seconds, uint32_t n) {
  qsort(seconds, n, sizeof *seconds, ascending);
  return seconds[n / 2];
}

static void fill(const bench *b) {
  float *x = (float *)(void *)b->memory;
  uint32_t state = 1;
  for (size_t i = 0; i < (size_t)MOST_ARRAYS * N; i++) {
    state = state * 1664525 + 1013904223;
    x[i] = (float)(state >> 8) / 16777216.0F + 0.5F;
  }
  for (uint32_t i = NX_UPDATE_LR; i < NX_UPDATE_END; i++)
    *(double *)(void *)(b->memory + number(i, NX_f64).offset) = i == NX_UPDATE_SCALE ? 1 : 1e-3;
  *(int64_t *)(void *)(b->memory + number(NX_UPDATE_STEP, NX_i64).offset) = 3;
}

static void measure(const bench *b, const nx_optimizer_row *rule, nxk_kernel *copy) {
  double updates[MOST_ROUNDS], copies[MOST_ROUNDS];
  nxk_kernel *kernel = bind_rule(b, rule);
  fill(b);
  run(b, kernel), run(b, copy);
  for (uint32_t i = 0; i < b->n_rounds; i++) updates[i] = run(b, kernel), copies[i] = run(b, copy);
  double moved = (double)N * sizeof(float) * (2 * (1 + nx_optimizer_n_states(rule)) + 1);
  double speed = moved / median(updates, b->n_rounds);
  double copied = 2.0 * N * sizeof(float) / median(copies, b->n_rounds);
  printf("%-20s %7.2f GB/s  copy %7.2f GB/s  share %.2f\n", rule->name, 1e-9 * speed, 1e-9 * copied,
         speed / copied);
}

int main(int argc, char **argv) {
  nxk_device_options options = {.n_threads = argc > 1 ? (uint32_t)atoi(argv[1]) : 1,
                                .target = 1 /* AVX2: memory is as fast for all */};
  bench b = {.n_rounds = argc > 2 ? (uint32_t)atoi(argv[2]) : 7};
  void *memory;
  nxk_fault fault = {""};
  if (b.n_rounds < 1 || b.n_rounds > MOST_ROUNDS) fail("usage: kernels [THREADS] [ROUNDS]");
  if (!nxk_cpu.open(&options, &b.device, &fault)) fail(fault.text);
  uint64_t bytes = number(NX_UPDATE_END, NX_f64).offset;
  if (!nxk_cpu.arena_open(b.device, NX_ARENA_slot, bytes, NULL, &memory, &fault)) fail(fault.text);
  b.memory = memory;
  const nxk_operator cast = {.op = NX_OP_cast, .n_in = 1, .n_out = 1, .args = {array(0), array(1)}};
  nxk_kernel *copy = bind(&b, &cast);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const nx_optimizer_row *rule = nx_optimizer_find(rules[i]);
    if (rule->kind != NX_MATRIX) measure(&b, rule, copy);
  }
  nxk_cpu.close(b.device);
  return 0;
}
