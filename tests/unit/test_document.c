/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/reading.h"

static const nxc_reading ours = {0};

static void keeps_places(void **state) {
  (void)state;
  nxc_document *document =
      read_text("# top\ngrößer: {x: [1, 'a b'], y: \"é\\n\"}\nz:\n  - |\n    text\n  -\n");
  const nxc_node *outer = nxc_node_child(document->root, "größer"),
                 *y = nxc_node_lookup(document->root, "größer.y");
  assert_int_equal(outer->key_at.line, 2);
  assert_int_equal(outer->key_at.column, 1);
  assert_int_equal(outer->key_at.length, 6);
  const nxc_node *text = nxc_node_lookup(document->root, "größer.x[1]");
  assert_int_equal(text->at.column, 17);
  assert_int_equal(text->at.length, 5);
  assert_int_equal(text->style, NXC_STYLE_SINGLE);
  assert_string_equal(text->raw, "a b");
  assert_int_equal(y->at.column, 28);
  assert_int_equal(y->style, NXC_STYLE_DOUBLE);
  const nxc_node *block = nxc_node_lookup(document->root, "z.0"),
                 *empty = nxc_node_lookup(document->root, "z.1");
  assert_int_equal(block->style, NXC_STYLE_BLOCK);
  assert_int_equal(block->at.line, 4);
  assert_int_equal(empty->value.kind, NXC_NULL);
  assert_int_equal(empty->at.line, 6);
  assert_string_equal(nxc_node_path(arena, text), "größer.x[1]");
  assert_string_equal(findings(), "");
}

static void places_inside_texts(void **state) {
  (void)state;
  nxc_document *document =
      read_text("a: 'it''s ${x} and ${y.z}'\nb: \"\\t${x}\"\nc: |\n  one\n  two ${x}\nd: p${x}\n");
  const struct {
    const char *key, *part;
    uint32_t line, column;
  } rows[] = {
      {"a", "${y", 1, 20}, {"a", "y.z", 1, 22}, {"b", "${x", 2, 7}, {"c", "${x", 5, 7}, {"d", "x}", 6, 7}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const nxc_node *node = nxc_node_child(document->root, rows[i].key);
    nxc_span at = nxc_node_span_inside(node, (size_t)(strstr(node->raw, rows[i].part) - node->raw), 2);
    assert_int_equal(at.line, rows[i].line);
    assert_int_equal(at.column, rows[i].column);
  }
}

static void names_both_lines_of_a_repeated_key(void **state) {
  (void)state;
  assert_true(read_text("a: 1\nb: {c: 1, d: 2, c: 3}\n'a': 2\n")->complete); /* the rest is judged, too */
  assert_string_equal(findings(),
                      "NX1005 2:17+1 the key c is given twice [first given here 2:5]\n"
                      "NX1005 3:1+3 the key a is given twice [first given here 1:1]");
}

static void finds_repeated_keys_in_large_maps(void **state) {
  (void)state;
  nxc_buffer text = {.arena = arena};
  for (int i = 0; i < 40000; i++) nxc_buffer_puts(&text, nxc_arena_printf(arena, "k%d: %d\n", i, i));
  nxc_document *document = read_text(text.bytes);
  assert_true(document->complete);
  assert_int_equal(nxc_node_child(document->root, "k39999")->value.integer, 39999);
  nxc_buffer_puts(&text, "k0: again\n");
  read_text(text.bytes);
  assert_int_equal(nxc_sink_count(sink, NXC_SEVERITY_ERROR), 1);
}

static void goes_on_after_errors(void **state) {
  (void)state;
  nxc_document *document = read_text("a: \x01\na: 2\nb: !x 1\n? [1]\n: 2\nc: *none\nd: [1, }\ne: 1\n");
  assert_false(document->complete);
  assert_string_equal(findings(), "NX1002 1:4+1 the control character U+0001 cannot stand in YAML\n"
                                  "NX1005 2:1+1 the key a is given twice [first given here 1:1]\n"
                                  "NX1014 3:4+4 the tag !x is not known\n"
                                  "NX1016 4:3+3 a key must be one word, not a list\n"
                                  "NX1010 6:4+5 no anchor &none stands before this\n"
                                  "NX1001 7:4+1 this value means something else in YAML without quotes");
  assert_non_null(nxc_node_child(document->root, "e"));
}

