/* SPDX-License-Identifier: Apache-2.0 */
/* soap_speed ROWS COLUMNS THREADS TARGET: serves `soap`. For each line that it reads it runs the cpu
 * backend's update of one matrix, of another gradient each time, and prints the time in milliseconds. The
 * first one finds the eigenvectors that the others follow. */
#include "kernels/backend.h"
#include "schema/optimizers.h"
#include "tests/bench/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 64, N_KEPT = 5, GRADIENT = N_KEPT, N_IN = N_KEPT + NX_UPDATE_END };

typedef struct bench {
  nxk_tensor operands[N_IN];
  uint64_t n_bytes;
  char *memory;
} bench;

static void fail(const char *why) {
  fprintf(stderr, "soap_speed: %s\n", why);
  exit(1);
}

static void place(bench *b, uint32_t operand, nx_dtype type, int64_t rows, int64_t columns) {
  b->operands[operand] = (nxk_tensor){.dtype = type,
                                      .n_dims = rows > 0 ? 2 : 1,
                                      .dims = {rows > 0 ? rows : 1, columns, 1, 1},
                                      .arena = NX_ARENA_slot,
                                      .offset = b->n_bytes,
                                      .shift_constant = UINT32_MAX};
  uint64_t n = (uint64_t)((rows > 0 ? rows : 1) * columns);
  b->n_bytes += (n * (type == NX_f32 ? 4 : 8) + 4095) / 4096 * 4096;
}

static nxk_kernel *bind(const bench *b, nxk_device *device) {
  nxk_kernel *kernel;
  nxk_fault fault = {""};
  nxk_operator op = {.op = NX_OP_soap, .n_in = N_IN, .n_out = N_KEPT};
  op.n_attrs = nx_op_n_attrs(nx_op_find(op.op));
  memcpy(op.args, b->operands, sizeof b->operands);
  memcpy(op.args + N_IN, b->operands, N_KEPT * sizeof *b->operands);
  for (uint32_t i = 0; i < op.n_attrs; i++) op.attrs[i] = (nxk_attr){.kind = NXK_INT};
  const struct {
    uint32_t attr;
    double number;
  } numbers[] = {
      {NX_soap_beta1, 0.9}, {NX_soap_beta2, 0.95}, {NX_soap_basis_epsilon, 1e-8}, {NX_soap_factor_beta, 0.9}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    op.attrs[numbers[i].attr] = (nxk_attr){.kind = NXK_REAL, .real = numbers[i].number};
  if (!nxk_cpu.bind(device, &op, &kernel, &fault)) fail(fault.text);
  return kernel;
}

static void *at(const bench *b, uint32_t operand) {
  return b->memory + b->operands[operand].offset;
}

static void draw(const bench *b, uint32_t *state) {
  float *g = at(b, GRADIENT);
  for (int64_t i = 0; i < b->operands[GRADIENT].dims[0] * b->operands[GRADIENT].dims[1]; i++) {
    *state = *state * 1664525 + 1013904223;
    g[i] = (float)(*state >> 8) / 16777216.0F - 0.5F;
  }
}

int main(int argc, char **argv) {
  if (argc != 5) fail("usage: soap_speed ROWS COLUMNS THREADS TARGET");
  const int64_t side[2] = {atoll(argv[1]), atoll(argv[2])};
  nxk_device_options options = {.n_threads = (uint32_t)atoi(argv[3]), .target = (uint32_t)atoi(argv[4])};
  nxk_device *device;
  nxk_fault fault = {""};
  bench b = {.n_bytes = 0};
  char line[MAX_LINE];
  uint32_t state = 1;
  if (side[0] < 1 || side[1] < 1 || !nxk_cpu.open(&options, &device, &fault)) fail(fault.text);
  for (uint32_t i = 0; i < 3; i++) place(&b, i, NX_f32, side[0], side[1]);
  for (uint32_t i = 0; i < 2; i++) place(&b, 3 + i, NX_f32, 2 * side[i], side[i]);
  place(&b, GRADIENT, NX_f32, side[0], side[1]);
  for (uint32_t i = GRADIENT + 1; i < N_IN; i++) place(&b, i, i + 1 == N_IN ? NX_i64 : NX_f64, 0, 1);
  b.memory = aligned_alloc(4096, b.n_bytes);
  if (b.memory == NULL) fail("out of memory");
  memset(b.memory, 0, b.n_bytes);
  *(double *)at(&b, GRADIENT + NX_UPDATE_LR) = 1e-3;
  *(double *)at(&b, GRADIENT + NX_UPDATE_SCALE) = 1;
  nxk_kernel *kernel = bind(&b, device);
  const nxk_frame frame = {.base = {[NX_ARENA_slot] = b.memory}};
  for (; fgets(line, sizeof line, stdin); ++*(int64_t *)at(&b, N_IN - 1)) {
    draw(&b, &state);
    double start = now_ms();
    nxk_cpu.enqueue(device, kernel, &frame);
    printf("%.3f\n", now_ms() - start);
    fflush(stdout);
  }
  nxk_cpu.close(device);
  free(b.memory);
  return 0;
}
