/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/comm_pairs.h"
#include "runtime/comm/comm_transport.h"

#include "runtime/world/patience.h"
#include "runtime/world/pause.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAP_US = 20, POLLS_PER_CLOCK = 256 };
static const double SPIN_S = 0.003, SPIN_S_PER_BYTE = 1e-9; /* what they take whose other end is not away */

static nxr_collective *bind_vote(nxr_comm *comm, nxr_fault *fault) {
  const nxr_collective_spec spec = {.op = (nx_op)NXR_VOTE,
                                    .group = NX_NONE,
                                    .x_dtype = NX_f64,
                                    .y_dtype = NX_f64,
                                    .x = comm->pulse->votes_in,
                                    .y = comm->pulse->votes_out,
                                    .outer = 1,
                                    .axis = NXR_MOST_VOTES,
                                    .inner = 1,
                                    .on_host = true,
                                    .operator= NX_NONE };
  return nxr_comm_bind(comm, &spec, fault);
}

bool nxr_comm_open(nxr_world *world, const nx_plan *plan, const nxk_backend *backend, nxk_device *device,
                   const nxr_arenas *arenas, double deadline_s, nxr_comm **out, nxr_fault *fault) {
  nxr_comm *comm = calloc(1, sizeof *comm);
  if (!comm) return nxr_fault_set(fault, "out of memory");
  *out = comm;
  comm->world = world, comm->plan = plan, comm->backend = backend, comm->device = device,
  comm->arenas = arenas;
  comm->deadline_s = deadline_s;
  nxr_messages_open();
  comm->pulse = (nxr_pulse *)arenas->control;
  atomic_store(&comm->pulse->operator, NX_NONE);
  const char *delay = getenv("NXRUN_DELAY");
  comm->delay_state = delay ? strtoull(delay, NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) + world->rank + 1 : 0;
  if (!nxr_comm_groups_open(comm, fault) || !nxr_lead_open(comm, fault)) return false;
  comm->vote = bind_vote(comm, fault);
  return comm->vote && nxr_comm_thread_open(comm, fault);
}

void nxr_comm_close(nxr_comm *comm) {
  if (!comm) return;
  nxr_comm_thread_close(comm);
  for (nxr_collective *next, *at = comm->last; at; at = next) {
    next = at->next;
    if (at->transport) at->transport->unbind(comm, at);
    free(at->sources);
    free(at);
  }
  nxr_messages_close(comm);
  nxr_comm_groups_close(comm);
  free(comm->active);
  free(comm);
}

/* ---- binding ---- */

