/* SPDX-License-Identifier: Apache-2.0 */
/* What is well known of models and tokenizers by their names: schema/models.yaml and schema/tokenizers.yaml.
 *
 * Names are compared word by word without case and punctuation, and without what tells weights of one shape
 * apart (Instruct, FP8, 2507, ...), so that a path, a run's name or a file's may name a model too. A model
 * without a shape is known to be no plain decoder; its family tells what it is (hf_config.yaml,
 * model_type). */
#ifndef NXC_KNOWN_H
#define NXC_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxc_known_model {
  const char *name, *family;
  int64_t layers, hidden, vocab; /* 0 of a model without a shape */
  const char *config; /* what its config.json would say of the shape */
} nxc_known_model;

typedef struct nxc_known_tokenizer {
  const char *name;
  int64_t vocab;
  bool usual; /* what most have, not all */
  const char *source;
} nxc_known_tokenizer;

extern const nxc_known_model nxc_known_models[];
extern const size_t nxc_n_known_models;
extern const nxc_known_tokenizer nxc_known_tokenizers[];
extern const size_t nxc_n_known_tokenizers;

/* The model whose name stands in the text, and which has so many layers and this width where they are known
 * (0: not). Of several the longest name. NULL: none. */
const nxc_known_model *nxc_known_model_in(const char *text, int64_t layers, int64_t hidden);
/* The vocabulary that a tokenizer's type, file or name tells; NULL: none. */
const nxc_known_tokenizer *nxc_known_tokenizer_in(const char *text);

#endif
