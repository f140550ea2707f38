/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers by hand: what their interface says besides ids, what they refuse, and that threads share them.
 */
#include "tests/unit/cmocka_all.h"
#include "tests/unit/temporary.h"
#include "tokenizer/tokenizer.h"

#include <pthread.h>

#define PAIRS(more)                                                                                          \
  "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"?\": 3, \"<s>\": 7}, "       \
  "\"merges\": [\"a b\"], "                                                                                  \
  "\"unk_token\": \"?\"}" more "}"

#define METASPACE \
  "{\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"first\", \"split\": false}"
#define FIRST "\"pre_tokenizer\": " METASPACE

static nxt_tokenizer *open_text(const char *name, const char *text) {
  nx_fault fault = {.text = ""};
  temporary_write(name, text, strlen(text));
  nxt_tokenizer *tokenizer = nxt_open(temporary_path(0, name), &fault);
  if (tokenizer == NULL) fail_msg("%s", fault.text);
  return tokenizer;
}

static void refuses(const char *text, const char *because) {
  nx_fault fault = {.text = ""};
  temporary_write("file", text, strlen(text));
  if (nxt_open(temporary_path(0, "file"), &fault) != NULL) fail_msg("was opened, expected: %s", because);
  if (strstr(fault.text, because) == NULL) fail_msg("expected \"%s\" in: %s", because, fault.text);
  if (strstr(fault.text, "/file: ") == NULL) fail_msg("no file is named in: %s", fault.text);
}

static void encodes_as(const nxt_tokenizer *tokenizer, const char *text, size_t n_bytes, unsigned flags,
                       const char *expected) {
  nxt_encoder *encoder = nxt_encoder_open(tokenizer);
  nxt_ids ids = {0};
  nx_fault fault = {.text = ""};
  char list[2048] = "";
  if (!nxt_encode(encoder, text, n_bytes, flags, &ids, &fault)) snprintf(list, sizeof list, "%s", fault.text);
  for (size_t i = 0; i < ids.n; i++)
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%u", i ? " " : "", ids.items[i]);
  assert_string_equal(list, expected);
  free(ids.items);
  nxt_encoder_close(encoder);
}

static void says_its_tokens(void **state) {
  (void)state;
  nxt_tokenizer *tokenizer = open_text(
      "file",
      PAIRS(", \"added_tokens\": [{\"content\": \"<s>\", \"special\": true}, {\"content\": \"new\"}]"));
  uint32_t id;
  size_t n;
  assert_int_equal(nxt_n_ids(tokenizer), 9);
  assert_true(nxt_find(tokenizer, "ab", 2, &id) && id == 2);
  assert_true(nxt_find(tokenizer, "new", 3, &id) && id == 8);
  assert_false(nxt_find(tokenizer, "abc", 3, &id));
  assert_memory_equal(nxt_token(tokenizer, 7, &n), "<s>", 3);
  assert_null(nxt_token(tokenizer, 5, &n));
  assert_true(nxt_is_special(tokenizer, 7) && !nxt_is_special(tokenizer, 8) &&
              !nxt_is_special(tokenizer, 99));
  encodes_as(tokenizer, "ab<s>anew", 9, 0, "2 7 0 8");
  encodes_as(tokenizer, "ab<s>", 5, NXT_PLAIN_TEXT, "2 3 3 3");
  nxt_close(tokenizer);
}

static void reads_roles_beside(void **state) {
  (void)state;
  const char config[] = "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"ab\", \"pad_token\": null}";
  const char map[] = "{\"eos_token\": \"a\", \"pad_token\": \"b\", \"bos_token\": \"unknown\"}";
  temporary_write("tokenizer_config.json", config, strlen(config));
  temporary_write("special_tokens_map.json", map, strlen(map));
  nxt_tokenizer *tokenizer = open_text("tokenizer.json", PAIRS(""));
  uint32_t id;
  assert_true(nxt_role_id(tokenizer, NXT_BOS, &id) && id == 7);
  assert_true(nxt_role_id(tokenizer, NXT_EOS, &id) && id == 2);
  assert_true(nxt_role_id(tokenizer, NXT_PAD, &id) && id == 1);
  assert_true(nxt_role_id(tokenizer, NXT_UNK, &id) && id == 3);
  nxt_close(tokenizer);
  remove(temporary_path(0, "tokenizer_config.json"));
  remove(temporary_path(0, "special_tokens_map.json"));
}

