/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/reading.h"

static nxc_document *document;

static nxc_resolution resolve_as(const char *text, nxc_resolving resolving) {
  sink = nxc_sink_new(arena);
  document = read_text(text);
  return nxc_resolve(document, &resolving, sink);
}

static const char *resolved(const char *text) {
  resolve_as(text, (nxc_resolving){.probes = true});
  return nxc_sink_n_findings(sink) ? findings() : canon_of(document->root);
}

static uint32_t reference_column(const nxc_node *node, size_t index) {
  const nxc_reference *reference = &node->derivation->references[index];
  return nxc_node_span_inside(node, reference->offset, reference->length).column;
}

static void long_chains_need_no_stack(void **state) {
  (void)state;
  enum { LENGTH = 50000 };
  nxc_buffer text = {.arena = arena};
  for (int i = 0; i < LENGTH; i++) nxc_buffer_puts(&text, nxc_arena_printf(arena, "a%d: ${a%d}\n", i, i + 1));
  nxc_buffer_puts(&text, nxc_arena_printf(arena, "a%d: 7\n", LENGTH));
  assert_true(resolve_as(text.bytes, (nxc_resolving){0}).ok);
  assert_int_equal(nxc_node_child(document->root, "a0")->value.integer, 7);
}

static void doubling_is_linear_and_bounded(void **state) {
  (void)state;
  nxc_buffer text = {.arena = arena};
  for (int i = 0; i < 40; i++)
    nxc_buffer_puts(&text, nxc_arena_printf(arena, "a%d: {x: '${a%d}', y: '${a%d}'}\n", i, i + 1, i + 1));
  nxc_buffer_puts(&text, "a40: 1\n");
  assert_true(resolve_as(text.bytes, (nxc_resolving){0}).ok); /* 2^40 leaves, and no copy of them */
  assert_int_equal(nxc_node_lookup(document->root, "a0.x.y.x")->parent->parent->n_children, 41);
  assert_null(nxc_node_value(arena, document->root));
  text.n_bytes = 0;
  for (int i = 0; i < 40; i++)
    nxc_buffer_puts(&text, nxc_arena_printf(arena, "a%d: ${a%d}${a%d}\n", i, i + 1, i + 1));
  nxc_buffer_puts(&text, "a40: xy\n");
  assert_false(resolve_as(text.bytes, (nxc_resolving){0}).ok);
  assert_string_equal(nxc_sink_finding(sink, 0)->id, "NX1213");
}

static void circles_name_every_hop(void **state) {
  (void)state;
  assert_string_equal(
      resolved("a: ${b}\nb: 'x${c.d}'\nc: {d: '${oc.select:a}'}\n"),
      "NX1206 3:9+14 a circle of 3 references: a -> b -> c.d -> a [a needs b 1:4] [b needs c.d 2:6] "
      "[c.d needs a 3:9]");
  assert_string_equal(resolved("a: {r: '${b}'}\nb: {r: '${a}'}\n"),
                      "NX1206 2:5+1 a circle of 2 references: a -> b -> a [a holds b 1:5] [b holds a 2:5]");
  assert_string_equal(resolved("a: '${oc.decode:''${a}''}'\n"),
                      "NX1206 1:19+4 a circle of 1 reference: a -> a [a needs a 1:19]");
  assert_non_null(strstr(resolved("m: {a: 1, v: '${oc.dict.values:m}'}\n"), "NX1206 1:15"));
  assert_non_null(strstr(resolved("a: '${oc.env:NX_TEST_UNSET,${a}}'\n"), "NX1206"));
}

static void errors_name_the_chain_and_what_was_meant(void **state) {
  (void)state;
  assert_string_equal(resolved("x: ${y}\ny: {z: 1}\nq: 'v${m.hiden}'\nm: {hidden: '${p.nope}', hiden: "
                               "'${p.nop}'}\np: {nope: '${y.z.w}'}\n"),
                      "NX1202 4:34+8 p has no key nop [needed by q 3:6]\n"
                      "NX1204 5:12+8 y.z is 1 and holds no w [needed by m.hidden 4:14]");
  assert_string_equal(nxc_sink_finding(sink, 0)->fix, "did you mean nope?");
  assert_string_equal(
      resolved("m: {1: a}\nx: ${m.1}\n"),
      "NX1202 2:4+6 references cannot reach the key 1 of m: it is no text, but of type integer");
  assert_string_equal(resolved("x: ${mutiply:2,3}\n"), "NX1209 1:4+14 there is no resolver mutiply");
  assert_string_equal(nxc_sink_finding(sink, 0)->fix, "did you mean multiply?");
  assert_string_equal(resolved("x: {y: '${...z}'}\n"),
                      "NX1203 1:9+7 3 dots lead above the top of the document");
}

