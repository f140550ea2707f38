/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/open.h"

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

static const char unknown[] = "is no tokenizer.json, vocab.json, file of tiktoken or model of SentencePiece";

static bool is_vocabulary(const json_t *root) {
  const char *text;
  json_t *id;
  json_object_foreach((json_t *)root, text, id) if (!json_is_integer(id)) return false;
  return json_object_size(root) > 0;
}

static bool read_json(nxt_reading *reading, const nxt_text *text) {
  json_t *root = nxt_parse_json(reading, text);
  if (root == NULL) return false;
  bool tekken =
      json_is_object(json_object_get(root, "config")) && json_is_array(json_object_get(root, "vocab"));
  bool done = json_object_get(root, "model") != NULL ? nxt_open_tokenizer_json(reading, root)
              : tekken                               ? nxt_open_tekken(reading, root)
              : json_is_array(root)                  ? nxt_open_rank_list(reading, root)
              : is_vocabulary(root)                  ? nxt_open_vocab_json(reading, root)
                                                     : nxt_refuse(reading, unknown);
  json_decref(root);
  return done;
}

/* A file is known by what it begins with. */
static bool read_any(nxt_reading *reading, const nxt_text *text) {
  if (is_json(text)) return read_json(reading, text);
  if (nxt_is_tiktoken(text)) return nxt_open_tiktoken(reading, text);
  if (text->n > 0 && text->items[0] == '\n') return nxt_open_sentencepiece(reading, text);
  return nxt_refuse(reading, unknown);
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

bool nxt_role_id(const nxt_tokenizer *tokenizer, nxt_role role, uint32_t *id) {
  *id = tokenizer->roles[role];
  return *id != NXT_NONE;
}
