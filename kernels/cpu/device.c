/* SPDX-License-Identifier: Apache-2.0 */
/* The backend's table: one device per rank, host memory, kernels that run at once. */
#include "kernels/cpu/product.h"
#include "kernels/sized.h"
#include "schema/plan.h"

#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

enum { FLUSH_DENORMALS = 0x8040 /* FTZ and DAZ of MXCSR */ };

static void device_close(nxk_device *device) {
  cpu_dnnl_close(device);
  if (device->scratch) cpu_unmap(device->scratch, device->scratch_bytes);
  while (device->blocks) {
    cpu_block *block = device->blocks;
    device->blocks = block->next;
    cpu_unmap(block, block->n_bytes);
  }
  free(device);
}

/* The pool is made here, so that its threads exist, flush denormals and are counted before anything is
 * bound. */
static void device_start_threads(uint32_t n_threads) {
  omp_set_dynamic(0);
  omp_set_num_threads((int)n_threads);
#pragma omp parallel num_threads((int)n_threads)
  _mm_setcsr(_mm_getcsr() | FLUSH_DENORMALS);
}

static void device_choose_tables(nxk_device *device) {
  device->native_bf16 = cpu_has_fast_bf16(device->target);
  device->table = device->target == NX_TARGET_CPU_AVX2 ? &cpu_table_avx2 : &cpu_table_avx512;
  if (!device->native_bf16) return;
  device->table = &cpu_table_avx512bf16;
  bool amx = device->target == NX_TARGET_CPU_AMX;
  device->faster = amx ? &cpu_table_amx : &cpu_table_bf16;
  device->products = amx ? &cpu_products_amx : &cpu_products_bf16;
}

static bool device_open(const nxk_device_options *options, nxk_device **device, nxk_fault *fault) {
  fault->text[0] = 0;
  if (!cpu_target_check(options->target, fault)) return false;
  if (options->target == NX_TARGET_CPU_AMX && !cpu_amx_permit(fault)) return false;
  nxk_device *made = calloc(1, sizeof *made);
  if (!made) return cpu_fail(fault, "no memory for a device");
  made->n_threads = options->n_threads ? options->n_threads : 1;
  made->target = options->target;
  made->ceiling_bytes = options->workspace_bytes;
  device_choose_tables(made);
  device_start_threads(made->n_threads);
  if (!cpu_dnnl_open(made, fault)) {
    device_close(made);
    return false;
  }
  *device = made;
  return true;
}

static bool device_arena_open(nxk_device *device, nx_arena_kind kind, uint64_t n_bytes, void *shared,
                              void **base, nxk_fault *fault) {
  fault->text[0] = 0;
  if (shared) {
    memset(shared, 0, n_bytes);
    *base = shared;
    return true;
  }
  cpu_block *block = cpu_block_new(device, n_bytes);
  if (!block)
    return cpu_fail(fault, "arena %s: no memory for %.1f MiB", nx_arena_name(kind),
                    (double)n_bytes / 1048576);
  *base = (char *)block + CPU_ALIGNMENT;
  return true;
}

static void device_copy(nxk_device *device, void *destination, const void *source, uint64_t n_bytes) {
  (void)device;
  memcpy(destination, source, n_bytes);
}

static bool device_bind(nxk_device *device, const nxk_operator *operator, nxk_kernel ** kernel,
                        nxk_fault *fault) {
  const cpu_table *tables[] = {device->faster, device->table};
  fault->text[0] = 0;
  if (operator->op >= NX_OP_END || !device->table->families[operator->op].run) return false;
  nxk_kernel *made = cpu_keep(device, sizeof *made, "a kernel", fault);
  for (size_t i = 0; made && !fault->text[0] && i < sizeof tables / sizeof *tables; i++) {
    const cpu_family *family = tables[i] ? &tables[i]->families[operator->op] : NULL;
    if (!family || !family->run) continue;
    *made = (nxk_kernel){.device = device, .run = family->run, .operator= * operator};
    if (!family->bind(made, fault)) continue;
    *kernel = made;
    return true;
  }
  return false;
}

static void device_enqueue(nxk_device *device, nxk_kernel *kernel, const nxk_frame *frame) {
  (void)device;
  kernel->run(kernel, frame);
}

static void device_sum(nxk_device *device, void *y, nx_dtype y_dtype, const void *const *x,
                       uint32_t n_sources, nx_dtype x_dtype, uint64_t n_elements) {
  device->table->sum(device, y, y_dtype, x, n_sources, x_dtype, n_elements);
}

static uint64_t device_workspace_bytes(const nxk_device *device) {
  return device->kept_bytes + device->scratch_bytes;
}

const nxk_backend nxk_cpu = {
  .name = "cpu",
  .host_addressable = true,
  .open = device_open,
  .close = device_close,
  .arena_open = device_arena_open,
  .copy_in = device_copy,
  .copy_out = device_copy,
  .bind = device_bind,
  .enqueue = device_enqueue,
  .sum = device_sum,
  .workspace_bytes = device_workspace_bytes,
};
