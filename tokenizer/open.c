/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/open.h"

#include "schema/plan_check.h"
#include "schema/regular.h"
#include "tokenizer/added.h"
#include "tokenizer/bpe.h"
#include "tokenizer/files.h"
#include "tokenizer/memory.h"
#include "tokenizer/open_models.h"
#include "tokenizer/open_roles.h"
#include "tokenizer/open_sentencepiece.h"
#include "tokenizer/open_tiktoken.h"
#include "tokenizer/split.h"
#include "tokenizer/unicode.h"

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

static bool find_in_folder(nxt_reading *reading) {
  for (int i = 0; i < NXT_N_TOKENIZER_FILES; i++) {
    struct stat status;
    snprintf(reading->inside, sizeof reading->inside, "%s/%s", reading->path, nxt_file_names[i]);
    if (stat(reading->inside, &status) != 0) continue;
    reading->path = reading->inside;
    return true;
  }
  return nxt_refuse(reading, "holds no tokenizer.json, tokenizer.model, vocab.json or file of tiktoken");
}

static bool is_json(const nxt_text *text) {
  size_t first = 0;
  while (first < text->n &&
         (text->items[first] == ' ' || (text->items[first] >= '\t' && text->items[first] <= '\r')))
    first++;
  return first < text->n && (text->items[first] == '{' || text->items[first] == '[');
}

static bool read_json(nxt_reading *reading, const nxt_text *text) {
  json_t *root = nxt_parse_json(reading, text);
  if (root == NULL) return false;
  bool tekken =
      json_is_object(json_object_get(root, "config")) && json_is_array(json_object_get(root, "vocab"));
  bool done = json_object_get(root, "model") != NULL ? nxt_open_tokenizer_json(reading, root)
              : tekken                               ? nxt_open_tekken(reading, root)
              : json_is_array(root)                  ? nxt_open_rank_list(reading, root)
                                                     : nxt_open_vocab_json(reading, root);
  json_decref(root);
  return done;
}

/* A file is known by what it begins with. */
static bool read_any(nxt_reading *reading, const nxt_text *text) {
  if (is_json(text)) return read_json(reading, text);
  if (nxt_is_tiktoken(text)) return nxt_open_tiktoken(reading, text);
  if (text->n > 0 && text->items[0] == '\n') return nxt_open_sentencepiece(reading, text);
  return nxt_refuse(reading, "is no tokenizer.json, vocab.json, file of tiktoken or model of SentencePiece");
}

static bool read_path(nxt_reading *reading) {
  struct stat status;
  if (stat(reading->path, &status) != 0) return nxt_refuse(reading, "%s", strerror(errno));
  if (S_ISDIR(status.st_mode) && !find_in_folder(reading)) return false;
  nxt_text text = {0};
  bool done = nxt_read_file(reading, &text) && read_any(reading, &text) && nxt_read_roles(reading);
  free(text.items);
  return done;
}

/* What can be made only when all else is there. */
static bool finish(nxt_reading *reading) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  nxt_add_blank_split(tokenizer);
  nxt_add_split(tokenizer)->run = nxt_split_model;
  nxt_encoder *encoder = nxt_encoder_open(tokenizer);
  encoder->fault = reading->fault;
  bool done = nxt_added_ready(&tokenizer->added, encoder);
  nxt_encoder_close(encoder);
  return done;
}

nxt_tokenizer *nxt_open(const char *path, nx_fault *fault) {
  return nxt_open_with(path, NULL, fault);
}

nxt_tokenizer *nxt_open_with(const char *path, const nxt_unsaid *unsaid, nx_fault *fault) {
  nxt_tokenizer *tokenizer = nxt_new(1, sizeof *tokenizer);
  nxt_reading reading = {.tokenizer = tokenizer, .path = path, .fault = fault, .unsaid = unsaid};
  nxt_unicode_ready();
  tokenizer->unknown = NXT_NONE;
  for (int role = 0; role < NXT_N_ROLES; role++) tokenizer->roles[role] = NXT_NONE;
  if (read_path(&reading) && finish(&reading)) return tokenizer;
  nxt_close(tokenizer);
  return NULL;
}

static void close_steps(nxt_tokenizer *tokenizer) {
  for (uint32_t i = 0; i < tokenizer->n_normalizers; i++) {
    nxt_pattern_close(tokenizer->normalizers[i].pattern);
    nxt_charsmap_close(tokenizer->normalizers[i].charsmap);
    nxt_trie_close(&tokenizer->normalizers[i].kept);
    free(tokenizer->normalizers[i].text.items);
    free(tokenizer->normalizers[i].content.items);
  }
  for (uint32_t i = 0; i < tokenizer->n_splits; i++) {
    nxt_pattern_close(tokenizer->splits[i].pattern);
    free(tokenizer->splits[i].text.items);
  }
  for (uint32_t i = 0; i < tokenizer->n_decoders; i++) {
    nxt_pattern_close(tokenizer->decoders[i].pattern);
    free(tokenizer->decoders[i].text.items);
    free(tokenizer->decoders[i].content.items);
  }
  free(tokenizer->normalizers);
  free(tokenizer->splits);
  free(tokenizer->decoders);
}

void nxt_close(nxt_tokenizer *tokenizer) {
  if (tokenizer == NULL) return;
  close_steps(tokenizer);
  nxt_vocabulary_close(&tokenizer->vocabulary);
  free(tokenizer->types);
  nxt_added_close(&tokenizer->added);
  nxt_bpe_close(&tokenizer->bpe);
  nxt_trie_close(&tokenizer->trie);
  free(tokenizer->unigram.scores);
  free(tokenizer->before.items);
  free(tokenizer->after.items);
  free(tokenizer);
}

uint32_t nxt_n_ids(const nxt_tokenizer *tokenizer) {
  uint32_t n = tokenizer->vocabulary.n_ids, n_added = tokenizer->added.names.n_ids;
  return n > n_added ? n : n_added;
}

bool nxt_find(const nxt_tokenizer *tokenizer, const char *text, size_t n_bytes, uint32_t *id) {
  *id = nxt_vocabulary_id(&tokenizer->added.names, text, n_bytes);
  if (*id == NXT_NONE) *id = nxt_vocabulary_id(&tokenizer->vocabulary, text, n_bytes);
  return *id != NXT_NONE;
}

const char *nxt_token(const nxt_tokenizer *tokenizer, uint32_t id, size_t *n_bytes) {
  const char *text = nxt_vocabulary_text(&tokenizer->added.names, id, n_bytes);
  return text != NULL ? text : nxt_vocabulary_text(&tokenizer->vocabulary, id, n_bytes);
}

bool nxt_is_special(const nxt_tokenizer *tokenizer, uint32_t id) {
  const nxt_added *added = nxt_added_find(&tokenizer->added, id);
  if (tokenizer->types != NULL && id < tokenizer->vocabulary.n_ids)
    return tokenizer->types[id] == NXT_PIECE_CONTROL;
  return added != NULL && added->special;
}

bool nxt_role_id(const nxt_tokenizer *tokenizer, nxt_role role, uint32_t *id) {
  *id = tokenizer->roles[role];
  return *id != NXT_NONE;
}
