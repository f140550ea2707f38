/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/open_sentencepiece.h"

#include "tokenizer/added.h"
#include "tokenizer/bpe.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/decode.h"
#include "tokenizer/memory.h"
#include "tokenizer/normalize_sentencepiece.h"
#include "tokenizer/open_models.h"
#include "tokenizer/protobuf.h"
#include "tokenizer/unicode.h"
#include "tokenizer/unigram.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { UNIGRAM = 1, PAIRS = 2 }; /* kinds of models; others cut at blanks, or everywhere */

/* What the message says besides its pieces. */
typedef struct model {
  uint64_t kind;
  bool fallback, blanks_behind, prefix, one_blank, escapes, has_roles;
  uint64_t roles[NXT_N_ROLES];
  const char *charsmap, *unknown_text;
  size_t n_charsmap, n_unknown_text;
  nxt_text scores; /* floats, by id */
} model;

static bool take_piece(nxt_reading *reading, const nxt_field *of, model *m) {
  enum { PIECE = 1, SCORE = 2, TYPE = 3 };
  nxt_tokenizer *tokenizer = reading->tokenizer;
  nxt_message message = {of->bytes, of->bytes + of->n_bytes, false};
  nxt_field field, piece = {0};
  float score = 0;
  uint64_t type = NXT_PIECE_NORMAL;
  while (nxt_message_next(&message, &field)) {
    if (field.number == PIECE) piece = field;
    if (field.number == SCORE) memcpy(&score, &field.value, sizeof score);
    if (field.number == TYPE) type = field.value;
  }
  uint32_t id = (uint32_t)(m->scores.n / sizeof score);
  if (message.broken || piece.bytes == NULL || piece.n_bytes == 0 || type < 1 || type > NXT_PIECE_BYTE)
    return nxt_refuse(reading, "the piece %u is broken", id);
  if (type == NXT_PIECE_BYTE && (piece.n_bytes != 6 || memcmp(piece.bytes, "<0x", 3) != 0))
    return nxt_refuse(reading, "the piece %u is no byte", id);
  if (nxt_valid_bytes(piece.bytes, piece.n_bytes) < piece.n_bytes)
    return nxt_refuse(reading, "the piece %u is not UTF-8", id);
  if (id > NXT_MAX_ID) return nxt_refuse(reading, "has more than %d pieces", NXT_MAX_ID);
  if (nxt_vocabulary_id(&tokenizer->vocabulary, piece.bytes, piece.n_bytes) != NXT_NONE)
    return nxt_refuse(reading, "the piece %u stands twice", id);
  nxt_vocabulary_add(&tokenizer->vocabulary, piece.bytes, piece.n_bytes, id);
  nxt_text_add(&m->scores, (const char *)&score, sizeof score);
  tokenizer->types = nxt_resize(tokenizer->types, id + 1, 1);
  tokenizer->types[id] = (uint8_t)type;
  if (type == NXT_PIECE_UNKNOWN) tokenizer->unknown = id;
  return true;
}

static bool take_training(const nxt_field *of, model *m) {
  nxt_message message = {of->bytes, of->bytes + of->n_bytes, false};
  nxt_field field;
  while (nxt_message_next(&message, &field)) switch (field.number) {
    case 3: m->kind = field.value; break;
    case 24: m->blanks_behind = field.value != 0; break;
    case 35: m->fallback = field.value != 0; break;
    case 40: m->roles[NXT_UNK] = field.value; break;
    case 41: m->roles[NXT_BOS] = field.value; break;
    case 42: m->roles[NXT_EOS] = field.value; break;
    case 43: m->roles[NXT_PAD] = field.value; break;
    case 44: m->unknown_text = field.bytes, m->n_unknown_text = field.n_bytes; break;
    default: break;
    }
  return !message.broken;
}

static bool take_normalizer(const nxt_field *of, model *m) {
  nxt_message message = {of->bytes, of->bytes + of->n_bytes, false};
  nxt_field field;
  while (nxt_message_next(&message, &field)) switch (field.number) {
    case 2: m->charsmap = field.bytes, m->n_charsmap = field.n_bytes; break;
    case 3: m->prefix = field.value != 0; break;
    case 4: m->one_blank = field.value != 0; break;
    case 5: m->escapes = field.value != 0; break;
    default: break;
    }
  return !message.broken;
}

