/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser of statements and that of expressions share. */
#ifndef NXJ_PARSER_H
#define NXJ_PARSER_H

#include "chat/lexer.h"
#include "chat/node.h"

typedef struct nxj_parser {
  nxj_pool *pool;
  const nxj_token *at;
  uint32_t n_loops, n_macros, n_branches; /* around this */
  bool has_generation;
} nxj_parser;

nxj_node *nxj_node_new(nxj_parser *parser, nxj_node_kind kind);
void nxj_nodes_add(nxj_nodes *nodes, nxj_node *node);
/* Stands at this name or sign, and goes on if so. */
bool nxj_is_word(const nxj_parser *parser, const char *word);
bool nxj_is_sign(const nxj_parser *parser, const char *sign);
bool nxj_skip_word(nxj_parser *parser, const char *word);
bool nxj_skip_sign(nxj_parser *parser, const char *sign);
void nxj_expect_sign(nxj_parser *parser, const char *sign);
const char *nxj_expect_name(nxj_parser *parser);
_Noreturn void nxj_unexpected(nxj_parser *parser, const char *wanted);
/* The pool's place is where the parser stands. */
void nxj_stand(nxj_parser *parser);

nxj_node *nxj_parse_expression(nxj_parser *parser);
/* One, or a tuple of several without brackets. */
nxj_node *nxj_parse_tuple(nxj_parser *parser);
/* As nxj_parse_expression, without an if behind it. */
nxj_node *nxj_parse_or(nxj_parser *parser);
/* "name(arguments) | ..." behind a bar, over `inner`, which may be NULL. */
nxj_node *nxj_parse_filters(nxj_parser *parser, nxj_node *inner);

#endif
