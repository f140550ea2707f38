/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/mesh.h"

#include <assert.h>
#include <string.h>

static const char *const atom_names[NXC_N_ATOMS] = {
    [NXC_ATOM_KV_REPLICA] = "kv_replica", [NXC_ATOM_KV_GROUP] = "kv_group", [NXC_ATOM_RING] = "ring",
    [NXC_ATOM_SHARD] = "shard",           [NXC_ATOM_PIPELINE] = "pipeline",
};

nxc_mesh nxc_mesh_new(uint32_t tensor, uint32_t kv_replica, uint32_t context, uint32_t data,
                      uint32_t pipeline) {
  assert(tensor % kv_replica == 0);
  nxc_mesh mesh = {.size = {[NXC_ATOM_KV_REPLICA] = kv_replica,
                            [NXC_ATOM_KV_GROUP] = tensor / kv_replica,
                            [NXC_ATOM_RING] = context,
                            [NXC_ATOM_SHARD] = data,
                            [NXC_ATOM_PIPELINE] = pipeline},
                   .n_ranks = 1};
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) {
    mesh.stride[atom] = mesh.n_ranks;
    mesh.n_ranks *= mesh.size[atom];
  }
  return mesh;
}

const char *nxc_atom_name(nxc_atom atom) {
  return atom_names[atom];
}

uint32_t nxc_mesh_atoms(const nxc_mesh *mesh, uint32_t atoms) {
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (mesh->size[atom] == 1) atoms &= ~(1u << atom);
  return atoms & NXC_WORLD;
}

uint32_t nxc_mesh_size(const nxc_mesh *mesh, uint32_t atoms) {
  uint32_t size = 1;
  for (int atom = 0; atom < NXC_N_ATOMS; atom++)
    if (atoms & 1u << atom) size *= mesh->size[atom];
  return size;
}

const char *nxc_mesh_set_name(nxc_arena *arena, const nxc_mesh *mesh, uint32_t atoms) {
  static const struct {
    uint32_t atoms;
    const char *name;
  } axes[] = {
      {NXC_PIPELINE, "pipeline"},
      {NXC_DATA, "data"},
      {NXC_CONTEXT, "context"},
      {NXC_TENSOR, "tensor"},
      {NXC_KV_GROUP, "kv_group"},
      {1u << NXC_ATOM_KV_REPLICA, "kv_replica"},
  };
  atoms = nxc_mesh_atoms(mesh, atoms);
  const char *name = "";
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
    uint32_t axis = nxc_mesh_atoms(mesh, axes[i].atoms);
    if (axis == 0 || (atoms & axis) != axis) continue;
    name = nxc_arena_printf(arena, "%s%s%s", name, *name ? "+" : "", axes[i].name);
    atoms &= ~axis;
  }
  return name;
}