static void all_problems_come_in_one_run(void **state) {
  (void)state;
  const char *found = resolved("a: ${x}\nb: ${y\nc: [${z}\n");
  assert_non_null(strstr(found, "NX1001 "));
  found = resolved("a: ${x}\nb: ${y\nc: {d: '${z}'}\ne: '${id:a#b}'\nf: ${divide:1,0}\ng: ${a}\n");
  assert_string_equal(found, "NX1202 1:4+4 the document has no key x\n"
                             "NX1201 2:4+1 this interpolation is never closed\n"
                             "NX1202 3:9+4 the document has no key z\n"
                             "NX1201 4:11+1 the character # cannot stand in an unquoted argument\n"
                             "NX1210 5:4+13 divide: division by zero");
}

static void angles_are_ours(void **state) {
  (void)state;
  const char *text = "a: {b: 3, c: '$<.b>'}\nd: 'x$<a.b>y${a.$<e>}'\ne: b\nf: $<multiply:${a.b},$<a.c>>\ng: "
                     "'\\$<a>\\\\$<e>'\n"
                     "h: '${id:\"$<e>\"}'\n";
  assert_string_equal(resolved(text),
                      "{s\"a\":{s\"b\":i3,s\"c\":i3},s\"d\":s\"x3y3\",s\"e\":s\"b\",s\"f\":i9,"
                      "s\"g\":s\"$<a>\\\\b\",s\"h\":s\"b\"}");
  nxc_resolution resolution = resolve_as("k: ${l}\nl: 'p$<m>'\nm: 1\n", (nxc_resolving){0});
  assert_string_equal(resolution.first_angle->key, "l");
  assert_true(nxc_node_child(document->root, "l")->derivation->angle);
  assert_false(nxc_node_child(document->root, "k")->derivation->angle);
  resolve_as("a: 1\nb: '$<a>'\nc: '${id:\"$<a>\"}'\n", (nxc_resolving){.omegaconf = true, .probes = true});
  assert_string_equal(canon_of(document->root), "{s\"a\":i1,s\"b\":s\"$<a>\",s\"c\":s\"$<a>\"}");
  assert_string_equal(resolved("a: '$<b}'\n"), "NX1201 1:8+1 a reference goes on with '.', '[' or '>'");
  assert_string_equal(resolved("a: '${b$<c>}'\n"), "NX1201 1:8+1 a reference goes on with '.', '[' or '}'");
}

static void derivations_say_what_was_read(void **state) {
  (void)state;
  setenv("NX_TEST_SET", "12", 1);
  unsetenv("NX_TEST_UNSET");
  nxc_resolution resolution = resolve_as("vars: {n: 2}\n"
                                         "a: ${multiply:${vars.n},${oc.decode:${oc.env:NX_TEST_SET}}}\n"
                                         "b: 'v${a}'\n"
                                         "c: ${oc.env:NX_TEST_UNSET,none}\n"
                                         "d: 1\n",
                                         (nxc_resolving){0});
  assert_true(resolution.ok);
  const nxc_node *a = nxc_node_child(document->root, "a"), *b = nxc_node_child(document->root, "b");
  assert_int_equal(a->value.integer, 24);
  assert_int_equal(a->derivation->n_references, 2);
  assert_string_equal(a->derivation->references[0].node->key, "n");
  assert_int_equal(reference_column(a, 0), 15);
  assert_string_equal(a->derivation->references[1].variable, "NX_TEST_SET");
  assert_int_equal(reference_column(a, 1), 37);
  assert_ptr_equal(b->derivation->references[0].node, a);
  assert_true(b->derivation->from_environment);
  assert_false(nxc_node_child(document->root, "c")->derivation->from_environment);
  assert_int_equal(resolution.n_variables, 2);
  assert_string_equal(resolution.variables[0].value, "12");
  assert_false(resolution.variables[0].default_taken);
  assert_true(resolution.variables[1].default_taken);
  assert_int_equal(resolution.variables[1].at.line, 4);
  assert_true(nxc_node_is_read(nxc_node_child(document->root, "vars")));
  assert_true(nxc_node_is_read(nxc_node_lookup(document->root, "vars.n")));
  assert_false(nxc_node_is_read(nxc_node_child(document->root, "d")));
  assert_string_equal(nxc_node_lookup(document->root, "vars.n")->reader->key, "a");
}

