/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes what it reads, for scripts that compare with other tokenizers.
 *
 *   tokenize TOKENIZER [special] [plain] [keep]
 *
 * Standard input is texts, each a u32 of its size and its bytes; standard output is for each a u32 of how
 * many ids, the ids, a u32 of how many bytes, and the text that decoding them gives. UINT32_MAX ids: it
 * failed. */
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool get(void *to, size_t n_bytes) {
  return fread(to, 1, n_bytes, stdin) == n_bytes;
}

static void put(const void *from, size_t n_bytes) {
  if (n_bytes > 0 && fwrite(from, 1, n_bytes, stdout) != n_bytes) exit(1);
}

static void put_result(nxt_encoder *encoder, const nxt_ids *ids, bool done, unsigned flags, nxt_text *text) {
  uint32_t n = done ? (uint32_t)ids->n : UINT32_MAX;
  put(&n, sizeof n);
  if (!done) return;
  put(ids->items, ids->n * sizeof *ids->items);
  text->n = 0;
  nxt_decode(encoder, ids->items, ids->n, flags, text);
  n = (uint32_t)text->n;
  put(&n, sizeof n);
  put(text->items, text->n);
}

int main(int argc, char **argv) {
  nx_fault fault = {.text = ""};
  nxt_tokenizer *tokenizer = argc > 1 ? nxt_open(argv[1], &fault) : NULL;
  if (tokenizer == NULL) {
    fprintf(stderr, "tokenize: %s\n", fault.text);
    return 2;
  }
  unsigned flags = NXT_SKIP_SPECIAL;
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "special") == 0) flags |= NXT_ADD_SPECIAL;
    if (strcmp(argv[i], "plain") == 0) flags |= NXT_PLAIN_TEXT;
    if (strcmp(argv[i], "keep") == 0) flags &= ~(unsigned)NXT_SKIP_SPECIAL;
  }
  nxt_encoder *encoder = nxt_encoder_open(tokenizer);
  nxt_ids ids = {0};
  nxt_text text = {0};
  char *bytes = NULL;
  for (uint32_t n; get(&n, sizeof n);) {
    bytes = realloc(bytes, n + (size_t)1);
    if (bytes == NULL || !get(bytes, n)) return 1;
    ids.n = 0;
    fault.text[0] = '\0';
    put_result(encoder, &ids, nxt_encode(encoder, bytes, n, flags, &ids, &fault), flags, &text);
    if (fault.text[0] != '\0') fprintf(stderr, "tokenize: %s\n", fault.text);
  }
  free(bytes);
  free(ids.items);
  free(text.items);
  nxt_encoder_close(encoder);
  nxt_close(tokenizer);
  return 0;
}
