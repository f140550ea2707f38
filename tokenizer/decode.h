/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders: steps that make of the texts of tokens the text that they came from. */
#ifndef NXT_DECODE_H
#define NXT_DECODE_H

#include "tokenizer/encoder.h"

/* Characters that stand for bytes, and what is no UTF-8 then as U+FFFD; all becomes one. */
void nxt_decode_bytes(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);
/* Bytes as they are, and what is no UTF-8 as U+FFFD. */
void nxt_decode_utf8(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);
/* Pieces of SentencePiece by their types: `text` as a blank, `content` for what is unknown; `start`: the
 * text's first piece begins without a blank, `stop`: all that come before any other text do. */
void nxt_decode_sentencepiece(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from,
                              nxt_pieces *to);
/* Runs of <0xNN>: the bytes, or U+FFFD for each where they are no UTF-8. */
void nxt_decode_fallback(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);
/* `text` as a blank; none in the first piece with `flag`. */
void nxt_decode_metaspace(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);
/* Pieces without the prefix `text`, or after a blank; `flag`: and no blanks before signs. */
void nxt_decode_wordpiece(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);
/* `text` as a blank, in the last piece as nothing. */
void nxt_decode_suffix(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);
void nxt_decode_fuse(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);
/* Of each piece the first `start` and the last `stop` characters, as far as they are `text`. */
void nxt_decode_strip(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);
/* `content` for what the pattern, or `text`, matches. */
void nxt_decode_replace(nxt_encoder *encoder, const nxt_decoder *step, nxt_pieces *from, nxt_pieces *to);

#endif
