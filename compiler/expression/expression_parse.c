/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/expression/expression_tree.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Evaluation recurses along the tree, which a long sum makes as deep as the text is long. */
enum { DEPTH_MAX = 64, ARGS_MAX = 64, BYTES_MAX = 8192 };

typedef nxc_expression_node node;

typedef struct binary_row {
  const char *token;
  nxc_operation operation;
  unsigned level;
} binary_row;

typedef struct parser {
  nxc_arena *arena;
  const char *text;
  const char *at;
  nxc_name *names;
  size_t n_names;
  unsigned depth;
  unsigned asking;  /* inside known(), given() or lacking() */
  unsigned minding; /* inside known() */
  const char *ended; /* where no operator stood when last looked for: each level would look again */
  const char *error;
  size_t error_at;
} parser;

/* Longer tokens stand before their beginnings. Levels rise with strength; `**` is handled by parse_power. */
static const binary_row binary_rows[] = {
    {"or", NXC_OP_OR, 1},         {"and", NXC_OP_AND, 2},         {"==", NXC_OP_EQUAL, 3},
    {"!=", NXC_OP_UNEQUAL, 3},    {"<=", NXC_OP_LESS_EQUAL, 3},   {">=", NXC_OP_GREATER_EQUAL, 3},
    {"<", NXC_OP_LESS, 3},        {">", NXC_OP_GREATER, 3},       {"in", NXC_OP_IN, 3},
    {"not in", NXC_OP_NOT_IN, 3}, {"matches", NXC_OP_MATCHES, 3}, {"+", NXC_OP_ADD, 4},
    {"-", NXC_OP_SUBTRACT, 4},    {"//", NXC_OP_FLOOR_DIVIDE, 5}, {"/", NXC_OP_DIVIDE, 5},
    {"*", NXC_OP_MULTIPLY, 5},    {"%", NXC_OP_MODULO, 5},
};
enum { LEVEL_NOT = 3, LEVEL_COMPARE = 3, LEVEL_STRONGEST = 5 };

static node *parse_choice(parser *p);
static node *parse_binary(parser *p, unsigned level);

static node *fail(parser *p, const char *error) {
  if (p->error == NULL) {
    p->error = error;
    p->error_at = (size_t)(p->at - p->text);
  }
  return NULL;
}

static void skip_blanks(parser *p) {
  while (*p->at == ' ' || (*p->at >= '\t' && *p->at <= '\r')) p->at++;
}

static bool is_word(char c) {
  static const bool words[UCHAR_MAX + 1] = {
      ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['_'] = true, ['a' ... 'z'] = true};
  return words[(unsigned char)c];
}

/* Bytes of the token when it stands at `at`, else 0; a token of letters must end where a word ends. */
static size_t token_at(const char *at, const char *token) {
  size_t n_bytes = 0;
  while (token[n_bytes] != '\0' && at[n_bytes] == token[n_bytes]) n_bytes++;
  if (token[n_bytes] != '\0') return 0;
  return is_word(token[n_bytes - 1]) && (is_word(at[n_bytes]) || at[n_bytes] == '.') ? 0 : n_bytes;
}

static bool take(parser *p, const char *token) {
  skip_blanks(p);
  size_t n_bytes = token_at(p->at, token);
  p->at += n_bytes;
  return n_bytes > 0;
}

static node *new_node(parser *p, nxc_operation operation, size_t n_args, node *const *args) {
  node *made = nxc_arena_alloc(p->arena, sizeof *made);
  made->operation = operation;
  if (n_args == 0) return made;
  made->args = nxc_arena_array(p->arena, n_args, sizeof *made->args);
  for (size_t i = 0; i < n_args; i++) made->args[i] = args[i];
  made->n_args = (uint32_t)n_args;
  return made;
}

static node *new_literal(parser *p, nxc_value literal) {
  node *made = new_node(p, NXC_OP_LITERAL, 0, NULL);
  made->literal = literal;
  return made;
}

