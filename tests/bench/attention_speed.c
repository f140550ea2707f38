/* SPDX-License-Identifier: Apache-2.0 */
/* attention_speed fp32|bf16 TOKENS HEADS WIDTH THREADS TARGET: serves `attention`. For each line that it
 * reads it runs the cpu backend's attention once forward and once backward, and prints the two times in
 * milliseconds. */
#include "kernels/backend.h"
#include "tests/bench/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 64 };

static void fail(const char *why) {
  fprintf(stderr, "attention_speed: %s\n", why);
  exit(1);
}

static nxk_tensor make(nx_dtype type, int64_t a, int64_t b, int64_t c, int64_t d, uint32_t n, uint64_t *end) {
  nxk_tensor x = {.dtype = type, .n_dims = n, .dims = {a, b, c, d}, .arena = NX_ARENA_slot, .offset = *end,
                  .shift_constant = UINT32_MAX};
  uint64_t width = type == NX_bf16 ? 2 : type == NX_i64 ? 8 : 4;
  *end += ((uint64_t)(a * b * c * d) * width + 4095) / 4096 * 4096;
  return x;
}

static nxk_kernel *bind(nxk_device *device, nxk_operator *op, double scale) {
  nxk_kernel *kernel;
  nxk_fault fault = {""};
  op->n_attrs = nx_op_n_attrs(nx_op_find(op->op));
  for (uint32_t i = 0; i < op->n_attrs; i++) op->attrs[i] = (nxk_attr){.kind = NXK_INT};
  op->attrs[NX_attention_scale] = (nxk_attr){.kind = NXK_REAL, .real = scale};
  op->attrs[NX_attention_dropout] = op->attrs[NX_attention_soft_cap] = (nxk_attr){.kind = NXK_REAL};
  op->attrs[NX_attention_layer_number].integer = 1;
  if (!nxk_cpu.bind(device, op, &kernel, &fault))
    fail(fault.text[0] ? fault.text : "the backend declines it");
  return kernel;
}

/* Numbers between -1 and 1, the same on every run. */
static void fill(char *base, const nxk_tensor *x) {
  uint32_t state = 1;
  int64_t n = nxk_n_elements(x);
  for (int64_t i = 0; i < n; i++) {
    state = state * 1664525 + 1013904223;
    float value = (float)(int32_t)state / 2147483648.0F;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (x->dtype == NX_bf16) ((uint16_t *)(base + x->offset))[i] = (uint16_t)(bits >> 16);
    else ((float *)(base + x->offset))[i] = value;
  }
}

static double run(nxk_device *device, nxk_kernel *kernel, const nxk_frame *frame) {
  double start = now_ms();
  nxk_cpu.enqueue(device, kernel, frame);
  return now_ms() - start;
}

int main(int argc, char **argv) {
  if (argc != 7) fail("usage: attention_speed fp32|bf16 TOKENS HEADS WIDTH THREADS TARGET");
  nx_dtype type = strcmp(argv[1], "bf16") == 0 ? NX_bf16 : NX_f32;
  int64_t tokens = atoll(argv[2]), heads = atoll(argv[3]), width = atoll(argv[4]);
  nxk_device_options options = {.n_threads = (uint32_t)atoi(argv[5]), .target = (uint32_t)atoi(argv[6])};
  nxk_device *device;
  nxk_fault fault = {""};
  if (!nxk_cpu.open(&options, &device, &fault)) fail(fault.text);
  uint64_t end = 0;
  nxk_tensor heads4[6], o, dout, lse, samples;
  for (int i = 0; i < 6; i++) heads4[i] = make(type, 1, heads, tokens, width, 4, &end); /* q k v dq dk dv */
  o = make(type, 1, tokens, heads * width, 1, 3, &end),
  dout = make(type, 1, tokens, heads * width, 1, 3, &end);
  lse = make(NX_f32, 1, heads, tokens, 1, 3, &end), samples = make(NX_i64, 1, 1, 1, 1, 1, &end);
  nxk_operator forward = {.op = NX_OP_attention,
                          .n_in = 4,
                          .n_out = 2,
                          .args = {heads4[0], heads4[1], heads4[2], samples, o, lse}};
  nxk_operator backward = {
      .op = NX_OP_attention_grad, .n_in = 7, .n_out = 3,
      .args = {dout, heads4[0], heads4[1], heads4[2], o, lse, samples, heads4[3], heads4[4], heads4[5]}};
  nxk_kernel *kernels[] = {bind(device, &forward, 0.125), bind(device, &backward, 0.125)};
  void *base;
  if (!nxk_cpu.arena_open(device, NX_ARENA_slot, end, NULL, &base, &fault)) fail(fault.text);
  nxk_frame frame = {.base = {[NX_ARENA_slot] = base}};
  for (int i = 0; i < 3; i++) fill(base, &heads4[i]);
  fill(base, &dout);
  char line[MAX_LINE];
  while (fgets(line, sizeof line, stdin)) {
    double forward_ms = run(device, kernels[0], &frame), backward_ms = run(device, kernels[1], &frame);
    printf("%.3f %.3f\n", forward_ms, backward_ms);
    fflush(stdout);
  }
  nxk_cpu.close(device);
  return 0;
}