/* What tokenizer_config.json alone names is taken out of texts: by its flags, or as a special token. */
static void adds_what_stands_beside(void **state) {
  (void)state;
  const char config[] =
      "{\"added_tokens_decoder\": {\"7\": {\"content\": \"<s>\", \"special\": true}, \"8\": {\"content\": "
      "\"<x>\", \"lstrip\": true}}, \"eos_token\": \"b\", \"pad_token\": {\"content\": \"<p>\"}, "
      "\"mask_token\": null, \"extra_special_tokens\": {\"image_token\": \"<y>\"}}";
  temporary_write("tokenizer_config.json", config, strlen(config));
  nxt_tokenizer *tokenizer = open_text("tokenizer.json", PAIRS(""));
  uint32_t id;
  assert_true(nxt_role_id(tokenizer, NXT_PAD, &id) && id == 9);
  assert_int_equal(nxt_n_ids(tokenizer), 11);
  assert_true(nxt_is_special(tokenizer, 1) && nxt_is_special(tokenizer, 9) && !nxt_is_special(tokenizer, 8));
  encodes_as(tokenizer, "ab<s>a  <x>a<p><y>", 18, 0, "0 1 7 0 8 0 9 10");
  encodes_as(tokenizer, "ab<x>", 5, NXT_PLAIN_TEXT, "2 8");
  nxt_close(tokenizer);
  remove(temporary_path(0, "tokenizer_config.json"));
}

/* U+FFFD for each begin of a character and each other byte, as Python's errors='replace'. */
static void replaces_broken_text(void **state) {
  (void)state;
  nxt_tokenizer *tokenizer = open_text(
      "file", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"\xef\xbf\xbd\": 1}, \"merges\": []}}");
  encodes_as(tokenizer, "a\xff" "a", 3, 0, "0 1 0");
  encodes_as(tokenizer, "\xe4\xb8", 2, 0, "1");
  encodes_as(tokenizer, "\xe4\xb8" "a\xed\xa0\x80", 6, 0, "1 0 1 1 1");
  encodes_as(tokenizer, "\xf0\x9f\x98" "a", 4, 0, "1 0");
  encodes_as(tokenizer, "", 0, 0, "");
  nxt_close(tokenizer);
}

static void adds_to_buffers(void **state) {
  (void)state;
  nxt_tokenizer *tokenizer = open_text("file", PAIRS(""));
  nxt_encoder *encoder = nxt_encoder_open(tokenizer);
  nxt_ids ids = {0};
  nxt_text text = {0};
  nx_fault fault = {.text = ""};
  assert_true(nxt_encode(encoder, "ab", 2, 0, &ids, &fault) && nxt_encode(encoder, "b", 1, 0, &ids, &fault));
  assert_true(ids.n == 2 && ids.items[0] == 2 && ids.items[1] == 1);
  nxt_decode(encoder, ids.items, 2, 0, &text);
  nxt_decode(encoder, (uint32_t[]){0, 5, 99}, 3, 0, &text);
  assert_int_equal(text.n, 5);
  assert_memory_equal(text.items, "ab ba", 5);
  free(ids.items);
  free(text.items);
  nxt_encoder_close(encoder);
  nxt_close(tokenizer);
}

static void fails_without_unknown(void **state) {
  (void)state;
  nxt_tokenizer *tokenizer = open_text(
      "file", "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": \"?\"}}");
  encodes_as(tokenizer, "a", 1, 0, "0");
  encodes_as(tokenizer, "b", 1, 0, "the tokenizer has no token for what is unknown");
  nxt_close(tokenizer);
}

#define SPLIT(pattern)                                                                                       \
  ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern                           \
  "\"}, \"behavior\": \"Removed\"}"

/* A class within a class has its members beside its own: BLOOM's pattern is of this form. */
static void joins_classes(void **state) {
  (void)state;
  nxt_tokenizer *tokenizer = open_text("file", PAIRS(SPLIT("[^(\\\\s|[.,!?\\u2026]ab)]+")));
  encodes_as(tokenizer, "a(b|a.b?ab\xe2\x80\xa6xyab", 17, 0, "0 3 1 3 0 3 1 3 2 3 2");
  nxt_close(tokenizer);
  tokenizer = open_text("file", PAIRS(SPLIT("[x[y[z]]]")));
  encodes_as(tokenizer, "axaybzb", 7, 0, "0 0 1 1");
  nxt_close(tokenizer);
  refuses(PAIRS(SPLIT("[x[^y]]")), "a class within a class");
  refuses(PAIRS(SPLIT("[x-[yz]]")), "a class within a class");
  refuses(PAIRS(SPLIT("[[a-]z]")), "a class within a class");
  refuses(PAIRS(SPLIT("[[a]")), "a class without an end");
  refuses(PAIRS(SPLIT("[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]")), "a class within a class");
}

