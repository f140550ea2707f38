/* SPDX-License-Identifier: Apache-2.0 */
/* The tree between the parser and the evaluator of expressions; nobody else includes this.
 *
 * A node has up to n_args children, or is a literal, or a name, which holds its index in
 * nxc_expression.names. A call has the row of its function. */
#ifndef NXC_CONFIG_EXPRESSION_TREE_H
#define NXC_CONFIG_EXPRESSION_TREE_H

#include "compiler/expression/expression.h"

#include <string.h>

typedef enum nxc_operation {
  NXC_OP_LITERAL,
  NXC_OP_UNKNOWN,
  NXC_OP_LIST,
  NXC_OP_NAME,
  NXC_OP_CALL,
  NXC_OP_KNOWN,
  NXC_OP_GIVEN,
  NXC_OP_LACKING,
  NXC_OP_ITEM,
  NXC_OP_CHOICE,
  NXC_OP_OR,
  NXC_OP_AND,
  NXC_OP_NOT,
  NXC_OP_NEGATE,
  NXC_OP_EQUAL,
  NXC_OP_UNEQUAL,
  NXC_OP_LESS,
  NXC_OP_LESS_EQUAL,
  NXC_OP_GREATER,
  NXC_OP_GREATER_EQUAL,
  NXC_OP_IN,
  NXC_OP_NOT_IN,
  NXC_OP_MATCHES,
  NXC_OP_ADD,
  NXC_OP_SUBTRACT,
  NXC_OP_MULTIPLY,
  NXC_OP_DIVIDE,
  NXC_OP_FLOOR_DIVIDE,
  NXC_OP_MODULO,
  NXC_OP_POWER
} nxc_operation;

struct nxc_expression_function;

struct nxc_expression_node {
  nxc_operation operation;
  uint32_t n_args;
  union {
    nxc_value literal;
    size_t name;
    struct {
      const struct nxc_expression_function *function;
      const nxc_expression_node **args;
    };
  };
};

/* Whether the first n_bytes > 0 of a text are this word and no more of it is missing. */
static inline bool nxc_expression_is_word(const char *word, const char *text, size_t n_bytes) {
  return *word == *text && strncmp(word, text, n_bytes) == 0 && word[n_bytes] == '\0';
}

/* Where an evaluation allocates and what went wrong in it; error is set once and stays. */
typedef struct nxc_evaluation {
  nxc_arena *arena;
  const nxc_scope *scope;
  const nxc_expression *expression;
  const char *error;
} nxc_evaluation;

typedef struct nxc_expression_function {
  const char *name;
  size_t min_args, max_args;
  bool by_item; /* a list as first argument gives a list of results */
  /* All arguments are known. NULL with evaluation->error set when they make no sense. */
  const nxc_value *(*call)(nxc_evaluation *evaluation, const nxc_value *const *args, size_t n_args);
  /* The same with a result as first argument: the argument that gives it, NULL where none does. NULL: of no
   * use. */
  const nxc_value *(*invert)(nxc_evaluation *evaluation, const nxc_value *const *args, size_t n_args);
} nxc_expression_function;

const nxc_expression_function *nxc_expression_function_find(const char *name, size_t n_bytes);

const nxc_value *nxc_evaluation_fail(nxc_evaluation *evaluation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const nxc_value *nxc_value_of_bool(nxc_evaluation *evaluation, bool boolean);
const nxc_value *nxc_value_of_int(nxc_evaluation *evaluation, int64_t integer);
const nxc_value *nxc_value_of_number(nxc_evaluation *evaluation, double number);
const nxc_value *nxc_value_of_text(nxc_evaluation *evaluation, const char *text, size_t n_bytes);
/* Of an int that fits or a float; false for anything else. */
bool nxc_value_number(const nxc_value *value, double *number);
/* <0, 0, >0; fails on values that have no order among them. */
bool nxc_evaluation_compare(nxc_evaluation *evaluation, const nxc_value *a, const nxc_value *b, int *order);
/* Numbers by size (1 == 1.0), everything else by kind and content. */
bool nxc_values_same(const nxc_value *a, const nxc_value *b);
const nxc_value *nxc_evaluation_add(nxc_evaluation *evaluation, const nxc_value *a, const nxc_value *b);
const nxc_value *nxc_evaluation_contains(nxc_evaluation *evaluation, const nxc_value *whole,
                                         const nxc_value *part);

#endif
