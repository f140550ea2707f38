/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions, from weakest to strongest: a if b else c; or; and; not; comparisons; + -; ~; * / // %; **;
 * signs; and attributes, items, calls, filters and tests behind what they are of. */
#include "chat/calls.h"
#include "chat/parser.h"

#include <string.h>

static nxj_node *parse_unary(nxj_parser *parser, bool with_filters);

static nxj_node *join(nxj_parser *parser, nxj_node_kind kind, const char *name, nxj_node *a, nxj_node *b) {
  nxj_node *node = nxj_node_new(parser, kind);
  node->line = a->line, node->column = a->column;
  node->name = name, node->a = a, node->b = b;
  return node;
}

static nxj_node *constant(nxj_parser *parser, nxj_value value) {
  nxj_node *node = nxj_node_new(parser, NXJ_NODE_CONSTANT);
  node->value = value;
  return node;
}

/* -- literals and names ---------------------------------------------------------------------------------- */

static nxj_node *parse_name(nxj_parser *parser) {
  static const struct {
    const char *word;
    nxj_value value;
  } words[] = {{"true", {.kind = NXJ_BOOL, .truth = true}}, {"True", {.kind = NXJ_BOOL, .truth = true}},
               {"false", {.kind = NXJ_BOOL}}, {"False", {.kind = NXJ_BOOL}}, {"none", {.kind = NXJ_NONE}},
               {"None", {.kind = NXJ_NONE}}};
  const char *name = parser->at->text;
  nxj_node *node = nxj_node_new(parser, NXJ_NODE_NAME);
  node->name = name;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(name, words[i].word) == 0) node->kind = NXJ_NODE_CONSTANT, node->value = words[i].value;
  nxj_stand(parser);
  if (parser->n_macros > 0 &&
      (strcmp(name, "varargs") == 0 || strcmp(name, "kwargs") == 0 || strcmp(name, "caller") == 0))
    nxj_fail(parser->pool, "'%s' of a macro is not covered", name);
  parser->at++;
  return node;
}

/* Texts beside one another are one. */
static nxj_node *parse_string(nxj_parser *parser) {
  nxj_node *node = constant(parser, parser->at->value);
  for (parser->at++; parser->at->kind == NXJ_TOKEN_STRING; parser->at++) {
    nxj_value more = parser->at->value;
    char *both = nxj_alloc(parser->pool, node->value.n_bytes + more.n_bytes + 1);
    memcpy(both, node->value.text, node->value.n_bytes);
    memcpy(both + node->value.n_bytes, more.text, more.n_bytes);
    node->value = nxj_string(both, node->value.n_bytes + more.n_bytes);
  }
  return node;
}

static nxj_node *parse_list(nxj_parser *parser) {
  nxj_node *node = nxj_node_new(parser, NXJ_NODE_LIST);
  nxj_expect_sign(parser, "[");
  while (!nxj_skip_sign(parser, "]")) {
    if (node->items.n > 0) nxj_expect_sign(parser, ",");
    if (nxj_skip_sign(parser, "]")) break;
    nxj_nodes_add(&node->items, nxj_parse_expression(parser));
  }
  return node;
}

static nxj_node *parse_dict(nxj_parser *parser) {
  nxj_node *node = nxj_node_new(parser, NXJ_NODE_DICT);
  nxj_expect_sign(parser, "{");
  while (!nxj_skip_sign(parser, "}")) {
    if (node->items.n > 0) nxj_expect_sign(parser, ",");
    if (nxj_skip_sign(parser, "}")) break;
    nxj_nodes_add(&node->items, nxj_parse_expression(parser));
    nxj_expect_sign(parser, ":");
    nxj_nodes_add(&node->items, nxj_parse_expression(parser));
  }
  return node;
}

static bool ends_tuple(const nxj_parser *parser) {
  return parser->at->kind == NXJ_TOKEN_BLOCK_END || parser->at->kind == NXJ_TOKEN_OUTPUT_END ||
         nxj_is_sign(parser, ")") || nxj_is_sign(parser, "=");
}

nxj_node *nxj_parse_tuple(nxj_parser *parser) {
  nxj_node *first = nxj_parse_expression(parser);
  if (!nxj_is_sign(parser, ",")) return first;
  nxj_node *tuple = nxj_node_new(parser, NXJ_NODE_TUPLE);
  nxj_nodes_add(&tuple->items, first);
  while (nxj_skip_sign(parser, ",") && !ends_tuple(parser))
    nxj_nodes_add(&tuple->items, nxj_parse_expression(parser));
  return tuple;
}