static void secrets_are_not_shown(void **state) {
  (void)state;
  setenv("NX_TEST_SET", "hunter2", 1);
  resolve_as(
      "hf_token: abc\nx: 'u:${hf_token}'\ny: ${oc.env:NX_TEST_SET}\nz: {API_KEY: [k, ~]}\nw: ${z}\nv: 1\n",
      (nxc_resolving){0});
  const nxc_value *shown = nxc_node_public_value(arena, document->root);
  nxc_buffer text = {.arena = arena};
  nxc_write_canon(&text, shown);
  static const char *const hidden[] = {"abc", "hunter2", "\"k\"", NULL};
  for (int i = 0; hidden[i]; i++) assert_null(strstr(text.bytes, hidden[i]));
  assert_non_null(strstr(text.bytes, "s\"v\":i1"));
  assert_non_null(strstr(text.bytes, ",null]"));
  /* The same secret has the same hash wherever it stands. */
  assert_true(nxc_value_equal(&shown->items[7].items[1].items[0], &shown->items[9].items[1].items[0]));
  const char *found = resolved("y: ${multiply:${oc.env:NX_TEST_SET},a}\nz: ${y}\n");
  assert_non_null(strstr(found, "NX1210"));
  assert_null(strstr(found, "hunter2"));
}

static void parts_are_resolved_alone(void **state) {
  (void)state;
  document = read_text("a: {b: ['${c}', '${nope}']}\nc: {d: 5}\n1: x\ne: ???\n");
  const nxc_resolving resolving = {0};
  nxc_node *found;
  const char *good[] = {"a", "b", "0", "d"};
  assert_true(nxc_resolve_at(document, good, 4, &resolving, sink, &found).ok);
  assert_string_equal(canon_of(found), "i5");
  assert_true(nxc_resolve_at(document, (const char *[]){"1"}, 1, &resolving, sink, &found).ok);
  assert_string_equal(canon_of(found), "s\"x\"");
  assert_int_equal(nxc_sink_n_findings(sink), 0);
  const char *bad[] = {"a", "e", "f", "c"};
  for (size_t i = 0; i < 3; i++)
    assert_false(nxc_resolve_at(document, &bad[i], 1, &resolving, sink, &found).ok);
  assert_false(nxc_resolve_at(document, bad, 1, &resolving, sink, &found).ok); /* still, and reported once */
  assert_null(found);
  assert_false(nxc_resolve_at(document, (const char *[]){"c", "d", "x"}, 3, &resolving, sink, &found).ok);
  assert_string_equal(findings(), "NX1215 1:1+27 the document has no key f\n"
                                  "NX1202 1:18+7 the document has no key nope\n"
                                  "NX1217 2:5+1 c.d is 5 and holds no x\n"
                                  "NX1214 4:1+1 e is \?\?\?: it must be given a value before use");
}

static void surprises_get_a_word(void **state) {
  (void)state;
  assert_string_equal(resolved("a: ${multiply:'12',2}\n"),
                      "NX1218 1:4+18 multiply repeats the text 12, it does not calculate with it");
  assert_string_equal(resolved("a: ${oc.env:NX_TEST_UNSET,8}\n"),
                      "NX1219 1:4+25 the default 8 becomes text, as everything from oc.env");
  assert_string_equal(resolved("a: ${add:true,1}\n"), "NX1220 1:4+13 add counts a boolean as 0 or 1");
  assert_string_equal(
      resolved("k: 1\na: &a {v: '${..k}'}\nb: {k: 2, c: *a}\n"),
      "NX1221 2:12+6 this text is repeated by an alias or merge key, and its dots lead to another "
      "place in each copy");
  assert_string_equal(resolved("a: &a {v: '${.w}', w: 1}\nb: *a\n"),
                      "{s\"a\":{s\"v\":i1,s\"w\":i1},s\"b\":{s\"v\":i1,s\"w\":i1}}");
  assert_string_equal(resolved("a: ${multiply:1,2,}\n"),
                      "NX1210 1:4+16 multiply takes 2 arguments, 3 given\n"
                      "NX1222 1:4+16 an empty argument, which newer loaders refuse");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(long_chains_need_no_stack),     TEST(doubling_is_linear_and_bounded),
      TEST(circles_name_every_hop),        TEST(errors_name_the_chain_and_what_was_meant),
      TEST(all_problems_come_in_one_run),  TEST(angles_are_ours),
      TEST(derivations_say_what_was_read), TEST(secrets_are_not_shown),
      TEST(parts_are_resolved_alone),      TEST(surprises_get_a_word),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
