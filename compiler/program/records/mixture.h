/* SPDX-License-Identifier: Apache-2.0 */
/* The mixture of experts that settings ask for: its sizes, and how it routes.
 *
 * Sizes are the model's; a rank's share follows from the mesh. A capacity counts tokens of one whole
 * micro-batch of a data-parallel rank, whichever ranks hold parts of it; so do the losses. */
#ifndef NXC_RECORDS_MIXTURE_H
#define NXC_RECORDS_MIXTURE_H

#include "compiler/settings/settings.h"

typedef enum nxc_aux_scope { NXC_AUX_OF_LAYER, NXC_AUX_OF_SEQUENCE, NXC_AUX_OF_MODEL } nxc_aux_scope;

/* Whose tokens are the load. */
typedef enum nxc_aux_over { NXC_AUX_OVER_MICRO_BATCH, NXC_AUX_OVER_RANKS, NXC_AUX_OVER_STEP } nxc_aux_over;

/* Which tokens are dropped, as of moe_route. */
typedef enum nxc_drop { NXC_DROP_LIGHTEST, NXC_DROP_LAST, NXC_DROP_LEAST } nxc_drop;

typedef enum nxc_mixture_biases {
  NXC_BIASES_OF_EXPERTS,
  NXC_BIASES_OF_FIRST, /* matrices of each expert */
  NXC_BIASES_OF_LAYER, /* one */
  NXC_NO_BIASES
} nxc_mixture_biases;

typedef struct nxc_mixture {
  int64_t n_experts, top_k;
  int64_t hidden;        /* width inside an expert */
  int64_t shared_hidden; /* of the experts that every token goes through, together; 0: there are none */
  bool shared_gate;      /* a token has a weight for what they make of it */
  bool shared_softmax;   /* which is of a softmax, and its own experts have the rest */
  int64_t score;         /* as of moe_route */
  bool normalize;
  double scale;
  int64_t sinkhorn; /* rounds; 0: logits choose */
  double tolerance;
  double capacity_factor; /* 0: no token is dropped */
  double evaluation_capacity_factor; /* the same, in evaluations */
  int64_t min_capacity;
  int64_t drop;              /* nxc_drop */
  nxc_mixture_biases biases; /* where the feed-forward blocks have some */
  bool biased;              /* the router has a bias */
  bool corrected;           /* experts have a correction of the scores that choose them */
  double correction_rate;   /* by which it moves each step towards a balanced load */
  bool by_quantiles; /* they are memory of logits' quantiles instead, of earlier steps' with this weight */
  double quantile_memory;
  int64_t groups, top_groups, group_best; /* as of moe_route */
  double aux, z; /* coefficients */
  /* Of further load-balancing losses beside that of a layer's micro-batch: over each sequence, and over the
   * step so far. Where one of them is the only one it is `aux`, with its scope. */
  double aux_sequence, aux_step;
  nxc_aux_scope aux_scope;
  nxc_aux_over aux_over;
  bool gathers;         /* ranks gather all tokens instead of sending each to its experts */
  bool random;          /* logits are random numbers */
  double jitter;        /* width of the noise on what routers read */
  double buffer_factor; /* room for rows, as a multiple of a balanced load */
} nxc_mixture;

/* There is more than one expert. */
nxc_mixture nxc_mixture_read(const nxc_settings *settings);
/* Which of so many layers are mixtures, 1 or 0 each, by their frequency or a pattern as "([0]*3+[1]*58)".
 * False where the pattern is neither a number nor a list that is as long. */
bool nxc_mixture_layers_read(const nxc_settings *settings, int64_t n_layers, uint8_t *is_mixture);
/* A list as "([0]*3+[1]*58)" of 0 and 1 for each of so many layers. False where it is none, or not as long.
 */
bool nxc_pattern_marks(const char *pattern, int64_t n_layers, uint8_t *marks);
/* Tokens that an expert takes of n_tokens of a micro-batch; 0: every one. */
int64_t nxc_mixture_capacity(const nxc_mixture *mixture, int64_t n_tokens);
int64_t nxc_mixture_evaluation_capacity(const nxc_mixture *mixture, int64_t n_tokens);

#endif