static nxj_node *parse_brackets(nxj_parser *parser) {
  nxj_expect_sign(parser, "(");
  nxj_node *inner = nxj_is_sign(parser, ")") ? nxj_node_new(parser, NXJ_NODE_TUPLE) : nxj_parse_tuple(parser);
  nxj_expect_sign(parser, ")");
  return inner;
}

static nxj_node *parse_primary(nxj_parser *parser) {
  nxj_node *node;
  switch (parser->at->kind) {
  case NXJ_TOKEN_NAME: return parse_name(parser);
  case NXJ_TOKEN_STRING: return parse_string(parser);
  case NXJ_TOKEN_INT:
  case NXJ_TOKEN_FLOAT:
    node = constant(parser, parser->at->value);
    parser->at++;
    return node;
  default: break;
  }
  if (nxj_is_sign(parser, "(")) return parse_brackets(parser);
  if (nxj_is_sign(parser, "[")) return parse_list(parser);
  if (nxj_is_sign(parser, "{")) return parse_dict(parser);
  nxj_unexpected(parser, "an expression");
}

/* -- behind a value -------------------------------------------------------------------------------------- */

static bool is_named_argument(const nxj_parser *parser) {
  const nxj_token *next = parser->at + 1;
  return parser->at->kind == NXJ_TOKEN_NAME && next->kind == NXJ_TOKEN_SIGN && strcmp(next->text, "=") == 0;
}

/* An argument's name stands in a node of its own, so that a name that is passed keeps its own. */
static nxj_node *parse_argument(nxj_parser *parser) {
  nxj_node *argument = nxj_node_new(parser, NXJ_NODE_TUPLE);
  nxj_stand(parser);
  if (nxj_is_sign(parser, "*") || nxj_is_sign(parser, "**"))
    nxj_fail(parser->pool, "arguments by %s are not covered", parser->at->text);
  if (is_named_argument(parser)) argument->name = parser->at->text, parser->at += 2;
  argument->a = nxj_parse_expression(parser);
  return argument;
}

static nxj_nodes parse_arguments(nxj_parser *parser) {
  nxj_nodes arguments = {0};
  nxj_expect_sign(parser, "(");
  while (!nxj_skip_sign(parser, ")")) {
    if (arguments.n > 0) nxj_expect_sign(parser, ",");
    if (nxj_skip_sign(parser, ")")) break;
    nxj_nodes_add(&arguments, parse_argument(parser));
  }
  nxj_stand(parser);
  if (arguments.n > NXJ_MOST_ARGUMENTS)
    nxj_fail(parser->pool, "a call has more than %d arguments", NXJ_MOST_ARGUMENTS);
  return arguments;
}

static nxj_node *parse_slice_part(nxj_parser *parser) {
  bool empty = nxj_is_sign(parser, ":") || nxj_is_sign(parser, "]");
  return empty ? constant(parser, nxj_none()) : nxj_parse_expression(parser);
}

static nxj_node *parse_item(nxj_parser *parser, nxj_node *of) {
  nxj_node *node = join(parser, NXJ_NODE_SLICE, NULL, of, NULL);
  nxj_expect_sign(parser, "[");
  nxj_nodes_add(&node->items, parse_slice_part(parser));
  for (int i = 1; i < 3 && nxj_skip_sign(parser, ":"); i++)
    nxj_nodes_add(&node->items, parse_slice_part(parser));
  if (node->items.n == 1) node->kind = NXJ_NODE_ITEM, node->b = node->items.first;
  while (node->items.n > 1 && node->items.n < 3) nxj_nodes_add(&node->items, constant(parser, nxj_none()));
  nxj_expect_sign(parser, "]");
  return node;
}

static nxj_node *parse_attribute(nxj_parser *parser, nxj_node *of) {
  nxj_expect_sign(parser, ".");
  nxj_node *node = nxj_node_new(parser, NXJ_NODE_ATTRIBUTE);
  node->a = of;
  if (parser->at->kind == NXJ_TOKEN_INT) {
    node->kind = NXJ_NODE_ITEM;
    node->b = parse_primary(parser);
  } else {
    node->name = nxj_expect_name(parser);
  }
  return node;
}

