/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives within a host: peers' operands are read where they lie, in the window.
 *
 * Each member posts where its operands are and how far it is. Phase 1: operands are ready. Phase 2
 * (all_reduce only): its part of the sum stands in its y. Phase 3: it has read all it needs. When all have
 * reached phase 3 the collective is complete, and its operands may be overwritten. In an all_reduce member i
 * alone reads part i of the members' x, before it writes part i of its y; so y may be x.
 *
 * What is small has phase 1 alone: its x is copied to the control memory, and each member works out all of
 * its y from there. That is overwritten by the start NXR_SMALL_STARTS later, when all members have posted the
 * one in the middle: they do so when that before it in the same post is complete, so they have read. */
#include "runtime/comm/comm_transport.h"

#include <string.h>

static nxr_post *post_of(const nxr_collective *collective, uint32_t position) {
  return &collective->group->posts[position][collective->sequence % NXR_WINDOW_STARTS];
}

static void post_phase(nxr_collective *collective, uint32_t phase) {
  nxr_post *post = post_of(collective, collective->group->position);
  collective->phase = phase;
  collective->waits_for = 0;
  atomic_thread_fence(memory_order_seq_cst); /* kernels may have written past the cache */
  atomic_store_explicit(&post->flag, 4 * collective->sequence + phase, memory_order_release);
}

static bool shared_bind(nxr_comm *comm, nxr_collective *collective, nxr_fault *fault) {
  (void)comm, (void)fault;
  nx_op op = collective->spec.op;
  collective->is_small = (op == NX_OP_all_reduce || op == NX_OP_reduce_scatter || op == NX_OP_all_gather) &&
                         collective->group->size <= NXR_SMALL_MEMBERS &&
                         nxr_comm_x_bytes(collective) <= NXR_SMALL_BYTES;
  return true;
}

static void shared_unbind(nxr_comm *comm, nxr_collective *collective) {
  (void)comm, (void)collective;
}

void nxr_shared_post(const nxr_comm *comm, nxr_collective *collective, uint32_t phase) {
  nxr_post *post = post_of(collective, collective->group->position);
  post->x = (uintptr_t)collective->spec.x - (uintptr_t)comm->arenas->own_segment;
  post->y = (uintptr_t)collective->spec.y - (uintptr_t)comm->arenas->own_segment;
  post->signature = collective->signature;
  post_phase(collective, phase);
}

static nxr_small *small_of(const nxr_collective *collective, uint32_t position) {
  return &collective->group->smalls[position][collective->sequence % NXR_SMALL_STARTS];
}

/* Whether all members have posted the start that had this one's post before. */
static bool may_overwrite(nxr_collective *collective) {
  if (collective->sequence < NXR_SMALL_STARTS) return true;
  uint64_t before = 4 * (collective->sequence - NXR_WINDOW_STARTS) + NXR_READY;
  for (uint32_t i = 0; i < collective->group->size; i++) {
    collective->waits_for = i;
    if (atomic_load_explicit(&post_of(collective, i)->flag, memory_order_acquire) < before) return false;
  }
  return true;
}

static void start_small(nxr_collective *collective) {
  collective->phase = 0;
  if (!may_overwrite(collective)) return;
  nxr_small *own = small_of(collective, collective->group->position);
  memcpy(own->x, collective->spec.x, nxr_comm_x_bytes(collective));
  own->signature = collective->signature;
  post_phase(collective, NXR_READY);
}

static void shared_start(nxr_comm *comm, nxr_collective *collective) {
  if (collective->is_small) {
    start_small(collective);
    return;
  }
  nxr_shared_post(comm, collective, NXR_READY);
  if (collective->spec.op == NX_OP_all_gather) /* while the others come */
    nxr_comm_place(collective, collective->group->position, collective->spec.x);
}

/* Whether all members that are here have reached the collective's phase. */
bool nxr_shared_all_there(nxr_collective *collective) {
  for (; collective->waits_for < collective->group->size; collective->waits_for++) {
    if (!collective->group->posts[collective->waits_for]) continue;
    const nxr_post *post = post_of(collective, collective->waits_for);
    uint64_t flag = atomic_load_explicit(&post->flag, memory_order_acquire);
    if (flag < 4 * collective->sequence + collective->phase) return false;
  }
  collective->waits_for = 0;
  return true;
}

static uint8_t *peer_memory(const nxr_comm *comm, const nxr_collective *collective, uint32_t position) {
  return comm->arenas->segments[comm->world->local_ranks[collective->group->members[position]]];
}

const uint8_t *nxr_shared_y(const nxr_comm *comm, const nxr_collective *collective, uint32_t position) {
  return peer_memory(comm, collective, position) + post_of(collective, position)->y;
}

static const uint8_t *peer_x(const nxr_comm *comm, const nxr_collective *collective, uint32_t position) {
  if (collective->is_small) return small_of(collective, position)->x;
  if (position == collective->group->position) return collective->spec.x;
  return peer_memory(comm, collective, position) + post_of(collective, position)->x;
}

/* y[0..n) = sum of the members' x from element `x_first` on. */
static void sum_members(nxr_comm *comm, nxr_collective *collective, uint64_t x_first, uint64_t y_first,
                        uint64_t n) {
  const nxr_collective_spec *spec = &collective->spec;
  uint64_t x_size = nx_dtype_bits(spec->x_dtype) / 8, y_size = nx_dtype_bits(spec->y_dtype) / 8;
  if (n == 0) return;
  for (uint32_t i = 0; i < collective->group->size; i++)
    collective->sources[i] = peer_x(comm, collective, i) + x_first * x_size;
  nxr_comm_sum(comm, collective, (uint8_t *)spec->y + y_first * y_size, n);
}

