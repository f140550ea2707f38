/* SPDX-License-Identifier: Apache-2.0 */
/* The mesh: how ranks are numbered, and which of them work together.
 *
 * An axis that users speak of is a product of *atoms*; rank = sum over atoms of coordinate x stride, the
 * first atom varying fastest: kv_replica, kv_group (together: tensor), ring (context), shard (data),
 * pipeline. A set of atoms is a bit mask; a group is the ranks that differ only in the coordinates of such a
 * set. Atoms of size 1 exist, but are in no set. kv_replica is innermost, so that tensor ranks hold the query
 * heads in order; which ranks share a copy of a key head changes no number (NxD's default order strides over
 * the copies). */
#ifndef NXC_MESH_H
#define NXC_MESH_H

#include "compiler/arena.h"

#include <stdint.h>

typedef enum nxc_atom {
  NXC_ATOM_KV_REPLICA,
  NXC_ATOM_KV_GROUP,
  NXC_ATOM_RING,
  NXC_ATOM_SHARD,
  NXC_ATOM_PIPELINE,
  NXC_N_ATOMS
} nxc_atom;

typedef struct nxc_mesh {
  uint32_t size[NXC_N_ATOMS];
  uint32_t stride[NXC_N_ATOMS];
  uint32_t n_ranks;
} nxc_mesh;

enum {
  NXC_TENSOR = 1u << NXC_ATOM_KV_REPLICA | 1u << NXC_ATOM_KV_GROUP,
  NXC_KV_GROUP = 1u << NXC_ATOM_KV_GROUP,
  NXC_CONTEXT = 1u << NXC_ATOM_RING,
  NXC_DATA = 1u << NXC_ATOM_SHARD,
  NXC_PIPELINE = 1u << NXC_ATOM_PIPELINE,
  NXC_WORLD = (1u << NXC_N_ATOMS) - 1,
  NXC_STAGE = NXC_WORLD & ~NXC_PIPELINE /* the ranks of one pipeline stage */
};

/* kv_replica divides tensor. */
nxc_mesh nxc_mesh_new(uint32_t tensor, uint32_t kv_replica, uint32_t context, uint32_t data,
                      uint32_t pipeline);
const char *nxc_atom_name(nxc_atom atom);
/* The atoms of the set that have more than one coordinate. */
uint32_t nxc_mesh_atoms(const nxc_mesh *mesh, uint32_t atoms);
uint32_t nxc_mesh_size(const nxc_mesh *mesh, uint32_t atoms);
/* "tensor", "data", "data+tensor", "world", ... */
const char *nxc_mesh_set_name(nxc_arena *arena, const nxc_mesh *mesh, uint32_t atoms);

#endif
