/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the decoder are made of: products as tensor parallelism divides them, norms, dropout.
 * Inside this room alone; others include model_decoder.h. */
#ifndef NXC_DECODER_H
#define NXC_DECODER_H

#include "compiler/program/model/parameters.h"

/* Keys of dropout masks: a block of the layer's, then which of its masks. Above every tensor's key. */
enum {
  NXC_KEY_DROPOUT = 1 << 30,
  NXC_KEY_ADAPTERS = 64,                      /* from here on: those of adapters, by part */
  NXC_KEY_PRIORITIES = NXC_KEY_ADAPTERS + 61, /* of no part */
  NXC_KEY_LOGITS,
  NXC_KEY_ROUTER,
  NXC_KEY_ATTENTION = 0,
  NXC_KEY_ATTENTION_OUTPUT,
  NXC_KEY_FFN,
  NXC_KEY_FFN_OUTPUT,
  NXC_KEYS_PER_LAYER
};

typedef struct nxc_decoder {
  nxc_graph *graph;
  const nxc_training *t;
  const nxc_layer_spec *layer; /* that is built; NULL before and after the layers */
  int64_t vocab, sequence;     /* of one rank */
  uint32_t tensor;             /* axis */
  nxc_id table;                /* the embedding, where the chunk has read it */
  nxc_id output;               /* the output matrix, where the chunk has */
} nxc_decoder;

/* What follows belongs to this module of a layer; -1: of none. */
void nxc_decoder_enter(nxc_decoder *decoder, int32_t layer, const char *module);
/* Where this tensor-parallel rank's part begins, if each has `unit`. */
nxc_rank_number nxc_decoder_divided(const nxc_decoder *decoder, int64_t unit);
/* First local token between tensor-parallel regions, among those of the context rank. */
nxc_rank_number nxc_decoder_first_token(const nxc_decoder *decoder);
/* The key of a mask of this layer, or of the embedding. */
nx_attribute nxc_decoder_dropout_key(nxc_graph *graph, int key);
nxc_id nxc_decoder_dropout(const nxc_decoder *decoder, nxc_id x, double probability, int key,
                           nxc_rank_number first_token, const nxc_rank_number *first_feature);
/* What a router reads of x: with noise, where there is some. */
nxc_id nxc_decoder_jitter(const nxc_decoder *decoder, nxc_id x, double width);
/* Normal numbers in the place of its logits; their gradient is that of the logits. */
nxc_id nxc_decoder_random_logits(const nxc_decoder *decoder, nxc_id logits);
/* Of tokens for each expert, as many as logits: random numbers. */
nxc_id nxc_decoder_priorities(const nxc_decoder *decoder, nxc_id logits);
/* Sums what is partial over tensor; between tensor-parallel regions the sequence may be divided. */
nxc_id nxc_decoder_leave_region(const nxc_decoder *decoder, nxc_id x, nx_dtype type);
nxc_id nxc_decoder_enter_region(const nxc_decoder *decoder, nxc_id x);
/* A norm over the last dimension; `name` tells it from others of the module, NULL where there are none. */
nxc_id nxc_decoder_norm(const nxc_decoder *decoder, nxc_id x, nxc_part part, const nxc_norm_spec *spec,
                        const char *name, nx_dtype type);
/* The layer's norm over features that are divided over `atoms`, as a whole. */
nxc_id nxc_decoder_norm_of_features(const nxc_decoder *decoder, nxc_id x, nxc_part part, const char *name,
                                    uint32_t atoms);
/* x w' + bias, where there is one. */
nxc_id nxc_decoder_product(const nxc_decoder *decoder, const char *name, nxc_id x, nxc_id weight,
                           nxc_id bias);
/* The same, of a matrix of the model; `part`: its first. In fp8 where the layer's products are. */
nxc_id nxc_decoder_matrix_product(const nxc_decoder *decoder, nxc_part part, const char *name, nxc_id x,
                                  nxc_id weight, nxc_id bias);
/* Outputs of a product that are divided over `atoms`. */
typedef struct nxc_columns {
  const char *name;
  const nxc_box *boxes;
  uint32_t n_boxes, atoms;
} nxc_columns;

nxc_id nxc_decoder_column_weight(const nxc_decoder *decoder, nxc_id x, const nxc_columns *columns);
nxc_id nxc_decoder_column_bias(const nxc_decoder *decoder, const nxc_columns *columns);
/* Their product, of a weight that is read, and a bias where there is one. */
nxc_id nxc_decoder_columns(const nxc_decoder *decoder, nxc_id x, const nxc_columns *columns, nxc_id weight,
                           nxc_id bias);
/* All of it. */
nxc_id nxc_decoder_column_product(const nxc_decoder *decoder, const char *name, nxc_id x,
                                  const nxc_box *boxes, uint32_t n_boxes, uint32_t atoms, bool with_bias);
/* A product whose inputs are divided over tensor. Its bias is added once, after the sum over the ranks. */
nxc_id nxc_decoder_row_product(const nxc_decoder *decoder, nxc_id x, const nxc_box *box, bool with_bias);

#endif