static void check_signature(nxr_comm *comm, nxr_collective *collective, uint32_t position) {
  uint64_t other = collective->is_small ? small_of(collective, position)->signature
                                        : post_of(collective, position)->signature;
  if (other != collective->signature)
    nxr_comm_fail(comm, collective, collective->group->members[position], "came to another collective");
}

static void check_signatures(nxr_comm *comm, nxr_collective *collective) {
  for (uint32_t i = 0; i < collective->group->size; i++) check_signature(comm, collective, i);
}

static void reduce_part(nxr_comm *comm, nxr_collective *collective) {
  uint64_t first, n = nxr_comm_part(collective, collective->group->position, &first);
  sum_members(comm, collective, first, first, n);
}

static void gather_parts(const nxr_comm *comm, const nxr_collective *collective) {
  uint64_t size = nx_dtype_bits(collective->spec.y_dtype) / 8;
  for (uint32_t i = 0; i < collective->group->size; i++) {
    uint64_t first, n = nxr_comm_part(collective, i, &first);
    if (i == collective->group->position || n == 0) continue;
    memcpy((uint8_t *)collective->spec.y + first * size, nxr_shared_y(comm, collective, i) + first * size,
           n * size);
  }
}

static void scatter_sums(nxr_comm *comm, nxr_collective *collective) {
  uint64_t n = collective->n_slice, size = collective->group->size;
  for (uint64_t outer = 0; outer < collective->spec.outer; outer++)
    sum_members(comm, collective, (outer * size + collective->group->position) * n, outer * n, n);
}

static void gather_all(const nxr_comm *comm, const nxr_collective *collective) {
  uint32_t size = collective->group->size, own = collective->group->position;
  for (uint32_t distance = 1; distance < size; distance++) { /* not all from the same one */
    uint32_t from = (own + distance) % size;
    nxr_comm_place(collective, from, peer_x(comm, collective, from));
  }
}

static void exchange_all(const nxr_comm *comm, const nxr_collective *collective) {
  for (uint32_t i = 0; i < collective->group->size; i++)
    nxr_comm_exchange(collective, i, collective->group->position, peer_x(comm, collective, i),
                      collective->spec.y);
}

/* All that there is to do when all have come. */
static void finish_small(nxr_comm *comm, nxr_collective *collective) {
  check_signatures(comm, collective);
  if (collective->spec.op == NX_OP_all_reduce) sum_members(comm, collective, 0, 0, collective->spec.axis);
  else if (collective->spec.op == NX_OP_reduce_scatter) scatter_sums(comm, collective);
  else
    for (uint32_t i = 0; i < collective->group->size; i++)
      nxr_comm_place(collective, i, peer_x(comm, collective, i));
}

/* Whether a member has come so far. */
static bool has_reached(nxr_collective *collective, uint32_t position, uint32_t phase) {
  collective->waits_for = position;
  uint64_t flag = atomic_load_explicit(&post_of(collective, position)->flag, memory_order_acquire);
  return flag >= 4 * collective->sequence + phase;
}

/* The receiver copies when the sender is ready; the sender is done when the receiver is. */
static bool move_bytes(nxr_comm *comm, nxr_collective *collective) {
  if (collective->group->position == 0) return has_reached(collective, 1, NXR_FINISHED);
  if (!has_reached(collective, 0, NXR_READY)) return false;
  check_signatures(comm, collective);
  memcpy(collective->spec.y, peer_x(comm, collective, 0), collective->spec.axis);
  post_phase(collective, NXR_FINISHED);
  return true;
}

/* Each member copies from the one before it, and is done when the one behind it has copied too. */
static bool move_around(nxr_comm *comm, nxr_collective *collective) {
  uint32_t size = collective->group->size, own = collective->group->position;
  uint32_t before = (own + size - 1) % size, behind = (own + 1) % size;
  if (collective->phase == NXR_FINISHED) return has_reached(collective, behind, NXR_FINISHED);
  if (!has_reached(collective, before, NXR_READY)) return false;
  check_signature(comm, collective, before);
  memcpy(collective->spec.y, peer_x(comm, collective, before),
         collective->spec.axis * (nx_dtype_bits(collective->spec.x_dtype) / 8));
  post_phase(collective, NXR_FINISHED);
  return false;
}

static bool shared_progress(nxr_comm *comm, nxr_collective *collective) {
  if ((int)collective->spec.op == NXR_TRANSFER) return move_bytes(comm, collective);
  if (collective->spec.op == NX_OP_shift) return move_around(comm, collective);
  if (collective->phase == 0) start_small(collective);
  if (collective->phase == 0 || !nxr_shared_all_there(collective)) return false;
  if (collective->is_small) {
    finish_small(comm, collective);
    return true;
  }
  if (collective->phase == NXR_FINISHED) return true;
  if (collective->phase == NXR_READY) check_signatures(comm, collective);
  if (collective->phase == NXR_READY && collective->spec.op == NX_OP_all_reduce) {
    reduce_part(comm, collective);
    post_phase(collective, NXR_SUMMED);
    return false;
  }
  if (collective->spec.op == NX_OP_all_reduce)
    gather_parts(comm, collective);
  else if (collective->spec.op == NX_OP_reduce_scatter)
    scatter_sums(comm, collective);
  else if (collective->spec.op == NX_OP_all_to_all)
    exchange_all(comm, collective);
  else
    gather_all(comm, collective);
  post_phase(collective, NXR_FINISHED);
  return false;
}

const nxr_transport nxr_transport_shared = {"shared", shared_bind, shared_start, shared_progress,
                                            shared_unbind};
