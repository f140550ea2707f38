/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/comm_pairs.h"
#include "runtime/comm/comm_transport.h"

#include <stdlib.h>

/* Two between neighbouring chunks: 2 b forward from chunk b to b + 1, 2 b + 1 back. */
static uint32_t n_channels(const nx_plan *plan) {
  uint32_t n_chunks = plan->n[NX_SECTION_CHUNKS];
  return n_chunks > 1 ? 2 * (n_chunks - 1) : 0;
}

/* Behind the pulse posts of all groups, then what is small: of channels nothing is. */
static uint64_t smalls_begin(const nx_plan *plan) {
  uint64_t n_groups = (uint64_t)plan->n[NX_SECTION_GROUPS] + 1 + n_channels(plan);
  return (sizeof(nxr_pulse) + n_groups * NXR_WINDOW_STARTS * sizeof(nxr_post) + 63) / 64 * 64;
}

uint64_t nxr_comm_control_bytes(const nx_plan *plan) {
  uint64_t n_groups = (uint64_t)plan->n[NX_SECTION_GROUPS] + 1;
  return smalls_begin(plan) + n_groups * NXR_SMALL_STARTS * sizeof(nxr_small);
}

uint8_t *nxr_comm_control(const nxr_comm *comm, uint32_t rank) {
  const nxr_world *world = comm->world;
  if (rank == world->rank) return comm->arenas->control;
  if (!comm->arenas->segments || world->hosts[rank] != world->hosts[world->rank]) return NULL;
  return comm->arenas->segments[world->local_ranks[rank]];
}

static uint32_t group_size(const nxr_comm *comm, uint32_t index) {
  return index < comm->plan->n[NX_SECTION_GROUPS] ? comm->plan->groups[index].size : comm->world->size;
}

static bool make_members(nxr_comm *comm, uint32_t index) {
  nxr_comm_group *group = &comm->groups[index];
  group->on_host = true;
  group->members = calloc(group->size, sizeof *group->members);
  group->posts = calloc(group->size, sizeof *group->posts);
  group->smalls = calloc(group->size, sizeof *group->smalls);
  return group->members && group->posts && group->smalls;
}

static void find_posts(nxr_comm *comm, uint32_t index) {
  nxr_comm_group *group = &comm->groups[index];
  for (uint32_t i = 0; i < group->size; i++) {
    uint8_t *control = nxr_comm_control(comm, group->members[i]);
    if (!control) {
      group->on_host = false;
      continue;
    }
    group->posts[i] = (nxr_post *)(void *)(control + sizeof(nxr_pulse)) + (size_t)index * NXR_WINDOW_STARTS;
    if (index <= comm->plan->n[NX_SECTION_GROUPS])
      group->smalls[i] =
          (nxr_small *)(void *)(control + smalls_begin(comm->plan)) + (size_t)index * NXR_SMALL_STARTS;
  }
}

/* Members on each host, if those of a host lie together and all hosts have as many. */
static uint32_t count_local(const nxr_comm *comm, const nxr_comm_group *group) {
  const uint32_t *hosts = comm->world->hosts;
  uint32_t n = 1;
  while (n < group->size && hosts[group->members[n]] == hosts[group->members[0]]) n++;
  for (uint32_t i = n; i < group->size; i++) {
    bool begins = hosts[group->members[i]] != hosts[group->members[i - 1]];
    if (begins != (i % n == 0)) return 0;
  }
  return group->size % n == 0 ? n : 0;
}

/* Sender, then receiver: they differ in their stage alone. A rank that is neither has an empty group. */
static bool open_channel(nxr_comm *comm, uint32_t channel, nxr_fault *fault) {
  const nx_plan *plan = comm->plan;
  uint32_t index = plan->n[NX_SECTION_GROUPS] + 1 + channel, rank = comm->world->rank;
  uint32_t own = nx_plan_stage(plan, rank), stride = plan->atoms[nx_plan_pipeline_atom(plan)].stride;
  nxr_comm_group *group = &comm->groups[index];
  uint32_t boundary = channel / 2, back = channel % 2;
  uint32_t from = plan->chunks[boundary + back].stage, to = plan->chunks[boundary + 1 - back].stage;
  if (from == to || (own != from && own != to)) return true;
  group->name = channel % 2 ? "stages, gradients" : "stages";
  group->size = 2;
  group->position = own == to;
  if (!make_members(comm, index)) return nxr_fault_set(fault, "out of memory");
  group->members[0] = rank - own * stride + from * stride;
  group->members[1] = rank - own * stride + to * stride;
  find_posts(comm, index);
  return true;
}

static bool open_group(nxr_comm *comm, uint32_t index, nxr_fault *fault) {
  bool all = index == comm->plan->n[NX_SECTION_GROUPS];
  uint32_t rank = comm->world->rank;
  nxr_comm_group *group = &comm->groups[index];
  if (!all && nx_group_position(comm->plan, index, rank) == NX_NONE) return true;
  group->name = all ? "all ranks" : nx_plan_string(comm->plan, comm->plan->groups[index].name);
  group->size = group_size(comm, index);
  group->position = all ? rank : nx_group_position(comm->plan, index, rank);
  if (!make_members(comm, index)) return nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; i < group->size; i++)
    group->members[i] = all ? i : nx_group_member(comm->plan, index, rank, i);
  find_posts(comm, index);
  if (!nxr_pairs_open(comm->plan, index, group)) return nxr_fault_set(fault, "out of memory");
  group->n_local = count_local(comm, group);
  return true;
}

bool nxr_comm_groups_open(nxr_comm *comm, nxr_fault *fault) {
  uint32_t n_plan_groups = comm->plan->n[NX_SECTION_GROUPS] + 1; /* and that of all ranks */
  comm->n_groups = n_plan_groups + n_channels(comm->plan);
  comm->groups = calloc(comm->n_groups, sizeof *comm->groups);
  if (!comm->groups) return nxr_fault_set(fault, "out of memory");
  for (uint32_t index = 0; index < n_plan_groups; index++)
    if (!open_group(comm, index, fault)) return false;
  for (uint32_t channel = 0; channel < n_channels(comm->plan); channel++)
    if (!open_channel(comm, channel, fault)) return false;
  return true;
}

void nxr_comm_groups_close(nxr_comm *comm) {
  for (uint32_t index = 0; comm->groups && index < comm->n_groups; index++) {
    free(comm->groups[index].members);
    free(comm->groups[index].posts);
    free(comm->groups[index].smalls);
    free(comm->groups[index].in_pairs);
  }
  free(comm->groups);
}