/* A method that no kind of values has cannot be called. In a branch that is found out there. */
static nxj_node *parse_call(nxj_parser *parser, nxj_node *of) {
  bool judged = of->kind == NXJ_NODE_ATTRIBUTE && parser->n_branches == 0;
  if (judged && nxj_find_method(NXJ_ABSENT, of->name) == NULL) {
    parser->pool->line = of->line, parser->pool->column = of->column;
    nxj_not_covered(parser->pool, "method", of->name);
  }
  nxj_node *node = join(parser, NXJ_NODE_CALL, NULL, of, NULL);
  node->items = parse_arguments(parser);
  return node;
}

static nxj_node *parse_behind(nxj_parser *parser, nxj_node *node) {
  for (;;) {
    if (nxj_is_sign(parser, ".")) node = parse_attribute(parser, node);
    else if (nxj_is_sign(parser, "[")) node = parse_item(parser, node);
    else if (nxj_is_sign(parser, "(")) node = parse_call(parser, node);
    else return node;
  }
}

static nxj_node *parse_filter(nxj_parser *parser, nxj_node *inner) {
  parser->at++; /* the bar, or the word filter */
  nxj_node *node = nxj_node_new(parser, NXJ_NODE_FILTER);
  node->a = inner;
  node->name = nxj_expect_name(parser);
  node->row = nxj_find_filter(node->name);
  parser->pool->line = node->line, parser->pool->column = node->column;
  if (node->row == NULL && parser->n_branches == 0) nxj_not_covered(parser->pool, "filter", node->name);
  if (nxj_is_sign(parser, "(")) node->items = parse_arguments(parser);
  return node;
}

nxj_node *nxj_parse_filters(nxj_parser *parser, nxj_node *inner) {
  do inner = parse_filter(parser, inner);
  while (nxj_is_sign(parser, "|"));
  return inner;
}

static bool starts_argument(const nxj_parser *parser) {
  nxj_token_kind kind = parser->at->kind;
  if (kind == NXJ_TOKEN_STRING || kind == NXJ_TOKEN_INT || kind == NXJ_TOKEN_FLOAT) return true;
  if (kind == NXJ_TOKEN_NAME)
    return !nxj_is_word(parser, "else") && !nxj_is_word(parser, "or") && !nxj_is_word(parser, "and");
  return nxj_is_sign(parser, "[") || nxj_is_sign(parser, "{");
}

static nxj_node *parse_test(nxj_parser *parser, nxj_node *of) {
  parser->at++; /* is */
  nxj_node *node = join(parser, NXJ_NODE_TEST, NULL, of, NULL);
  node->negated = nxj_skip_word(parser, "not");
  nxj_stand(parser);
  node->name = nxj_expect_name(parser);
  node->row = nxj_find_test(node->name);
  if (node->row == NULL && parser->n_branches == 0) nxj_not_covered(parser->pool, "test", node->name);
  nxj_stand(parser);
  if (nxj_is_word(parser, "is")) nxj_fail(parser->pool, "tests cannot be chained");
  if (nxj_is_sign(parser, "(")) {
    node->items = parse_arguments(parser);
  } else if (starts_argument(parser)) {
    nxj_node *argument = nxj_node_new(parser, NXJ_NODE_TUPLE);
    argument->a = parse_behind(parser, parse_primary(parser));
    nxj_nodes_add(&node->items, argument);
  }
  return node;
}

static nxj_node *parse_filters_and_tests(nxj_parser *parser, nxj_node *node) {
  for (;;) {
    if (nxj_is_sign(parser, "|")) node = parse_filter(parser, node);
    else if (nxj_is_word(parser, "is")) node = parse_test(parser, node);
    else if (nxj_is_sign(parser, "(")) node = parse_call(parser, node);
    else return node;
  }
}

/* -- operators ------------------------------------------------------------------------------------------- */

static nxj_node *parse_unary(nxj_parser *parser, bool with_filters) {
  nxj_node *node;
  nxj_enter(parser->pool);
  if (nxj_is_sign(parser, "-") || nxj_is_sign(parser, "+")) {
    node = nxj_node_new(parser, nxj_is_sign(parser, "-") ? NXJ_NODE_NEGATIVE : NXJ_NODE_POSITIVE);
    parser->at++;
    node->a = parse_unary(parser, false);
  } else {
    node = parse_primary(parser);
  }
  node = parse_behind(parser, node);
  if (with_filters) node = parse_filters_and_tests(parser, node);
  nxj_leave(parser->pool);
  return node;
}

