/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/decode.h"

#include "tokenizer/bpe.h"
#include "tokenizer/memory.h"
#include "tokenizer/normalize.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

static void end_piece(nxt_pieces *pieces) {
  nxt_ids_add(&pieces->ends, (uint32_t)pieces->text.n);
}

static void add_piece(nxt_pieces *pieces, const char *text, size_t n_bytes) {
  nxt_text_add(&pieces->text, text, n_bytes);
  end_piece(pieces);
}

/* A piece as a text of its own, which must not be changed. */
static nxt_text piece_at(const nxt_pieces *pieces, size_t i) {
  size_t begin = i == 0 ? 0 : pieces->ends.items[i - 1];
  return (nxt_text){pieces->text.items + begin, pieces->ends.items[i] - begin, 0};
}

static void add_replaced(nxt_text *to, const nxt_text *piece, const nxt_text *what, const char *by,
                         size_t n_by) {
  const char *at = piece->items, *end = at + piece->n;
  for (const char *found; what->n > 0 && at < end; at = found + what->n) {
    found = memmem(at, (size_t)(end - at), what->items, what->n);
    if (found == NULL) break;
    nxt_text_add(to, at, (size_t)(found - at));
    nxt_text_add(to, by, n_by);
  }
  nxt_text_add(to, at, (size_t)(end - at));
}

void nxt_decode_bytes(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  (void)step;
  nxt_text *bytes = &encoder->part;
  bytes->n = 0;
  nxt_text_reserve(bytes, 1);
  for (size_t i = 0; i < from->ends.n; i++) {
    nxt_text piece = piece_at(from, i);
    size_t n = bytes->n;
    if (nxt_bytes_of(piece.items, piece.n, bytes)) continue;
    bytes->n = n;
    nxt_text_add(bytes, piece.items, piece.n);
  }
  nxt_add_repaired(&to->text, bytes->items, bytes->n);
  end_piece(to);
}

void nxt_decode_utf8(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  (void)encoder, (void)step;
  nxt_add_repaired(&to->text, from->text.items, from->text.n);
  end_piece(to);
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                : -1;
}

