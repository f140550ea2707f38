/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives of a training, and what is counted of those that compare answers. */
#ifndef NX_OBJECTIVE_H
#define NX_OBJECTIVE_H

#include <stdbool.h>
#include <stdint.h>

/* What is trained for: the next token; that chosen answers are preferred to rejected ones; that wanted
 * answers become likelier, against a reference, and unwanted ones less likely; or that a number for a whole
 * answer is greater for the chosen one. */
typedef enum nx_objective {
  NX_OBJECTIVE_TOKENS,
  NX_OBJECTIVE_DPO,
  NX_OBJECTIVE_ORPO,
  NX_OBJECTIVE_KTO,
  NX_OBJECTIVE_REWARD,
  NX_N_OBJECTIVES
} nx_objective;

enum { NX_N_ANSWER_METRICS = 9 /* of an objective, at most */ };

typedef struct nx_objective_row {
  const char *name;   /* as a setting says it */
  uint32_t rows;      /* of a sample; 2: the chosen answer, and the rejected one behind it */
  bool may_refer;     /* to what a model says of the answers, and here */
  bool must_refer;    /* it always does */
  bool has_rewards;   /* each document has one */
  bool has_values;    /* a head gives tokens a number, not logits */
  bool even;          /* both halves of a micro-batch have as many samples */
  /* What is summed up over samples, in this order; NULL behind the last. Log-probabilities are negative, and
   * those of an answer a sum over its tokens; ORPO's are means. */
  const char *metrics[NX_N_ANSWER_METRICS];
} nx_objective_row;

/* NULL where the number is none. */
const nx_objective_row *nx_objective_find(uint32_t number);

#endif