static void refuses_by_name(void **state) {
  (void)state;
  refuses(PAIRS(", \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"ab\"}"),
          "is no character");
  refuses("", "is no tokenizer.json");
  refuses("{}", "is no tokenizer.json");
  refuses("{\"a\": 0, \"b\": \"c\"}", "is no tokenizer.json");
  refuses("{", "line 1: is not JSON");
  refuses("{\"model\": {\"type\": \"Foo\"}}", "the model \"Foo\" is not covered");
  refuses(PAIRS(", \"version\": \"2.0\""), "version \"2.0\" is not covered");
  refuses(PAIRS(", \"normalizer\": {\"type\": \"Foo\"}"), "the normalizer \"Foo\" is not covered");
  refuses(PAIRS(", \"pre_tokenizer\": {\"type\": \"UnicodeScripts\"}"),
          "the pre_tokenizer \"UnicodeScripts\" is not covered");
  refuses(PAIRS(", \"decoder\": {\"type\": \"CTC\"}"), "the decoder \"CTC\" is not covered");
  refuses(PAIRS(", \"post_processor\": {\"type\": \"Foo\"}"), "the post_processor \"Foo\" is not covered");
  refuses(PAIRS(", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"a{1,2}+\"}, "
                "\"behavior\": \"Isolated\"}"),
          "the pattern \"a{1,2}+\" is not covered: {...}+");
  refuses(PAIRS(", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, \"behavior\": "
                "\"Isolated\"}"),
          "the pattern \"(\" is not covered");
  refuses("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [], \"dropout\": 0.1}}",
          "dropout 0.1");
  refuses("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 16777216}, \"merges\": []}}",
          "no id between 0 and 16777215");
  refuses("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}",
          "the merge 0 of \"a\" and \"b\"");
  refuses("YQ== 0\nYg== 1\n", "has 2 ranks, as no vocabulary of tiktoken that is known");
  refuses("\n\x05\n\x01" "a\x18", "is no model of SentencePiece");
  refuses(PAIRS(", \"normalizer\": {\"type\": \"Prepend\", \"prepend\": \"_\"}, "
                "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
                "[{\"type\": \"WhitespaceSplit\"}, " METASPACE "]}"),
          "puts something before the text");
  refuses(PAIRS(", \"post_processor\": {\"type\": \"Sequence\", \"processors\": "
                "[{\"type\": \"TemplateProcessing\", \"single\": "
                "[{\"SpecialToken\": {\"id\": \"a\"}}, {\"Sequence\": {\"id\": \"A\"}}], "
                "\"special_tokens\": {\"a\": {\"ids\": [0]}}}, "
                "{\"type\": \"BertProcessing\", \"cls\": [\"a\", 0], \"sep\": [\"b\", 1]}]}"),
          "behind a TemplateProcessing");
}

/* A text whose beginning a normalizer leaves out, or replaces with the next character, has no first part;
 * Oniguruma's \w is another within brackets. */
static void follows_tokenizers_habits(void **state) {
  (void)state;
  nxt_tokenizer *tokenizer = open_text(
      "file", PAIRS(", \"normalizer\": {\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}"
                    ", " FIRST));
  encodes_as(tokenizer, "a", 1, 0, "3 0");
  encodes_as(tokenizer, " a", 2, 0, "0");
  nxt_close(tokenizer);
  tokenizer = open_text("file", PAIRS(", \"normalizer\": {\"type\": \"Replace\", \"pattern\": "
                                      "{\"String\": \"ab\"}, \"content\": \"a\"}, " FIRST));
  encodes_as(tokenizer, "ab", 2, 0, "0");
  encodes_as(tokenizer, "a", 1, 0, "3 0");
  encodes_as(tokenizer, "bab", 3, 0, "3 1 0");
  nxt_close(tokenizer);
  tokenizer = open_text("file", PAIRS(", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": "
                                      "\"[^\\\\w\\\\s]+\"}, \"behavior\": \"Removed\", \"invert\": false}"));
  encodes_as(tokenizer, "a\xc2\xb2" "b", 4, 0, "0 1");
  nxt_close(tokenizer);
  tokenizer = open_text("file", PAIRS(", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": "
                                      "\"\\\\w+\"}, \"behavior\": \"Removed\", \"invert\": true}"));
  encodes_as(tokenizer, "a\xc2\xb2", 3, 0, "0 3");
  nxt_close(tokenizer);
  tokenizer = open_text("file", PAIRS(", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": "
                                      "\"\\\\d[\\\\w]\"}, \"behavior\": \"Removed\", \"invert\": false}"));
  encodes_as(tokenizer, "a\xf0\x9c\xb3\xb4\xf0\x9e\x93\xb6" "b", 10, 0, "0 1"); /* of Unicode 16 and 15 */
  nxt_close(tokenizer);
}

