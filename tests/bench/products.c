/* SPDX-License-Identifier: Apache-2.0 */
/* products [ROUNDS]: the products of a step of GPT-2 124M (tests/bench/gpt2-124m.yaml) by one thread, with
 * oneDNN and as the cpu backend makes them, beside what the core can: a loop that multiplies registers alone,
 * or AMX's tiles where there are any. Counted is the thread's processor time, so that other work on the
 * machine is left out but for what it takes of the caches. Prints the first quartile of the rounds in
 * GFLOP/s, for bf16 and fp32. Only for processors with AVX512_BF16. */
#include "kernels/cpu/product.h"
#include "schema/plan.h"

#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST_ROUNDS = 64, SUMS = 24, PEAK_STEPS = 4000000, MEMORY = 768 << 20, TILE_FLOPS = 2 * 16 * 16 * 32 };

typedef struct product {
  int64_t m, n, k;
  bool trans_a, trans_b;
  int n_runs; /* of a step */
} product;

/* Forward, gradients of what was read, gradients of weights. */
static const product products[] = {
    {1024, 2304, 768, false, true, 12},  {1024, 768, 768, false, true, 12},
    {1024, 3072, 768, false, true, 12},  {1024, 768, 3072, false, true, 12},
    {1024, 50304, 768, false, true, 1},  {1024, 768, 50304, false, false, 1},
    {1024, 3072, 768, false, false, 12}, {1024, 768, 3072, false, false, 12},
    {1024, 768, 2304, false, false, 12}, {1024, 768, 768, false, false, 12},
    {3072, 768, 1024, true, false, 12},  {768, 768, 1024, true, false, 12},
    {768, 3072, 1024, true, false, 12},  {2304, 768, 1024, true, false, 12},
    {50304, 768, 1024, true, false, 1},
};

static void fail(const char *why) {
  fprintf(stderr, "products: %s\n", why);
  exit(1);
}

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double quartile(double *seconds, int n) {
  qsort(seconds, (size_t)n, sizeof *seconds, ascending);
  return seconds[n / 4];
}

#define WIDE __attribute__((target("avx512f,avx512bf16")))

WIDE static double peak_once(bool narrow) {
  __m512 sum[SUMS];
  __m512i a = _mm512_set1_epi32(0x3C003C00), b = a;
  for (int i = 0; i < SUMS; i++) sum[i] = _mm512_setzero_ps();
  double start = now_s();
  for (int step = 0; step < PEAK_STEPS; step++) {
#pragma GCC unroll 24
    for (int i = 0; i < SUMS; i++)
      sum[i] = narrow ? _mm512_dpbf16_ps(sum[i], (__m512bh)a, (__m512bh)b)
                      : _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum[i]);
    __asm__ volatile("" : "+v"(a), "+v"(b));
  }
  double seconds = now_s() - start;
  for (int i = 0; i < SUMS; i++) __asm__ volatile("" : : "v"(sum[i]));
  return seconds;
}

__attribute__((target("amx-tile,amx-bf16"))) static double tiles_once(void) {
  const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t n_rows[16];
  } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&config);
  double start = now_s();
  for (int step = 0; step < PEAK_STEPS / 16; step++) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  double seconds = now_s() - start;
  _tile_release();
  return seconds;
}

static double peak_flops(bool narrow, bool tiles, int n_rounds) {
  double seconds[MOST_ROUNDS];
  for (int i = 0; i < n_rounds; i++) seconds[i] = narrow && tiles ? tiles_once() : peak_once(narrow);
  double flops = narrow && tiles ? 4.0 / 16 * TILE_FLOPS : (narrow ? 64.0 : 32.0) * SUMS;
  return flops * PEAK_STEPS / quartile(seconds, n_rounds);
}

