/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that an estimate is made from: of one rank of one pipeline stage.
 *
 * They come from the training's records, whether nxrun can execute those or not, so every decoder of known
 * shape and layout has them, whichever system it is written for. Everything is a double: numbers are sizes,
 * and formulas divide. */
#ifndef NXC_SIZES_H
#define NXC_SIZES_H

#include "compiler/program/records/training.h"

/* Adapters of a layer, and the frozen parameters that they stand beside, on one rank. */
typedef struct nxc_adapters {
  double dense_added, dense_adapted;
  double mixture_added, mixture_adapted; /* of a layer with experts, outside of these */
  double experts_added, experts_adapted;
  bool quantized;
  double base_bytes, scale_bytes; /* of an adapted parameter */
} nxc_adapters;

typedef struct nxc_sizes {
#define SIZE(name, meaning) double name;
#include "compiler/estimate/sizes.def"
#undef SIZE
  nxc_adapters adapters; /* behind the named ones */
  const nxc_value *offload_modules; /* of which offload_activations is the share; NULL: of all */
  size_t n_offload_modules;
  bool flash_all; /* but for layers that the pattern tells otherwise */
  const nxc_value *flash_pattern; /* kinds of layers, over and over; NULL: all are alike */
  size_t n_flash_pattern;
} nxc_sizes;

/* A size by its name in sizes.def: its place in the struct, or -1. */
int nxc_size_find(const char *name);

nxc_sizes nxc_sizes_read(const nxc_training *training, const nxc_settings *settings);
/* Those of a stage, 0 <= stage < sizes->pipeline, in *out: `sizes` as read, and what differs from stage to
 * stage. */
void nxc_sizes_of_stage(const nxc_sizes *sizes, const nxc_training *training, uint32_t stage, nxc_sizes *out);

/* Layers of one of the stage's chunks, each of which recomputes for itself. */
double nxc_sizes_chunk_layers(const nxc_sizes *sizes);
/* Weights of the attention of one layer on a tensor-parallel rank. */
double nxc_attention_on_rank(const nxc_sizes *sizes);

/* The first of several stages that are alike: as many layers of each kind, and the same ends. None of the
 * others keeps more micro-batches in flight. */
typedef struct nxc_stage_kind {
  nxc_sizes sizes;
  uint32_t stage, n_stages;
} nxc_stage_kind;

size_t nxc_sizes_of_stages(const nxc_sizes *sizes, const nxc_training *training, nxc_arena *arena,
                           nxc_stage_kind **kinds);

#endif