static node *parse_number(parser *p) {
  size_t n_digits = strspn(p->at, "0123456789");
  bool is_float = p->at[n_digits] == '.' || p->at[n_digits] == 'e' || p->at[n_digits] == 'E';
  char *end;
  errno = 0;
  if (is_float) {
    double number = strtod(p->at, &end);
    p->at = end;
    return new_literal(p, (nxc_value){.kind = NXC_FLOAT, .number = number});
  }
  long long integer = strtoll(p->at, &end, 10);
  if (errno == ERANGE) return fail(p, "the integer is too large");
  p->at = end;
  return new_literal(p, (nxc_value){.kind = NXC_INT, .integer = integer});
}

static bool is_escape(const char *at, char quote) {
  return at[0] == '\\' && (at[1] == quote || at[1] == '\\');
}

/* 'text' or "text"; a backslash keeps the next quote or backslash, any other backslash stays. */
static node *parse_text(parser *p) {
  char quote = *p->at++;
  const char *end = p->at;
  while (*end != quote && *end != '\0') end += is_escape(end, quote) ? 2 : 1;
  char *text = nxc_arena_alloc(p->arena, (size_t)(end - p->at) + 1);
  size_t n_bytes = 0;
  while (*p->at != quote) {
    if (*p->at == '\0') return fail(p, "the text does not end");
    if (is_escape(p->at, quote)) p->at++;
    text[n_bytes++] = *p->at++;
  }
  p->at++;
  return new_literal(p, (nxc_value){.kind = NXC_STRING, .text = text, .n_bytes = n_bytes});
}

/* Items up to the closing token; counts into *n_args. */
static bool parse_items(parser *p, const char *close, node **args, size_t *n_args) {
  while (!take(p, close)) {
    if (*n_args == ARGS_MAX) return fail(p, "too many items"), false;
    if (*n_args > 0 && !take(p, ",")) return fail(p, "expected , or the end of the list"), false;
    args[*n_args] = parse_choice(p);
    if (args[(*n_args)++] == NULL) return false;
  }
  return true;
}

static node *parse_list(parser *p) {
  node *args[ARGS_MAX];
  size_t n_args = 0;
  return parse_items(p, "]", args, &n_args) ? new_node(p, NXC_OP_LIST, n_args, args) : NULL;
}

/* The functions that ask about names instead of taking their values; NXC_OP_CALL for all others. */
static nxc_operation question_of(const char *name, size_t n_bytes) {
  if (nxc_expression_is_word("known", name, n_bytes)) return NXC_OP_KNOWN;
  if (nxc_expression_is_word("given", name, n_bytes)) return NXC_OP_GIVEN;
  return nxc_expression_is_word("lacking", name, n_bytes) ? NXC_OP_LACKING : NXC_OP_CALL;
}

static node *parse_call(parser *p, const char *name, size_t n_bytes) {
  nxc_operation question = question_of(name, n_bytes);
  bool asks = question != NXC_OP_CALL;
  const nxc_expression_function *function = nxc_expression_function_find(name, n_bytes);
  if (function == NULL && !asks) {
    p->at = name;
    return fail(p, "there is no function of this name");
  }
  node *args[ARGS_MAX];
  size_t n_args = 0;
  p->asking += asks;
  p->minding += question == NXC_OP_KNOWN;
  bool ok = parse_items(p, ")", args, &n_args);
  p->asking -= asks;
  p->minding -= question == NXC_OP_KNOWN;
  if (!ok) return NULL;
  if (asks) {
    bool names = n_args == 1 || (n_args > 1 && question == NXC_OP_LACKING);
    for (size_t i = 0; i < n_args; i++) names = names && args[i]->operation == NXC_OP_NAME;
    return names ? new_node(p, question, n_args, args)
                 : fail(p, "known and given take one name, lacking takes names");
  }
  if (n_args < function->min_args || n_args > function->max_args) return fail(p, "wrong number of arguments");
  node *call = new_node(p, NXC_OP_CALL, n_args, args);
  call->function = function;
  return call;
}

