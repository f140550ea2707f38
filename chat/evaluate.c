/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/run.h"

#include <math.h>
#include <string.h>

void nxj_need_defined(nxj_run *run, nxj_value value) {
  if (value.kind == NXJ_UNDEFINED)
    nxj_fail(run->pool, "'%s' is undefined", value.text ? value.text : "the value");
}

/* -- names, attributes, items ---------------------------------------------------------------------------- */

/* NULL where no scope has the name. */
static nxj_value *find_variable(nxj_run *run, const char *name) {
  for (nxj_frame *frame = run->frame; frame != NULL; frame = frame->outer) {
    for (nxj_variable *at = frame->variables; at != NULL; at = at->next)
      if (strcmp(at->name, name) == 0) return &at->value;
    nxj_work(run->pool, 1);
  }
  return NULL;
}

static nxj_value new_callable(nxj_run *run, const nxj_row *row, nxj_value self) {
  nxj_callable *callable = nxj_alloc(run->pool, sizeof *callable);
  *callable = (nxj_callable){.row = row, .self = self};
  return (nxj_value){.kind = NXJ_CALLABLE, .callable = callable};
}

static nxj_value evaluate_name(nxj_run *run, const nxj_node *node) {
  const nxj_value *value = find_variable(run, node->name);
  if (value) return *value;
  const nxj_row *row = nxj_find_function(node->name);
  if (row == NULL || (run->clock == NULL && strcmp(node->name, "strftime_now") == 0))
    return nxj_undefined(node->name);
  return new_callable(run, row, nxj_none());
}

static nxj_value loop_attribute(nxj_run *run, const nxj_loop *loop, const char *name) {
  int64_t index = (int64_t)loop->index, n = (int64_t)loop->items.n;
  const struct {
    const char *name;
    nxj_value value;
  } attributes[] = {
      {"index", nxj_int(index + 1)},
      {"index0", nxj_int(index)},
      {"revindex", nxj_int(n - index)},
      {"revindex0", nxj_int(n - index - 1)},
      {"first", nxj_bool(index == 0)},
      {"last", nxj_bool(index == n - 1)},
      {"length", nxj_int(n)},
      {"depth", nxj_int(1)},
      {"depth0", nxj_int(0)},
      {"previtem", index > 0 ? loop->items.items[index - 1] : nxj_undefined("loop.previtem")},
      {"nextitem", index + 1 < n ? loop->items.items[index + 1] : nxj_undefined("loop.nextitem")}};
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (strcmp(attributes[i].name, name) == 0) return attributes[i].value;
  nxj_fail(run->pool, "loop.%s is not covered", name);
}

