/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any bytes for a tokenizer's file: it is refused with a message, or it encodes texts to ids that it
 * has, and decodes them. One of the texts is the file's own end. Behind "VM" come the bytes of a vocabulary,
 * as two bytes say how many, and those of its merges. */
#include "tests/fuzz/replay.h"
#include "tokenizer/tokenizer.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

static void encode(nxt_encoder *encoder, const nxt_tokenizer *tokenizer, const char *text, size_t n_bytes,
                   unsigned flags) {
  nxt_ids ids = {0};
  nxt_text decoded = {0};
  nx_fault fault = {.text = ""};
  if (nxt_encode(encoder, text, n_bytes, flags, &ids, &fault)) {
    for (size_t i = 0; i < ids.n; i++)
      assert(ids.items[i] < nxt_n_ids(tokenizer) || (flags & NXT_ADD_SPECIAL));
    nxt_decode(encoder, ids.items, ids.n, NXT_SKIP_SPECIAL, &decoded);
  } else {
    assert(fault.text[0] != '\0' && ids.n == 0);
  }
  free(ids.items);
  free(decoded.items);
}

static void encode_texts(const nxt_tokenizer *tokenizer, const uint8_t *bytes, size_t n_bytes) {
  static const char *const texts[] = {
      "", "The quick brown fox's 1234 \xe6\x97\xa5\xe6\x9c\xac\n\n  e\xcc\x81 <s>x</s>\xff\xe2\x82 ",
      "\xf0\x9f\x98\x80\xe2\x96\x81\xe2\x96\x81\x61\xcc\xa3\xcc\x87 [MASK] ab"};
  size_t n_end = n_bytes < 300 ? n_bytes : 300;
  nxt_encoder *encoder = nxt_encoder_open(tokenizer);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    encode(encoder, tokenizer, texts[i], strlen(texts[i]), NXT_ADD_SPECIAL);
    encode(encoder, tokenizer, texts[i], strlen(texts[i]), NXT_PLAIN_TEXT);
  }
  encode(encoder, tokenizer, (const char *)bytes + n_bytes - n_end, n_end, 0);
  nxt_encoder_close(encoder);
}

static void write_file(int which, const uint8_t *bytes, size_t n_bytes, char path[64]) {
  static int files[2] = {-1, -1};
  int *file = &files[which];
  if (*file < 0) *file = memfd_create("tokenizer", 0);
  if (*file < 0 || ftruncate(*file, 0) != 0 || pwrite(*file, bytes, n_bytes, 0) != (ssize_t)n_bytes) abort();
  snprintf(path, 64, "/proc/self/fd/%d", *file);
}

static nxt_tokenizer *open_files(const uint8_t *bytes, size_t n_bytes, nx_fault *fault) {
  char path[64], merges[64];
  if (n_bytes < 4 || memcmp(bytes, "VM", 2) != 0) {
    write_file(0, bytes, n_bytes, path);
    return nxt_open(path, fault);
  }
  size_t n_left = n_bytes - 4, n_vocabulary = (size_t)bytes[2] | (size_t)bytes[3] << 8;
  if (n_vocabulary > n_left) n_vocabulary = n_left;
  write_file(0, bytes + 4, n_vocabulary, path);
  write_file(1, bytes + 4 + n_vocabulary, n_left - n_vocabulary, merges);
  return nxt_open_with(path, &(nxt_unsaid){.merges = merges}, fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  nx_fault fault = {.text = ""};
  nxt_tokenizer *tokenizer = open_files(bytes, n_bytes, &fault);
  if (tokenizer == NULL) {
    assert(fault.text[0] != '\0');
    return 0;
  }
  encode_texts(tokenizer, bytes, n_bytes);
  nxt_close(tokenizer);
  return 0;
}
