/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/canon.h"
#include "compiler/document/integer.h"
#include "compiler/document/scalar.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static nxc_arena *arena;

static int set_up(void **state) {
  (void)state;
  arena = nxc_arena_new();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  nxc_arena_free(arena);
  return 0;
}

static const char *canon(const nxc_value *value) {
  nxc_buffer text = {.arena = arena};
  nxc_write_canon(&text, value);
  return text.bytes;
}

static const char *typed(const char *text) {
  nxc_value value;
  const char *problem = NULL;
  if (!nxc_scalar_read(arena, text, strlen(text), &value, &problem))
    return nxc_arena_printf(arena, "! %s", problem);
  return canon(&value);
}

/* What PyYAML 6 reads differently from OmegaConf, and what it does not; `meant` is how it reads a float. */
static void types_plain_text_as_pyyaml(void **state) {
  (void)state;
  static const struct {
    const char *text, *canon, *meant;
  } rows[] = {
      {"3e-4", "s\"3e-4\"", "3.0e-4"},
      {"1e-06", "s\"1e-06\"", "1.0e-06"},
      {"1e5", "s\"1e5\"", "1.0e+5"},
      {"1.0e5", "s\"1.0e5\"", "1.0e+5"},
      {"1E+3", "s\"1E+3\"", "1.0e+3"},
      {"-1e-3", "s\"-1e-3\"", "-1.0e-3"},
      {".5e3", "s\".5e3\"", NULL},
      {"._5", "s\"._5\"", NULL},
      {"???", "s\"???\"", NULL},
      {"1.0e-4", "f0.0001", NULL},
      {"1.5E+3", "f1500.0", NULL},
      {".5", "f0.5", NULL},
      {"1.", "f1.0", NULL},
      {".inf", "finf", NULL},
      {"inf", "s\"inf\"", NULL},
      {"1:30.5", "f90.5", NULL},
      {"1:30", "i90", NULL},
      {"010", "i8", NULL},
      {"08", "s\"08\"", NULL},
      {"5_000", "i5000", NULL},
      {"yes", "true", NULL},
      {"y", "s\"y\"", NULL},
      {"None", "s\"None\"", NULL},
      {"~", "null", NULL},
      {"2024-01-01", "s\"2024-01-01\"", NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxc_value value;
    const char *problem = NULL;
    assert_true(nxc_scalar_read_pyyaml(arena, rows[i].text, strlen(rows[i].text), &value, &problem));
    assert_string_equal(canon(&value), rows[i].canon);
    const char *meant = nxc_scalar_pyyaml_float(arena, rows[i].text);
    if (rows[i].meant == NULL) assert_null(meant);
    else assert_string_equal(meant, rows[i].meant);
  }
}

static void types_plain_text(void **state) {
  (void)state;
  static const struct {
    const char *text, *canon;
  } rows[] = {
      {"", "null"},
      {"~", "null"},
      {"NULL", "null"},
      {"nULL", "s\"nULL\""},
      {"None", "s\"None\""},
      {"True", "true"},
      {"OFF", "false"},
      {"y", "s\"y\""},
      {"tRue", "s\"tRue\""},
      {"0", "i0"},
      {"-0", "i0"},
      {"+12", "i12"},
      {"1_000", "i1000"},
      {"017", "i15"},
      {"018", "s\"018\""},
      {"0x1f", "i31"},
      {"-0b101", "i-5"},
      {"0o7", "s\"0o7\""},
      {"0_", "i0"},
      {"9223372036854775807", "i9223372036854775807"},
      {"-9223372036854775808", "i-9223372036854775808"},
      {"9223372036854775808", "i9223372036854775808"},
      {"0xffffffffffffffffffff", "i1208925819614629174706175"},
      {"-0777777777777777777777777", "i-4722366482869645213695"},
      {"1:30", "i90"},
      {"-2:00:01", "i-7201"},
      {"1:60", "s\"1:60\""},
      {"0:30", "s\"0:30\""},
      {"3e-4", "f0.0003"},
      {"1E5", "f100000.0"},
      {".5", "f0.5"},
      {"-.5", "s\"-.5\""},
      {"5.", "f5.0"},
      {".5e3", "s\".5e3\""},
      {".5e+3", "f500.0"},
      {"1e", "s\"1e\""},
      {"1__0.5", "f10.5"},
      {"1:30.5", "f90.5"},
      {".inf", "finf"},
      {"-.INF", "f-inf"},
      {".NaN", "fnan"},
      {".nAn", "s\".nAn\""},
      {"inf", "s\"inf\""},
      {"1e400", "finf"},
      {"2001-12-14", "s\"2001-12-14\""},
      {"1.2.3", "s\"1.2.3\""},
      {"4K", "s\"4K\""},
      {"0x_", "! this is written like an integer but has no digits"},
      {"._", "! this is written like a float but has no digits"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_string_equal(typed(rows[i].text), rows[i].canon);
}

static void refuses_endless_integers(void **state) {
  (void)state;
  char *digits = nxc_arena_alloc(arena, NXC_INTEGER_DIGITS_MAX + 2);
  memset(digits, '9', NXC_INTEGER_DIGITS_MAX);
  assert_int_equal(strlen(typed(digits)), NXC_INTEGER_DIGITS_MAX + 1);
  digits[NXC_INTEGER_DIGITS_MAX] = '9';
  assert_string_equal(typed(digits), "! this integer has more than 4300 digits");
}

static void writes_floats_as_python(void **state) {
  (void)state;
  static const struct {
    double number;
    const char *repr;
  } rows[] = {
      {0.1, "0.1"},
      {1e16, "1e+16"},
      {1e15, "1000000000000000.0"},
      {1e-4, "0.0001"},
      {1e-5, "1e-05"},
      {-0.0, "-0.0"},
      {1.0 / 3, "0.3333333333333333"},
      {2.0 / 3, "0.6666666666666666"},
      {5e-324, "5e-324"},
      {1.5e300, "1.5e+300"},
      {123456789.123, "123456789.123"},
      {9007199254740993.0, "9007199254740992.0"},
      {100, "100.0"},
      {2.2250738585072014e-308, "2.2250738585072014e-308"},
      {1e23, "1e+23"},
      {0.30000000000000004, "0.30000000000000004"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_string_equal(nxc_float_repr(arena, rows[i].number), rows[i].repr);
    assert_true(strtod(rows[i].repr, NULL) == rows[i].number);
  }
  assert_string_equal(nxc_float_repr(arena, NAN), "nan");
}

static void finds_oddities(void **state) {
  (void)state;
  static const struct {
    const char *text;
    nxc_oddity oddity;
  } rows[] = {
      {"true", NXC_ODD_NONE},
      {"False", NXC_ODD_NONE},
      {"null", NXC_ODD_NONE},
      {"", NXC_ODD_NONE},
      {"~", NXC_ODD_NONE},
      {"1e-5", NXC_ODD_NONE},
      {"0.0", NXC_ODD_NONE},
      {"-0.0", NXC_ODD_NONE},
      {"0", NXC_ODD_NONE},
      {"1_000", NXC_ODD_NONE},
      {"0x10", NXC_ODD_NONE},
      {"7b", NXC_ODD_NONE},
      {"4K", NXC_ODD_NONE},
      {"1.2.3", NXC_ODD_NONE},
      {"0e0", NXC_ODD_NONE},
      {"adamw", NXC_ODD_NONE},
      {"/data/x", NXC_ODD_NONE},
      {"1e", NXC_ODD_NONE},
      {"infinite", NXC_ODD_NONE},
      {"yes", NXC_ODD_BOOLEAN_WORD},
      {"Off", NXC_ODD_BOOLEAN_WORD},
      {"N", NXC_ODD_BOOLEAN_TEXT},
      {"tRue", NXC_ODD_BOOLEAN_TEXT},
      {"None", NXC_ODD_NULL_TEXT},
      {"nUll", NXC_ODD_NULL_TEXT},
      {"010", NXC_ODD_OCTAL},
      {"24:00:00", NXC_ODD_SEXAGESIMAL},
      {"1:30.5", NXC_ODD_SEXAGESIMAL},
      {"-.5", NXC_ODD_NUMBER_TEXT},
      {"0o17", NXC_ODD_NUMBER_TEXT},
      {"0X1F", NXC_ODD_NUMBER_TEXT},
      {"09", NXC_ODD_NUMBER_TEXT},
      {"inf", NXC_ODD_NUMBER_TEXT},
      {"NaN", NXC_ODD_NUMBER_TEXT},
      {"1e1_0", NXC_ODD_NUMBER_TEXT},
      {"0x1p3", NXC_ODD_NUMBER_TEXT},
      {"1_000_", NXC_ODD_UNDERSCORES},
      {"1__0", NXC_ODD_UNDERSCORES},
      {"1e400", NXC_ODD_RANGE},
      {"1e-400", NXC_ODD_RANGE},
      {"-0", NXC_ODD_MINUS_ZERO},
      {"$HOME/x", NXC_ODD_HOME},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxc_value value;
    const char *problem;
    assert_true(nxc_scalar_read(arena, rows[i].text, strlen(rows[i].text), &value, &problem));
    if (nxc_scalar_oddity(rows[i].text, strlen(rows[i].text), &value) != rows[i].oddity)
      fail_msg("%s: wrong oddity", rows[i].text);
  }
}

static void reads_explicit_tags(void **state) {
  (void)state;
  static const struct {
    const char *type, *text, *canon;
  } rows[] = {
      {"str", "12", "s\"12\""},    {"int", "12", "i12"},     {"int", "x", NULL},
      {"float", "12", "f12.0"},    {"float", "a", NULL},     {"bool", "Yes", "true"},
      {"bool", "2", NULL},         {"null", "x", "null"},    {"binary", "aGk=", "baGk="},
      {"binary", "aGkx", "baGkx"}, {"binary", "aG=k", NULL}, {"binary", "a", NULL},
      {"binary", "", "b"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxc_value value;
    const char *problem;
    bool ok = nxc_scalar_read_as(arena, rows[i].type, rows[i].text, strlen(rows[i].text), &value, &problem);
    assert_int_equal(ok, rows[i].canon != NULL);
    if (ok) assert_string_equal(canon(&value), rows[i].canon);
  }
}

static const char *compute(char op, const char *a, const char *b) {
  nxc_value x, y, z;
  const char *problem;
  assert_true(nxc_scalar_read(arena, a, strlen(a), &x, &problem));
  assert_true(nxc_scalar_read(arena, b, strlen(b), &y, &problem));
  if (!nxc_integer_compute(arena, op, &x, &y, &z, &problem)) return problem;
  return nxc_value_show(arena, &z);
}

static void computes_exactly(void **state) {
  (void)state;
  assert_string_equal(compute('*', "4294967296", "4294967296"), "18446744073709551616");
  assert_string_equal(compute('-', "-9223372036854775808", "1"), "-9223372036854775809");
  assert_string_equal(compute('+', "18446744073709551616", "-18446744073709551615"), "1");
  assert_string_equal(compute('/', "-7", "2"), "-4");
  assert_string_equal(compute('/', "7", "-2"), "-4");
  assert_string_equal(compute('/', "-8", "2"), "-4");
  assert_string_equal(compute('/', "1", "0"), "division by zero");
  assert_non_null(strstr(compute('*', "99999999999999999999", "99999999999999999999"), "38 digits"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(types_plain_text, set_up, tear_down),
      cmocka_unit_test_setup_teardown(types_plain_text_as_pyyaml, set_up, tear_down),
      cmocka_unit_test_setup_teardown(refuses_endless_integers, set_up, tear_down),
      cmocka_unit_test_setup_teardown(writes_floats_as_python, set_up, tear_down),
      cmocka_unit_test_setup_teardown(finds_oddities, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reads_explicit_tags, set_up, tear_down),
      cmocka_unit_test_setup_teardown(computes_exactly, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
