/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/parser.h"

#include <string.h>

static void expect(nxj_parser *parser, nxj_token_kind kind, const char *what) {
  if (parser->at->kind != kind) nxj_unexpected(parser, what);
  parser->at++;
}

static void end_block(nxj_parser *parser) {
  expect(parser, NXJ_TOKEN_BLOCK_END, "%}");
}

/* -- bodies ---------------------------------------------------------------------------------------------- */

static nxj_node *parse_statement(nxj_parser *parser);

static bool is_end_word(const nxj_token *token, const char *const *ends) {
  for (; *ends != NULL; ends++)
    if (token->kind == NXJ_TOKEN_NAME && strcmp(token->text, *ends) == 0) return true;
  return false;
}

static nxj_node *parse_piece(nxj_parser *parser) {
  nxj_node *node;
  switch (parser->at->kind) {
  case NXJ_TOKEN_DATA:
    node = nxj_node_new(parser, NXJ_NODE_TEXT);
    node->value = nxj_string(parser->at->text, parser->at->n_bytes);
    parser->at++;
    return node;
  case NXJ_TOKEN_OUTPUT_BEGIN:
    node = nxj_node_new(parser, NXJ_NODE_OUTPUT);
    parser->at++;
    node->a = nxj_parse_tuple(parser);
    expect(parser, NXJ_TOKEN_OUTPUT_END, "}}");
    return node;
  default: parser->at++; return parse_statement(parser); /* {% */
  }
}

/* Up to a tag whose word is among `ends`, which it stands at then; without any, to the end of the template.
 */
static nxj_nodes parse_body(nxj_parser *parser, const char *const *ends) {
  nxj_nodes body = {0};
  nxj_enter(parser->pool);
  while (parser->at->kind != NXJ_TOKEN_END) {
    if (parser->at->kind == NXJ_TOKEN_BLOCK_BEGIN && is_end_word(parser->at + 1, ends)) break;
    nxj_nodes_add(&body, parse_piece(parser));
  }
  if (*ends != NULL && parser->at->kind == NXJ_TOKEN_END) nxj_unexpected(parser, *ends);
  if (*ends != NULL) parser->at++;
  nxj_leave(parser->pool);
  return body;
}

/* Behind the %} of the tag that begins it to behind that of the tag that ends it. */
static nxj_nodes parse_block(nxj_parser *parser, const char *end) {
  const char *const ends[] = {end, NULL};
  end_block(parser);
  nxj_nodes body = parse_body(parser, ends);
  nxj_expect_name(parser);
  end_block(parser);
  return body;
}

/* A block whose text is a value: a loop around it cannot be left from there. */
static nxj_nodes parse_value_block(nxj_parser *parser, const char *end) {
  uint32_t n_loops = parser->n_loops;
  parser->n_loops = 0;
  nxj_nodes body = parse_block(parser, end);
  parser->n_loops = n_loops;
  return body;
}

/* -- statements ------------------------------------------------------------------------------------------ */

/* What a branch has that is not covered may never be met: it is refused where it is. */
static nxj_nodes parse_branch(nxj_parser *parser, const char *const *ends) {
  parser->n_branches++;
  nxj_nodes body = parse_body(parser, ends);
  parser->n_branches--;
  return body;
}

static void parse_if(nxj_parser *parser, nxj_node *node) {
  static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
  node->a = nxj_parse_tuple(parser);
  end_block(parser);
  node->items = parse_branch(parser, ends);
  if (nxj_is_word(parser, "elif")) {
    nxj_enter(parser->pool);
    nxj_node *other = nxj_node_new(parser, NXJ_NODE_IF);
    parser->at++;
    parse_if(parser, other);
    nxj_nodes_add(&node->otherwise, other);
    nxj_leave(parser->pool);
    return;
  }
  if (nxj_skip_word(parser, "else")) {
    end_block(parser);
    node->otherwise = parse_branch(parser, last);
  }
  nxj_expect_name(parser);
  end_block(parser);
}

static nxj_node *parse_name_target(nxj_parser *parser) {
  nxj_node *node = nxj_node_new(parser, NXJ_NODE_NAME);
  node->name = nxj_expect_name(parser);
  return node;
}

/* name, name or (name, name): what a loop or set gives values to. */
static nxj_node *parse_target(nxj_parser *parser) {
  nxj_node *tuple = nxj_node_new(parser, NXJ_NODE_TUPLE);
  bool brackets = nxj_skip_sign(parser, "(");
  do nxj_nodes_add(&tuple->items, parse_name_target(parser));
  while (nxj_skip_sign(parser, ","));
  if (brackets) nxj_expect_sign(parser, ")");
  return tuple->items.n == 1 && !brackets ? tuple->items.first : tuple;
}

