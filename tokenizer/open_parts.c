/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of all kinds of files use: refusing, files, JSON, and the steps that they add. */
#include "tokenizer/open.h"

#include "schema/plan_check.h"
#include "schema/regular.h"
#include "tokenizer/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE_BYTES = 1 << 27 };

bool nxt_refuse(nxt_reading *reading, const char *format, ...) {
  char why[800];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  return nx_fault_set(reading->fault, 0, "%s: %s", reading->path, why);
}

bool nxt_read_file(nxt_reading *reading, nxt_text *text) {
  FILE *file = nx_regular_open(reading->path);
  if (file == NULL) return nxt_refuse(reading, "%s", strerror(errno));
  size_t n = 1;
  while (n > 0 && text->n <= MAX_FILE_BYTES) {
    char *to = nxt_text_reserve(text, 1 << 16);
    n = fread(to, 1, text->room - text->n, file);
    text->n += n;
  }
  bool failed = ferror(file) != 0;
  int number = errno;
  fclose(file);
  if (failed) return nxt_refuse(reading, "%s", strerror(number));
  if (text->n > MAX_FILE_BYTES) return nxt_refuse(reading, "is larger than any tokenizer's file");
  return true;
}

json_t *nxt_parse_json(nxt_reading *reading, const nxt_text *text) {
  json_error_t error;
  json_t *root = json_loadb(text->n > 0 ? text->items : "", text->n, JSON_ALLOW_NUL, &error);
  if (root == NULL) nxt_refuse(reading, "line %d: is not JSON: %s", error.line, error.text);
  return root;
}

nxt_text nxt_text_of(const char *bytes, size_t n_bytes) {
  nxt_text text = {0};
  nxt_text_reserve(&text, n_bytes);
  nxt_text_add(&text, bytes, n_bytes);
  return text;
}

nxt_text nxt_json_text(const json_t *text) {
  return nxt_text_of(json_string_value(text), json_string_length(text));
}

bool nxt_json_flag(const json_t *object, const char *key, bool otherwise) {
  const json_t *flag = json_object_get(object, key);
  return json_is_boolean(flag) ? json_is_true(flag) : otherwise;
}

const char *nxt_json_string(const json_t *object, const char *key, const char *otherwise) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : otherwise;
}

nxt_normalizer *nxt_add_normalizer(nxt_tokenizer *tokenizer) {
  uint32_t n = tokenizer->n_normalizers++;
  tokenizer->normalizers = nxt_resize(tokenizer->normalizers, n + 1, sizeof *tokenizer->normalizers);
  tokenizer->normalizers[n] = (nxt_normalizer){0};
  return &tokenizer->normalizers[n];
}

nxt_split *nxt_add_split(nxt_tokenizer *tokenizer) {
  uint32_t n = tokenizer->n_splits++;
  tokenizer->splits = nxt_resize(tokenizer->splits, n + 1, sizeof *tokenizer->splits);
  tokenizer->splits[n] = (nxt_split){.behaviour = NXT_ISOLATED, .scratch = tokenizer->n_scratch++};
  return &tokenizer->splits[n];
}

nxt_decoder *nxt_add_decoder(nxt_tokenizer *tokenizer) {
  uint32_t n = tokenizer->n_decoders++;
  tokenizer->decoders = nxt_resize(tokenizer->decoders, n + 1, sizeof *tokenizer->decoders);
  tokenizer->decoders[n] = (nxt_decoder){0};
  return &tokenizer->decoders[n];
}
