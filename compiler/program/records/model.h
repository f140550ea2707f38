/* SPDX-License-Identifier: Apache-2.0 */
/* The model: a decoder as a list of layers, each of which is what its spec says.
 *
 * Layers that are equal share one spec: spec_of[layer] is its index. Sizes are those of the whole model, not
 * of a rank. What the settings leave unknown but others determine (kv_heads, head_dim, ...) is filled in as
 * the deriving rules would. A spec may say what the graph has no operator for yet; what nxrun refuses of it
 * is judged elsewhere (training.h). */
#ifndef NXC_RECORDS_MODEL_H
#define NXC_RECORDS_MODEL_H

#include "compiler/program/records/layout.h"
#include "compiler/program/records/mixture.h"
#include "compiler/program/records/sparsity.h"
#include "compiler/settings/family.h"
#include "schema/plan.h"

/* A table of activations and one of norms: the settings' names, and the operator; 0: the graph has none. */
typedef struct nxc_activation {
  const char *name;
  bool gated; /* of two halves, the first goes through the function and multiplies the second */
  nx_activation function;
  double limit, offset; /* as of gated */
} nxc_activation;

typedef struct nxc_norm_kind {
  const char *name;
  nx_op op;
  bool biased;       /* it may have a bias */
  bool zero_centred; /* 1 + weight multiplies */
  bool scalar;       /* its weight is one number */
  bool plain;        /* it has no weight */
} nxc_norm_kind;

typedef struct nxc_norm_spec {
  const nxc_norm_kind *kind;
  bool bias;
  double epsilon;
} nxc_norm_spec;

typedef enum nxc_rope_scaling { /* as in split_heads, but for the last two */
  NXC_ROPE_PLAIN,
  NXC_ROPE_LINEAR,
  NXC_ROPE_LLAMA3,
  NXC_ROPE_YARN,
  NXC_ROPE_YARN_SMOOTH,
  NXC_ROPE_DYNAMIC, /* plain, with a base of its own */
  NXC_ROPE_LONGROPE /* plain, with frequencies of its own */
} nxc_rope_scaling;

/* Rotation of queries and keys: of `dims` features of a head. */
typedef struct nxc_rope_spec {
  int64_t dims; /* 0: none */
  double theta;
  nxc_rope_scaling scaling;
  double factor, low_freq_factor, high_freq_factor;
  int64_t original_positions;
  double amplitude; /* of cosines and sines */
  bool interleaved; /* pairs are 2 i and 2 i + 1, else i and i + dims / 2 */
  int64_t start;    /* the first feature that is rotated */
  const double *frequencies; /* [n_frequencies] of the pairs; NULL: they follow from the base */
  int64_t n_frequencies;
} nxc_rope_spec;

/* Learned biases of scores by the distance between query and key, as in attention_relative. */
typedef struct nxc_relative_spec {
  int64_t buckets; /* 0: none */
  int64_t max_distance;
  double factor;
} nxc_relative_spec;

typedef enum nxc_qk_norm { NXC_QK_PLAIN, NXC_QK_NORM_OF_HEAD, NXC_QK_NORM_OF_ALL } nxc_qk_norm;

typedef struct nxc_attention_spec {
  int64_t heads, kv_heads, head_dim;
  int64_t value_dim;           /* of a value head */
  int64_t query_rank, kv_rank; /* of the latents of queries, and of keys and values; 0: none */
  int64_t shared_dim;          /* beside a latent: the last features of a key, which all heads share */
  nxc_norm_spec latent_norm;   /* of the latents; kind NULL: none */
  int64_t window; /* tokens that a token looks back; 0: all */
  double scale;   /* of the scores */
  double soft_cap; /* of the scores; 0: none */
  double limit;    /* of queries, keys and values; 0: none */
  bool alibi;
  nxc_relative_spec relative;
  nxc_sparse_kind sparse; /* which blocks of keys are read */
  bool sinks; /* each head may read nothing, with a weight that is learned */
  nxc_qk_norm qk_norm;
  int64_t gates; /* that multiply what is read: 0, one for each head, or one for each of its features */
  double dropout;
  bool qkv_bias, output_bias;
  bool fused;         /* queries, keys and values from one product */
  bool layer_scaling; /* scores are divided by the layer's number, and multiplied back in the softmax */
  nxc_rope_spec rope;
} nxc_attention_spec;