static const char *sign_among(const nxj_parser *parser, const char *const *signs) {
  for (; *signs != NULL; signs++)
    if (nxj_is_sign(parser, *signs)) return *signs;
  return NULL;
}

static nxj_node *parse_power(nxj_parser *parser) {
  nxj_node *left = parse_unary(parser, true);
  while (nxj_skip_sign(parser, "**"))
    left = join(parser, NXJ_NODE_ARITHMETIC, "**", left, parse_unary(parser, true));
  return left;
}

static nxj_node *parse_product(nxj_parser *parser) {
  static const char *const signs[] = {"*", "/", "//", "%", NULL};
  nxj_node *left = parse_power(parser);
  for (const char *sign; (sign = sign_among(parser, signs)) != NULL;) {
    parser->at++;
    left = join(parser, NXJ_NODE_ARITHMETIC, sign, left, parse_power(parser));
  }
  return left;
}

static nxj_node *parse_concat(nxj_parser *parser) {
  nxj_node *left = parse_product(parser);
  while (nxj_skip_sign(parser, "~")) left = join(parser, NXJ_NODE_CONCAT, "~", left, parse_product(parser));
  return left;
}

static nxj_node *parse_sum(nxj_parser *parser) {
  static const char *const signs[] = {"+", "-", NULL};
  nxj_node *left = parse_concat(parser);
  for (const char *sign; (sign = sign_among(parser, signs)) != NULL;) {
    parser->at++;
    left = join(parser, NXJ_NODE_ARITHMETIC, sign, left, parse_concat(parser));
  }
  return left;
}

/* "in", "not in" or a sign; NULL: no comparison stands here. */
static const char *comparison(nxj_parser *parser) {
  static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">", NULL};
  const char *sign = sign_among(parser, signs);
  if (sign) {
    parser->at++;
    return sign;
  }
  if (nxj_skip_word(parser, "in")) return "in";
  const nxj_token *next = parser->at + 1;
  if (!nxj_is_word(parser, "not") || next->kind != NXJ_TOKEN_NAME || strcmp(next->text, "in") != 0)
    return NULL;
  parser->at += 2;
  return "not in";
}

static nxj_node *parse_comparison(nxj_parser *parser) {
  nxj_node *left = parse_sum(parser), *whole = NULL;
  for (const char *sign; (sign = comparison(parser)) != NULL;) {
    if (whole == NULL) whole = join(parser, NXJ_NODE_COMPARE, NULL, left, NULL);
    nxj_node *part = nxj_node_new(parser, NXJ_NODE_TUPLE);
    part->name = sign;
    part->a = parse_sum(parser);
    nxj_nodes_add(&whole->items, part);
  }
  return whole ? whole : left;
}

static nxj_node *parse_not(nxj_parser *parser) {
  if (!nxj_is_word(parser, "not")) return parse_comparison(parser);
  nxj_enter(parser->pool);
  nxj_node *node = nxj_node_new(parser, NXJ_NODE_NOT);
  parser->at++;
  node->a = parse_not(parser);
  nxj_leave(parser->pool);
  return node;
}

static nxj_node *parse_and(nxj_parser *parser) {
  nxj_node *left = parse_not(parser);
  while (nxj_skip_word(parser, "and")) left = join(parser, NXJ_NODE_AND, NULL, left, parse_not(parser));
  return left;
}

nxj_node *nxj_parse_or(nxj_parser *parser) {
  nxj_node *left = parse_and(parser);
  while (nxj_skip_word(parser, "or")) left = join(parser, NXJ_NODE_OR, NULL, left, parse_and(parser));
  return left;
}

nxj_node *nxj_parse_expression(nxj_parser *parser) {
  nxj_enter(parser->pool);
  nxj_node *node = nxj_parse_or(parser);
  while (nxj_skip_word(parser, "if")) {
    nxj_node *choice = join(parser, NXJ_NODE_CHOICE, NULL, node, nxj_parse_or(parser));
    if (nxj_skip_word(parser, "else")) choice->c = nxj_parse_expression(parser);
    node = choice;
  }
  nxj_leave(parser->pool);
  return node;
}