static void refuses_what_is_no_document(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t n_bytes;
    const char *id;
  } rows[] = {
      {"\xFF\xFE"
       "a",
       3, "NX1003"},
      {"a: \xC3(", 5, "NX1002"},
      {"a: 1\0b", 6, "NX1002"},
      {"a:\t1\n", 5, "NX1008"},
      {"a: 1\t# b\n", 9, "NX1008"},
      {"a: 1\n---\nb: 2\n", 14, "NX1009"},
      {"a: &a [*a]\n", 11, "NX1011"},
      {"12\n", 3, "NX1018"},
      {"word\n", 5, "NX1018"},
      {"\177ELF\n", 5, "NX1002"},
      {"a: 0x_\n", 7, "NX1109"},
      {"~: 1\n", 5, "NX1017"},
      {"a: {<<: 3}\n", 11, "NX1013"},
      {"a: !!set {b}\n", 13, "NX1015"},
      {"a: &x 1\nb: &x 2\n", 16, "NX1012"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sink = nxc_sink_new(arena);
    bool complete = read_bytes(rows[i].bytes, rows[i].n_bytes)->complete;
    assert_int_equal(complete, strcmp(rows[i].id, "NX1008") == 0); /* a tab leaves no doubt */
    if (nxc_sink_n_findings(sink) != 1) fail_msg("%s: %s", rows[i].bytes, findings());
    assert_string_equal(nxc_sink_finding(sink, 0)->id, rows[i].id);
  }
  sink = nxc_sink_new(arena);
  read_bytes("a:\n\tb: 1\n", 9);
  assert_string_equal(findings(), "NX1001 2:1+1 this line is indented with a tab, which YAML does not take");
  sink = nxc_sink_new(arena);
  read_bytes("a script, in which commands stand in many words\n", 48);
  assert_string_equal(findings(),
                      "NX1018 1:1+40 the document is the text \"a script, in which commands stand in ma... "
                      "alone, not a map");
}