static void parse_for(nxj_parser *parser, nxj_node *node) {
  static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
  node->a = parse_target(parser);
  if (!nxj_skip_word(parser, "in")) nxj_unexpected(parser, "in");
  node->b = nxj_parse_or(parser);
  if (nxj_skip_word(parser, "if")) node->c = nxj_parse_expression(parser);
  nxj_stand(parser);
  if (nxj_is_word(parser, "recursive")) nxj_fail(parser->pool, "recursive loops are not covered");
  end_block(parser);
  parser->n_loops++;
  node->items = parse_body(parser, ends);
  parser->n_loops--;
  if (nxj_skip_word(parser, "else")) {
    end_block(parser);
    node->otherwise = parse_body(parser, last);
  }
  nxj_expect_name(parser);
  end_block(parser);
}

static void parse_set(nxj_parser *parser, nxj_node *node) {
  node->a = parse_target(parser);
  if (node->a->kind == NXJ_NODE_NAME && nxj_skip_sign(parser, ".")) {
    nxj_node *attribute = nxj_node_new(parser, NXJ_NODE_ATTRIBUTE);
    attribute->a = node->a;
    attribute->name = nxj_expect_name(parser);
    node->a = attribute;
  }
  if (nxj_skip_sign(parser, "=")) {
    node->b = nxj_parse_tuple(parser);
    end_block(parser);
    return;
  }
  node->kind = NXJ_NODE_SET_BLOCK;
  node->b = nxj_is_sign(parser, "|") ? nxj_parse_filters(parser, NULL) : NULL;
  node->items = parse_value_block(parser, "endset");
}

static void parse_with(nxj_parser *parser, nxj_node *node) {
  while (parser->at->kind != NXJ_TOKEN_BLOCK_END) {
    if (node->otherwise.n > 0) nxj_expect_sign(parser, ",");
    nxj_node *set = nxj_node_new(parser, NXJ_NODE_SET);
    set->a = parse_name_target(parser);
    nxj_expect_sign(parser, "=");
    set->b = nxj_parse_expression(parser);
    nxj_nodes_add(&node->otherwise, set);
  }
  node->items = parse_block(parser, "endwith");
}

static void parse_macro(nxj_parser *parser, nxj_node *node) {
  node->name = nxj_expect_name(parser);
  nxj_expect_sign(parser, "(");
  while (!nxj_skip_sign(parser, ")")) {
    if (node->otherwise.n > 0) nxj_expect_sign(parser, ",");
    nxj_node *parameter = parse_name_target(parser);
    if (nxj_skip_sign(parser, "=")) parameter->a = nxj_parse_expression(parser);
    nxj_nodes_add(&node->otherwise, parameter);
  }
  parser->n_macros++;
  node->items = parse_value_block(parser, "endmacro");
  parser->n_macros--;
}

static void parse_filter_block(nxj_parser *parser, nxj_node *node) {
  parser->at--; /* a filter is read from what stands before its name */
  node->b = nxj_parse_filters(parser, NULL);
  node->items = parse_value_block(parser, "endfilter");
}

static void parse_generation(nxj_parser *parser, nxj_node *node) {
  parser->has_generation = true;
  node->items = parse_value_block(parser, "endgeneration");
}

static void parse_loop_control(nxj_parser *parser, nxj_node *node) {
  if (parser->n_loops == 0) {
    nxj_stand(parser);
    nxj_fail(parser->pool, "%s stands in no loop", node->kind == NXJ_NODE_BREAK ? "break" : "continue");
  }
  end_block(parser);
}

typedef struct statement {
  const char *word;
  nxj_node_kind kind;
  void (*parse)(nxj_parser *parser, nxj_node *node);
} statement;

static const statement statements[] = {
    {"if", NXJ_NODE_IF, parse_if},
    {"for", NXJ_NODE_FOR, parse_for},
    {"set", NXJ_NODE_SET, parse_set},
    {"with", NXJ_NODE_WITH, parse_with},
    {"macro", NXJ_NODE_MACRO, parse_macro},
    {"filter", NXJ_NODE_FILTER_BLOCK, parse_filter_block},
    {"generation", NXJ_NODE_GENERATION, parse_generation},
    {"break", NXJ_NODE_BREAK, parse_loop_control},
    {"continue", NXJ_NODE_CONTINUE, parse_loop_control},
};

static nxj_node *parse_statement(nxj_parser *parser) {
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
    if (!nxj_is_word(parser, statements[i].word)) continue;
    nxj_node *node = nxj_node_new(parser, statements[i].kind);
    parser->at++;
    statements[i].parse(parser, node);
    return node;
  }
  const nxj_token *at = parser->at;
  const char *word = nxj_expect_name(parser);
  parser->at = at;
  nxj_stand(parser);
  if (strncmp(word, "end", 3) == 0 || strcmp(word, "else") == 0 || strcmp(word, "elif") == 0)
    nxj_fail(parser->pool, "%s ends nothing that began", word);
  nxj_fail(parser->pool, "the statement '%s' is not covered", word);
}

nxj_nodes nxj_parse(nxj_pool *pool, const char *text, size_t n_bytes, bool *has_generation) {
  static const char *const none[] = {NULL};
  nxj_parser parser = {.pool = pool, .at = nxj_tokens(pool, text, n_bytes)};
  nxj_nodes body = parse_body(&parser, none);
  *has_generation = parser.has_generation;
  return body;
}
