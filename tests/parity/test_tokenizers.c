/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers against what the libraries recorded whose files they are: record_tokenizers.py.
 *
 *   test_tokenizers RECORDED NAME... */
#include "tests/tap.h"
#include "tokenizer/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *load(const char *folder, const char *name, const char *file) {
  char path[4096];
  snprintf(path, sizeof path, "%s/tokenizers/%s/%s", folder, name, file);
  json_error_t error;
  json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
  if (root == NULL) tap_bail("%s: %s", path, error.text);
  return root;
}

static size_t bytes_of_hex(const json_t *hex, char *bytes) {
  const char *digits = json_string_value(hex);
  size_t n = json_string_length(hex) / 2;
  for (size_t i = 0; i < n; i++) {
    unsigned byte;
    sscanf(digits + 2 * i, "%2x", &byte);
    bytes[i] = (char)byte;
  }
  return n;
}

static bool same_ids(const nxt_ids *ids, const json_t *expected) {
  if (json_array_size(expected) != ids->n) return false;
  for (size_t i = 0; i < ids->n; i++)
    if (json_integer_value(json_array_get(expected, i)) != ids->items[i]) return false;
  return true;
}

static void note_ids(const nxt_ids *ids, const json_t *expected, size_t text) {
  char *list = json_dumps(expected, JSON_COMPACT);
  tap_note("text %zu: expected %s, got:", text, list);
  for (size_t i = 0; i < ids->n; i++) tap_note("  %u", ids->items[i]);
  free(list);
}

/* All texts with one kind of flags; true where all ids are as recorded. */
static bool encodes(nxt_encoder *encoder, const json_t *texts, const json_t *expected, unsigned flags) {
  nxt_ids ids = {0};
  size_t i;
  const json_t *hex;
  bool good = json_array_size(texts) == json_array_size(expected);
  json_array_foreach(texts, i, hex) {
    nx_fault fault = {.text = ""};
    char *bytes = malloc(json_string_length(hex) / 2 + 1);
    size_t n = bytes_of_hex(hex, bytes);
    ids.n = 0;
    bool done = nxt_encode(encoder, bytes, n, flags, &ids, &fault);
    bool wanted = json_is_array(json_array_get(expected, i));
    if (done != wanted) tap_note("text %zu: %s", i, fault.text);
    if (done && wanted && !same_ids(&ids, json_array_get(expected, i))) {
      note_ids(&ids, json_array_get(expected, i), i);
      done = !wanted;
    }
    good = good && done == wanted;
    free(bytes);
  }
  free(ids.items);
  return good;
}

static bool decodes(nxt_encoder *encoder, const json_t *cases) {
  const json_t *decoded = json_object_get(cases, "decoded"), *lists = json_object_get(cases, "ids"), *text,
               *id;
  nxt_ids ids = {0};
  nxt_text out = {0};
  size_t i, k;
  bool good = json_array_size(decoded) > 0;
  json_array_foreach(decoded, i, text) {
    const json_t *list = json_array_get(lists, i);
    ids.items = realloc(ids.items, (json_array_size(list) + 1) * sizeof *ids.items);
    ids.n = out.n = 0;
    json_array_foreach(list, k, id) ids.items[ids.n++] = (uint32_t)json_integer_value(id);
    nxt_decode(encoder, ids.items, ids.n, NXT_SKIP_SPECIAL, &out);
    bool same = out.n == json_string_length(text) &&
                (out.n == 0 || memcmp(out.items, json_string_value(text), out.n) == 0);
    if (!same)
      tap_note("text %zu: expected \"%s\", got \"%.*s\"", i, json_string_value(text), (int)out.n, out.items);
    good = good && same;
  }
  free(ids.items);
  free(out.items);
  return good;
}

static void test(const char *folder, const char *name, const json_t *texts) {
  char path[4096];
  nx_fault fault = {.text = ""};
  snprintf(path, sizeof path, "%s/tokenizers/%s", folder, name);
  nxt_tokenizer *tokenizer = nxt_open(path, &fault);
  if (!tap_report(tokenizer != NULL, "%s: opens %s", name, fault.text)) return;
  nxt_encoder *encoder = nxt_encoder_open(tokenizer);
  json_t *cases = load(folder, name, "cases.json");
  tap_report(encodes(encoder, texts, json_object_get(cases, "ids"), 0), "%s: ids", name);
  tap_report(encodes(encoder, texts, json_object_get(cases, "special"), NXT_ADD_SPECIAL),
             "%s: ids with special tokens", name);
  if (json_object_get(cases, "plain") != NULL)
    tap_report(encodes(encoder, texts, json_object_get(cases, "plain"), NXT_PLAIN_TEXT),
               "%s: ids, texts of special tokens being text", name);
  tap_report(decodes(encoder, cases), "%s: decoded texts", name);
  json_decref(cases);
  nxt_encoder_close(encoder);
  nxt_close(tokenizer);
}

int main(int argc, char **argv) {
  if (argc < 3) tap_bail("usage: test_tokenizers RECORDED NAME...");
  json_t *texts = load(argv[1], ".", "texts.json");
  for (int i = 2; i < argc; i++) test(argv[1], argv[i], texts);
  json_decref(texts);
  return tap_end();
}
