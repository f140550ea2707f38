/* SPDX-License-Identifier: Apache-2.0 */
/* A layout of ranks, and short names for the settings that make one. */
#ifndef TESTS_PARITY_MESH_WORDS_H
#define TESTS_PARITY_MESH_WORDS_H

#include <stdbool.h>
#include <stddef.h>

static const char base[] =
    "batch: {micro: 1, global: 8}\n"
    "model: {layers: 2, hidden: 64, ffn_hidden: 176, heads: 4, kv_heads: 2, sequence: 32, vocab: 250,\n"
    "  vocab_divisor: 16, normalization: rmsnorm, position_embedding: rope, activation: swiglu}\n"
    "optimizer: {name: adamw, lr: 1e-3, betas: [0.9, 0.95], weight_decay: 0.1, clip_norm: 1.0}\n"
    "schedule: {name: cosine, warmup_steps: 2, min_lr: 1e-4, max_steps: 6}\n"
    "run: {seed: 7}\n";

typedef struct mesh {
  const char *name;
  unsigned n_ranks;
  const char *overrides; /* beside the family's */
  const char *arguments; /* of nxrun */
} mesh;

#define SET(path, value) " --set nx:" path "=" value
#define WORLD(n) SET("mesh.world", n)
#define TENSOR(n) SET("mesh.tensor", n)
#define ZERO(stage) SET("optimizer.zero_stage", stage)
#define ZERO1 ZERO("1")
#define REPLICATE(n) SET("mesh.replicate", n)
#define OVERLAP SET("reduce.overlap", "true") SET("gather.overlap", "true")
#define BUCKETS SET("reduce.bucket_elements", "9000")
#define NO_CLIP SET("optimizer.clip_norm", "null")
#define KEPT SET("optimizer.reshard_after_forward", "false")
#define SEQUENCE SET("sequence_parallel", "true")

#endif