/* The byte that <0xNN> says; -1: the piece is something else. */
static int byte_of(const nxt_text *piece) {
  const char *p = piece->items;
  if (piece->n != 6 || memcmp(p, "<0x", 3) != 0 || p[5] != '>') return -1;
  int low = hex_digit(p[4]);
  if (p[3] == '+') return low; /* as Rust reads a number */
  int high = hex_digit(p[3]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

static void end_bytes(nxt_text *bytes, nxt_pieces *to) {
  if (nxt_valid_bytes(bytes->items, bytes->n) == bytes->n)
    nxt_text_add(&to->text, bytes->items, bytes->n);
  else
    for (size_t i = 0; i < bytes->n; i++) nxt_text_add_char(&to->text, NXT_REPLACEMENT);
  if (bytes->n > 0) end_piece(to);
  bytes->n = 0;
}

void nxt_decode_fallback(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  (void)step;
  nxt_text *bytes = &encoder->part;
  bytes->n = 0;
  for (size_t i = 0; i < from->ends.n; i++) {
    nxt_text piece = piece_at(from, i);
    int value = byte_of(&piece);
    char byte = (char)value;
    if (value >= 0) {
      nxt_text_add(bytes, &byte, 1);
      continue;
    }
    end_bytes(bytes, to);
    add_piece(to, piece.items, piece.n);
  }
  end_bytes(bytes, to);
}

void nxt_decode_metaspace(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  (void)encoder;
  for (size_t i = 0; i < from->ends.n; i++) {
    nxt_text piece = piece_at(from, i);
    add_replaced(&to->text, &piece, &step->text, " ", i == 0 && step->flag ? 0 : 1);
    end_piece(to);
  }
}

static void clean_up(nxt_encoder *encoder, nxt_text *text, size_t begin) {
  static const char *const pairs[][2] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    nxt_text *part = &encoder->part, what = {(char *)pairs[i][0], strlen(pairs[i][0]), 0};
    part->n = 0;
    add_replaced(part, &(nxt_text){text->items + begin, text->n - begin, 0}, &what, pairs[i][1],
                 strlen(pairs[i][1]));
    text->n = begin;
    nxt_text_add(text, part->items, part->n);
  }
}

void nxt_decode_wordpiece(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  for (size_t i = 0; i < from->ends.n; i++) {
    nxt_text piece = piece_at(from, i);
    size_t begin = to->text.n, n_prefix = step->text.n;
    bool goes_on = piece.n >= n_prefix && memcmp(piece.items, step->text.items, n_prefix) == 0;
    if (i > 0 && goes_on)
      piece = (nxt_text){piece.items + n_prefix, piece.n - n_prefix, 0};
    else if (i > 0)
      nxt_text_add(&to->text, " ", 1);
    nxt_text_add(&to->text, piece.items, piece.n);
    if (step->flag && to->text.n > begin) clean_up(encoder, &to->text, begin);
    end_piece(to);
  }
}

void nxt_decode_suffix(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  (void)encoder;
  for (size_t i = 0; i < from->ends.n; i++) {
    nxt_text piece = piece_at(from, i);
    add_replaced(&to->text, &piece, &step->text, " ", i + 1 < from->ends.n);
    end_piece(to);
  }
}

void nxt_decode_fuse(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  (void)encoder, (void)step;
  add_piece(to, from->text.items, from->text.n);
}

static bool is_at(const char *at, const char *end, const nxt_text *text) {
  return (size_t)(end - at) >= text->n && memcmp(at, text->items, text->n) == 0;
}

void nxt_decode_strip(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  (void)encoder;
  for (size_t i = 0; i < from->ends.n; i++) {
    nxt_text piece = piece_at(from, i);
    const char *at = piece.items, *end = at + piece.n;
    for (uint32_t k = 0; k < step->start && is_at(at, end, &step->text); k++) at += step->text.n;
    for (uint32_t k = 0; k < step->stop && (size_t)(end - at) >= step->text.n; k++) {
      if (!is_at(end - step->text.n, end, &step->text)) break;
      end -= step->text.n;
    }
    add_piece(to, at, (size_t)(end - at));
  }
}

static void add_matches_replaced(nxt_encoder *encoder, const nxt_decoder *step, const nxt_text *piece,
                                 nxt_text *to) {
  size_t done = 0, match[2] = {0, SIZE_MAX};
  nx_fault ignored = {.text = ""};
  while (nxt_pattern_find(step->pattern, encoder->matcher, piece->items, piece->n, done, match[1], match,
                          &ignored) == 1) {
    nxt_text_add(to, piece->items + done, match[0] - done);
    nxt_text_add(to, step->content.items, step->content.n);
    done = match[1];
  }
  nxt_text_add(to, piece->items + done, piece->n - done);
}

void nxt_decode_replace(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to) {
  for (size_t i = 0; i < from->ends.n; i++) {
    nxt_text piece = piece_at(from, i);
    if (step->pattern != NULL)
      add_matches_replaced(encoder, step, &piece, &to->text);
    else
      add_replaced(&to->text, &piece, &step->text, step->content.items, step->content.n);
    end_piece(to);
  }
}

/* The texts of the tokens, as they begin. */
static void gather(nxt_encoder *encoder, const uint32_t *ids, size_t n_ids, unsigned flags,
                   nxt_pieces *pieces) {
  const nxt_tokenizer *tokenizer = encoder->tokenizer;
  for (size_t i = 0; i < n_ids; i++) {
    size_t n_bytes;
    const char *text = nxt_vocabulary_text(&tokenizer->added.forms, ids[i], &n_bytes);
    if (text == NULL) text = nxt_token(tokenizer, ids[i], &n_bytes);
    if (text == NULL || ((flags & NXT_SKIP_SPECIAL) && nxt_is_special(tokenizer, ids[i]))) continue;
    if (tokenizer->joined_by_blanks && pieces->ends.n > 0) nxt_text_add(&pieces->text, " ", 1);
    add_piece(pieces, text, n_bytes);
    nxt_ids_add(&encoder->decoded, ids[i]);
  }
}

static void clear(nxt_pieces *pieces) {
  pieces->text.n = pieces->ends.n = 0;
  nxt_text_reserve(&pieces->text, 1);
}

void nxt_decode(nxt_encoder *encoder, const uint32_t *ids, size_t n_ids, unsigned flags, nxt_text *text) {
  const nxt_tokenizer *tokenizer = encoder->tokenizer;
  nxt_pieces *from = &encoder->pieces[0], *to = &encoder->pieces[1];
  clear(from);
  encoder->decoded.n = 0;
  gather(encoder, ids, n_ids, flags, from);
  const size_t most =
      NXT_GROWTH * from->text.n + NXT_GROWTH_FREE; /* steps may double a text, many times over */
  for (uint32_t i = 0; i < tokenizer->n_decoders && from->ends.n > 0 && from->text.n <= most; i++) {
    clear(to);
    tokenizer->decoders[i].run(encoder, &tokenizer->decoders[i], from, to);
    nxt_pieces *done = to;
    to = from;
    from = done;
  }
  nxt_text_add(text, from->text.items, from->text.n);
}
