/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "compiler/expression/expression_tree.h"

#include <limits.h>
#include <math.h>
#include <pcre2.h>
#include <stdarg.h>
#include <string.h>

typedef nxc_expression_node node;

static const nxc_value *evaluate(nxc_evaluation *e, const node *at);

const nxc_value *nxc_evaluation_fail(nxc_evaluation *e, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (e->error == NULL) e->error = nxc_arena_vprintf(e->arena, format, args);
  va_end(args);
  return NULL;
}

static const nxc_value *keep(nxc_evaluation *e, nxc_value value) {
  nxc_value *kept = nxc_arena_alloc(e->arena, sizeof *kept);
  *kept = value;
  return kept;
}

const nxc_value *nxc_value_of_bool(nxc_evaluation *e, bool boolean) {
  static const nxc_value words[] = {{.kind = NXC_BOOL, .boolean = false},
                                    {.kind = NXC_BOOL, .boolean = true}};
  (void)e;
  return &words[boolean];
}

const nxc_value *nxc_value_of_int(nxc_evaluation *e, int64_t integer) {
  return keep(e, (nxc_value){.kind = NXC_INT, .integer = integer});
}

const nxc_value *nxc_value_of_number(nxc_evaluation *e, double number) {
  return keep(e, (nxc_value){.kind = NXC_FLOAT, .number = number});
}

const nxc_value *nxc_value_of_text(nxc_evaluation *e, const char *text, size_t n_bytes) {
  return keep(e, (nxc_value){.kind = NXC_STRING,
                             .text = nxc_arena_strndup(e->arena, text, n_bytes),
                             .n_bytes = n_bytes});
}

bool nxc_value_is_true(const nxc_value *value) {
  switch (value->kind) {
  case NXC_BOOL: return value->boolean;
  case NXC_INT: return value->digits != NULL || value->integer != 0;
  case NXC_FLOAT: return value->number != 0;
  case NXC_STRING:
  case NXC_BYTES: return value->n_bytes > 0;
  case NXC_LIST:
  case NXC_MAP: return value->n_items > 0;
  case NXC_NULL:
  case NXC_MISSING: break;
  }
  return false;
}

bool nxc_value_number(const nxc_value *value, double *number) {
  if (value->kind == NXC_INT && value->digits == NULL) *number = (double)value->integer;
  if (value->kind == NXC_FLOAT) *number = value->number;
  return value->kind == NXC_FLOAT || (value->kind == NXC_INT && value->digits == NULL);
}

bool nxc_values_same(const nxc_value *a, const nxc_value *b) {
  double x, y;
  if (a->kind != b->kind && nxc_value_number(a, &x) && nxc_value_number(b, &y)) return x == y;
  if (a->kind == NXC_LIST && b->kind == NXC_LIST) {
    bool same = a->n_items == b->n_items;
    for (size_t i = 0; same && i < a->n_items; i++) same = nxc_values_same(&a->items[i], &b->items[i]);
    return same;
  }
  return nxc_value_equal(a, b);
}

bool nxc_evaluation_compare(nxc_evaluation *e, const nxc_value *a, const nxc_value *b, int *order) {
  double x, y;
  if (a->kind == NXC_INT && b->kind == NXC_INT && !a->digits && !b->digits) {
    *order = (a->integer > b->integer) - (a->integer < b->integer);
  } else if (nxc_value_number(a, &x) && nxc_value_number(b, &y)) {
    *order = (x > y) - (x < y);
  } else if (a->kind == NXC_STRING && b->kind == NXC_STRING) {
    *order = strcmp(a->text, b->text);
  } else {
    nxc_evaluation_fail(e, "%s and %s have no order", nxc_kind_name(a->kind), nxc_kind_name(b->kind));
    return false;
  }
  return true;
}

/* -- operators on known values --------------------------------------------------------------------------- */

