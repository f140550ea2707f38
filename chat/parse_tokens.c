/* SPDX-License-Identifier: Apache-2.0 */
/* A parser's place among the tokens, and the nodes that it makes. */
#include "chat/parser.h"

#include <string.h>

void nxj_stand(nxj_parser *parser) {
  parser->pool->line = parser->at->line;
  parser->pool->column = parser->at->column;
}

nxj_node *nxj_node_new(nxj_parser *parser, nxj_node_kind kind) {
  nxj_node *node = nxj_alloc(parser->pool, sizeof *node);
  *node = (nxj_node){.kind = kind, .line = parser->at->line, .column = parser->at->column};
  return node;
}

void nxj_nodes_add(nxj_nodes *nodes, nxj_node *node) {
  if (nodes->last) nodes->last->next = node;
  else nodes->first = node;
  nodes->last = node;
  nodes->n++;
}

static bool is_at(const nxj_parser *parser, nxj_token_kind kind, const char *text) {
  return parser->at->kind == kind && strcmp(parser->at->text, text) == 0;
}

bool nxj_is_word(const nxj_parser *parser, const char *word) {
  return is_at(parser, NXJ_TOKEN_NAME, word);
}

bool nxj_is_sign(const nxj_parser *parser, const char *sign) {
  return is_at(parser, NXJ_TOKEN_SIGN, sign);
}

bool nxj_skip_word(nxj_parser *parser, const char *word) {
  bool is = nxj_is_word(parser, word);
  parser->at += is;
  return is;
}

bool nxj_skip_sign(nxj_parser *parser, const char *sign) {
  bool is = nxj_is_sign(parser, sign);
  parser->at += is;
  return is;
}

void nxj_unexpected(nxj_parser *parser, const char *wanted) {
  static const char *const kinds[] = {[NXJ_TOKEN_END] = "the end of the template",
                                      [NXJ_TOKEN_DATA] = "text",
                                      [NXJ_TOKEN_BLOCK_BEGIN] = "{%",
                                      [NXJ_TOKEN_BLOCK_END] = "%}",
                                      [NXJ_TOKEN_OUTPUT_BEGIN] = "{{",
                                      [NXJ_TOKEN_OUTPUT_END] = "}}",
                                      [NXJ_TOKEN_STRING] = "a text",
                                      [NXJ_TOKEN_INT] = "a number",
                                      [NXJ_TOKEN_FLOAT] = "a number"};
  const nxj_token *at = parser->at;
  bool named = at->kind == NXJ_TOKEN_NAME || at->kind == NXJ_TOKEN_SIGN;
  nxj_stand(parser);
  nxj_fail(parser->pool, "expected %s, found %s", wanted, named ? at->text : kinds[at->kind]);
}

void nxj_expect_sign(nxj_parser *parser, const char *sign) {
  if (!nxj_skip_sign(parser, sign)) nxj_unexpected(parser, sign);
}

const char *nxj_expect_name(nxj_parser *parser) {
  if (parser->at->kind != NXJ_TOKEN_NAME) nxj_unexpected(parser, "a name");
  return (parser->at++)->text;
}
