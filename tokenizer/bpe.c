/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/bpe.h"

#include "schema/plan_check.h"
#include "tokenizer/bpe_merge.h"
#include "tokenizer/encoder.h"
#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nxt_bpe_begin(nxt_bpe *bpe, size_t n_pairs) {
  bpe->n_slots = 16;
  while (bpe->n_slots < 2 * n_pairs) bpe->n_slots *= 2;
  bpe->pairs = nxt_new(bpe->n_slots, sizeof *bpe->pairs);
  memset(bpe->pairs, 0xff, bpe->n_slots * sizeof *bpe->pairs);
}

void nxt_bpe_add(nxt_bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t id) {
  nxt_pair *pair = nxt_pair_slot(bpe, left, right);
  bpe->n_pairs += pair->key == UINT64_MAX;
  *pair = (nxt_pair){nxt_pair_key(left, right), rank, id};
}

void nxt_bpe_close(nxt_bpe *bpe) {
  free(bpe->pairs);
  nxt_vocabulary_close(&bpe->by_bytes);
  free(bpe->prefix.items);
  free(bpe->suffix.items);
}

/* Bytes that print stand for themselves, the others for characters from U+0100 on. */
uint32_t nxt_byte_char(uint8_t byte) {
  if ((byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad)) return byte;
  if (byte <= 0x20) return 0x100u + byte;
  if (byte == 0xad) return 0x143;
  return 0x100u + 0x21 + (byte - 0x7fu);
}

bool nxt_bytes_of(const char *token, size_t n_bytes, nxt_text *bytes) {
  for (const char *at = token, *end = token + n_bytes; at < end;) {
    uint32_t c = nxt_next_char(&at);
    if (c >= 0x100 && c <= 0x120)
      c -= 0x100;
    else if (c >= 0x121 && c <= 0x142)
      c = c - 0x121 + 0x7f;
    else if (c == 0x143)
      c = 0xad;
    else if (c > 0xff || nxt_byte_char((uint8_t)c) != c)
      return false;
    char byte = (char)c;
    nxt_text_add(bytes, &byte, 1);
  }
  return true;
}

bool nxt_fallback_ids(const nxt_vocabulary *vocabulary, uint32_t ids[256]) {
  bool all = true;
  for (unsigned byte = 0; byte < 256; byte++) {
    char name[8];
    snprintf(name, sizeof name, "<0x%02X>", byte);
    ids[byte] = nxt_vocabulary_id(vocabulary, name, 6);
    all = all && ids[byte] != NXT_NONE;
  }
  return all;
}

/* The first symbols of a word, while they are made of its characters. */
typedef struct making {
  nxt_encoder *encoder;
  size_t n;
  bool unknown_waits; /* a symbol for what is unknown comes before the next known one */
  bool failed;        /* there is none */
} making;

static void add_symbol(making *made, uint32_t id) {
  made->encoder->symbols[made->n++].id = id;
}

static void end_unknown(making *made) {
  if (made->unknown_waits) add_symbol(made, made->encoder->tokenizer->unknown);
  made->unknown_waits = false;
}

static void begin_unknown(making *made) {
  const nxt_tokenizer *tokenizer = made->encoder->tokenizer;
  if (tokenizer->unknown == NXT_NONE) {
    made->failed = tokenizer->needs_unknown;
    return;
  }
  if (!tokenizer->bpe.fuse_unknown) end_unknown(made);
  made->unknown_waits = true;
}

/* A character that is no token: its bytes, or the unknown token, or nothing. Bytes do not end a run of what
 * is unknown, as they do not in the library whose format this is. */
static void add_unknown(making *made, const char *text, size_t n_bytes) {
  const nxt_bpe *bpe = &made->encoder->tokenizer->bpe;
  bool covered = bpe->has_fallback;
  for (size_t i = 0; covered && i < n_bytes; i++) covered = bpe->bytes[(uint8_t)text[i]] != NXT_NONE;
  if (!covered) begin_unknown(made);
  for (size_t i = 0; covered && i < n_bytes; i++) add_symbol(made, bpe->bytes[(uint8_t)text[i]]);
}

/* A character's text as the vocabulary has it within a word. */
static const char *symbol_text(nxt_encoder *encoder, const char *at, size_t *n_bytes, bool first, bool last) {
  const nxt_bpe *bpe = &encoder->tokenizer->bpe;
  if ((first || bpe->prefix.n == 0) && (!last || bpe->suffix.n == 0)) return at;
  nxt_text *part = &encoder->part;
  part->n = 0;
  if (!first) nxt_text_add(part, bpe->prefix.items, bpe->prefix.n);
  nxt_text_add(part, at, *n_bytes);
  if (last) nxt_text_add(part, bpe->suffix.items, bpe->suffix.n);
  *n_bytes = part->n;
  return part->items;
}

static void symbols_of_chars(making *made, const char *text, size_t n_bytes) {
  for (const char *at = text, *end = text + n_bytes; at < end;) {
    size_t n = nxt_char_bytes(*at), n_symbol = n;
    const char *symbol = symbol_text(made->encoder, at, &n_symbol, at == text, at + n == end);
    uint32_t id = nxt_vocabulary_id(&made->encoder->tokenizer->vocabulary, symbol, n_symbol);
    if (id != NXT_NONE) {
      end_unknown(made);
      add_symbol(made, id);
    } else {
      add_unknown(made, symbol, n_symbol);
    }
    at += n;
  }
}

static void symbols_of_bytes(making *made, const char *text, size_t n_bytes) {
  for (size_t i = 0; i < n_bytes; i++) {
    uint32_t id = made->encoder->tokenizer->bpe.bytes[(uint8_t)text[i]];
    if (id == NXT_NONE) {
      begin_unknown(made);
    } else {
      end_unknown(made);
      add_symbol(made, id);
    }
  }
}

bool nxt_bpe_word(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids) {
  const nxt_bpe *bpe = &encoder->tokenizer->bpe;
  if (bpe->whole != NULL) {
    uint32_t id = nxt_vocabulary_id(bpe->whole, text, n_bytes);
    if (id != NXT_NONE) {
      nxt_ids_add(ids, id);
      return true;
    }
  }
  making made = {.encoder = encoder};
  nxt_symbols_reserve(encoder, n_bytes + bpe->suffix.n + n_bytes * bpe->prefix.n);
  (bpe->of_bytes ? symbols_of_bytes : symbols_of_chars)(&made, text, n_bytes);
  end_unknown(&made);
  if (made.failed)
    return nx_fault_set(encoder->fault, 0,
                        "the tokenizer has no token for \"%.*s\", and none for "
                        "what is unknown",
                        (int)(n_bytes > 40 ? 40 : n_bytes), text);
  nxt_merge(encoder, made.n, ids);
  return true;
}