static const nxc_value *join(nxc_evaluation *e, const nxc_value *a, const nxc_value *b) {
  if (a->kind == NXC_STRING) {
    const char *text = nxc_arena_printf(e->arena, "%s%s", a->text, b->text);
    return nxc_value_of_text(e, text, strlen(text));
  }
  nxc_value *items = nxc_arena_array(e->arena, a->n_items + b->n_items + 1, sizeof *items);
  if (a->n_items > 0) memcpy(items, a->items, a->n_items * sizeof *items);
  if (b->n_items > 0) memcpy(items + a->n_items, b->items, b->n_items * sizeof *items);
  return keep(e, (nxc_value){.kind = NXC_LIST, .items = items, .n_items = a->n_items + b->n_items});
}

static int64_t floor_divide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/* The remainder has the sign of the divisor, as in Python. */
static int64_t floor_modulo(int64_t a, int64_t b) {
  int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

static bool power(int64_t base, int64_t exponent, int64_t *result) {
  *result = 1;
  for (int64_t i = 0; i < exponent; i++) {
    if (i > 64 && (base > 1 || base < -1)) return false;
    if (base == 0 || base == 1) return *result = base, true;
    if (__builtin_mul_overflow(*result, base, result)) return false;
    if (base == -1 && i > 64) return *result = exponent % 2 ? -1 : 1, true;
  }
  return true;
}

static const nxc_value *integer_arithmetic(nxc_evaluation *e, nxc_operation operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  bool divides = operation == NXC_OP_DIVIDE || operation == NXC_OP_FLOOR_DIVIDE || operation == NXC_OP_MODULO;
  if (divides && b == 0) return nxc_evaluation_fail(e, "division by zero");
  if (divides && b == -1)
    return integer_arithmetic(e, operation == NXC_OP_MODULO ? operation : NXC_OP_SUBTRACT, 0,
                              operation == NXC_OP_MODULO ? 1 : a);
  switch (operation) {
  case NXC_OP_ADD: overflow = __builtin_add_overflow(a, b, &result); break;
  case NXC_OP_SUBTRACT: overflow = __builtin_sub_overflow(a, b, &result); break;
  case NXC_OP_MULTIPLY: overflow = __builtin_mul_overflow(a, b, &result); break;
  case NXC_OP_DIVIDE:
    if (a % b != 0) return nxc_value_of_number(e, (double)a / (double)b);
    result = a / b;
    break;
  case NXC_OP_FLOOR_DIVIDE: result = floor_divide(a, b); break;
  case NXC_OP_MODULO: result = floor_modulo(a, b); break;
  case NXC_OP_POWER:
    if (b < 0) return nxc_value_of_number(e, pow((double)a, (double)b));
    overflow = !power(a, b, &result);
    break;
  default: return nxc_evaluation_fail(e, "not an arithmetic operator");
  }
  return overflow ? nxc_evaluation_fail(e, "the result is too large") : nxc_value_of_int(e, result);
}

static const nxc_value *float_arithmetic(nxc_evaluation *e, nxc_operation operation, double a, double b) {
  bool divides = operation == NXC_OP_DIVIDE || operation == NXC_OP_FLOOR_DIVIDE || operation == NXC_OP_MODULO;
  if (divides && b == 0) return nxc_evaluation_fail(e, "division by zero");
  switch (operation) {
  case NXC_OP_ADD: return nxc_value_of_number(e, a + b);
  case NXC_OP_SUBTRACT: return nxc_value_of_number(e, a - b);
  case NXC_OP_MULTIPLY: return nxc_value_of_number(e, a * b);
  case NXC_OP_DIVIDE: return nxc_value_of_number(e, a / b);
  case NXC_OP_FLOOR_DIVIDE: return nxc_value_of_number(e, floor(a / b));
  case NXC_OP_MODULO: return nxc_value_of_number(e, a - floor(a / b) * b);
  case NXC_OP_POWER: return nxc_value_of_number(e, pow(a, b));
  default: return nxc_evaluation_fail(e, "not an arithmetic operator");
  }
}

static const nxc_value *arithmetic(nxc_evaluation *e, nxc_operation operation, const nxc_value *a,
                                   const nxc_value *b) {
  double x, y;
  bool same_kind = a->kind == b->kind;
  if (operation == NXC_OP_ADD && same_kind && (a->kind == NXC_STRING || a->kind == NXC_LIST))
    return join(e, a, b);
  if (!nxc_value_number(a, &x) || !nxc_value_number(b, &y)) {
    return nxc_evaluation_fail(e, "cannot calculate with %s and %s", nxc_kind_name(a->kind),
                               nxc_kind_name(b->kind));
  }
  if (a->kind == NXC_INT && b->kind == NXC_INT)
    return integer_arithmetic(e, operation, a->integer, b->integer);
  return float_arithmetic(e, operation, x, y);
}

const nxc_value *nxc_evaluation_add(nxc_evaluation *e, const nxc_value *a, const nxc_value *b) {
  return arithmetic(e, NXC_OP_ADD, a, b);
}

const nxc_value *nxc_evaluation_contains(nxc_evaluation *e, const nxc_value *whole, const nxc_value *part) {
  bool found = false;
  if (whole->kind == NXC_STRING && part->kind == NXC_STRING) {
    found = strstr(whole->text, part->text) != NULL;
  } else if (whole->kind == NXC_LIST) {
    for (size_t i = 0; i < whole->n_items && !found; i++) found = nxc_values_same(&whole->items[i], part);
  } else if (whole->kind == NXC_MAP) {
    for (size_t i = 0; i < whole->n_items && !found; i++) found = nxc_values_same(&whole->items[2 * i], part);
  } else if (whole->kind != NXC_NULL) {
    return nxc_evaluation_fail(e, "%s contains nothing", nxc_kind_name(whole->kind));
  }
  return nxc_value_of_bool(e, found);
}

static const nxc_value *match_text(nxc_evaluation *e, const pcre2_code *code, const nxc_value *subject) {
  if (subject->kind != NXC_STRING) return nxc_evaluation_fail(e, "matches needs text");
  pcre2_match_data *data = pcre2_match_data_create(1, NULL);
  int status = pcre2_match(code, (PCRE2_SPTR)subject->text, subject->n_bytes, 0, 0, data, NULL);
  pcre2_match_data_free(data);
  if (status < 0 && status != PCRE2_ERROR_NOMATCH)
    return nxc_evaluation_fail(e, "the pattern cannot be matched");
  return nxc_value_of_bool(e, status >= 0);
}

static const nxc_value *match(nxc_evaluation *e, const nxc_value *subject, const nxc_value *pattern) {
  if (pattern->kind != NXC_STRING) return nxc_evaluation_fail(e, "matches needs a pattern");
  int code_error;
  PCRE2_SIZE error_at;
  pcre2_code *code =
      pcre2_compile((PCRE2_SPTR)pattern->text, pattern->n_bytes, PCRE2_UTF, &code_error, &error_at, NULL);
  if (code == NULL)
    return nxc_evaluation_fail(e, "the pattern %s is not a regular expression", pattern->text);
  const nxc_value *result;
  if (subject->kind == NXC_LIST) {
    nxc_value *items = nxc_arena_array(e->arena, subject->n_items + 1, sizeof *items);
    for (size_t i = 0; i < subject->n_items && e->error == NULL; i++) {
      const nxc_value *item = match_text(e, code, &subject->items[i]);
      if (item != NULL) items[i] = *item;
    }
    result =
        e->error ? NULL : keep(e, (nxc_value){.kind = NXC_LIST, .items = items, .n_items = subject->n_items});
  } else {
    result = match_text(e, code, subject);
  }
  pcre2_code_free(code);
  return result;
}

static const nxc_value *item_of(nxc_evaluation *e, const nxc_value *whole, const nxc_value *index) {
  if (whole->kind == NXC_MAP) {
    for (size_t i = 0; i < whole->n_items; i++) {
      if (nxc_values_same(&whole->items[2 * i], index)) return &whole->items[2 * i + 1];
    }
    return keep(e, (nxc_value){.kind = NXC_NULL});
  }
  if (whole->kind != NXC_LIST || index->kind != NXC_INT)
    return nxc_evaluation_fail(e, "[] needs a list and an index");
  int64_t at = index->integer < 0 ? index->integer + (int64_t)whole->n_items : index->integer;
  if (at < 0 || (size_t)at >= whole->n_items)
    return nxc_evaluation_fail(e, "the list has no item %lld", (long long)at);
  return &whole->items[at];
}

static const nxc_value *binary(nxc_evaluation *e, nxc_operation operation, const nxc_value *a,
                               const nxc_value *b) {
  int order = 0;
  switch (operation) {
  case NXC_OP_EQUAL: return nxc_value_of_bool(e, nxc_values_same(a, b));
  case NXC_OP_UNEQUAL: return nxc_value_of_bool(e, !nxc_values_same(a, b));
  case NXC_OP_LESS: return nxc_evaluation_compare(e, a, b, &order) ? nxc_value_of_bool(e, order < 0) : NULL;
  case NXC_OP_LESS_EQUAL:
    return nxc_evaluation_compare(e, a, b, &order) ? nxc_value_of_bool(e, order <= 0) : NULL;
  case NXC_OP_GREATER:
    return nxc_evaluation_compare(e, a, b, &order) ? nxc_value_of_bool(e, order > 0) : NULL;
  case NXC_OP_GREATER_EQUAL:
    return nxc_evaluation_compare(e, a, b, &order) ? nxc_value_of_bool(e, order >= 0) : NULL;
  case NXC_OP_IN: return nxc_evaluation_contains(e, b, a);
  case NXC_OP_NOT_IN: {
    const nxc_value *inside = nxc_evaluation_contains(e, b, a);
    return inside ? nxc_value_of_bool(e, !inside->boolean) : NULL;
  }
  case NXC_OP_MATCHES: return match(e, a, b);
  case NXC_OP_ITEM: return item_of(e, a, b);
  default: return arithmetic(e, operation, a, b);
  }
}

/* -- the tree -------------------------------------------------------------------------------------------- */

/* Three-valued: `decisive` (false of and, true of or) decides alone; else unknown if either is. */
static const nxc_value *evaluate_logic(nxc_evaluation *e, const node *at, bool decisive) {
  const nxc_value *left = evaluate(e, at->args[0]);
  if (e->error != NULL) return NULL;
  if (left != NULL && nxc_value_is_true(left) == decisive) return nxc_value_of_bool(e, decisive);
  const nxc_value *right = evaluate(e, at->args[1]);
  if (e->error != NULL) return NULL;
  if (right != NULL && nxc_value_is_true(right) == decisive) return nxc_value_of_bool(e, decisive);
  return left && right ? nxc_value_of_bool(e, !decisive) : NULL;
}

static const nxc_value *call_by_item(nxc_evaluation *e, const node *at, const nxc_value **args) {
  const nxc_value *list = args[0];
  nxc_value *items = nxc_arena_array(e->arena, list->n_items + 1, sizeof *items);
  for (size_t i = 0; i < list->n_items; i++) {
    args[0] = &list->items[i];
    const nxc_value *item = at->function->call(e, args, at->n_args);
    if (item == NULL) return NULL;
    items[i] = *item;
  }
  return keep(e, (nxc_value){.kind = NXC_LIST, .items = items, .n_items = list->n_items});
}

/* Lists, calls and operators: all arguments first; one unknown makes the whole unknown. */
static const nxc_value *evaluate_strict(nxc_evaluation *e, const node *at) {
  const nxc_value **args = nxc_arena_array(e->arena, at->n_args + 1, sizeof *args);
  bool known = true;
  for (size_t i = 0; i < at->n_args; i++) {
    args[i] = evaluate(e, at->args[i]);
    if (e->error != NULL) return NULL;
    known = known && args[i] != NULL;
  }
  if (!known) return NULL;
  if (at->operation == NXC_OP_LIST) {
    nxc_value *items = nxc_arena_array(e->arena, at->n_args + 1, sizeof *items);
    for (size_t i = 0; i < at->n_args; i++) items[i] = *args[i];
    return keep(e, (nxc_value){.kind = NXC_LIST, .items = items, .n_items = at->n_args});
  }
  if (at->operation == NXC_OP_NEGATE) {
    return arithmetic(e, NXC_OP_SUBTRACT, &(const nxc_value){.kind = NXC_INT}, args[0]);
  }
  if (at->operation != NXC_OP_CALL) return binary(e, at->operation, args[0], args[1]);
  if (at->function->by_item && args[0]->kind == NXC_LIST) return call_by_item(e, at, args);
  return at->function->call(e, args, at->n_args);
}

/* What is not given here may be given elsewhere, where the text is a part. */
static const nxc_value *evaluate_given(nxc_evaluation *e, const nxc_name *name) {
  bool given = e->scope->given(e->scope->context, name);
  return given || !e->scope->partial ? nxc_value_of_bool(e, given) : NULL;
}

/* The names that are not given, with commas between them; '' when all are. */
static const nxc_value *evaluate_lacking(nxc_evaluation *e, const node *at) {
  const char *text = "";
  for (size_t i = 0; i < at->n_args; i++) {
    const nxc_name *name = &e->expression->names[at->args[i]->name];
    if (e->scope->given(e->scope->context, name)) continue;
    if (e->scope->partial) return NULL;
    text = nxc_arena_printf(e->arena, "%s%s%s", text, *text ? ", " : "", name->path);
  }
  return nxc_value_of_text(e, text, strlen(text));
}

static const nxc_value *evaluate(nxc_evaluation *e, const node *at) {
  const nxc_value *value;
  switch (at->operation) {
  case NXC_OP_LITERAL: return &at->literal;
  case NXC_OP_UNKNOWN: return NULL;
  case NXC_OP_NAME: return e->scope->lookup(e->scope->context, &e->expression->names[at->name]);
  case NXC_OP_KNOWN: return nxc_value_of_bool(e, evaluate(e, at->args[0]) != NULL);
  case NXC_OP_GIVEN: return evaluate_given(e, &e->expression->names[at->args[0]->name]);
  case NXC_OP_LACKING: return evaluate_lacking(e, at);
  case NXC_OP_AND: return evaluate_logic(e, at, false);
  case NXC_OP_OR: return evaluate_logic(e, at, true);
  case NXC_OP_NOT:
    value = evaluate(e, at->args[0]);
    return value ? nxc_value_of_bool(e, !nxc_value_is_true(value)) : NULL;
  case NXC_OP_CHOICE:
    value = evaluate(e, at->args[0]);
    return value ? evaluate(e, at->args[nxc_value_is_true(value) ? 1 : 2]) : NULL;
  default: return evaluate_strict(e, at);
  }
}

const nxc_value *nxc_expression_evaluate(nxc_arena *arena, const nxc_expression *expression,
                                         const nxc_scope *scope, const char **error) {
  nxc_evaluation e = {.arena = arena, .scope = scope, .expression = expression};
  const nxc_value *value = evaluate(&e, expression->root);
  *error = e.error;
  return e.error ? NULL : value;
}

/* The first call, of those that can be inverted, whose other arguments are known. */
static const nxc_value *invert(nxc_evaluation *e, const node *at, const nxc_value *result) {
  const nxc_value *found = NULL;
  for (size_t i = 0; i < at->n_args && found == NULL; i++) found = invert(e, at->args[i], result);
  if (found != NULL || at->operation != NXC_OP_CALL || at->function->invert == NULL) return found;
  const nxc_value **args = nxc_arena_array(e->arena, at->n_args, sizeof *args);
  args[0] = result;
  for (size_t i = 1; i < at->n_args; i++)
    if ((args[i] = evaluate(e, at->args[i])) == NULL) return NULL;
  return at->function->invert(e, args, at->n_args);
}

const nxc_value *nxc_expression_invert(nxc_arena *arena, const nxc_expression *expression,
                                       const nxc_scope *scope, const nxc_value *result) {
  nxc_evaluation e = {.arena = arena, .scope = scope, .expression = expression};
  const nxc_value *value = invert(&e, expression->root, result);
  return e.error ? NULL : value;
}
