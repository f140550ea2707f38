/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that a program is made from, read once from the settings, and whether nxrun can execute them.
 *
 * Sizes are those of the whole model, not of a rank. What the settings leave unknown but others determine
 * (kv_heads, head_dim, ...) is filled in here as the deriving rules would. */
#ifndef NXC_TRAINING_H
#define NXC_TRAINING_H

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/program/graph.h"
#include "compiler/program/model/mixture.h"
#include "compiler/settings/settings.h"

typedef struct nxc_training {
  uint32_t world, nodes, tensor, kv_replica, context, data, pipeline;
  uint32_t ulysses, replicate;      /* of context, of data; the rest of each is ring, is shard */
  uint32_t expert, expert_tensor;   /* 1 and tensor where there are no experts */
  nxc_mesh mesh;                    /* of all these, once they have been found to fit */
  uint32_t n_chunks; /* of layers: stages x chunks of a stage */
  const nxc_value *cuts; /* list of n_chunks - 1 names of layers that end a chunk, or NULL */
  bool gpipe;
  bool receive_ahead; /* one slot more than there are micro-batches in flight */
  bool sequence_parallel;
  int64_t micro_batch, global_batch, n_micro_batches;
  int64_t unique_layers; /* with weights of their own; layers: all */
  bool spaced;           /* layers that share weights follow one another */
  int64_t layers, hidden, ffn_hidden, heads, kv_heads, head_dim, sequence, max_positions, vocab, vocab_padded;
  bool swiglu, gelu_tanh, rms_norm, norm_bias, learned_positions, bias, qkv_bias, tied, fused_qkv,
      qk_layer_scaling;
  double norm_epsilon;
  int64_t rotary_dims; /* 0: no rotation */
  int64_t rope_scaling;
  double rope_theta, rope_factor, rope_low_freq_factor, rope_high_freq_factor;
  int64_t rope_original_positions;
  double init_std, output_init_std;
  bool separate_documents, restart_positions, mask_document_ends; /* need end_of_document */
  int64_t end_of_document;                                        /* token id */
  double hidden_dropout, attention_dropout, ffn_dropout;
  nxc_mixture mixture;
  nx_names names;
  bool recompute_full, recompute_block; /* block: the first layers of each chunk only */
  bool recompute_distribute;            /* what is kept for it is divided over the tensor-parallel ranks */
  int64_t recompute_layers;             /* that are computed again together; block: how many */
  const nxc_value *recompute_modules; /* list, or NULL */
  size_t n_recompute_modules;
  bool adamw, norm_weight_decay;
  double lr, beta1, beta2, epsilon, weight_decay, clip_norm;
  uint32_t zero_stage;
  bool reshard_after_forward, overlap_reduce, overlap_gather;
  bool reduce_once;
  uint32_t zero_axis; /* atoms that ZeRO may divide over */
  uint64_t bucket_elements; /* 0: not given */
  uint64_t keep_below;
  int64_t schedule_shape, warmup_steps, constant_steps, max_steps;
  double min_lr;
  nxc_types types;
  nx_target target;
} nxc_training;

/* False, with findings, where the settings do not determine a program that nxrun can execute. The sizes are
 * read nevertheless where they are known (layers is 0 where they are not). */
bool nxc_training_read(const nxc_settings *settings, nxc_sink *sink, nxc_training *training);

/* The layer, below unique_layers, whose weights a layer has. */
int64_t nxc_training_weights_of(const nxc_training *training, int64_t layer);

/* Layers before a chunk, up to all of them before chunk n_chunks. */
int64_t nxc_training_layers_before(const nxc_training *training, uint32_t chunk);

/* Logical parameters, each once, and floating-point operations of a step over all ranks (matrix products and
 * whole, not only causal, attention; backward counts twice), as they are usually quoted. */
uint64_t nxc_training_parameters(const nxc_training *training);
double nxc_training_flops(const nxc_training *training);

#endif