static bool take_all(nxt_reading *reading, const nxt_text *text, model *m) {
  enum { PIECES = 1, TRAINING = 2, NORMALIZER = 3, DENORMALIZER = 5 };
  nxt_message message = {text->items, text->items + text->n, false};
  nxt_field field;
  while (nxt_message_next(&message, &field)) {
    if (field.number > DENORMALIZER || field.number == 4) continue;
    if (field.bytes == NULL) message.broken = true;
    else if (field.number == PIECES && !take_piece(reading, &field, m)) return false;
    else if (field.number == TRAINING && !take_training(&field, m)) message.broken = true;
    else if (field.number == NORMALIZER && !take_normalizer(&field, m)) message.broken = true;
    else if (field.number == DENORMALIZER && field.n_bytes > 0)
      return nxt_refuse(reading, "a denormalizer is not covered");
  }
  if (message.broken || m->scores.n == 0) return nxt_refuse(reading, "is no model of SentencePiece");
  return true;
}

static float score_of(const model *m, uint32_t id) {
  float score;
  memcpy(&score, m->scores.items + id * sizeof score, sizeof score);
  return score;
}

static int by_score(const void *a, const void *b, void *m) {
  float x = score_of(m, *(const uint32_t *)a), y = score_of(m, *(const uint32_t *)b);
  return (x < y) - (x > y);
}

/* A piece is merged of its characters: each must be a piece. */
static bool check_chars(nxt_reading *reading, const uint32_t *ranks) {
  const nxt_vocabulary *vocabulary = &reading->tokenizer->vocabulary;
  for (uint32_t id = 0; id < vocabulary->n_ids; id++) {
    size_t n_bytes;
    const char *text = nxt_vocabulary_text(vocabulary, id, &n_bytes);
    for (const char *at = text, *end = text + n_bytes; ranks[id] != NXT_NONE && at < end;
         at += nxt_char_bytes(*at))
      if (nxt_vocabulary_id(vocabulary, at, nxt_char_bytes(*at)) == NXT_NONE)
        return nxt_refuse(reading, "a model of pairs without a piece for \"%.*s\" is not covered",
                          (int)nxt_char_bytes(*at), at);
  }
  return true;
}

/* Pieces of the greatest score merge first; equal scores are equal ranks. */
static bool make_pairs(nxt_reading *reading, const model *m) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  uint32_t n = tokenizer->vocabulary.n_ids, rank = 0;
  uint32_t *ids = nxt_new(n, sizeof *ids), *ranks = nxt_new(n, sizeof *ranks);
  for (uint32_t id = 0; id < n; id++) ids[id] = id;
  qsort_r(ids, n, sizeof *ids, by_score, (void *)m);
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0 && score_of(m, ids[i]) < score_of(m, ids[i - 1])) rank++;
    ranks[ids[i]] = tokenizer->types[ids[i]] == NXT_PIECE_NORMAL ? rank : NXT_NONE;
  }
  bool done = check_chars(reading, ranks) && nxt_bpe_of_tokens(reading, ranks);
  free(ids);
  free(ranks);
  tokenizer->bpe.fuse_unknown = true;
  tokenizer->bpe.has_fallback = m->fallback && nxt_fallback_ids(&tokenizer->vocabulary, tokenizer->bpe.bytes);
  tokenizer->word = nxt_bpe_word;
  tokenizer->caches = true;
  return done;
}

/* Pieces that their maker defined are never cut nor merged. */
static void cut_defined(nxt_tokenizer *tokenizer) {
  for (uint32_t id = 0; id < tokenizer->vocabulary.n_ids; id++) {
    size_t n_bytes;
    const char *text = nxt_vocabulary_text(&tokenizer->vocabulary, id, &n_bytes);
    if (tokenizer->types[id] == NXT_PIECE_DEFINED)
      nxt_added_put(&tokenizer->added, text, n_bytes,
                    (nxt_added){.id = id, .normalized = true, .as_is = true});
  }
}

