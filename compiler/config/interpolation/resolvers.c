/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/nearest.h"
#include "compiler/document/buffer.h"
#include "compiler/document/integer.h"
#include "compiler/document/scalar.h"
#include "compiler/config/interpolation/resolvers.h"

#include <math.h>
#include <string.h>

nxc_step nxc_resolver_fail(nxc_evaluator *m, const nxc_resolver *self, const char *problem) {
  return nxc_machine_fail(m, "NX1210", NULL, "%s: %s", self->name, problem);
}

static bool is_number(const nxc_value *value) {
  return value->kind == NXC_BOOL || value->kind == NXC_INT || value->kind == NXC_FLOAT;
}

static nxc_value as_integer(const nxc_value *value) {
  return value->kind == NXC_BOOL ? (nxc_value){.kind = NXC_INT, .integer = value->boolean} : *value;
}

static double as_double(const nxc_value *value) {
  nxc_value integer = as_integer(value);
  return integer.kind == NXC_FLOAT ? integer.number : nxc_integer_to_double(&integer);
}

/* "the integer 3"; null is its own description. */
static const char *operand(nxc_evaluator *m, const nxc_value *value) {
  if (value->kind == NXC_NULL) return "null";
  return nxc_arena_printf(m->arena, "the %s %s", nxc_kind_name(value->kind),
                          nxc_machine_show(m, NULL, value));
}

static nxc_step bad_operands(nxc_evaluator *m, const nxc_resolver *self, const nxc_item *args) {
  return nxc_machine_fail(m, "NX1210", NULL, "%s cannot be applied to %s and %s", self->name,
                          operand(m, &args[0].value), operand(m, &args[1].value));
}

