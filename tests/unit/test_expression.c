/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/expression/expression.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

/* The names that expressions see here: a few values, and `nothing`, which is unknown. */
static const nxc_value *look_up(void *context, const nxc_name *name) {
  static const nxc_value names[] = {{.kind = NXC_STRING, .text = "a.b", .n_bytes = 3},
                                    {.kind = NXC_STRING, .text = "c", .n_bytes = 1}};
  static const nxc_value two = {.kind = NXC_INT, .integer = 2}, half = {.kind = NXC_FLOAT, .number = 0.5};
  static const nxc_value none = {.kind = NXC_NULL}, yes = {.kind = NXC_BOOL, .boolean = true};
  static const nxc_value list = {.kind = NXC_LIST, .items = names, .n_items = 2};
  (void)context;
  if (strcmp(name->path, "two") == 0) return &two;
  if (strcmp(name->path, "a.half") == 0) return &half;
  if (strcmp(name->path, "none") == 0) return &none;
  if (strcmp(name->path, "list") == 0) return &list;
  if (name->kind == NXC_NAME_OPTION && strcmp(name->path, "yes") == 0) return &yes;
  if (name->kind == NXC_NAME_VALUE) return &two;
  return NULL;
}

static bool is_given(void *context, const nxc_name *name) {
  (void)context;
  return strcmp(name->path, "two") == 0;
}

static const char *evaluate_in(nxc_arena *arena, const char *text, bool partial) {
  const char *error;
  size_t error_at;
  const nxc_expression *expression = nxc_expression_parse(arena, text, &error, &error_at);
  if (expression == NULL) return nxc_arena_printf(arena, "syntax at %zu", error_at);
  const nxc_scope scope = {look_up, is_given, NULL, partial};
  const nxc_value *value = nxc_expression_evaluate(arena, expression, &scope, &error);
  if (error != NULL) return "error";
  return value ? nxc_value_show(arena, value) : "unknown";
}

static const char *evaluate(nxc_arena *arena, const char *text) {
  return evaluate_in(arena, text, false);
}

typedef struct expected {
  const char *text, *result;
} expected;

static void check_all(const expected *rows, size_t n_rows) {
  nxc_arena *arena = nxc_arena_new();
  for (size_t i = 0; i < n_rows; i++) {
    const char *result = evaluate(arena, rows[i].text);
    if (strcmp(result, rows[i].result) != 0)
      fail_msg("%s: %s, expected %s", rows[i].text, result, rows[i].result);
  }
  nxc_arena_free(arena);
}
#define CHECK(rows) check_all(rows, sizeof(rows) / sizeof *(rows))

static void test_arithmetic(void **state) {
  (void)state;
  static const expected rows[] = {
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"8 / 2", "4"},
      {"7 / 2", "3.5"},
      {"7 // 2", "3"},
      {"-7 // 2", "-4"},
      {"-7 % 3", "2"},
      {"7.5 % 2", "1.5"},
      {"2 ** 10", "1024"},
      {"-2 ** 2", "-4"},
      {"2 ** -1", "0.5"},
      {"2 ** 3 ** 2", "512"},
      {"10 - 2 - 3", "5"},
      {"1e3 + 0.5", "1000.5"},
      {"1 / 0", "error"},
      {"1 // 0", "error"},
      {"1 % 0", "error"},
      {"9223372036854775807 + 1", "error"},
      {"9223372036854775807 // -1", "-9223372036854775807"},
      {"3037000500 * 3037000500", "error"},
      {"'a' + 'b'", "ab"},
      {"[1] + [2]", "[1, 2]"},
      {"1 + 'a'", "error"},
      {"two * a.half", "1.0"},
      {"10 ** 18", "1000000000000000000"},
      {"10 ** 19", "error"},
      {"1 ** 999999999", "1"},
      {"(-1) ** 999999999", "-1"},
  };
  CHECK(rows);
}

static void test_logic(void **state) {
  (void)state;
  static const expected rows[] = {
      {"true and false or true", "true"},
      {"not true or true", "true"},
      {"not (1 == 1.0)", "false"},
      {"1 < 2 < 3", "true"},
      {"1 < 3 < 2", "false"},
      {"1 == true", "false"},
      {"null == none", "true"},
      {"null == 0", "false"},
      {"none < 1", "error"},
      {"'b' > 'a'", "true"},
      {"2 in [1, 2.0]", "true"},
      {"3 not in [1, 2]", "true"},
      {"'ell' in 'hello'", "true"},
      {"1 > 2 ? 'a' : 2 > 1 ? 'b' : 'c'", "b"},
      {"[] ? 1 : 2", "2"},
      {"not none", "true"},
      {"@yes and value == 2", "true"},
      {"list[0]", "a.b"},
      {"list[-1]", "c"},
      {"list[2]", "error"},
  };
  CHECK(rows);
}

