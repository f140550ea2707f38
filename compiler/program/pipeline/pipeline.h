/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline: which layers each stage holds, and what the stages do in a step.
 *
 * The layers are cut into chunks in model order; which stage has a chunk says nxc_layout_stage_of. The first
 * chunk has the embedding too, the last the norm, the logits and the loss. Chunks of equal shape share one
 * graph, and so its programs, values and ranges: what depends on the layer is a number per chunk. A model on
 * one stage is a pipeline of one chunk. Owned by the arena of its graphs. */
#ifndef NXC_PIPELINE_H
#define NXC_PIPELINE_H

#include "compiler/program/graph/graph.h"
#include "compiler/program/records/training.h"

typedef struct nxc_chunk_node {
  uint32_t stage, graph;
  int32_t first_layer, n_layers;
  uint32_t n_slots;
  uint64_t arena_base[NX_N_ARENAS];
} nxc_chunk_node;

/* From a step on the training has batches of a size, and compressed reductions or not. */
typedef struct nxc_phase_node {
  nxc_batch_phase batch;
  bool compressed;
} nxc_phase_node;

/* Where a number of the step, or an input, has its place in all chunks that have it. */
typedef struct nxc_named_place {
  const char *name;
  nx_arena_kind arena;
  uint64_t offset, bytes;
} nxc_named_place;

struct nxc_pipeline {
  nxc_arena *arena;
  uint32_t n_stages, n_chunks, n_graphs;
  bool cuts; /* backward passes into what their inputs need, and the rest */
  nxc_chunk_node *chunks; /* in model order */
  nxc_graph **graphs;
  nx_item *items; /* schedule by schedule: of stage 0, then of stage 1, ... */
  size_t n_items;
  nxc_phase_node *phases; /* of the plan */
  size_t n_phases;
  nx_schedule *schedules; /* in the plan's order, without names */
  uint32_t n_schedules;
  uint32_t n_slots;
  int64_t *first_layers; /* [chunks] */
  const nxc_stages *ends; /* those that have the first and the last chunk */
  const nxc_stages *all;  /* where there are several */
  nxc_stages **stages;    /* each list once, so that they are the same where they are equal */
  size_t n_stage_lists;
  nxc_named_place *places;
  size_t n_places;
  /* [graphs][chunks]: bytes before the chunk's entries in the table of squared norms */
  int64_t **first_squares;
  uint64_t arena_bytes[NX_N_ARENAS]; /* of the stage that needs most */
  uint64_t slot_bytes;               /* of the largest slot */
};

/* Cuts the layers and makes an empty graph per shape of chunk. */
nxc_pipeline *nxc_pipeline_new(nxc_arena *arena, const nxc_training *training);
/* The stages that hold the weights of a layer which other layers share; NULL where it is one. */
const nxc_stages *nxc_pipeline_holders(nxc_pipeline *pipeline, const nxc_training *training, int64_t weights);
/* Fills the items and the number of slots of each chunk. */
void nxc_schedule(nxc_pipeline *pipeline, const nxc_training *training);
/* Gives each chunk its part of every arena. */
void nxc_pipeline_lay_out(nxc_pipeline *pipeline);

#endif
