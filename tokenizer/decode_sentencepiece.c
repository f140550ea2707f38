/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/decode.h"
#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

/* What the pieces say so far. */
typedef struct saying {
  const nxt_decoder *step;
  nxt_text *text;
  nxt_text *bytes;       /* of pieces that are bytes, until another piece comes */
  bool at_begin;         /* a blank here is the one that encoding puts before the text */
  bool had_blank;
} saying;

static void end_bytes(saying *said) {
  /* Each byte that begins no character is one U+FFFD. */
  for (size_t at = 0; at < said->bytes->n;) {
    size_t n_valid = nxt_valid_bytes(said->bytes->items + at, said->bytes->n - at);
    nxt_text_add(said->text, said->bytes->items + at, n_valid);
    at += n_valid;
    if (at < said->bytes->n) nxt_text_add_char(said->text, NXT_REPLACEMENT), at++;
  }
  said->bytes->n = 0;
}

static bool begins_with_blank(const nxt_decoder *step, const char *piece, size_t n) {
  return n >= step->text.n && memcmp(piece, step->text.items, step->text.n) == 0;
}

static void add_normal(saying *said, const char *piece, size_t n) {
  const nxt_decoder *step = said->step;
  bool cuts = said->at_begin && step->start && begins_with_blank(step, piece, n);
  if (cuts) piece += step->text.n, n -= step->text.n;
  said->had_blank = cuts && !step->stop;
  while (n > 0) {
    bool blank = begins_with_blank(step, piece, n);
    size_t taken = blank ? step->text.n : 1;
    nxt_text_add(said->text, blank ? " " : piece, 1);
    piece += taken;
    n -= taken;
  }
}

static void add_piece(saying *said, uint8_t type, const char *piece, size_t n) {
  end_bytes(said);
  if (said->had_blank || said->text->n > 0) said->at_begin = false;
  said->had_blank = false;
  if (type == NXT_PIECE_UNKNOWN)
    nxt_text_add(said->text, said->step->content.items, said->step->content.n);
  else if (type != NXT_PIECE_CONTROL)
    add_normal(said, piece, n);
}

void nxt_decode_sentencepiece(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from,
                              nxt_pieces *to) {
  saying said = {.step = step, .text = &to->text, .bytes = &encoder->part, .at_begin = true};
  said.bytes->n = 0;
  for (size_t i = 0, begin = 0; i < from->ends.n; begin = from->ends.items[i++]) {
    const char *piece = from->text.items + begin;
    uint8_t type = encoder->tokenizer->types[encoder->decoded.items[i]];
    char byte = type == NXT_PIECE_BYTE ? (char)strtoul(piece + 3, NULL, 16) : 0;
    if (type == NXT_PIECE_BYTE)
      nxt_text_add(said.bytes, &byte, 1);
    else
      add_piece(&said, type, piece, from->ends.items[i] - begin);
  }
  end_bytes(&said);
  nxt_ids_add(&to->ends, (uint32_t)to->text.n);
}