/* oneDNN's as the backend would ask for it without a loop of its own. */
static cpu_gemm *find(nxk_device *device, const product *p, nx_dtype type, const cpu_products *own) {
  nxk_fault fault = {""};
  cpu_gemm_form form = {.m = p->m,
                        .n = p->n,
                        .k = p->k,
                        .a_stride = p->trans_a ? p->m : p->k,
                        .b_stride = p->trans_b ? p->k : p->n,
                        .c_stride = p->n,
                        .trans_a = p->trans_a,
                        .trans_b = p->trans_b,
                        .pack_b = own || !p->trans_b || device->target == NX_TARGET_CPU_AMX,
                        .type = type,
                        .c_type = p->trans_a ? NX_f32 : type};
  device->products = own;
  device->gemms = NULL; /* those made before are left as they are */
  cpu_gemm *gemm = cpu_gemm_find(device, &form, &fault);
  if (!gemm || !cpu_reserve(device, cpu_gemm_scratch_bytes(device, gemm), "products", &fault))
    fail(fault.text[0] ? fault.text : "oneDNN lacks a product");
  return gemm;
}

static void measure(nxk_device *device, const cpu_products *own_products, nx_dtype type, char *memory,
                    int n_rounds, double total[2]) {
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    const product *p = &products[i];
    double seconds[2][MOST_ROUNDS], flops = 2 * (double)p->m * (double)p->n * (double)p->k;
    cpu_gemm *gemms[2] = {find(device, p, type, NULL), find(device, p, type, own_products)};
    char *b = memory + MEMORY / 3, *c = memory + MEMORY / 3 * 2;
    for (int round = 0; round < n_rounds; round++)
      for (int own = 0; own < 2; own++) {
        double start = now_s();
        cpu_gemm_run(device, gemms[own], memory, b, NULL, c, device->scratch);
        seconds[own][round] = now_s() - start;
      }
    double onednn = quartile(seconds[0], n_rounds), own = quartile(seconds[1], n_rounds);
    printf("%s %5lld x %5lld x %5lld  oneDNN %5.0f  own %5.0f GFLOP/s\n", nx_dtype_name(type),
           (long long)p->m, (long long)p->n, (long long)p->k, flops / onednn * 1e-9, flops / own * 1e-9);
    total[0] += p->n_runs * onednn;
    total[1] += p->n_runs * own;
  }
}

int main(int argc, char **argv) {
  int n_rounds = argc > 1 ? atoi(argv[1]) : 9;
  if (argc > 2 || n_rounds < 1 || n_rounds > MOST_ROUNDS) fail("usage: products [ROUNDS], at most 64");
  if (!__builtin_cpu_supports("avx512bf16")) fail("this processor has no AVX512_BF16");
  bool tiles = __builtin_cpu_supports("amx-bf16");
  nxk_device_options options = {.n_threads = 1, .target = tiles ? NX_TARGET_CPU_AMX : NX_TARGET_CPU_AVX512};
  nxk_device *device;
  nxk_fault fault;
  if (!nxk_cpu.open(&options, &device, &fault)) fail(fault.text);
  const cpu_products *own = device->products;
  if (!own) fail("the backend has no loop of its own on this processor");
  char *memory = aligned_alloc(1 << 21, MEMORY);
  if (!memory) fail("out of memory");
  madvise(memory, MEMORY, MADV_HUGEPAGE); /* as arenas are */
  for (uint32_t i = 0; i < MEMORY / sizeof i; i++)
    ((uint32_t *)(void *)memory)[i] = 0x3C003C00 | (i * 2654435761U & 0x83FF83FF);
  for (int narrow = 1; narrow >= 0; narrow--) {
    double flops = 0, total[2] = {0}, peak = peak_flops(narrow, tiles, n_rounds);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
      flops +=
          2.0 * (double)products[i].m * (double)products[i].n * (double)products[i].k * products[i].n_runs;
    measure(device, own, narrow ? NX_bf16 : NX_f32, memory, n_rounds, total);
    printf("%s, a step: registers alone %.0f GFLOP/s; of that oneDNN %.2f, own %.2f; oneDNN / own %.3f\n",
           narrow ? "bf16" : "fp32", peak * 1e-9, flops / total[0] / peak, flops / total[1] / peak,
           total[0] / total[1]);
  }
  return 0;
}
