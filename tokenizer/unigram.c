/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/unigram.h"

#include "schema/plan_check.h"
#include "tokenizer/encoder.h"
#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#include <string.h>

static double rounded(const nxt_unigram *unigram, double score) {
  return unigram->single ? (double)(float)score : score;
}

static void try_way(nxt_best *end, double score, uint32_t id, size_t begin) {
  if (end->begin == NXT_NONE || score > end->score) *end = (nxt_best){score, id, (uint32_t)begin};
}

/* A piece that its maker defined is worth more than any way through it. */
static double score_of(const nxt_tokenizer *tokenizer, uint32_t id, size_t n_bytes) {
  bool defined = tokenizer->types != NULL && tokenizer->types[id] == NXT_PIECE_DEFINED;
  return defined ? (double)(float)(0.1 * (double)(n_bytes - 1)) : tokenizer->unigram.scores[id];
}

/* Sums of single precision begin anew where they have grown too coarse, as SentencePiece's do since 0.2.2. */
static double begin_sums(nxt_encoder *encoder, size_t at, size_t frontier) {
  enum { TOO_COARSE = 100000 };
  const double offset = encoder->best[at].score;
  if (!encoder->tokenizer->unigram.single || (offset <= TOO_COARSE && offset >= -TOO_COARSE)) return offset;
  for (size_t i = at; i <= frontier; i++)
    encoder->best[i].score = (double)(float)(encoder->best[i].score - offset);
  return 0;
}

/* All pieces that begin at `at`; a character that is no piece is unknown. `frontier` is how far ways lead. */
static void extend(nxt_encoder *encoder, const char *text, size_t at, size_t n_bytes, size_t *frontier) {
  const nxt_unigram *unigram = &encoder->tokenizer->unigram;
  const nxt_trie *trie = &encoder->tokenizer->trie;
  const double score = begin_sums(encoder, at, *frontier);
  nxt_best *best = encoder->best;
  size_t n_char = nxt_char_bytes(text[at]), reached = at + n_char;
  uint32_t node = 0;
  bool single = false;
  for (size_t end = at; end < n_bytes && (node = nxt_trie_next(trie, node, text[end])) != 0;) {
    end++;
    uint32_t id = trie->nodes[node].value;
    if (id == NXT_NONE) continue;
    try_way(&best[end], rounded(unigram, score_of(encoder->tokenizer, id, end - at) + score), id, at);
    single = single || end - at == n_char;
    if (end > reached) reached = end;
  }
  if (!single)
    try_way(&best[at + n_char], rounded(unigram, unigram->unknown_score + score), encoder->tokenizer->unknown,
            at);
  if (reached > *frontier) *frontier = reached;
}

/* What is unknown from `begin` to `end`: its bytes, or one token for all of it. */
static void add_unknown(nxt_encoder *encoder, const char *text, size_t begin, size_t end, nxt_ids *ids) {
  const nxt_unigram *unigram = &encoder->tokenizer->unigram;
  bool covered = unigram->has_fallback;
  uint32_t piece = NXT_NONE;
  /* Unknown characters side by side may be a piece that no best way could take. */
  if (!unigram->single) piece = nxt_vocabulary_id(&encoder->tokenizer->vocabulary, text + begin, end - begin);
  for (size_t i = begin; covered && i < end; i++) covered = unigram->bytes[(uint8_t)text[i]] != NXT_NONE;
  if (piece != NXT_NONE || !covered) {
    nxt_ids_add(ids, piece != NXT_NONE ? piece : encoder->tokenizer->unknown);
    return;
  }
  for (size_t i = begin; i < end; i++) nxt_ids_add(ids, unigram->bytes[(uint8_t)text[i]]);
}

/* The pieces lie backwards in `best`: their begins are linked forwards, in place of the scores. */
static void link_ways(nxt_best *best, size_t n_bytes) {
  for (size_t end = n_bytes; end > 0; end = best[end].begin) best[best[end].begin].score = (double)end;
}

bool nxt_unigram_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids) {
  const uint32_t unknown = encoder->tokenizer->unknown;
  if (encoder->best_room < n_bytes + 1) {
    encoder->best_room = 2 * (n_bytes + 1);
    encoder->best = nxt_resize(encoder->best, encoder->best_room, sizeof *encoder->best);
  }
  nxt_best *best = encoder->best;
  for (size_t i = 0; i <= n_bytes; i++) best[i] = (nxt_best){.begin = NXT_NONE};
  for (size_t at = 0, frontier = 0; at < n_bytes; at += nxt_char_bytes(text[at]))
    extend(encoder, text, at, n_bytes, &frontier);
  link_ways(best, n_bytes);
  for (size_t at = 0, end; at < n_bytes; at = end) {
    end = (size_t)best[at].score;
    uint32_t id = best[end].id;
    if (id == NXT_NONE)
      return nx_fault_set(encoder->fault, 0, "the tokenizer has no token for what is unknown");
    while (id == unknown && end < n_bytes && best[(size_t)best[end].score].id == unknown)
      end = (size_t)best[end].score;
    if (id == unknown)
      add_unknown(encoder, text, at, end, ids);
    else
      nxt_ids_add(ids, id);
  }
  return true;
}
