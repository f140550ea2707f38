/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the yaml files of schema as libcyaml reads them: every field is text, NULL where it is
 * absent.
 *
 * Numbers stay text because libcyaml misreads some (1e3 as 1) and cannot tell an absent field from 0;
 * literal.h reads them. A `*_count` member belongs to the list before it. Rows live until the generator
 * ends. */
#ifndef NX_GEN_ROWS_H
#define NX_GEN_ROWS_H

#include "compiler/settings/rule_check.h"

#include <stdbool.h>
#include <stddef.h>

/* The rows that the catalogue is made of have the fields of compiler/settings/fields.h; those below are read
 * for tables of their own. */

#define GEN_ENVIRONMENT_FIELDS(X, row)                                                                       \
  X(row, TEXT, use_bf16, "XLA_USE_BF16")                                                                     \
  X(row, TEXT, downcast_bf16, "XLA_DOWNCAST_BF16")                                                           \
  X(row, TEXT, stochastic_rounding, "NEURON_RT_STOCHASTIC_ROUNDING_EN")                                      \
  X(row, TEXT, compiler_flags, "NEURON_CC_FLAGS")

/* What a training system keeps, or does. */
#define GEN_SYSTEM_FIELDS(X, row)                                                                            \
  X(row, TEXT, keeps, "keeps")                                                                               \
  X(row, TEXT, part, "part")                                                                                 \
  X(row, TEXT, of, "of")                                                                                     \
  X(row, TEXT, bytes, "bytes")                                                                               \
  X(row, TEXT, when, "when")                                                                                 \
  X(row, TEXT, module, "module")                                                                             \
  X(row, TEXT, input_of, "input_of")                                                                         \
  X(row, TEXT, does, "does")                                                                                 \
  X(row, TEXT, value, "value")                                                                               \
  X(row, TEXT, doc, "doc")                                                                                   \
  X(row, TEXT, source, "source")

/* The shape of a well-known model. */
#define GEN_MODEL_FIELDS(X, row)                                                                             \
  X(row, TEXT, model, "model")                                                                               \
  X(row, TEXT, family, "family")                                                                             \
  X(row, TEXT, layers, "layers")                                                                             \
  X(row, TEXT, hidden, "hidden")                                                                             \
  X(row, TEXT, ffn, "ffn")                                                                                   \
  X(row, TEXT, heads, "heads")                                                                               \
  X(row, TEXT, kv_heads, "kv_heads")                                                                         \
  X(row, TEXT, head_dim, "head_dim")                                                                         \
  X(row, TEXT, vocab, "vocab")                                                                               \
  X(row, TEXT, max_positions, "max_positions")                                                               \
  X(row, TEXT, rope_theta, "rope_theta")                                                                     \
  X(row, TEXT, rotary_fraction, "rotary_fraction")                                                           \
  X(row, TEXT, norm_eps, "norm_eps")                                                                         \
  X(row, TEXT, experts, "experts")                                                                           \
  X(row, TEXT, top_k, "top_k")                                                                               \
  X(row, TEXT, expert_ffn, "expert_ffn")                                                                     \
  X(row, TEXT, sliding_window, "sliding_window")                                                             \
  X(row, TEXT, rope_factor, "rope_factor")                                                                   \
  X(row, TEXT, tied, "tied")                                                                                 \
  X(row, TEXT, shared_ffn, "shared_ffn")                                                                     \
  X(row, TEXT, first_dense, "first_dense")                                                                   \
  X(row, TEXT, full_every, "full_every")

/* The size of a well-known vocabulary. */
#define GEN_TOKENIZER_FIELDS(X, row)                                                                         \
  X(row, TEXT, tokenizer, "tokenizer")                                                                       \
  X(row, TEXT, vocab, "vocab")                                                                               \
  X(row, TEXT, usual, "usual")                                                                               \
  X(row, TEXT, source, "source")

/* A family of models, or a tensor of its checkpoints. */
#define GEN_FAMILY_FIELDS(X, row)                                                                            \
  X(row, TEXT, family, "family")                                                                             \
  X(row, TEXT, like, "like")                                                                                 \
  X(row, TEXTS, model_types, "model_types")                                                                  \
  X(row, TEXTS, keys, "keys")                                                                                \
  X(row, TEXTS, defaults, "defaults")                                                                        \
  X(row, TEXTS, sets, "sets")                                                                                \
  X(row, TEXT, architecture, "architecture")                                                                 \
  X(row, TEXTS, writes, "writes")                                                                            \
  X(row, TEXT, tensor, "tensor")                                                                             \
  X(row, TEXTS, parts, "parts")                                                                              \
  X(row, TEXT, layout, "layout")                                                                             \
  X(row, TEXT, transposed, "transposed") \
  X(row, TEXT, bare, "bare") \
  X(row, TEXT, stacked, "stacked")

typedef struct gen_setting {
  NXC_SETTING_FIELDS(NXC_READ, )
} gen_setting;

typedef struct gen_option {
  NXC_OPTION_FIELDS(NXC_READ, )
} gen_option;

typedef struct gen_fixed {
  NXC_FIXED_FIELDS(NXC_READ, )
} gen_fixed;

typedef struct gen_environment {
  GEN_ENVIRONMENT_FIELDS(NXC_READ, )
} gen_environment;

typedef struct gen_preset {
  NXC_PRESET_FIELDS(NXC_READ, )
  gen_environment *environment;
} gen_preset;

typedef nxc_rule_texts gen_rule;

typedef struct gen_diagnostic {
  NXC_DIAGNOSTIC_FIELDS(NXC_READ, )
} gen_diagnostic;

typedef struct gen_system {
  GEN_SYSTEM_FIELDS(NXC_READ, )
} gen_system;

typedef struct gen_model {
  GEN_MODEL_FIELDS(NXC_READ, )
} gen_model;

typedef struct gen_tokenizer {
  GEN_TOKENIZER_FIELDS(NXC_READ, )
} gen_tokenizer;

typedef struct gen_family {
  GEN_FAMILY_FIELDS(NXC_READ, )
} gen_family;

/* Everything of one kind in one file. */
typedef struct gen_file {
  const char *path;
  const char *name; /* its last part without .yaml: the dialect's name */
  void *rows;
  unsigned n_rows;
} gen_file;

typedef enum gen_kind {
  GEN_SETTINGS,
  GEN_DIALECT,
  GEN_FIXED,
  GEN_PRESETS,
  GEN_RULES,
  GEN_DIAGNOSTICS,
  GEN_SYSTEM,
  GEN_MODELS,
  GEN_TOKENIZERS,
  GEN_FAMILY,
  GEN_N_KINDS
} gen_kind;

/* Reads one file of this kind; prints what is wrong and returns false when it is none. What a generator sets
 * in a row is the row's own, as libcyaml's texts are. */
bool gen_file_read(gen_file *file, gen_kind kind, const char *path);

#endif
