/* SPDX-License-Identifier: Apache-2.0 */
/* What a device's kernels keep and work in, within the plan's ceiling. */
#include "kernels/cpu/cpu.h"
#include "kernels/sized.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, SLAB_BYTES = 65536, HUGE_BYTES = 2 << 20 };

bool cpu_fail(nxk_fault *fault, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(fault->text, sizeof fault->text, format, arguments);
  va_end(arguments);
  return false;
}

static bool device_within(const nxk_device *device, uint64_t n_bytes, const char *what, nxk_fault *fault) {
  if (!device->ceiling_bytes || n_bytes <= device->ceiling_bytes) return true;
  return cpu_fail(fault,
                  "%s brings the workspace of the kernels to %.1f MiB, the plan allows %.1f MiB: raise "
                  "run.workspace_bytes",
                  what, (double)n_bytes / 1048576, (double)device->ceiling_bytes / 1048576);
}

/* What is mapped for n_bytes: a last huge page that they fill by half is whole. */
static uint64_t mapped_bytes(uint64_t n_bytes) {
  uint64_t unit = n_bytes % HUGE_BYTES < HUGE_BYTES / 2 ? PAGE_BYTES : HUGE_BYTES;
  return (n_bytes + unit - 1) / unit * unit;
}

/* From a multiple of HUGE_BYTES on: elsewhere Linux makes no huge pages, and it looks for such a place only
 * where the length is a multiple too. */
static char *map_huge(uint64_t n_bytes) {
  char *pages =
      mmap(NULL, n_bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return NULL;
  uint64_t before = -(uintptr_t)pages % HUGE_BYTES;
  if (before) munmap(pages, before);
  munmap(pages + before + n_bytes, HUGE_BYTES - before);
  madvise(pages + before, n_bytes, MADV_HUGEPAGE);
  return pages + before;
}

void cpu_unmap(void *pages, uint64_t n_bytes) {
  munmap(pages, mapped_bytes(n_bytes));
}

/* Zeroed pages, touched by all threads, or NULL. The kernel clears a page where it is first touched: a huge
 * one at once. */
static void *device_map(uint64_t n_bytes) {
  void *pages = map_huge(mapped_bytes(n_bytes));
  if (!pages) return NULL;
  volatile char *touched = pages;
#pragma omp parallel for schedule(static)
  for (uint64_t huge = 0; huge < n_bytes; huge += HUGE_BYTES)
    for (uint64_t at = huge; at < n_bytes && at < huge + HUGE_BYTES; at += PAGE_BYTES) touched[at] = 0;
  return pages;
}

cpu_block *cpu_block_new(nxk_device *device, uint64_t n_bytes) {
  cpu_block *block = device_map(n_bytes + CPU_ALIGNMENT);
  if (!block) return NULL;
  *block = (cpu_block){device->blocks, n_bytes + CPU_ALIGNMENT};
  device->blocks = block;
  return block;
}

bool cpu_count(nxk_device *device, uint64_t n_bytes, const char *what, nxk_fault *fault) {
  if (!device_within(device, device->kept_bytes + device->scratch_bytes + n_bytes, what, fault)) return false;
  device->kept_bytes += n_bytes;
  return true;
}

/* A block that small things share; the rest of the last one is lost when a new one is needed. */
static void *slab_take(nxk_device *device, uint64_t n_bytes, nxk_fault *fault, const char *what) {
  if (device->slab_left < n_bytes) {
    if (!cpu_count(device, SLAB_BYTES, what, fault)) return NULL;
    cpu_block *block = cpu_block_new(device, SLAB_BYTES - CPU_ALIGNMENT);
    if (!block) return NULL;
    device->slab = (char *)block + CPU_ALIGNMENT;
    device->slab_left = SLAB_BYTES - CPU_ALIGNMENT;
  }
  void *taken = device->slab;
  device->slab += n_bytes;
  device->slab_left -= n_bytes;
  return taken;
}

void *cpu_keep(nxk_device *device, uint64_t n_bytes, const char *what, nxk_fault *fault) {
  if (n_bytes <= SLAB_BYTES / 8) return slab_take(device, cpu_align(n_bytes), fault, what);
  uint64_t n_pages = (n_bytes + CPU_ALIGNMENT + PAGE_BYTES - 1) / PAGE_BYTES;
  if (!cpu_count(device, n_pages * PAGE_BYTES, what, fault)) return NULL;
  cpu_block *block = cpu_block_new(device, n_bytes);
  if (block) return (char *)block + CPU_ALIGNMENT;
  cpu_fail(fault, "%s: no memory for %.1f MiB", what, (double)n_bytes / 1048576);
  return NULL;
}

bool cpu_fits(const nxk_device *device, uint64_t n_bytes) {
  return !device->ceiling_bytes || device->kept_bytes + n_bytes <= device->ceiling_bytes;
}

bool cpu_reserve(nxk_device *device, uint64_t n_bytes, const char *what, nxk_fault *fault) {
  if (n_bytes <= device->scratch_bytes) return true;
  if (!device_within(device, device->kept_bytes + n_bytes, what, fault)) return false;
  if (device->scratch) cpu_unmap(device->scratch, device->scratch_bytes);
  device->scratch_bytes = 0;
  device->scratch = device_map(n_bytes);
  if (!device->scratch) return cpu_fail(fault, "%s: no memory for %.1f MiB", what, (double)n_bytes / 1048576);
  device->scratch_bytes = n_bytes;
  return true;
}

bool cpu_reserve_said(nxk_kernel *kernel, nxk_fault *fault) {
  const nx_sized_operator sized = nxk_sized(&kernel->operator);
  uint64_t n_bytes = nx_workspace_of(&sized, NX_TARGET_CPU_AVX2, kernel->device->n_threads).most;
  return cpu_reserve(kernel->device, n_bytes, nx_op_find(kernel->operator.op)->name, fault);
}
