/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit/emit_routes.h"

#include "schema/plan_check.h"

#include <assert.h>
#include <nettle/sha2.h>
#include <string.h>

static uint64_t align(uint64_t n_bytes) {
  return (n_bytes + NX_PLAN_ALIGNMENT - 1) / NX_PLAN_ALIGNMENT * NX_PLAN_ALIGNMENT;
}

_Static_assert(sizeof(nx_section) == NX_PLAN_ALIGNMENT, "one more entry moves all sections by as much");
_Static_assert(NX_SECTION_ROUTES + 1 == NX_SECTION_END, "it is the last section");

void nxc_emit_routes(nxc_plan_bytes *plan, const nx_route *routes, uint32_t n_routes, nxc_arena *arena) {
  if (n_routes == 0) return;
  const nx_header *before = plan->plan.header;
  uint64_t table = sizeof *before + before->n_sections * sizeof(nx_section),
           n_bytes = n_routes * sizeof *routes;
  uint64_t end = plan->n_bytes + sizeof(nx_section), all = end + align(n_bytes);
  uint8_t *file = nxc_arena_alloc(arena, all);
  memset(file, 0, all);
  memcpy(file, plan->bytes, table);
  memcpy(file + table + sizeof(nx_section), plan->bytes + table, plan->n_bytes - table);
  memcpy(file + end, routes, n_bytes);
  nx_header *header = (nx_header *)(void *)file;
  nx_section *sections = (nx_section *)(void *)(file + sizeof *header);
  for (uint32_t i = 0; i < header->n_sections; i++) sections[i].offset += sizeof(nx_section);
  nx_section *added = &sections[header->n_sections++];
  *added = (nx_section){.type = NX_SECTION_ROUTES, .offset = end, .bytes = n_bytes,
                        .record_bytes = sizeof *routes, .n_records = n_routes};
  struct sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, n_bytes, file + end);
  sha256_digest(&state, sizeof added->sha256, added->sha256);
  header->file_bytes = all;
  nx_plan_hash_root(file, header->root);
  nx_fault fault;
  plan->bytes = file, plan->n_bytes = all;
  bool sound = nx_plan_check(file, all, &plan->plan, &fault);
  assert(sound);
}