/* A dense network, or a mixture of such. */
typedef struct nxc_feed_forward_spec {
  const nxc_activation *activation;
  int64_t width; /* of the dense network */
  bool bias;
  double dropout;             /* between its products */
  const nxc_mixture *mixture; /* NULL: dense */
} nxc_feed_forward_spec;

typedef struct nxc_layer_spec {
  nxc_norm_spec norm;
  bool norm_before, norm_after; /* of attention and of the feed-forward part */
  bool norm_of_sum;             /* of the stream, when they have been added to it */
  bool adds_to_norm;            /* what they are added to is what they read */
  bool parallel;                /* both read the same input, and are added to it together */
  bool one_norm;                /* parallel: both read what one norm made */
  bool norm_within;             /* the feed-forward part's norm after stands before its last product */
  nxc_attention_spec attention;
  nxc_feed_forward_spec ffn;
  double dropout; /* of what is added to the residual stream */
  bool fp8;       /* its products are in fp8, where products are */
} nxc_layer_spec;

/* How matrices are drawn: with one deviation, or with Xavier's, sqrt(2 / (rows + columns)) of each; or the
 * shorter of their rows and columns are orthogonal. */
typedef struct nxc_init_spec {
  bool xavier, uniform, orthogonal;
  double std; /* where not Xavier's; of orthogonal ones the length of their rows or columns */
} nxc_init_spec;

typedef struct nxc_model {
  int64_t layers, hidden, sequence, vocab, vocab_padded;
  int64_t outputs; /* rows of the output layer: the vocabulary with padding, or 1 of a head of values */
  double windowed;           /* share of the layers whose attention has its window */
  int64_t learned_positions; /* rows of a table that is added to the embedding; 0: none */
  bool sinusoidal;           /* sines and cosines of positions are added to the embedding */
  double embedding_scale, embedding_dropout;
  bool embedding_norm;
  double output_soft_cap; /* of the logits; 0: none */
  bool tied; /* the output matrix is the embedding */
  nxc_norm_spec final_norm;
  nxc_layer_spec *specs;
  uint32_t n_specs;
  int64_t predict_depth;      /* further tokens that are predicted, by a layer each behind the others */
  double predict_factor;      /* of the mean of their losses */
  uint8_t *spec_of;           /* [layers + predict_depth] */
  const nxc_mixture *mixture; /* that some specs name; NULL: the model is dense */
  nxc_sparsity sparsity;      /* of the layers that are sparse */
  int64_t unique_layers;      /* with weights of their own; layers: all */
  bool spaced;                /* layers that share weights follow one another */
  nxc_init_spec init, embedding_init, position_init, relative_init, router_init;
  nxc_init_spec output_init; /* of what is added to the residual stream */
  bool init_by_part;         /* each tensor-parallel rank draws its part of a matrix as a matrix */
  const nxc_family *family; /* whose names the tensors have in checkpoints and init_from */
} nxc_model;

/* A plan names layers one by one: there may be no more. */
enum { NXC_MOST_LAYERS = 4096 };

/* The sizes are known, and there are NXC_MOST_LAYERS layers at most. What it points to is in the arena. */
nxc_model nxc_model_read(const nxc_settings *settings, const nxc_layout *layout, nxc_arena *arena);
const nxc_layer_spec *nxc_model_layer(const nxc_model *model, int64_t layer);
/* layer.c: a norm of the stream, and a layer of which nothing is said apart. */
nxc_norm_spec nxc_norm_read(const nxc_settings *settings);
nxc_layer_spec nxc_layer_read(const nxc_settings *settings, int64_t hidden, nxc_arena *arena);
/* Weights of an attention's products. */
double nxc_attention_weights(const nxc_attention_spec *attention, int64_t hidden);
/* Norms of the stream, or of what is added to it, in a layer. */
int64_t nxc_layer_norms(const nxc_layer_spec *layer);
/* Layers that are mixtures. */
int64_t nxc_model_mixtures(const nxc_model *model);
/* Whether layers, and so several stages, have weights in common. */
bool nxc_model_shares(const nxc_model *model);
/* The layer, below unique_layers, whose weights a layer has; below 0 the number itself. */
int64_t nxc_model_weights_of(const nxc_model *model, int64_t layer);

#endif
