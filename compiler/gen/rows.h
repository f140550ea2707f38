/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the yaml files of schema as libcyaml reads them: every field is text, NULL where it is
 * absent.
 *
 * Numbers stay text because libcyaml misreads some (1e3 as 1) and cannot tell an absent field from 0;
 * literal.h reads them. A `*_count` member belongs to the list before it. Rows live until the generator
 * ends. */
#ifndef NX_GEN_ROWS_H
#define NX_GEN_ROWS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gen_setting {
  char *setting, *type, *initial, *min, *max, *above, *unit, *meaning, *shorthand, *read_when, *needed,
      *changes, *doc, *runs;
  char **values;
  unsigned values_count;
  char *refused_when, *why, *instead;
} gen_setting;

typedef struct gen_option {
  char *option, *type, *nullable, *required, *initial, *min, *max, *above, *read_when, *status, *refused_when,
      *changes, *why, *instead, *names, *alias_of, *became, *from, *doc, *source;
  char **values, **sets, **exports, **nearest_to, **versions, **words_in, **defaults_in;
  unsigned values_count, sets_count, exports_count, nearest_to_count, versions_count, words_in_count,
      defaults_in_count;
} gen_option;

/* What a system decides itself about settings: of a row's three kinds one is there. */
typedef struct gen_fixed {
  char *fixed, *value, *why, *source;
  char **absent, **unknown;
  unsigned absent_count, unknown_count;
} gen_fixed;

typedef struct gen_environment {
  char *use_bf16, *downcast_bf16, *stochastic_rounding, *compiler_flags;
} gen_environment;

typedef struct gen_preset {
  char *preset, *dialect, *param, *compute, *master, *gradient, *optimizer_state, *reduce,
      *stochastic_rounding, *refused, *doc, *note, *source;
  char **spellings;
  unsigned spellings_count;
  gen_environment *environment;
} gen_preset;

typedef struct gen_rule {
  char *rule, *dialect, *except, *structural, *severity, *after, *when, *require, *derive, *at, *message,
      *fix, *explain, *source;
  char **versions;
  unsigned versions_count;
} gen_rule;

typedef struct gen_diagnostic {
  char *diagnostic, *title, *explain;
} gen_diagnostic;

/* What a training system keeps, or does. */
typedef struct gen_system {
  char *keeps, *part, *of, *bytes, *when, *module, *does, *value, *doc, *source;
} gen_system;

/* The shape of a well-known model. */
typedef struct gen_model {
  char *model, *family, *layers, *hidden, *ffn, *heads, *kv_heads, *head_dim, *vocab, *max_positions,
      *rope_theta, *rotary_fraction, *norm_eps, *experts, *top_k, *expert_ffn, *sliding_window, *rope_factor,
      *tied, *shared_ffn;
} gen_model;

/* The size of a well-known vocabulary. */
typedef struct gen_tokenizer {
  char *tokenizer, *vocab, *usual, *source;
} gen_tokenizer;

/* A family of models, or a tensor of its checkpoints. */
typedef struct gen_family {
  char *family, *like, *architecture, *tensor, *layout, *transposed;
  char **model_types, **keys, **defaults, **sets, **writes, **parts;
  unsigned model_types_count, keys_count, defaults_count, sets_count, writes_count, parts_count;
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

/* Reads one file of this kind; prints what is wrong and returns false when it is none. */
bool gen_file_read(gen_file *file, gen_kind kind, const char *path);

#endif
