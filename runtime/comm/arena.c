/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MIB = 1 << 20 };

static uint64_t round_up(uint64_t n_bytes, uint64_t unit) {
  return (n_bytes + unit - 1) / unit * unit;
}

static uint64_t segment_size(const nx_plan *plan, uint32_t stage, uint64_t control_bytes) {
  uint64_t n_bytes = round_up(control_bytes, PAGE);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++)
    if (plan->arenas[i].flags & NX_ARENA_SHARED)
      n_bytes += round_up(nx_plan_stage_bytes(plan, stage, plan->arenas[i].kind), PAGE);
  return n_bytes;
}

static bool open_window(nxr_world *world, const nx_plan *plan, nxr_arenas *arenas, nxr_fault *fault) {
  arenas->segments = calloc(world->local_size, sizeof *arenas->segments);
  if (!arenas->segments) return nxr_fault_set(fault, "out of memory");
  arenas->segment_bytes = segment_size(plan, nx_plan_stage(plan, world->rank), arenas->control_bytes);
  if (!nxr_world_window(world, arenas->segment_bytes, (void **)arenas->segments, fault)) return false;
  arenas->own_segment = arenas->segments[world->local_rank];
  arenas->control = arenas->own_segment;
  memset(arenas->control, 0, arenas->control_bytes);
  return true;
}

/* Addresses without memory; what is touched becomes some. */
static void *reserve(uint64_t n_bytes, nxr_fault *fault) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *start = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (start != MAP_FAILED) return start;
  nxr_fault_set(fault,
                "the arenas of the rank have %llu MiB, and this process has no such addresses (ulimit -v)",
                (unsigned long long)(round_up(n_bytes, MIB) >> 20));
  return NULL;
}

/* The window of a host whose other ranks are not there: all segments are this one. */
static bool reserve_window(nxr_world *world, const nx_plan *plan, nxr_arenas *arenas, nxr_fault *fault) {
  arenas->segments = calloc(world->local_size, sizeof *arenas->segments);
  if (!arenas->segments) return nxr_fault_set(fault, "out of memory");
  arenas->segment_bytes = segment_size(plan, nx_plan_stage(plan, world->rank), arenas->control_bytes);
  arenas->own_segment = arenas->control = reserve(arenas->segment_bytes, fault);
  for (uint32_t i = 0; i < world->local_size; i++) arenas->segments[i] = arenas->own_segment;
  return arenas->own_segment != NULL;
}

static bool open_arena(const nxr_arenas *arenas, const nxk_backend *backend, nxk_device *device,
                       nx_arena_kind kind, uint64_t n_bytes, void *memory, void **base, nxk_fault *why,
                       nxr_fault *fault) {
  if (!arenas->reserved) return backend->arena_open(device, kind, n_bytes, memory, base, why);
  *base = memory ? memory : reserve(n_bytes, fault);
  return *base != NULL;
}

bool nxr_arenas_open(nxr_world *world, const nx_plan *plan, const nxk_backend *backend, nxk_device *device,
                     uint64_t control_bytes, bool use_window, nxr_arenas *arenas, nxr_fault *fault) {
  *arenas = (nxr_arenas){.control_bytes = control_bytes, .reserved = world->alone};
  uint64_t at = round_up(control_bytes, PAGE);
  if (use_window) {
    if (!(world->alone ? reserve_window : open_window)(world, plan, arenas, fault)) return false;
  } else if (!(arenas->control = aligned_alloc(PAGE, at))) {
    return nxr_fault_set(fault, "out of memory");
  } else {
    memset(arenas->control, 0, at);
  }
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++) {
    const nx_arena_record *arena = &plan->arenas[i];
    uint64_t n_bytes = nx_plan_stage_bytes(plan, nx_plan_stage(plan, world->rank), arena->kind);
    nxk_fault why = {""};
    bool shared = use_window && arena->flags & NX_ARENA_SHARED;
    void *memory = shared ? arenas->own_segment + at : NULL;
    if (shared) at += round_up(n_bytes, PAGE);
    nxr_world_beat();
    if (n_bytes == 0) continue;
    if (!open_arena(arenas, backend, device, arena->kind, n_bytes, memory, &arenas->base[arena->kind], &why,
                    fault))
      return nxr_fault_set(fault, "rank %u has no %llu MiB for the arena of %s: %s (nxcfg show PLAN --memory "
                           "says what takes it; more ranks or a smaller batch.micro need less)", world->rank,
                           (unsigned long long)(round_up(n_bytes, MIB) >> 20),
                           nx_arena_meaning(arena->kind), why.text);
    arenas->n_bytes[arena->kind] = n_bytes;
    arenas->shared[arena->kind] = shared;
  }
  return true;
}

void nxr_arenas_close(nxr_arenas *arenas) {
  for (uint32_t kind = 0; arenas->reserved && kind < NX_N_ARENAS; kind++)
    if (arenas->base[kind] && !arenas->shared[kind]) munmap(arenas->base[kind], arenas->n_bytes[kind]);
  if (arenas->reserved && arenas->own_segment) munmap(arenas->own_segment, arenas->segment_bytes);
  if (!arenas->segments) free(arenas->control);
  free(arenas->segments);
  *arenas = (nxr_arenas){0};
}

uint64_t nxr_arenas_bytes(const nxr_arenas *arenas) {
  uint64_t n_bytes = 0;
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) n_bytes += arenas->n_bytes[kind];
  return n_bytes;
}

void nxr_arenas_frame(const nxr_arenas *arenas, const nx_plan *plan, uint32_t chunk, uint32_t slot,
                      void *base[NX_N_ARENAS]) {
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    uint64_t start = plan->chunks[chunk].arena_base[kind];
    if (kind == NX_ARENA_slot) start += slot * plan->chunks[chunk].arena_bytes[kind];
    base[kind] = arenas->base[kind] ? (uint8_t *)arenas->base[kind] + start : NULL;
  }
}