/* Python's float floor division. */
static double floor_quotient(double a, double b) {
  double rest = fmod(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign(0, a / b);
  double whole = floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

static double compute_double(char op, double a, double b) {
  switch (op) {
  case '+': return a + b;
  case '-': return a - b;
  case '*': return a * b;
  default: return floor_quotient(a, b);
  }
}

static nxc_step repeat_text(nxc_evaluator *m, const nxc_resolver *self, const nxc_value *text,
                            const nxc_value *times, nxc_item *result) {
  int64_t n = as_integer(times).integer;
  if (times->digits || (n > 0 && text->n_bytes > m->n_text_left / (size_t)n))
    return nxc_resolver_fail(m, self, "the repeated text is too long");
  if (!m->options->omegaconf)
    nxc_machine_warn(m, "NX1218", "write ${oc.decode:...} around the text to read it as a number",
                     "%s repeats the text %s, it does not calculate with it", self->name,
                     nxc_machine_show(m, NULL, text));
  nxc_buffer joined = {.arena = m->arena};
  for (int64_t i = 0; i < n; i++) nxc_buffer_put(&joined, text->text, text->n_bytes);
  m->n_text_left -= joined.n_bytes;
  result->value = nxc_string_value(joined.bytes ? joined.bytes : "", joined.n_bytes);
  return NXC_STEP_DONE;
}

/* What + and * mean for text and lists. */
static nxc_step compute_other(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, nxc_item *result) {
  const nxc_value *a = &args[0].value, *b = &args[1].value;
  if (self->op == '+' && a->kind == NXC_STRING && b->kind == NXC_STRING)
    return nxc_machine_join(m, args, 2, result);
  if (self->op == '+' && a->kind == NXC_LIST && b->kind == NXC_LIST) {
    size_t n = a->n_items + b->n_items;
    if (n > m->n_flat_left) return nxc_resolver_fail(m, self, "the joined list is too long");
    m->n_flat_left -= n;
    nxc_value *items = nxc_arena_array(m->arena, n, sizeof *items);
    if (a->n_items) memcpy(items, a->items, a->n_items * sizeof *items);
    if (b->n_items) memcpy(items + a->n_items, b->items, b->n_items * sizeof *items);
    result->value = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n};
    return NXC_STEP_DONE;
  }
  bool a_counts = a->kind == NXC_INT || a->kind == NXC_BOOL,
       b_counts = b->kind == NXC_INT || b->kind == NXC_BOOL;
  if (self->op == '*' && a->kind == NXC_STRING && b_counts) return repeat_text(m, self, a, b, result);
  if (self->op == '*' && b->kind == NXC_STRING && a_counts) return repeat_text(m, self, b, a, result);
  return bad_operands(m, self, args);
}

static void warn_boolean(nxc_evaluator *m, const nxc_resolver *self, const nxc_item *args) {
  if (m->options->omegaconf || (args[0].value.kind != NXC_BOOL && args[1].value.kind != NXC_BOOL)) return;
  nxc_machine_warn(m, "NX1220", NULL, "%s counts a boolean as 0 or 1", self->name);
}

/* multiply, add, sub, int_div: integers stay integers. */
static nxc_step run_arithmetic(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                               nxc_item *result) {
  (void)n;
  const nxc_value *a = &args[0].value, *b = &args[1].value;
  if (!is_number(a) || !is_number(b)) return compute_other(m, self, args, result);
  warn_boolean(m, self, args);
  if (a->kind != NXC_FLOAT && b->kind != NXC_FLOAT) {
    nxc_value x = as_integer(a), y = as_integer(b);
    const char *problem;
    if (!nxc_integer_compute(m->arena, self->op, &x, &y, &result->value, &problem))
      return nxc_resolver_fail(m, self, problem);
    return NXC_STEP_DONE;
  }
  if (self->op == '/' && as_double(b) == 0) return nxc_resolver_fail(m, self, "division by zero");
  result->value =
      (nxc_value){.kind = NXC_FLOAT, .number = compute_double(self->op, as_double(a), as_double(b))};
  return NXC_STEP_DONE;
}

/* divide (op 'f'), and its quotient or product made an integer: up 'c', down 'd', product toward zero 't'. */
static nxc_step run_rounding(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                             nxc_item *result) {
  (void)n;
  const nxc_value *a = &args[0].value, *b = &args[1].value;
  if (!is_number(a) || !is_number(b)) return bad_operands(m, self, args);
  warn_boolean(m, self, args);
  if (self->op != 't' && as_double(b) == 0) return nxc_resolver_fail(m, self, "division by zero");
  double number = self->op == 't' ? as_double(a) * as_double(b) : as_double(a) / as_double(b);
  if (self->op == 'f') {
    result->value = (nxc_value){.kind = NXC_FLOAT, .number = number};
    return NXC_STEP_DONE;
  }
  if (self->op == 'c') number = ceil(number);
  if (self->op == 'd') number = floor(number);
  const char *problem;
  if (nxc_integer_from_double(m->arena, trunc(number), &result->value, &problem)) return NXC_STEP_DONE;
  return nxc_resolver_fail(m, self, problem);
}

/* floor, ceil and int of one number. */
static nxc_step run_whole(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                          nxc_item *result) {
  (void)n;
  const nxc_value *a = &args[0].value;
  if (!is_number(a))
    return nxc_machine_fail(m, "NX1210", NULL, "%s cannot be applied to the %s %s", self->name,
                            nxc_kind_name(a->kind), nxc_machine_show(m, NULL, a));
  const char *problem;
  double number = as_double(a);
  if (a->kind != NXC_FLOAT) {
    result->value = as_integer(a);
    return NXC_STEP_DONE;
  }
  number = self->op == 'c' ? ceil(number) : self->op == 'd' ? floor(number) : trunc(number);
  if (nxc_integer_from_double(m->arena, number, &result->value, &problem)) return NXC_STEP_DONE;
  return nxc_resolver_fail(m, self, problem);
}

static nxc_step run_args(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                         nxc_item *result) {
  (void)self;
  nxc_value *items = nxc_arena_array(m->arena, n, sizeof *items);
  for (size_t i = 0; i < n; i++) items[i] = args[i].value;
  result->value = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n};
  return NXC_STEP_DONE;
}

static nxc_step run_id(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                       nxc_item *result) {
  (void)m;
  (void)self;
  (void)n;
  *result = args[0];
  return NXC_STEP_DONE;
}

static nxc_step run_fail(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                         nxc_item *result) {
  (void)args;
  (void)n;
  (void)result;
  return nxc_resolver_fail(m, self, "it always fails");
}

enum { ANY = 1000000 };

