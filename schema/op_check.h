/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator of a plan is, in the letters of its signature: a size for every letter, and for every
 * attribute the least and greatest number that it is on any rank and chunk. Made and used by op_check.c;
 * op_relation.c evaluates the relations of a signature over it. */
#ifndef NX_OP_CHECK_H
#define NX_OP_CHECK_H

#include "schema/plan.h"

typedef struct nx_op_facts {
  const nx_op_row *row;
  uint32_t n_in;
  int64_t group_size;       /* 1 where there is no group */
  int64_t of[128];          /* by letter; 0: no operand has it */
  int64_t least[NX_MAX_ATTRS], greatest[NX_MAX_ATTRS];
  uint16_t same_type;       /* of the operands of type s; 0: not met yet */
} nx_op_facts;

/* Whether every relation holds. Otherwise `broken` and `n_chars` are the one that does not. */
bool nx_op_relations_hold(const nx_op_facts *facts, const char *relations, const char **broken,
                          uint32_t *n_chars);
/* The number that `text` begins with: a digit string, `#` or an attribute that is the same everywhere; `end`
 * is where it goes on. False where it is none. */
bool nx_op_number(const nx_op_facts *facts, const char *text, const char **end, int64_t *number);

#endif