/* Steps that double a text, many times over. */
static void stops_what_grows(void **state) {
  (void)state;
  char file[8192];
  strcpy(file, "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": \"a\"}, "
               "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [");
  for (int i = 0; i < 60; i++)
    sprintf(file + strlen(file),
            "%s{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"aa\"}",
            i ? ", " : "");
  strcat(file, "]}}");
  nxt_tokenizer *tokenizer = open_text("file", file);
  encodes_as(tokenizer, "b", 1, 0, "0");
  encodes_as(tokenizer, "ab", 2, 0, "the normal form of a text is too long");
  nxt_close(tokenizer);
  strcpy(file, "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {}}, \"pre_tokenizer\": {\"type\": "
               "\"Sequence\", \"pretokenizers\": [");
  for (int i = 0; i < 101; i++) sprintf(file + strlen(file), "%s{\"type\": \"Whitespace\"}", i ? ", " : "");
  strcat(file, "]}}");
  refuses(file, "has more than 100 steps");
}

static void finds_no_file(void **state) {
  (void)state;
  nx_fault fault = {.text = ""};
  assert_null(nxt_open(temporary_path(0, "nothing"), &fault));
  assert_non_null(strstr(fault.text, "nothing: No such file or directory"));
  mkdir(temporary_path(1, "empty"), 0700);
  fault.text[0] = '\0';
  assert_null(nxt_open(temporary_path(1, "empty"), &fault));
  assert_non_null(strstr(fault.text, "empty: holds no tokenizer.json"));
}

/* A file of ranks with the pattern that it was made with: digits alone, words with what stands before them.
 */
static void opens_ranks(void **state) {
  (void)state;
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char file[256 * 16 + 64] = "";
  for (unsigned byte = 0; byte < 256; byte++)
    sprintf(file + strlen(file), "%c%c== %u\n", digits[byte >> 2], digits[(byte & 3) << 4], byte);
  strcat(file, "MTI= 256\nLWE= 257\n"); /* "12" and "-a" */
  temporary_write("small.tiktoken", file, strlen(file));
  const char *const special[] = {"<end>", NULL};
  nxt_unsaid unsaid = {.pattern = "v1", .special = special};
  nx_fault fault = {.text = ""};
  nxt_tokenizer *tokenizer = nxt_open_with(temporary_path(0, "small.tiktoken"), &unsaid, &fault);
  assert_non_null(tokenizer);
  encodes_as(tokenizer, "12-a<end>", 9, 0, "49 50 257 258");
  nxt_close(tokenizer);
  unsaid.pattern = "[0-9]+"; /* what it does not match is left out */
  tokenizer = nxt_open_with(temporary_path(0, "small.tiktoken"), &unsaid, &fault);
  assert_non_null(tokenizer);
  encodes_as(tokenizer, "12-a1", 5, 0, "256 49");
  nxt_close(tokenizer);
}

enum { THREADS = 4, TIMES = 2000 };

static void *encode_often(void *tokenizer) {
  nxt_encoder *encoder = nxt_encoder_open(tokenizer);
  nxt_ids ids = {0};
  nx_fault fault = {.text = ""};
  char text[64];
  bool good = true;
  for (int i = 0; good && i < TIMES; i++) {
    ids.n = 0;
    snprintf(text, sizeof text, "ab%dab", i);
    good = nxt_encode(encoder, text, strlen(text), 0, &ids, &fault) && ids.items[0] == 2 &&
           ids.items[ids.n - 1] == 2;
  }
  free(ids.items);
  nxt_encoder_close(encoder);
  return good ? tokenizer : NULL;
}

static void is_shared_by_threads(void **state) {
  (void)state;
  nxt_tokenizer *tokenizer = open_text("file", PAIRS(""));
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, encode_often, tokenizer), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    assert_ptr_equal(result, tokenizer);
  }
  nxt_close(tokenizer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(says_its_tokens),       cmocka_unit_test(reads_roles_beside),
      cmocka_unit_test(replaces_broken_text),  cmocka_unit_test(adds_to_buffers),
      cmocka_unit_test(joins_classes), cmocka_unit_test(adds_what_stands_beside),
      cmocka_unit_test(refuses_by_name),       cmocka_unit_test(finds_no_file),
      cmocka_unit_test(fails_without_unknown), cmocka_unit_test(opens_ranks),
      cmocka_unit_test(stops_what_grows),      cmocka_unit_test(follows_tokenizers_habits),

      cmocka_unit_test(is_shared_by_threads),
  };
  return cmocka_run_group_tests_name("tokenizer", tests, temporary_make, temporary_remove);
}
