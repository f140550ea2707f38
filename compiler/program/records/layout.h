/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks are laid out: the degrees that the settings ask for, and the order of the pipeline.
 *
 * Degrees are factors of `world`. What the settings leave open but others determine is filled in as the
 * deriving rules would. Which ranks belong together follows from it (mesh.h). */
#ifndef NXC_RECORDS_LAYOUT_H
#define NXC_RECORDS_LAYOUT_H

#include "compiler/settings/settings.h"

/* Which chunks a stage has, of model order: looped as cards are dealt, mirrored from the first stage to the
 * last, back to the first, and so on. */
typedef enum nxc_dealing { NXC_LOOPED, NXC_MIRRORED } nxc_dealing;

/* In which order a stage goes forward and back. */
typedef enum nxc_order_id {
#define ORDER(id, name, dealing, cuts, spare, meaning) NXC_ORDER_##id,
#include "compiler/program/records/orders.def"
#undef ORDER
  NXC_N_ORDERS
} nxc_order_id;

typedef struct nxc_layout {
  uint32_t world, nodes, tensor, context, data, pipeline;
  uint32_t kv_replica;            /* ranks of `tensor` that hold the same key and value heads */
  uint32_t ulysses, replicate;    /* of context, of data; the rest of each is ring, is shard */
  uint32_t expert, expert_tensor; /* 1 and tensor where there are no experts */
  const char *order;              /* of the axes in a rank's number */
  bool sequence_parallel;
  uint32_t n_chunks;     /* of layers: stages x chunks of a stage */
  const nxc_value *cuts; /* list of n_chunks - 1 names of layers that end a chunk, or NULL */
  nxc_order_id pipeline_order;
  uint32_t group; /* micro-batches of a chunk's turn; 0: what nxc_layout_turn says */
  uint32_t spare_slots; /* more than there are micro-batches in flight */
} nxc_layout;

nxc_layout nxc_layout_read(const nxc_settings *settings);
/* Key and value heads are copied just as often as whole heads per rank need. */
uint32_t nxc_layout_kv_copies(const nxc_layout *layout, int64_t kv_heads);
/* Layers, of so many, before a chunk; up to all of them before chunk n_chunks. */
int64_t nxc_layout_layers_before(const nxc_layout *layout, int64_t n_layers, uint32_t chunk);

/* The stage that has a chunk: nothing else says it. */
uint32_t nxc_layout_stage_of(const nxc_layout *layout, uint32_t chunk);
bool nxc_layout_is_mirrored(const nxc_layout *layout);
/* Whether the order has weights' gradients apart from those of inputs, and later. */
bool nxc_layout_cuts_backward(const nxc_layout *layout);
/* Micro-batches that a chunk runs before the next of its stage takes its turn, of a step of so many. */
uint32_t nxc_layout_turn(const nxc_layout *layout, uint32_t n_micro);
/* As pipeline.schedule names an order. */
const char *nxc_order_name(nxc_order_id order);
/* As people call the order of passes. */
const char *nxc_layout_order_name(const nxc_layout *layout);

#endif