static void test_unknown(void **state) {
  (void)state;
  static const expected rows[] = {
      {"nothing", "unknown"},
      {"nothing + 1", "unknown"},
      {"nothing and false", "false"},
      {"false and nothing", "false"},
      {"nothing and true", "unknown"},
      {"true or nothing", "true"},
      {"nothing or true", "true"},
      {"nothing or false", "unknown"},
      {"not nothing", "unknown"},
      {"nothing ? 1 : 1", "unknown"},
      {"true ? 1 : nothing", "1"},
      {"[1, nothing]", "unknown"},
      {"max(1, nothing)", "unknown"},
      {"known(nothing)", "false"},
      {"known(two)", "true"},
      {"known(none)", "true"},
      {"given(two)", "true"},
      {"given(none)", "false"},
      {"lacking(two)", "\"\""},
      {"lacking(none, two, @yes)", "\"none, yes\""},
      {"not lacking(two)", "true"},
      {"lacking(1)", "syntax at 10"},
      {"false and 1 / 0 == 1", "false"},
      {"unknown", "unknown"},
      {"two == 2 ? unknown : 1", "unknown"},
  };
  CHECK(rows);
}

static void test_functions(void **state) {
  (void)state;
  static const expected rows[] = {
      {"min(3, 1, 2)", "1"},
      {"max([3, 1.5])", "3"},
      {"floor(-1.5)", "-2"},
      {"ceil(1.2)", "2"},
      {"round(2.5)", "2"},
      {"len([1, 2]) + len('abc') + len(null)", "5"},
      {"int('12') + int(2.9) + int(true)", "15"},
      {"int('x')", "error"},
      {"float(1)", "1.0"},
      {"str(1.0) + 'x'", "1.0x"},
      {"contains(str(1.0), '.')", "true"},
      {"sum([1, 2, 3])", "6"},
      {"any([false, 1])", "true"},
      {"all([])", "true"},
      {"abs(-3)", "3"},
      {"log2(8)", "3"},
      {"log2(0)", "error"},
      {"starts('model.x', 'model.')", "true"},
      {"ends('x.json', '.json')", "true"},
      {"lower('AbC')", "abc"},
      {"basename('/a/b.txt')", "b.txt"},
      {"replace('{step}-{step:04}', '{step', 'step={step')", "\"step={step}-step={step:04}\""},
      {"unique([1, 2, 1])", "[1, 2]"},
      {"index(['a', 'b'], 'b')", "1"},
      {"index(['a'], 'z')", "-1"},
      {"last_number('model.layers.18')", "18"},
      {"minutes('01:02:03:30')", "1563.5"},
      {"maps(['a', 'b', 'c'], ['x', 'y'], 1, [2, null])", "[{a: x, b: 1, c: 2}, {a: y, b: 1}]"},
      {"first_number('127,0')", "127"},
      {"first_number('-1,-1')", "-1"},
      {"product([2, 3, 4])", "24"},
      {"product(5)", "5"},
      {"pieces('Et|t|tL')", "3"},
      {"pieces('Et*3|(tt|)*29m|L')", "32"},
      {"pieces('L')", "1"},
      {"kind(1.0)", "float"},
      {"kind([1])", "list"},
      {"texts([0.5, 'a', '0.5', 'b'])", "[a, b]"},
      {"texts('a')", "[a]"},
      {"last_number(['l.3', 'x'])", "[3, -1]"},
      {"rising([1, 2, 2])", "false"},
      {"rising(last_number(['l.3', 'l.10']))", "true"},
      {"list matches '^[a-z.]+$'", "[true, true]"},
      {"all(list matches 'c')", "false"},
      {"'abc' matches '^b'", "false"},
      {"'abc' matches '('", "error"},
  };
  CHECK(rows);
}

static void test_syntax(void **state) {
  (void)state;
  static const expected rows[] = {
      {"", "syntax at 0"},
      {"1 +", "syntax at 3"},
      {"(1", "syntax at 2"},
      {"1 2", "syntax at 2"},
      {"nofunction(1)", "syntax at 0"},
      {"'a", "syntax at 2"},
      {"known(1)", "syntax at 8"},
      {"abs()", "syntax at 5"},
      {"a ? b", "syntax at 5"},
      {"99999999999999999999", "syntax at 0"},
      {"[1, 2", "syntax at 5"},
      {"@", "syntax at 1"},
      {"@hf.", "syntax at 3"},
  };
  CHECK(rows);
  char deep[400];
  memset(deep, '(', 200);
  memset(deep + 200, ')', 199);
  deep[399] = '\0';
  nxc_arena *arena = nxc_arena_new();
  assert_memory_equal(evaluate(arena, deep), "syntax", 6);
  memset(deep, '-', 399);
  assert_memory_equal(evaluate(arena, deep), "syntax", 6);
  for (size_t i = 0; i < 396; i += 4) memcpy(deep + i, "not ", 4);
  assert_memory_equal(evaluate(arena, deep), "syntax", 6);
  for (size_t i = 0; i < 398; i += 2) memcpy(deep + i, "1?", 2); /* the else branches nest as well */
  assert_memory_equal(evaluate(arena, deep), "syntax", 6);
  nxc_arena_free(arena);
}