static const nxc_resolver resolvers[] = {
    {"oc.env", nxc_resolve_env, 1, 2, 0, 0, "an environment variable, or the default"},
    {"oc.select", nxc_resolve_select_key, 1, 2, NXC_RESOLVER_NODES, 0,
     "a key, or the default where it is absent"},
    {"oc.decode", nxc_resolve_decode, 1, 1, 0, 0, "text read as an argument"},
    {"oc.create", nxc_resolve_create, 1, 1, 0, 0, "a list or map that references can enter"},
    {"oc.dict.keys", nxc_resolve_dict_keys, 1, 1, 0, 0, "the keys of a map"},
    {"oc.dict.values", nxc_resolve_dict_values, 1, 1, 0, 0, "the values of a map"},
    {"oc.deprecated", nxc_resolve_deprecated, 1, 2, 0, 0, "a key under its new name"},
    {"multiply", run_arithmetic, 2, 2, 0, '*', "x * y"},
    {"add", run_arithmetic, 2, 2, 0, '+', "x + y"},
    {"sub", run_arithmetic, 2, 2, 0, '-', "x - y"},
    {"subtract", run_arithmetic, 2, 2, 0, '-', "x - y"},
    {"int_div", run_arithmetic, 2, 2, 0, '/', "x // y, rounded down"},
    {"divide", run_rounding, 2, 2, 0, 'f', "x / y, always a float"},
    {"divide_ceil", run_rounding, 2, 2, 0, 'c', "x / y rounded up"},
    {"divide_floor", run_rounding, 2, 2, 0, 'd', "x / y rounded down"},
    {"multiply_to_int", run_rounding, 2, 2, 0, 't', "x * y without its fraction"},
    {"floor", run_whole, 1, 1, 0, 'd', "rounded down"},
    {"ceil", run_whole, 1, 1, 0, 'c', "rounded up"},
    {"int", run_whole, 1, 1, 0, 't', "without its fraction"},
    {"args", run_args, 0, ANY, NXC_RESOLVER_PROBE, 0, "its arguments as a list"},
    {"id", run_id, 1, 1, NXC_RESOLVER_PROBE | NXC_RESOLVER_NODES, 0, "its argument"},
    {"ns1.ns2.id", run_id, 1, 1, NXC_RESOLVER_PROBE | NXC_RESOLVER_NODES, 0, "its argument"},
    {"fail", run_fail, 0, ANY, NXC_RESOLVER_PROBE, 0, "nothing: it fails"},
};
enum { N_RESOLVERS = sizeof resolvers / sizeof *resolvers };

static nxc_step report_unknown(nxc_evaluator *m, const char *name) {
  const char *names[N_RESOLVERS];
  size_t n = 0;
  for (size_t i = 0; i < N_RESOLVERS; i++)
    if (m->options->probes || !(resolvers[i].flags & NXC_RESOLVER_PROBE)) names[n++] = resolvers[i].name;
  const char *fix = "write the value itself";
  const char *near = nxc_nearest(name, names, n);
  if (near != NULL && strlen(name) < 60) fix = nxc_did_you_mean(m->arena, "", near);
  if (strcmp(name, "env") == 0) fix = "write oc.env";
  if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
      strlen(name)) /* as in a shell: ${NAME:-default} */
    fix = nxc_arena_printf(m->arena, "for an environment variable write ${oc.env:%s,DEFAULT}", name);
  return nxc_machine_fail(m, "NX1209", fix, "there is no resolver %s", name);
}

nxc_step nxc_resolver_call(nxc_evaluator *m, const char *name, nxc_item *args, size_t n_args,
                           nxc_item *result) {
  const nxc_resolver *found = NULL;
  for (size_t i = 0; i < N_RESOLVERS && found == NULL; i++)
    if (strcmp(resolvers[i].name, name) == 0) found = &resolvers[i];
  if (found && (found->flags & NXC_RESOLVER_PROBE) && !m->options->probes) found = NULL;
  if (found == NULL) return report_unknown(m, name);
  if (n_args < found->n_least || n_args > found->n_most)
    return nxc_machine_fail(
        m, "NX1210", "give as many", "%s takes %u%s argument%s, %zu given", name, found->n_least,
        found->n_most > found->n_least ? nxc_arena_printf(m->arena, " to %u", found->n_most) : "",
        found->n_most == 1 ? "" : "s", n_args);
  for (size_t i = 0; i < n_args && !(found->flags & NXC_RESOLVER_NODES); i++) {
    nxc_step step = nxc_machine_flatten(m, &args[i]);
    if (step != NXC_STEP_DONE) return step;
  }
  return found->run(m, found, args, n_args, result);
}