static bool make_unigram(nxt_reading *reading, const model *m) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  nxt_unigram *unigram = &tokenizer->unigram;
  uint32_t n = tokenizer->vocabulary.n_ids;
  nxt_key *keys = nxt_new(n, sizeof *keys);
  size_t n_keys = 0;
  float least = FLT_MAX;
  unigram->scores = nxt_new(n, sizeof *unigram->scores);
  for (uint32_t id = 0; id < n; id++) {
    size_t n_bytes;
    const char *text = nxt_vocabulary_text(&tokenizer->vocabulary, id, &n_bytes);
    uint8_t type = tokenizer->types[id];
    unigram->scores[id] = (double)score_of(m, id);
    if (type == NXT_PIECE_NORMAL && score_of(m, id) < least) least = score_of(m, id);
    if (type == NXT_PIECE_NORMAL || type == NXT_PIECE_DEFINED) keys[n_keys++] = (nxt_key){text, n_bytes, id};
  }
  nxt_trie_build(&tokenizer->trie, keys, n_keys);
  free(keys);
  unigram->single = true;
  unigram->unknown_score = (double)(least - 10.0f);
  unigram->has_fallback = m->fallback && nxt_fallback_ids(&tokenizer->vocabulary, unigram->bytes);
  tokenizer->word = nxt_unigram_word;
  return true;
}

/* What the normalizer leaves as it is. */
static void keep_defined(nxt_tokenizer *tokenizer, nxt_trie *kept) {
  uint32_t n = tokenizer->vocabulary.n_ids;
  nxt_key *keys = nxt_new(n, sizeof *keys);
  size_t n_keys = 0;
  for (uint32_t id = 0; id < n; id++) {
    size_t n_bytes;
    const char *text = nxt_vocabulary_text(&tokenizer->vocabulary, id, &n_bytes);
    if (tokenizer->types[id] == NXT_PIECE_DEFINED) keys[n_keys++] = (nxt_key){text, n_bytes, id};
  }
  if (n_keys > 0) nxt_trie_build(kept, keys, n_keys);
  free(keys);
}

static bool make_normalizer(nxt_reading *reading, const model *m) {
  nxt_normalizer *step = nxt_add_normalizer(reading->tokenizer);
  step->run = nxt_normalize_sentencepiece;
  step->options = (m->prefix ? NXT_DUMMY_PREFIX : 0) | (m->one_blank ? NXT_ONE_BLANK : 0) |
                  (m->escapes ? NXT_ESCAPE_BLANKS : 0) | (m->blanks_behind ? NXT_BLANKS_BEHIND : 0);
  if (m->n_charsmap > 0) step->charsmap = nxt_charsmap_open(m->charsmap, m->n_charsmap);
  keep_defined(reading->tokenizer, &step->kept);
  return m->n_charsmap == 0 || step->charsmap != NULL ||
         nxt_refuse(reading, "its map of characters is broken");
}

static void make_decoder(nxt_tokenizer *tokenizer, const model *m) {
  nxt_decoder *step = nxt_add_decoder(tokenizer);
  step->run = nxt_decode_sentencepiece;
  step->text = nxt_text_of(NXT_BLANK, strlen(NXT_BLANK));
  step->content = m->unknown_text != NULL ? nxt_text_of(m->unknown_text, m->n_unknown_text)
                                          : nxt_text_of(" \xe2\x81\x87 ", 5);
  step->start = m->prefix || m->one_blank;
  step->stop = m->one_blank;
}

static bool make_all(nxt_reading *reading, const model *m) {
  nxt_tokenizer *tokenizer = reading->tokenizer;
  uint32_t n = tokenizer->vocabulary.n_ids;
  if (tokenizer->unknown == NXT_NONE) return nxt_refuse(reading, "has no piece for what is unknown");
  if (m->kind != UNIGRAM && m->kind != PAIRS)
    return nxt_refuse(reading, "a model of kind %s is not covered", m->kind == 3 ? "word" : "char");
  for (uint32_t id = 0; id < n; id++)
    if (tokenizer->types[id] == NXT_PIECE_UNUSED && m->kind == PAIRS)
      return nxt_refuse(reading, "pieces of the type \"unused\" are not covered in a model of pairs");
  for (int role = 0; role < NXT_N_ROLES; role++)
    if (m->roles[role] < n) tokenizer->roles[role] = (uint32_t)m->roles[role];
  if (m->kind == PAIRS) cut_defined(tokenizer);
  make_decoder(tokenizer, m);
  return (m->kind == PAIRS ? make_pairs(reading, m) : make_unigram(reading, m)) &&
         make_normalizer(reading, m);
}

bool nxt_open_sentencepiece(nxt_reading *reading, const nxt_text *text) {
  model m = {.kind = UNIGRAM, .prefix = true, .one_blank = true, .escapes = true,
             .roles = {[NXT_UNK] = 0, [NXT_BOS] = 1, [NXT_EOS] = 2, [NXT_PAD] = UINT64_MAX}};
  bool done = take_all(reading, text, &m) && make_all(reading, &m);
  free(m.scores.items);
  return done;
}
