/* SPDX-License-Identifier: Apache-2.0 */
/* The mesh: how ranks are numbered, and which of them work together.
 *
 * The ranks are factorised twice, each in the same order from the fastest: for dense layers (tensor, context,
 * data, pipeline; tensor is kv_group x kv_replica, context ring x ulysses, data replicate x shard, the latter
 * faster), and for experts (expert_tensor, expert, expert_data, pipeline). Atoms are the common refinement of
 * both: the largest factors that those of either are products of; rank = sum over atoms of coordinate x
 * stride, atom 0 varying fastest. No atom has size 1.
 *
 * A set of atoms is a bit mask: an axis that users speak of, or the ranks that differ only in the coordinates
 * of the set (a group). kv_replica is innermost, so that tensor ranks hold the query heads in order; which
 * ranks share a copy of a key head changes no number (NxD's default order strides over the copies). */
#ifndef NXC_MESH_H
#define NXC_MESH_H

#include "compiler/arena.h"
#include "schema/plan.h"

enum { NXC_N_ATOMS = NX_MAX_ATOMS, NXC_ATOM_NAME_BYTES = 40 };

typedef enum nxc_axis_id {
  NXC_AXIS_PIPELINE,
  NXC_AXIS_DATA,
  NXC_AXIS_REPLICATE,
  NXC_AXIS_SHARD,
  NXC_AXIS_CONTEXT,
  NXC_AXIS_RING,
  NXC_AXIS_ULYSSES,
  NXC_AXIS_TENSOR,
  NXC_AXIS_KV_GROUP,
  NXC_AXIS_KV_REPLICA,
  NXC_AXIS_EXPERT_DATA,
  NXC_AXIS_EXPERT,
  NXC_AXIS_EXPERT_TENSOR,
  NXC_N_NAMED_AXES,
  NXC_AXIS_STAGE = NXC_N_NAMED_AXES, /* all but pipeline: the ranks of one stage */
  NXC_AXIS_WORLD,
  NXC_N_AXES
} nxc_axis_id;

/* What the settings ask for; none is 0. */
typedef struct nxc_degrees {
  uint32_t kv_replica, kv_group, ulysses, ring, shard, replicate, pipeline;
  bool has_experts; /* else there is no second factorisation */
  uint32_t expert_tensor, expert;
  const char *order; /* "tp-cp-ep-dp-pp": the fastest first; what is left out has degree 1 */
} nxc_degrees;

typedef struct nxc_mesh {
  uint32_t n_atoms, n_ranks;
  char name[NXC_N_ATOMS][NXC_ATOM_NAME_BYTES];
  uint32_t size[NXC_N_ATOMS]; /* 1 from n_atoms on */
  uint32_t stride[NXC_N_ATOMS];
  uint32_t axes[NXC_N_AXES];
} nxc_mesh;

/* False where the order is none, or, with both factorisations in the fault, where they do not refine. */
bool nxc_mesh_new(const nxc_degrees *degrees, nxc_mesh *mesh, nx_fault *fault);
/* The atoms of an axis; 0 where its degree is 1. */
uint32_t nxc_axis(const nxc_mesh *mesh, nxc_axis_id axis);
uint32_t nxc_mesh_size(const nxc_mesh *mesh, uint32_t atoms);
/* "tensor", "data", "data+tensor", ...; another for every set. */
const char *nxc_mesh_set_name(nxc_arena *arena, const nxc_mesh *mesh, uint32_t atoms);

#endif
