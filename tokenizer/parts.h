/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer is made of once its file is read, and what an encoder works in.
 *
 * Normalizers, splits and decoders are lists of steps; a step's function does it, and its other fields are
 * what that function needs. The last split is the model: it takes a word and adds ids. Words are handed on
 * one by one, so nothing but a text's normal form is as long as the text. */
#ifndef NXT_PARTS_H
#define NXT_PARTS_H

#include "tokenizer/charsmap.h"
#include "tokenizer/pattern.h"
#include "tokenizer/scan.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocabulary.h"

/* An added token: its text is cut out of a text before the model sees it. */
typedef struct nxt_added {
  uint32_t id;
  bool special, single_word, strip_left, strip_right, normalized;
  bool as_is;  /* its text is its normal form */
  bool hidden; /* its text in a text is text */
} nxt_added;

typedef struct nxt_added_set {
  nxt_added *items;
  uint32_t n;
  nxt_vocabulary names; /* as they are written, by id */
  nxt_vocabulary forms; /* normal forms that are others */
  nxt_trie raw;         /* indices of those looked for in the text itself */
  nxt_trie normalized;  /* of those looked for in its normal form */
} nxt_added_set;

typedef struct nxt_normalizer nxt_normalizer;
struct nxt_normalizer {
  /* Adds the normal form of `from` to `to`. */
  bool (*run)(nxt_encoder *encoder, const nxt_normalizer *step, const nxt_text *from, nxt_text *to);
  unsigned options;              /* of the function */
  uint32_t (*map)(uint32_t c);   /* of each character */
  nxt_pattern *pattern;          /* what is replaced by `content`; NULL: `text` is */
  nxt_text text, content;
  nxt_charsmap *charsmap;
  nxt_trie kept;                 /* what stays as it is */
};

typedef enum nxt_behaviour {
  NXT_REMOVED,
  NXT_ISOLATED,
  NXT_MERGED_WITH_PREVIOUS,
  NXT_MERGED_WITH_NEXT,
  NXT_CONTIGUOUS
} nxt_behaviour;

typedef struct nxt_split nxt_split;
struct nxt_split {
  /* Hands on the words of a text; `first`: the text begins where the whole text does. */
  bool (*run)(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes, bool first);
  /* Of a step that looks for matches: the next one at or after `from`; 1, 0 or -1 as nxt_pattern_find. */
  int (*find)(nxt_encoder *encoder, const nxt_split *step, const char *text, size_t n_bytes, size_t from,
              size_t match[2]);
  nxt_behaviour behaviour;
  bool invert;          /* what lies between matches is the match */
  bool prepend_always, prepend_first;
  nxt_scanner scanner;
  nxt_pattern *pattern;
  uint16_t classes;     /* of the characters looked for */
  uint32_t character;
  nxt_text text;
  uint32_t scratch;     /* index of the encoder's buffer that is this step's */
};

struct nxt_pieces;
typedef struct nxt_decoder nxt_decoder;
struct nxt_decoder {
  void (*run)(nxt_encoder *encoder, const nxt_decoder *step, struct nxt_pieces *from, struct nxt_pieces *to);
  nxt_text text, content;
  nxt_pattern *pattern;
  uint32_t start, stop;
  bool flag;
};

typedef struct nxt_pair {
  uint64_t key; /* left and right id; UINT64_MAX where the slot is free */
  uint32_t rank, id;
} nxt_pair;

typedef struct nxt_bpe {
  nxt_pair *pairs; /* a table of hashes */
  uint64_t n_pairs, n_slots;
  bool of_bytes;           /* the first symbols are bytes, else characters */
  uint32_t bytes[256];     /* ids of bytes as symbols, or as what stands for an unknown character's bytes */
  bool has_fallback, fuse_unknown;
  const nxt_vocabulary
      *whole; /* a word that is one of these tokens is that token; NULL: it is merged like others */
  nxt_vocabulary by_bytes;     /* tokens by the bytes that they stand for, where `whole` needs it */
  nxt_text prefix, suffix; /* of symbols that do not begin a word, and that end one */
} nxt_bpe;

typedef struct nxt_unigram {
  double *scores; /* by id */
  double unknown_score;
  bool single; /* scores of ways are of single precision, as SentencePiece's own are */
  bool has_fallback;
  uint32_t bytes[256];
} nxt_unigram;

/* Pieces as SentencePiece numbers their kinds. */
typedef enum nxt_piece_type {
  NXT_PIECE_NORMAL = 1,
  NXT_PIECE_UNKNOWN,
  NXT_PIECE_CONTROL,
  NXT_PIECE_DEFINED, /* by the model's maker: it is always taken */
  NXT_PIECE_UNUSED,
  NXT_PIECE_BYTE
} nxt_piece_type;

struct nxt_tokenizer {
  nxt_vocabulary vocabulary; /* the model's */
  nxt_trie trie;             /* of its texts, where the model looks for pieces */
  uint8_t *types;            /* by id; NULL but for SentencePiece's models */
  nxt_added_set added;
  nxt_normalizer *normalizers;
  nxt_split *splits;
  nxt_decoder *decoders;
  uint32_t n_normalizers, n_splits, n_decoders, n_scratch;
  bool (*word)(nxt_encoder *encoder, const char *text, size_t n_bytes, nxt_ids *ids); /* the model */
  bool caches;               /* words come again, and mean the same then */
  uint32_t unknown;          /* id, or NXT_NONE */
  bool needs_unknown;        /* what is unknown fails where there is no such id; else it is left out */
  nxt_bpe bpe;
  nxt_unigram unigram;
  uint32_t max_word_chars;   /* WordPiece: longer ones are unknown */
  uint32_t inner_pieces;     /* WordPiece: the trie's node of the prefix of those that do not begin a word */
  bool has_inner_pieces;
  nxt_ids before, after;     /* special tokens around a text */
  bool joined_by_blanks;     /* decoding without a decoder */
  uint32_t roles[NXT_N_ROLES];
};

#endif
