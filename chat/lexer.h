/* SPDX-License-Identifier: Apache-2.0 */
/* A template's text as tokens, with whitespace control, trim_blocks and lstrip_blocks done. */
#ifndef NXJ_LEXER_H
#define NXJ_LEXER_H

#include "chat/value.h"

typedef enum nxj_token_kind {
  NXJ_TOKEN_END,
  NXJ_TOKEN_DATA, /* text between tags */
  NXJ_TOKEN_BLOCK_BEGIN,
  NXJ_TOKEN_BLOCK_END,
  NXJ_TOKEN_OUTPUT_BEGIN,
  NXJ_TOKEN_OUTPUT_END,
  NXJ_TOKEN_NAME,
  NXJ_TOKEN_STRING, /* its escapes are read */
  NXJ_TOKEN_INT,
  NXJ_TOKEN_FLOAT,
  NXJ_TOKEN_SIGN /* an operator or bracket */
} nxj_token_kind;

typedef struct nxj_token {
  nxj_token_kind kind;
  uint32_t line, column;
  const char *text; /* of a name, a sign or data */
  size_t n_bytes;
  nxj_value value; /* of a literal */
} nxj_token;

/* The last is NXJ_TOKEN_END. */
nxj_token *nxj_tokens(nxj_pool *pool, const char *text, size_t n_bytes);

#endif