static node *new_name(parser *p, nxc_name_kind kind, const char *path, size_t n_bytes) {
  node *made = new_node(p, NXC_OP_NAME, 0, NULL);
  for (size_t i = 0; i < p->n_names; i++) {
    nxc_name *name = &p->names[i];
    if (name->kind != kind || !nxc_expression_is_word(name->path, path, n_bytes)) continue;
    if (!p->asking) name->only_asked = false;
    if (p->minding) name->minded = true;
    made->name = i;
    return made;
  }
  p->names = nxc_arena_grow(p->arena, p->names, p->n_names, sizeof *p->names);
  p->names[p->n_names] = (nxc_name){.kind = kind,
                                    .path = nxc_arena_strndup(p->arena, path, n_bytes),
                                    .minded = p->minding > 0,
                                    .only_asked = p->asking > 0};
  made->name = p->n_names++;
  return made;
}

/* A dotted path; what follows the last dot may be a number (an item of a list). Names of options may have
 * hyphens inside. */
static size_t path_length(const char *at, bool option) {
  size_t n_bytes = 0;
  for (; at[n_bytes] != '\0'; n_bytes++) {
    bool joint = at[n_bytes] == '.' || (option && at[n_bytes] == '-');
    if (!is_word(at[n_bytes]) && !(joint && n_bytes > 0 && is_word(at[n_bytes + 1]))) break;
  }
  return n_bytes;
}

/* NULL where the word is none. */
static node *parse_constant(parser *p, const char *word, size_t n_bytes) {
  static const struct {
    const char *word;
    nxc_operation operation;
    nxc_value literal;
  } rows[] = {
      {"true", NXC_OP_LITERAL, {.kind = NXC_BOOL, .boolean = true}},
      {"false", NXC_OP_LITERAL, {.kind = NXC_BOOL}},
      {"null", NXC_OP_LITERAL, {.kind = NXC_NULL}},
      {"unknown", NXC_OP_UNKNOWN, {0}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!nxc_expression_is_word(rows[i].word, word, n_bytes)) continue;
    node *made = new_node(p, rows[i].operation, 0, NULL);
    made->literal = rows[i].literal;
    return made;
  }
  return NULL;
}

static node *parse_word(parser *p) {
  bool option = *p->at == '@';
  if (option) p->at++;
  const char *path = p->at;
  size_t n_bytes = path_length(path, option);
  if (n_bytes == 0) return fail(p, "expected a value");
  p->at += n_bytes;
  node *constant = option ? NULL : parse_constant(p, path, n_bytes);
  if (constant != NULL) return constant;
  if (option && n_bytes > 3 && strncmp(path, "hf.", 3) == 0)
    return new_name(p, NXC_NAME_MODEL_CONFIG, path + 3, n_bytes - 3);
  if (option) return new_name(p, NXC_NAME_OPTION, path, n_bytes);
  if (take(p, "(")) return parse_call(p, path, n_bytes);
  if (nxc_expression_is_word("value", path, n_bytes)) return new_name(p, NXC_NAME_VALUE, path, n_bytes);
  return new_name(p, NXC_NAME_SETTING, path, n_bytes);
}

static node *parse_primary(parser *p) {
  if (take(p, "(")) {
    node *inner = parse_choice(p);
    if (inner != NULL && !take(p, ")")) return fail(p, "expected )");
    return inner;
  }
  if (take(p, "[")) return parse_list(p);
  if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1])))
    return parse_number(p);
  if (*p->at == '\'' || *p->at == '"') return parse_text(p);
  return parse_word(p);
}

static bool nest(parser *p) {
  return ++p->depth <= DEPTH_MAX || fail(p, "the expression is nested too deeply") != NULL;
}

