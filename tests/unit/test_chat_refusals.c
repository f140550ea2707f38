/* SPDX-License-Identifier: Apache-2.0 */
/* What a chat template is refused for, and how: by name and place, within bounds of steps and memory. */
#include "chat/template.h"
#include "tests/unit/cmocka_all.h"

typedef struct refusal {
  const char *template, *message;
} refusal;

static json_t *names_of_a_dialogue(void) {
  return json_loads(
      "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"l\": [1, 2], \"s\": \"text\"}", 0, NULL);
}

/* What is said of a template, when it is opened or else when it renders. */
static const char *refused(const char *template, nxj_limits limits, bool *opens) {
  static nxr_fault fault;
  fault.text[0] = '\0';
  nxj_template *opened = nxj_template_open("chat", template, strlen(template), limits, &fault);
  *opens = opened != NULL;
  if (opened == NULL) return fault.text;
  json_t *names = names_of_a_dialogue();
  nxj_text text;
  bool rendered = nxj_template_render(opened, &(nxj_input){.names = names, .limits = limits}, &text, &fault);
  if (rendered) nxj_text_free(&text);
  json_decref(names);
  nxj_template_close(opened);
  return fault.text;
}

static void what_is_not_covered_is_named_where_it_stands(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {"a\n  {% include 'x' %}", "chat, line 2, column 6: the statement 'include' is not covered"},
      {"{{ s | urlize }}", "chat, line 1, column 8: the filter 'urlize' is not covered"},
      {"{{ s is escaped }}", "chat, line 1, column 9: the test 'escaped' is not covered"},
      {"{{ s.encode('x') }}", "chat, line 1, column 6: the method 'encode' is not covered"},
      {"{% for a in l recursive %}{% endfor %}", "chat, line 1, column 15: recursive loops are not covered"},
      {"{% for a in l %}", "chat, line 1, column 17: expected else, found the end of the template"},
      {"{{ s", "chat, line 1, column 1: the tag has no end"},
      {"{{ s ! }}", "chat, line 1, column 6: a template has no sign '!'"},
      {"{% endif %}", "chat, line 1, column 4: endif ends nothing that began"},
      {"{% break %}", "chat, line 1, column 10: break stands in no loop"},
      {"{{ 99999999999999999999 }}", "chat, line 1, column 4: the number is too large"},
  };
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    bool opens;
    assert_string_equal(refused(refusals[i].template, NXJ_LIMITS_USUAL, &opens), refusals[i].message);
    assert_false(opens);
  }
}

static void what_a_dialogue_meets_is_refused_there(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {"{{ raise_exception('no system') }}",
       "chat, line 1, column 4: the template refuses this dialogue: no system"},
      {"\n{{ messages[0].tool.name }}", "chat, line 2, column 21: 'tool' is undefined"},
      {"{% if s %}{{ s | urlize }}{% endif %}",
       "chat, line 1, column 18: the filter 'urlize' is not covered"},
      {"{{ l.append(1) }}", "chat, line 1, column 6: a template cannot change a list"},
      {"{{ strftime_now('%Y') }}", "chat, line 1, column 4: 'strftime_now' is undefined"},
      {"{{ '<b>' + ('x' | safe) }}",
       "chat, line 1, column 4: + with a text that is safe escapes &, <, >, ' and \": that is not covered"},
      {"{{ s.__class__ }}",
       "chat, line 1, column 6: attributes that begin with _ are not covered: '__class__'"},
      {"{{ 9223372036854775807 + 1 }}", "chat, line 1, column 4: an int beyond 64 bits is not covered"},
  };
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    bool opens;
    assert_string_equal(refused(refusals[i].template, NXJ_LIMITS_USUAL, &opens), refusals[i].message);
    assert_true(opens);
  }
}

static void work_and_memory_are_bounded(void **state) {
  (void)state;
  const nxj_limits limits = {.steps = 200000, .bytes = 32 << 20};
  static const refusal refusals[] = {
      {"{% for a in range(999) %}{% for b in range(999) %}{% endfor %}{% endfor %}", "steps"},
      {"{% set ns = namespace(x='aaaaaaaa') %}{% for a in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor "
       "%}",
       "more memory"},
      {"{{ 'a' * 99999999999 }}", "steps"},
      {"{{ range(999999999) }}", "a range has more than"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "levels within one another"},
      {"{% set ns = namespace(x=[]) %}{% for a in range(900) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
       "levels within one another"},
  };
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    bool opens;
    const char *said = refused(refusals[i].template, limits, &opens);
    if (strstr(said, refusals[i].message) == NULL) fail_msg("%s: %s", refusals[i].template, said);
  }
}

/* As deep as a text may be made in its few bytes. */
static void brackets_are_bounded(void **state) {
  (void)state;
  enum { N = 100000 };
  static const char *const forms[] = {"(", "[", "{", "not ", "- "};
  char *text = malloc(N + 64);
  assert_non_null(text);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    size_t n = (size_t)sprintf(text, "{{ "), length = strlen(forms[i]);
    while (n + length < N) memcpy(text + n, forms[i], length), n += length;
    snprintf(text + n, 64, "1 }}");
    bool opens;
    if (refused(text, NXJ_LIMITS_USUAL, &opens)[0] == '\0') fail_msg("%s renders", forms[i]);
  }
  free(text);
}

static void a_template_may_be_rendered_again(void **state) {
  (void)state;
  nxr_fault fault = {""};
  static const char template[] = "{% set a = l %}{{ a }}{% generation %}{{ s }}{% endgeneration %}";
  nxj_template *opened = nxj_template_open("chat", template, sizeof template - 1, NXJ_LIMITS_USUAL, &fault);
  assert_non_null(opened);
  assert_true(nxj_template_has_generation(opened));
  json_t *names = names_of_a_dialogue();
  for (int i = 0; i < 2; i++) {
    nxj_text text;
    assert_true(
        nxj_template_render(opened, &(nxj_input){.names = names, .limits = NXJ_LIMITS_USUAL}, &text, &fault));
    assert_string_equal(text.text, "[1, 2]text");
    assert_int_equal(text.n_spans, 1);
    assert_int_equal(text.spans[0].begin, 6);
    assert_int_equal(text.spans[0].end, 10);
    nxj_text_free(&text);
  }
  json_decref(names);
  nxj_template_close(opened);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_not_covered_is_named_where_it_stands),
      cmocka_unit_test(what_a_dialogue_meets_is_refused_there),
      cmocka_unit_test(work_and_memory_are_bounded),
      cmocka_unit_test(brackets_are_bounded),
      cmocka_unit_test(a_template_may_be_rendered_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