/* A rule knows its inputs: each name once, and whether it is only asked about. */
static void test_names(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  const char *error;
  size_t error_at;
  const nxc_expression *e = nxc_expression_parse(
      arena, "known(a) and b.c + @d.e * a > @hf.f or value == b.c or given(@g)", &error, &error_at);
  assert_non_null(e);
  assert_int_equal(e->n_names, 6);
  static const struct {
    nxc_name_kind kind;
    const char *path;
    bool only_asked;
  } names[] = {{NXC_NAME_SETTING, "a", false},   {NXC_NAME_SETTING, "b.c", false},
               {NXC_NAME_OPTION, "d.e", false},  {NXC_NAME_MODEL_CONFIG, "f", false},
               {NXC_NAME_VALUE, "value", false}, {NXC_NAME_OPTION, "g", true}};
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(e->names[i].kind, names[i].kind);
    assert_string_equal(e->names[i].path, names[i].path);
    assert_int_equal(e->names[i].only_asked, names[i].only_asked);
  }
  nxc_arena_free(arena);
}

/* What a part of a text does not give may be given elsewhere. */
static void test_part(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  assert_string_equal(evaluate_in(arena, "given(two)", true), "true");
  assert_string_equal(evaluate_in(arena, "given(none)", true), "unknown");
  assert_string_equal(evaluate_in(arena, "not given(none) or given(two)", true), "true");
  assert_string_equal(evaluate_in(arena, "lacking(two, none)", true), "unknown");
  nxc_arena_free(arena);
}

/* A text is parsed once; when there is no more room for that, it still is. */
static void test_kept(void **state) {
  (void)state;
  nxc_arena *one = nxc_arena_new(), *other = nxc_arena_new();
  const nxc_expression *first = nxc_expression_of(one, "two + 1");
  nxc_arena_free(one);
  char same[] = "two + 1";
  assert_ptr_equal(first, nxc_expression_of(other, same));
  assert_string_equal(first->names[0].path, "two");
  assert_ptr_not_equal(first, nxc_expression_of(other, "two + 2"));
  assert_null(nxc_expression_of(other, NULL));
  char text[16];
  for (int i = 0; i < 20000; i++) {
    snprintf(text, sizeof text, "n%d", i);
    const nxc_expression *e = nxc_expression_of(other, text);
    assert_string_equal(e->text, text);
    assert_string_equal(e->names[0].path, text);
  }
  assert_ptr_equal(first, nxc_expression_of(other, "two + 1"));
  nxc_arena_free(other);
}

static const char *invert(nxc_arena *arena, const char *text, const char *result) {
  const char *error;
  size_t error_at;
  const nxc_expression *expression = nxc_expression_parse(arena, text, &error, &error_at);
  const nxc_scope scope = {look_up, is_given, NULL, false};
  const nxc_value *wanted = nxc_expression_evaluate(
      arena, nxc_expression_parse(arena, result, &error, &error_at), &scope, &error);
  const nxc_value *value = nxc_expression_invert(arena, expression, &scope, wanted);
  return value ? nxc_value_show(arena, value) : "unknown";
}

/* A table of names is read in both directions. */
static void test_renamed(void **state) {
  (void)state;
#define TABLE "[['Core', 'core'], ['MLP', 'mlp'], 'norm', ['Net', 'mlp']]"
  static const expected rows[] = {
      {"renamed(['MLP', 'norm', 'none'], " TABLE ")", "[mlp, norm]"},
      {"renamed('Net', " TABLE ")", "[mlp]"},
      {"renamed([], " TABLE ")", "[]"},
      {"renamed(['MLP'], 'MLP')", "error"},
      {"matched(['*.q', 'l.1.*', 'l.?.a.q', '*'], 12, ['l.#.a.q', 'l.#.k', 'head'])", "[12, 2, 10, 24]"},
      {"matched([1], 2, ['a'])", "error"},
      {"matched(['a'], 2000, ['a'])", "error"},
  };
  CHECK(rows);
  nxc_arena *arena = nxc_arena_new();
  assert_string_equal(invert(arena, "renamed(value, " TABLE ")", "['mlp', 'norm']"), "[MLP, norm]");
  assert_string_equal(invert(arena, "two == 3 ? [] : renamed(value, two == 2 ? " TABLE " : [])", "['core']"),
                      "[Core]");
  assert_string_equal(invert(arena, "renamed(value, " TABLE ")", "['core', 'Core']"), "unknown");
  assert_string_equal(invert(arena, "lower(value)", "'a'"), "unknown");
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_logic),  cmocka_unit_test(test_unknown),
      cmocka_unit_test(test_functions),  cmocka_unit_test(test_syntax), cmocka_unit_test(test_names),
      cmocka_unit_test(test_part),       cmocka_unit_test(test_kept),   cmocka_unit_test(test_renamed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