static bool in_window(const nxr_comm *comm, const void *address) {
  const uint8_t *at = address, *segment = comm->arenas->own_segment;
  return segment && at >= segment && at < segment + comm->arenas->segment_bytes;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static uint64_t sign(const nxr_collective_spec *spec) {
  uint64_t hash = mix(mix(mix(1, spec->op), spec->group), (uint64_t)spec->x_dtype << 8 | spec->y_dtype);
  return mix(mix(mix(mix(hash, spec->outer), spec->axis), spec->inner), spec->y_run);
}

static bool add_to_list(nxr_comm *comm, nxr_collective *collective) {
  nxr_collective **active = realloc(comm->active, (comm->n_bound + 1) * sizeof *active);
  if (!active) return false;
  comm->active = active;
  comm->n_bound++;
  collective->next = comm->last;
  comm->last = collective;
  return true;
}

/* Whether the members of a host read from each other what came to it: the same on all members. */
static bool can_share(const nxr_comm *comm, const nxr_collective *collective) {
  const nxr_comm_group *group = collective->group;
  return group->n_local > 1 && group->n_local < group->size && in_window(comm, collective->spec.y);
}

nxr_collective *nxr_comm_bind(nxr_comm *comm, const nxr_collective_spec *spec, nxr_fault *fault) {
  nxr_collective *collective = calloc(1, sizeof *collective);
  if (!collective || !add_to_list(comm, collective)) {
    free(collective);
    nxr_fault_set(fault, "out of memory");
    return NULL;
  }
  nxr_comm_group *group =
      &comm->groups[spec->group == NX_NONE ? comm->plan->n[NX_SECTION_GROUPS] : spec->group];
  collective->spec = *spec;
  collective->group = group;
  collective->signature = sign(spec);
  bool cuts = spec->op == NX_OP_reduce_scatter || spec->op == NX_OP_all_to_all;
  collective->n_slice = cuts                           ? spec->axis / group->size * spec->inner
                        : spec->op == NX_OP_all_gather ? spec->axis * spec->inner
                                                       : 0;
  collective->sources = calloc(group->size, sizeof *collective->sources);
  if (!collective->sources) {
    nxr_fault_set(fault, "out of memory");
    return NULL;
  }
  if (!nxr_staged_open(comm, collective, fault)) return NULL;
  spec = &collective->spec;
  bool shared = group->on_host && (group->size == 1 || (in_window(comm, spec->x) && in_window(comm, spec->y))
                                   || (spec->op != NX_OP_all_reduce && in_window(comm, spec->x)));
  collective->transport = shared ? &nxr_transport_shared : &nxr_transport_p2p;
  if (spec->way == NX_WAY_HOSTS && !can_share(comm, collective)) collective->spec.way = NX_WAY_DIRECT;
  if (shared && (int)spec->op == NXR_VOTE) collective->spec.op = NX_OP_all_reduce; /* how many there are */
  return collective->transport->bind(comm, collective, fault) ? collective : NULL;
}

nxr_collective *nxr_comm_bind_transfer(nxr_comm *comm, uint32_t chunk, nx_port port, void *bytes,
                                       uint64_t n_bytes, nxr_fault *fault) {
  bool back = port == NX_PORT_OUTPUT_GRADIENT || port == NX_PORT_INPUT_GRADIENT;
  uint32_t boundary = port == NX_PORT_OUTPUT || port == NX_PORT_OUTPUT_GRADIENT ? chunk : chunk - 1;
  const nxr_collective_spec spec = {.op = (nx_op)NXR_TRANSFER,
                                    .group = comm->plan->n[NX_SECTION_GROUPS] + 1 + 2 * boundary + back,
                                    .x_dtype = NX_u8, .y_dtype = NX_u8, .x = bytes, .y = bytes, .outer = 1,
                                    .axis = n_bytes, .inner = 1, .operator = NX_NONE};
  return nxr_comm_bind(comm, &spec, fault);
}

void nxr_comm_name_transfer(const nxr_comm *comm, nxr_collective *collective, uint32_t item) {
  collective->spec.operator = comm->plan->n[NX_SECTION_OPERATORS] + item;
}

/* ---- running ---- */

/* Up to 2 ms, as xorshift64 draws. */
static void delay(nxr_comm *comm) {
  if (comm->delay_state == 0) return;
  comm->delay_state ^= comm->delay_state << 13;
  comm->delay_state ^= comm->delay_state >> 7;
  comm->delay_state ^= comm->delay_state << 17;
  const struct timespec span = {.tv_nsec = (long)(comm->delay_state % 2000000)};
  nanosleep(&span, NULL);
}

static void remove_active(nxr_comm *comm, uint32_t index) {
  nxr_staged_end(comm, comm->active[index]);
  comm->active[index]->active = false;
  comm->active[index] = comm->active[--comm->n_active];
}

/* The start that has the post of this one still: a group has NXR_WINDOW_STARTS of them. NULL: none has. */
static const nxr_collective *holder_of_post(const nxr_collective *collective) {
  const nxr_collective *before = collective->group->posted[collective->sequence % NXR_WINDOW_STARTS];
  bool holds = before && before->active && before->sequence + NXR_WINDOW_STARTS == collective->sequence;
  return holds ? before : NULL;
}

/* Transports begin in the order of the starts, which is that of all members; so none waits for room that a
 * later one holds. */
static bool has_begun(nxr_comm *comm, nxr_collective *collective) {
  if (!collective->leaves) return true;
  if (collective->start != comm->n_begun || holder_of_post(collective) || !nxr_staged_left(comm, collective))
    return false;
  comm->n_begun++;
  collective->leaves = false;
  collective->group->posted[collective->sequence % NXR_WINDOW_STARTS] = collective;
  collective->transport->start(comm, collective);
  return true;
}

/* Whether it is complete. */
static bool progress(nxr_comm *comm, nxr_collective *collective) {
  return has_begun(comm, collective) && collective->transport->progress(comm, collective);
}

void nxr_comm_move_all(nxr_comm *comm) {
  nxr_messages_look(comm);
  for (uint32_t i = 0; i < comm->n_active;)
    if (progress(comm, comm->active[i]))
      remove_active(comm, i);
    else
      i++;
}

void nxr_comm_progress(nxr_comm *comm) {
  if (nxr_comm_helps(comm)) {
    if (comm->n_active) nxr_comm_move_all(comm);
    nxr_comm_unlock(comm);
  }
  if (comm->to_wake) nxr_comm_wake(comm);
  comm->to_wake = false;
}

static uint64_t peer_beats(const nxr_comm *comm, uint32_t rank) {
  const nxr_pulse *pulse = (const nxr_pulse *)nxr_comm_control(comm, rank);
  return pulse ? atomic_load_explicit(&pulse->beats, memory_order_relaxed) : 0;
}

void nxr_comm_start(nxr_comm *comm, nxr_collective *collective) {
  nxr_comm_group *group = collective->group;
  delay(comm);
  if (collective->active) nxr_comm_wait(comm, collective);
  nxr_comm_lock(comm);
  collective->sequence = group->n_started++;
  collective->start = comm->n_starts++;
  collective->phase = 1;
  collective->leaves = true;
  collective->waits_for = 0;
  collective->active = true;
  comm->active[comm->n_active++] = collective;
  nxr_staged_begin(comm, collective);
  has_begun(comm, collective);
  comm->to_wake = true;
  nxr_comm_unlock(comm);
  bool at_once = comm->mover == NXR_MOVED_AT_ONCE && (int)collective->spec.op != NXR_TRANSFER;
  if (at_once) nxr_comm_wait(comm, collective);
}

void nxr_comm_tells(nxr_comm *comm, nxr_comm_teller *tell, void *told) {
  comm->tell = tell, comm->told = told;
}

/* What keeps a collective from going on: itself, or the first that no transport knows of yet, or what holds
 * that one's post. */
static const nxr_collective *in_the_way(const nxr_comm *comm, const nxr_collective *collective) {
  if (!collective->leaves) return collective;
  const nxr_collective *first = collective;
  for (uint32_t i = 0; i < comm->n_active; i++)
    if (comm->active[i]->start == comm->n_begun) first = comm->active[i];
  const nxr_collective *holder = holder_of_post(first);
  return holder ? holder : first;
}

static void look_at_peer(nxr_comm *comm, const nxr_collective *collective, nxr_patience *patience) {
  nxr_lead_look(comm);
  const nxr_collective *held = in_the_way(comm, collective);
  bool leaves = held->leaves; /* it waits for its own device */
  uint32_t needed = leaves ? comm->world->rank : held->group->members[held->waits_for];
  double silent_s = nxr_patience_look(patience, needed, peer_beats(comm, needed));
  atomic_store_explicit(&comm->pulse->waits_for, 1 + needed, memory_order_relaxed);
  if (silent_s > comm->deadline_s)
    nxr_comm_fail(comm, held, needed, leaves ? "has work on its device that does not end" : "does not come");
  nxr_comm_tell(comm, held, needed, silent_s);
}

/* True when it is complete. */
static bool poll(nxr_comm *comm, nxr_collective *collective, uint32_t polls, nxr_patience *patience) {
  nxr_comm_lock(comm);
  comm->rank_waits = true;
  nxr_comm_move_all(comm);
  if (collective->active && polls % POLLS_PER_CLOCK == 0) look_at_peer(comm, collective, patience);
  bool complete = !collective->active;
  comm->rank_waits = !complete;
  comm->to_wake = complete && comm->n_active > 0;
  nxr_comm_unlock(comm);
  return complete;
}

static double spin_s(const nxr_collective *collective) {
  uint64_t x = nxr_comm_x_bytes(collective), y = nxr_comm_y_bytes(collective);
  return SPIN_S + SPIN_S_PER_BYTE * (double)(x > y ? x : y);
}

void nxr_comm_wait(nxr_comm *comm, nxr_collective *collective) {
  nxr_patience patience = {.with = NX_NONE};
  nxr_pause pause = {
      .spin_s = spin_s(collective), .yields = UINT32_MAX, .nap_us = NAP_US, .crowded = comm->world->crowded};
  if (collective->active) {
    delay(comm);
    comm->told_s = 0;
    for (uint64_t seen = comm->n_seen; !poll(comm, collective, pause.polls + 1, &patience);) {
      if (comm->n_seen != seen) nxr_pause_anew(&pause);
      seen = comm->n_seen;
      nxr_pause_once(&pause);
    }
  }
  if (patience.with != NX_NONE) atomic_store_explicit(&comm->pulse->waits_for, 0, memory_order_relaxed);
  nxr_staged_join(comm, collective);
}

void nxr_comm_votes(nxr_comm *comm, bool votes[], uint32_t n) {
  assert(n <= NXR_MOST_VOTES);
  for (uint32_t i = 0; i < n; i++) comm->pulse->votes_in[i] = votes[i];
  nxr_comm_start(comm, comm->vote);
  nxr_comm_wait(comm, comm->vote);
  for (uint32_t i = 0; i < n; i++) votes[i] = comm->pulse->votes_out[i] > 0;
}

bool nxr_comm_vote(nxr_comm *comm, bool own) {
  nxr_comm_votes(comm, &own, 1);
  return own;
}

void nxr_comm_live(nxr_comm *comm) {
  uint64_t beats = atomic_load_explicit(&comm->pulse->beats, memory_order_relaxed);
  atomic_store_explicit(&comm->pulse->beats, beats + 1, memory_order_relaxed);
}

void nxr_comm_beat(nxr_comm *comm, uint64_t step, uint32_t operator) {
  nxr_pulse *pulse = comm->pulse;
  atomic_store_explicit(&pulse->step, step, memory_order_relaxed);
  atomic_store_explicit(&pulse->operator, operator, memory_order_relaxed);
  nxr_comm_live(comm);
}

uint64_t nxr_comm_staging_bytes(const nxr_comm *comm) {
  return comm->staging_bytes + comm->copied_bytes;
}

uint64_t nxr_comm_copied_bytes(const nxr_comm *comm) {
  return comm->copied_bytes;
}

/* ---- for the transports ---- */

void nxr_comm_sum(nxr_comm *comm, const nxr_collective *collective, void *y, uint64_t n) {
  const nxr_collective_spec *spec = &collective->spec;
  if (collective->group->in_pairs && nxr_pairs_can_sum(spec)) {
    nxr_pairs_sum(collective, y, n);
    return;
  }
  const nxk_backend *backend = spec->on_host ? &nxk_ref : comm->backend; /* ref sums without a device */
  backend->sum(spec->on_host ? NULL : nxr_comm_sum_device(comm), y, spec->y_dtype, collective->sources,
               collective->group->size, spec->x_dtype, n);
}