static void a_slip_of_one_line_is_named_there(void **state) {
  (void)state;
  static const struct {
    const char *text, *finding;
  } rows[] = {
      {"a: 1\nb 2\nc: 3\n", "NX1001 2:2+1 this line has no colon with a blank behind it"},
      {"a: 1\nb=2\nc: 3\n", "NX1001 2:2+1 this line has no colon with a blank behind it"},
      {"a:\n  b:2\n  d: 1\nc: 3\n", "NX1001 2:4+1 this line has no colon with a blank behind it"},
      {"a: 1\n// b\nc: 3\n", "NX1001 2:1+1 this is no comment of YAML"},
      {"{\"a\": true,; b\n\"c\": 3}\n", "NX1001 1:7+1 this is no comment of YAML"},
      {"a: \"b\nd: 1\ne: '2'\nc: 3\n", "NX1001 1:4+1 a quote is opened and never closed"},
      {"a: {8\nc: 3\n", "NX1001 1:4+1 a bracket has no other that belongs to it"},
      {"a: [8, 9\nc: 3\n", "NX1001 1:4+1 a bracket has no other that belongs to it"},
      {"a: null\n  b: 1\n  d: 2\nc: 3\n", "NX1001 1:3+1 this key has a value, and a block below it as well"},
      {"a: \"b\\q\"\nc: 3\n", "NX1001 1:4+1 a backslash in double quotes begins an escape, and this is none"},
      {"a: @b\nc: 3\n", "NX1001 1:4+1 this value means something else in YAML without quotes"},
      {"{\"a\": 1\n\"c\": 3}\n", "NX1001 1:7+1 a comma lacks behind this entry"},
      {"%YAML 1.2\na: 1\nc: 3\n", "NX1001 1:1+1 this line cannot stand here"},
      {"{\"a\": \"b\"x,\n\"c\": 3}\n", "NX1001 1:7+1 something stands behind the value"},
      {"a:\n  b: 1\n  - d\n  - e\nc: 3\n", "NX1001 2:3+1 this line cannot stand here"},
      {"a:\n\tb: 1\nc: 3\n", "NX1001 2:1+1 this line is indented with a tab, which YAML does not take"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sink = nxc_sink_new(arena);
    const nxc_document *document = read_text(rows[i].text);
    assert_string_equal(findings(), rows[i].finding);
    const nxc_node *c = nxc_node_lookup(document->root, "c"); /* what follows is read */
    assert_non_null(c);
    assert_string_equal(c->raw, "3");
  }
}

static void reads_bom_crlf_and_comments_with_tabs(void **state) {
  (void)state;
  assert_string_equal(canon_of(read_text("\xEF\xBB\xBF"
                                         "a: 1\r\nb: \"x\ty\" #\tz\r\n")
                                   ->root),
                      "{s\"a\":i1,s\"b\":s\"x\\ty\"}");
  assert_string_equal(findings(), "");
}

static void stops_at_its_limits(void **state) {
  (void)state;
  char *brackets = nxc_arena_alloc(arena, 100001);
  memset(brackets, '[', 100000);
  assert_false(read_text(brackets)->complete);
  assert_string_equal(findings(), "NX1004 1:257+99744 lists and maps are nested more than 256 deep");
  sink = nxc_sink_new(arena);
  nxc_buffer laughs = {.arena = arena};
  nxc_buffer_puts(&laughs, "a: &a [x, x, x, x, x, x, x, x, x, x]\n");
  for (char c = 'b'; c < 'k'; c++) {
    nxc_buffer_puts(&laughs, nxc_arena_printf(arena, "%c: &%c [", c, c));
    for (int i = 0; i < 10; i++) nxc_buffer_puts(&laughs, nxc_arena_printf(arena, "*%c,", c - 1));
    nxc_buffer_puts(&laughs, "]\n");
  }
  assert_false(read_text(laughs.bytes)->complete);
  assert_string_equal(findings(),
                      "NX1007 4:29+2 aliases in this file make more than 10000 values, or nest too deep");
}

static void merges_keys_as_pyyaml(void **state) {
  (void)state;
  nxc_document *document =
      read_text("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  w: 0\n  <<: [*a, *b]\n  z: 9\n");
  assert_string_equal(canon_of(nxc_node_child(document->root, "c")),
                      "{s\"y\":i1,s\"z\":i9,s\"x\":i1,s\"w\":i0}");
}

static void lays_layers(void **state) {
  (void)state;
  nxc_document *base = read_text("a: {b: 1, c: [1, 2]}\nd: 1\ne: 5\n");
  assert_true(nxc_document_layer(base, read_text("a: {c: [3], f: 6}\nd: {x: 1}\ne: ???\n"), sink));
  assert_string_equal(canon_of(base->root),
                      "{s\"a\":{s\"b\":i1,s\"c\":[i3],s\"f\":i6},s\"d\":{s\"x\":i1},s\"e\":i5}");
  const nxc_node *c = nxc_node_lookup(base->root, "a.c");
  assert_string_equal(canon_of(c->replaced), "[i1,i2]");
  assert_false(nxc_document_layer(base, read_text("a: [1]\n"), sink));
  assert_string_equal(findings(),
                      "NX1019 1:1+1 a list and a map cannot be laid over each other [the earlier one 1:1]");
}

static void sets_keys(void **state) {
  (void)state;
  nxc_document *document = read_text("a: {b: 1}\nl: [1, {x: 2}]\nr: ${a}\n");
  const char *good[] = {
      "a.b=3e-4", "a[c]='5'", "l.1.x={y: [1, ~]}", "new.deep.key=on", "a.d=", "a.e=x=y", "l[0]=7"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_true(nxc_document_set(document, good[i], "--set", &(nxc_reading){.omegaconf = true}, sink));
  assert_string_equal(
      canon_of(document->root),
      "{s\"a\":{s\"b\":f0.0003,s\"c\":s\"5\",s\"d\":null,s\"e\":s\"x=y\"},"
      "s\"l\":[i7,{s\"x\":{s\"y\":[i1,null]}}],s\"r\":s\"${a}\",s\"new\":{s\"deep\":{s\"key\":true}}}");
  assert_string_equal(findings(), "");
  const nxc_node *b = nxc_node_lookup(document->root, "a.b");
  assert_string_equal(b->at.source->name, "--set");
  assert_int_equal(b->at.column, 5);
  assert_int_equal(b->key_at.column, 3);
  assert_int_equal(b->replaced->value.integer, 1);
  const char *bad[] = {"a", "=1", "a..b=1", "a[b=1", "a = 1", "l.9=1", "a.b=[1", "r.x=1", "a.=1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_false(nxc_document_set(document, bad[i], "--set", &ours, sink));
}

static void keys_are_one_by_python_equality(void **state) {
  (void)state;
  const nxc_reading omegaconf = {.omegaconf = true};
  const char *text = "1: a\n1.0: b\ntrue: c\n'1': d\n";
  nxc_document *document =
      nxc_document_read(arena, nxc_source_new(arena, "a.yaml", text, strlen(text)), &omegaconf, sink);
  assert_string_equal(canon_of(document->root), "{i1:s\"c\",s\"1\":s\"d\"}");
  assert_string_equal(findings(), "");
  read_text(text);
  assert_int_equal(nxc_sink_count(sink, NXC_SEVERITY_ERROR), 2);
}

static void warns_only_where_readers_are_surprised(void **state) {
  (void)state;
  read_text("lr: 1e-5\nmin: 0.0\nnone: null\nflag: True\nname: 'yes'\nmode: \"None\"\npath: /x\nempty:\n");
  assert_string_equal(findings(), "");
  read_text(
      "a: yes\nb: None\nc: $HOME/x\nd: 010\ne: \"\?\?\?\"\nf: {x:1}\ng: '$HOME/y'\non: ${a}\n${k}: 1\n");
  assert_string_equal(findings(),
                      "NX1101 1:4+3 yes is read as the boolean true\n"
                      "NX1102 2:4+4 None is the text \"None\" here, not an empty value\n"
                      "NX1108 3:4+7 $HOME stays as it is: it is not expanded here [and here 7:4]\n"
                      "NX1103 4:4+3 010 is read as an octal number: 8\n"
                      "NX1110 5:4+5 ??? means \"must be given\" even when quoted\n"
                      "NX1023 6:5+3 the whole text x:1 is the key, and it has no value\n"
                      "NX1101 8:1+2 on is read as the boolean true\n"
                      "NX1024 9:1+4 references are not resolved in keys: this key is ${k} itself");
}

static void secrets_stay_out_of_messages(void **state) {
  (void)state;
  read_text("db: {password: 0123, user: 010}\n");
  assert_string_equal(findings(), "NX1103 1:16+4 this value is not read as it is written\n"
                                  "NX1103 1:28+3 010 is read as an octal number: 8");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(keeps_places),
      TEST(places_inside_texts),
      TEST(names_both_lines_of_a_repeated_key),
      TEST(finds_repeated_keys_in_large_maps),
      TEST(goes_on_after_errors),
      TEST(refuses_what_is_no_document),
      TEST(reads_bom_crlf_and_comments_with_tabs),
      TEST(stops_at_its_limits),
      TEST(merges_keys_as_pyyaml),
      TEST(lays_layers),
      TEST(a_slip_of_one_line_is_named_there),
      TEST(sets_keys),
      TEST(keys_are_one_by_python_equality),
      TEST(warns_only_where_readers_are_surprised),
      TEST(secrets_stay_out_of_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