static node *parse_power(parser *p) {
  if (take(p, "-")) {
    node *operand = nest(p) ? parse_power(p) : NULL;
    p->depth--;
    return operand ? new_node(p, NXC_OP_NEGATE, 1, &operand) : NULL;
  }
  node *left = parse_primary(p);
  while (left != NULL && take(p, "[")) {
    node *args[] = {left, parse_choice(p)};
    if (args[1] == NULL) return NULL;
    if (!take(p, "]")) return fail(p, "expected ]");
    left = new_node(p, NXC_OP_ITEM, 2, args);
  }
  if (left == NULL || !take(p, "**")) return left;
  node *args[] = {left, nest(p) ? parse_power(p) : NULL};
  p->depth--;
  return args[1] ? new_node(p, NXC_OP_POWER, 2, args) : NULL;
}

/* The operator that stands here, where it is of this level or a stronger one. */
static const binary_row *take_binary(parser *p, unsigned level) {
  skip_blanks(p);
  if (p->at == p->ended || (p->at[0] == '*' && p->at[1] == '*')) return NULL;
  for (size_t i = 0; i < sizeof binary_rows / sizeof *binary_rows; i++) {
    size_t n_bytes = token_at(p->at, binary_rows[i].token);
    if (n_bytes == 0) continue;
    if (binary_rows[i].level < level) return NULL;
    p->at += n_bytes;
    return &binary_rows[i];
  }
  p->ended = p->at;
  return NULL;
}

static node *parse_not(parser *p) {
  node *operand = nest(p) ? parse_binary(p, LEVEL_NOT) : NULL;
  p->depth--;
  return operand ? new_node(p, NXC_OP_NOT, 1, &operand) : NULL;
}

/* Operators of this level and stronger ones, by precedence climbing. A chain of comparisons a < b < c is
 * (a < b) and (b < c). */
static node *parse_binary(parser *p, unsigned level) {
  node *left = level <= LEVEL_NOT && take(p, "not") ? parse_not(p) : parse_power(p);
  node *previous = NULL;
  const binary_row *row;
  while (left != NULL && (row = take_binary(p, level)) != NULL) {
    node *right = row->level == LEVEL_STRONGEST ? parse_power(p) : parse_binary(p, row->level + 1);
    if (right == NULL) return NULL;
    bool compares = row->level == LEVEL_COMPARE;
    if (!compares) previous = NULL;
    node *args[] = {previous ? previous : left, right};
    node *made = new_node(p, row->operation, 2, args);
    node *both[] = {left, made};
    left = previous ? new_node(p, NXC_OP_AND, 2, both) : made;
    previous = compares ? right : NULL;
  }
  return left;
}

static node *parse_branches(parser *p, node *condition) {
  node *args[] = {condition, parse_choice(p), NULL};
  if (args[1] == NULL) return NULL;
  if (!take(p, ":")) return fail(p, "expected : of a choice");
  args[2] = parse_choice(p);
  return args[2] ? new_node(p, NXC_OP_CHOICE, 3, args) : NULL;
}

static node *parse_choice(parser *p) {
  node *whole = nest(p) ? parse_binary(p, 1) : NULL;
  if (whole != NULL && take(p, "?")) whole = parse_branches(p, whole);
  p->depth--;
  return whole;
}

const nxc_expression *nxc_expression_parse(nxc_arena *arena, const char *text, const char **error,
                                           size_t *error_at) {
  parser p = {.arena = arena, .text = text, .at = text};
  node *root = strlen(text) <= BYTES_MAX ? parse_choice(&p) : fail(&p, "the expression is too long");
  skip_blanks(&p);
  if (root != NULL && *p.at != '\0') root = fail(&p, "nothing more is expected here");
  *error = p.error;
  *error_at = p.error_at;
  if (root == NULL) return NULL;
  nxc_expression *expression = nxc_arena_alloc(arena, sizeof *expression);
  *expression = (nxc_expression){nxc_arena_strdup(arena, text), root, p.names, p.n_names};
  return expression;
}