/* Names that Python's dicts have, and that would hide an item of that name. */
static bool is_hidden_method(const char *name) {
  static const char *const names[] = {"clear", "copy", "fromkeys", "pop", "popitem", "setdefault", "update"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

static nxj_value attribute(nxj_run *run, nxj_value of, const char *name) {
  nxj_need_defined(run, of);
  if (name[0] == '_') nxj_fail(run->pool, "attributes that begin with _ are not covered: '%s'", name);
  const nxj_row *method = nxj_find_method(of.kind, name);
  if (method) return new_callable(run, method, of);
  if (of.kind == NXJ_LOOP) return loop_attribute(run, of.loop, name);
  if (of.kind != NXJ_DICT && of.kind != NXJ_NAMESPACE) return nxj_undefined(name);
  if (of.kind == NXJ_DICT && is_hidden_method(name)) nxj_not_covered(run->pool, "method", name);
  const nxj_value *value = nxj_dict_get(run->pool, of.dict, nxj_string_of(name));
  return value ? *value : nxj_undefined(name);
}

static nxj_value text_item(nxj_value text, int64_t index, int64_t n) {
  if (index < 0) index += n;
  if (index < 0 || index >= n) return nxj_undefined("the item");
  size_t at = nxj_code_point_at(text.text, text.n_bytes, (size_t)index);
  return nxj_string(text.text + at, nxj_code_point_bytes(text.text + at, text.n_bytes - at));
}

static nxj_value list_item(const nxj_list *list, int64_t index) {
  int64_t n = (int64_t)list->n, at = index < 0 ? index + n : index;
  return at >= 0 && at < n ? list->items[at] : nxj_undefined("the item");
}

nxj_value nxj_item(nxj_run *run, nxj_value of, nxj_value key) {
  nxj_need_defined(run, of);
  if (of.kind == NXJ_DICT) {
    const nxj_value *value = nxj_dict_get(run->pool, of.dict, key);
    if (value) return *value;
  }
  bool is_index = key.kind == NXJ_INT || key.kind == NXJ_BOOL;
  int64_t index = is_index ? nxj_integer(run->pool, key, "the index") : 0;
  if (is_index && (of.kind == NXJ_LIST || of.kind == NXJ_TUPLE)) return list_item(of.list, index);
  if (is_index && of.kind == NXJ_STRING) return text_item(of, index, (int64_t)nxj_length(run->pool, of));
  if (key.kind != NXJ_STRING) return nxj_undefined("the item");
  const nxj_row *method = of.kind == NXJ_DICT ? nxj_find_method(of.kind, key.text) : NULL;
  if (of.kind == NXJ_DICT && method == NULL) return nxj_undefined(key.text);
  return attribute(run, of, key.text);
}

static nxj_value evaluate_attribute(nxj_run *run, const nxj_node *node) {
  nxj_value of = nxj_evaluate(run, node->a);
  run->pool->line = node->line, run->pool->column = node->column;
  return attribute(run, of, node->name);
}

static nxj_value evaluate_item(nxj_run *run, const nxj_node *node) {
  nxj_value of = nxj_evaluate(run, node->a);
  return nxj_item(run, of, nxj_evaluate(run, node->b));
}

static nxj_value evaluate_slice(nxj_run *run, const nxj_node *node) {
  nxj_value of = nxj_evaluate(run, node->a), parts[3];
  const nxj_node *part = node->items.first;
  for (int i = 0; i < 3; i++, part = part->next) parts[i] = nxj_evaluate(run, part);
  nxj_need_defined(run, of);
  return nxj_slice(run->pool, of, parts[0], parts[1], parts[2]);
}

/* -- literals -------------------------------------------------------------------------------------------- */

static nxj_value evaluate_constant(nxj_run *run, const nxj_node *node) {
  (void)run;
  return node->value;
}

static nxj_value evaluate_list(nxj_run *run, const nxj_node *node) {
  nxj_value *items = nxj_array(run->pool, node->items.n, sizeof *items);
  size_t n = 0;
  for (const nxj_node *at = node->items.first; at != NULL; at = at->next) items[n++] = nxj_evaluate(run, at);
  return nxj_list_of(run->pool, node->kind == NXJ_NODE_LIST ? NXJ_LIST : NXJ_TUPLE, items, n);
}

static nxj_value evaluate_dict(nxj_run *run, const nxj_node *node) {
  nxj_dict *dict = nxj_alloc(run->pool, sizeof *dict);
  for (const nxj_node *at = node->items.first; at != NULL; at = at->next->next) {
    nxj_value key = nxj_evaluate(run, at), value = nxj_evaluate(run, at->next);
    if (key.kind > NXJ_STRING && key.kind != NXJ_TUPLE)
      nxj_fail(run->pool, "%s cannot be a dict's key", nxj_kind_name(key.kind));
    nxj_dict_set(run->pool, dict, key, value);
  }
  return (nxj_value){.kind = NXJ_DICT, .dict = dict};
}

/* -- operators ------------------------------------------------------------------------------------------- */

static nxj_value concat(nxj_run *run, nxj_value one, nxj_value other) {
  nxj_buffer buffer = {0};
  nxj_put(run->pool, &buffer, one.text, one.n_bytes);
  nxj_put(run->pool, &buffer, other.text, other.n_bytes);
  return nxj_buffer_value(run->pool, &buffer);
}

static bool has_html(nxj_value text) {
  for (size_t i = 0; i < text.n_bytes; i++)
    if (text.text[i] != '\0' && strchr("&<>'\"", text.text[i])) return true;
  return false;
}

static nxj_value add_texts(nxj_run *run, nxj_value one, nxj_value other) {
  bool escapes =
      (one.is_safe && !other.is_safe && has_html(other)) || (other.is_safe && !one.is_safe && has_html(one));
  if (escapes)
    nxj_fail(run->pool, "+ with a text that is safe escapes &, <, >, ' and \": that is not covered");
  nxj_value text = concat(run, one, other);
  text.is_safe = one.is_safe || other.is_safe;
  return text;
}

static nxj_value join_lists(nxj_run *run, nxj_value one, nxj_value other) {
  size_t n = one.list->n + other.list->n;
  nxj_value *items = nxj_array(run->pool, n, sizeof *items);
  nxj_work(run->pool, n);
  if (one.list->n > 0) memcpy(items, one.list->items, one.list->n * sizeof *items);
  if (other.list->n > 0) memcpy(items + one.list->n, other.list->items, other.list->n * sizeof *items);
  return nxj_list_of(run->pool, one.kind, items, n);
}

static nxj_value repeat(nxj_run *run, nxj_value value, int64_t times) {
  nxj_buffer text = {0};
  nxj_list list = {NULL, 0};
  for (int64_t i = 0; i < times; i++) {
    nxj_work(run->pool, 1);
    if (value.kind == NXJ_STRING) nxj_put(run->pool, &text, value.text, value.n_bytes);
    else for (size_t j = 0; j < value.list->n; j++) nxj_list_add(run->pool, &list, value.list->items[j]);
  }
  if (value.kind == NXJ_STRING) return nxj_buffer_value(run->pool, &text);
  return nxj_list_of(run->pool, value.kind, list.items, list.n);
}

static int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* True: *result is a op b; false: it is no int, or too large. */
static bool integer_power(int64_t base, int64_t power, int64_t *result) {
  int64_t product = 1;
  for (; power > 0; power--) {
    if (__builtin_mul_overflow(product, base, &product)) return false;
    if (base >= -1 && base <= 1 && power > 2) power = 2 + power % 2; /* they only change sign */
  }
  *result = product;
  return true;
}

static nxj_value integer_arithmetic(nxj_run *run, const char *sign, int64_t a, int64_t b) {
  int64_t result = 0;
  bool good = true, divides = sign[0] == '/' || sign[0] == '%';
  if (divides && b == 0) nxj_fail(run->pool, "division by zero");
  if (sign[0] == '/' && sign[1] == '\0') return nxj_float((double)a / (double)b);
  if (divides && b == -1) good = sign[0] == '%' || !__builtin_sub_overflow(0, a, &result);
  else if (sign[0] == '/') result = floor_quotient(a, b);
  else if (sign[0] == '%') result = a - b * floor_quotient(a, b);
  else if (sign[0] == '+') good = !__builtin_add_overflow(a, b, &result);
  else if (sign[0] == '-') good = !__builtin_sub_overflow(a, b, &result);
  else if (sign[1] == '\0') good = !__builtin_mul_overflow(a, b, &result);
  else if (b < 0) return nxj_float(pow((double)a, (double)b));
  else good = integer_power(a, b, &result);
  if (!good) nxj_fail(run->pool, "an int beyond 64 bits is not covered");
  return nxj_int(result);
}

static nxj_value float_arithmetic(nxj_run *run, const char *sign, double a, double b) {
  if ((sign[0] == '/' || sign[0] == '%') && b == 0) nxj_fail(run->pool, "division by zero");
  if (sign[0] == '/') return nxj_float(sign[1] ? floor(a / b) : a / b);
  if (sign[0] == '%') return nxj_float(a - b * floor(a / b));
  if (sign[0] == '+') return nxj_float(a + b);
  if (sign[0] == '-') return nxj_float(a - b);
  return nxj_float(sign[1] ? pow(a, b) : a * b);
}

static bool is_sequence(nxj_value value) {
  return value.kind == NXJ_STRING || value.kind == NXJ_LIST || value.kind == NXJ_TUPLE;
}

static nxj_value evaluate_arithmetic(nxj_run *run, const nxj_node *node) {
  nxj_value a = nxj_evaluate(run, node->a), b = nxj_evaluate(run, node->b);
  const char *sign = node->name;
  run->pool->line = node->line, run->pool->column = node->column;
  nxj_need_defined(run, a);
  nxj_need_defined(run, b);
  if (nxj_is_number(a) && nxj_is_number(b)) {
    if (a.kind == NXJ_FLOAT || b.kind == NXJ_FLOAT)
      return float_arithmetic(run, sign, nxj_number(a), nxj_number(b));
    return integer_arithmetic(run, sign, nxj_integer(run->pool, a, "a"), nxj_integer(run->pool, b, "b"));
  }
  bool plus = sign[0] == '+', times = sign[0] == '*' && sign[1] == '\0';
  if (plus && a.kind == b.kind && a.kind == NXJ_STRING) return add_texts(run, a, b);
  if (plus && a.kind == b.kind && is_sequence(a)) return join_lists(run, a, b);
  if (times && is_sequence(a) && b.kind == NXJ_INT) return repeat(run, a, b.integer);
  if (times && is_sequence(b) && a.kind == NXJ_INT) return repeat(run, b, a.integer);
  if (sign[0] == '%' && a.kind == NXJ_STRING) nxj_fail(run->pool, "%% of a text (formatting) is not covered");
  nxj_fail(run->pool, "%s of %s and %s has no meaning", sign, nxj_kind_name(a.kind), nxj_kind_name(b.kind));
}

static nxj_value evaluate_sign(nxj_run *run, const nxj_node *node) {
  nxj_value a = nxj_evaluate(run, node->a);
  nxj_need_defined(run, a);
  if (!nxj_is_number(a)) nxj_fail(run->pool, "%s has no sign", nxj_kind_name(a.kind));
  bool negative = node->kind == NXJ_NODE_NEGATIVE;
  if (a.kind == NXJ_FLOAT) return nxj_float(negative ? -a.number : a.number);
  int64_t integer = nxj_integer(run->pool, a, "a");
  return negative ? integer_arithmetic(run, "-", 0, integer) : nxj_int(integer);
}

static nxj_value evaluate_concat(nxj_run *run, const nxj_node *node) {
  nxj_value a = nxj_str(run->pool, nxj_evaluate(run, node->a));
  return concat(run, a, nxj_str(run->pool, nxj_evaluate(run, node->b)));
}

static bool holds(nxj_run *run, const char *sign, nxj_value a, nxj_value b) {
  if (strcmp(sign, "==") == 0) return nxj_equal(run->pool, a, b);
  if (strcmp(sign, "!=") == 0) return !nxj_equal(run->pool, a, b);
  if (strcmp(sign, "in") == 0) return nxj_contains(run->pool, b, a);
  if (strcmp(sign, "not in") == 0) return !nxj_contains(run->pool, b, a);
  nxj_need_defined(run, a);
  nxj_need_defined(run, b);
  int order = nxj_compare(run->pool, a, b);
  if (sign[0] == '<') return sign[1] ? order <= 0 : order < 0;
  return sign[1] ? order >= 0 : order > 0;
}

static nxj_value evaluate_compare(nxj_run *run, const nxj_node *node) {
  nxj_value left = nxj_evaluate(run, node->a);
  for (const nxj_node *at = node->items.first; at != NULL; at = at->next) {
    nxj_value right = nxj_evaluate(run, at->a);
    run->pool->line = at->line, run->pool->column = at->column;
    if (!holds(run, at->name, left, right)) return nxj_bool(false);
    left = right;
  }
  return nxj_bool(true);
}

static nxj_value evaluate_not(nxj_run *run, const nxj_node *node) {
  return nxj_bool(!nxj_is_true(nxj_evaluate(run, node->a)));
}

static nxj_value evaluate_logic(nxj_run *run, const nxj_node *node) {
  nxj_value a = nxj_evaluate(run, node->a);
  bool decided = nxj_is_true(a) == (node->kind == NXJ_NODE_OR);
  return decided ? a : nxj_evaluate(run, node->b);
}

static nxj_value evaluate_choice(nxj_run *run, const nxj_node *node) {
  if (nxj_is_true(nxj_evaluate(run, node->b))) return nxj_evaluate(run, node->a);
  return node->c ? nxj_evaluate(run, node->c) : nxj_undefined("the expression without else");
}

/* -- calls ----------------------------------------------------------------------------------------------- */

static void evaluate_arguments(nxj_run *run, const nxj_node *node, nxj_arguments *arguments) {
  arguments->n = 0;
  for (const nxj_node *at = node->items.first; at != NULL; at = at->next) {
    arguments->names[arguments->n] = at->name;
    arguments->values[arguments->n++] = nxj_evaluate(run, at->a);
  }
  run->pool->line = node->line, run->pool->column = node->column;
}

static nxj_value evaluate_call(nxj_run *run, const nxj_node *node) {
  nxj_value of = nxj_evaluate(run, node->a);
  nxj_arguments *arguments = nxj_alloc(run->pool, sizeof *arguments);
  evaluate_arguments(run, node, arguments);
  bool unknown = of.kind == NXJ_UNDEFINED && node->a->kind == NXJ_NODE_ATTRIBUTE;
  if (unknown) nxj_not_covered(run->pool, "method", node->a->name);
  nxj_need_defined(run, of);
  if (of.kind != NXJ_CALLABLE) nxj_fail(run->pool, "%s cannot be called", nxj_kind_name(of.kind));
  const nxj_callable *callable = of.callable;
  if (callable->row == NULL) return nxj_call_macro(run, callable, arguments);
  return nxj_call_row(run, callable->row, callable->self, arguments);
}

/* A filter or test. */
static nxj_value apply(nxj_run *run, const nxj_node *node, nxj_value to, nxj_arguments *arguments) {
  evaluate_arguments(run, node, arguments);
  if (node->row == NULL)
    nxj_not_covered(run->pool, node->kind == NXJ_NODE_TEST ? "test" : "filter", node->name);
  return nxj_call_row(run, node->row, to, arguments);
}

nxj_value nxj_apply_filter(nxj_run *run, const nxj_node *filter, nxj_value inner) {
  nxj_arguments *arguments = nxj_alloc(run->pool, sizeof *arguments);
  if (filter->a) inner = nxj_apply_filter(run, filter->a, inner);
  return apply(run, filter, inner, arguments);
}

static nxj_value evaluate_filter(nxj_run *run, const nxj_node *node) {
  nxj_value inner = nxj_evaluate(run, node->a);
  return apply(run, node, inner, nxj_alloc(run->pool, sizeof(nxj_arguments)));
}

static nxj_value evaluate_test(nxj_run *run, const nxj_node *node) {
  nxj_value of = nxj_evaluate(run, node->a);
  nxj_value is = apply(run, node, of, nxj_alloc(run->pool, sizeof(nxj_arguments)));
  return nxj_bool(nxj_is_true(is) != node->negated);
}

nxj_value nxj_evaluate(nxj_run *run, const nxj_node *node) {
  static nxj_value (*const evaluators[NXJ_N_NODES])(nxj_run *, const nxj_node *) = {
      [NXJ_NODE_CONSTANT] = evaluate_constant, [NXJ_NODE_NAME] = evaluate_name,
      [NXJ_NODE_LIST] = evaluate_list,         [NXJ_NODE_TUPLE] = evaluate_list,
      [NXJ_NODE_DICT] = evaluate_dict,         [NXJ_NODE_ATTRIBUTE] = evaluate_attribute,
      [NXJ_NODE_ITEM] = evaluate_item,         [NXJ_NODE_SLICE] = evaluate_slice,
      [NXJ_NODE_CALL] = evaluate_call,         [NXJ_NODE_FILTER] = evaluate_filter,
      [NXJ_NODE_TEST] = evaluate_test,         [NXJ_NODE_NOT] = evaluate_not,
      [NXJ_NODE_NEGATIVE] = evaluate_sign,     [NXJ_NODE_POSITIVE] = evaluate_sign,
      [NXJ_NODE_ARITHMETIC] = evaluate_arithmetic, [NXJ_NODE_CONCAT] = evaluate_concat,
      [NXJ_NODE_COMPARE] = evaluate_compare,   [NXJ_NODE_AND] = evaluate_logic,
      [NXJ_NODE_OR] = evaluate_logic,          [NXJ_NODE_CHOICE] = evaluate_choice};
  nxj_enter(run->pool);
  nxj_work(run->pool, 1);
  run->pool->line = node->line, run->pool->column = node->column;
  nxj_value value = evaluators[node->kind](run, node);
  nxj_leave(run->pool);
  return value;
}
