/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dataset.h"
#include "runtime/dataset_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_UINT16 = 8, END_OF_DOCUMENT = 256, CHUNK_BYTES = 1 << 16 };

/* Appends the bytes of an open text as 16-bit tokens; *n_tokens receives how many. */
static bool append_bytes(nxr_dataset_pair *pair, const char *text, FILE *in, uint64_t *n_tokens,
                         nxr_fault *fault) {
  static unsigned char bytes[CHUNK_BYTES];
  static uint16_t tokens[CHUNK_BYTES];
  *n_tokens = 0;
  for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0; *n_tokens += n) {
    for (size_t i = 0; i < n; i++) tokens[i] = bytes[i];
    if (!nxr_dataset_pair_write(pair, tokens, n * sizeof *tokens, fault)) return false;
  }
  return !ferror(in) || nxr_fault_set(fault, "cannot read %s: %s", text, strerror(errno));
}

static bool append_text(nxr_dataset_pair *pair, const char *text, bool append_end, int32_t *size,
                        nxr_fault *fault) {
  const uint16_t end = END_OF_DOCUMENT;
  uint64_t n_tokens;
  FILE *in = strcmp(text, "-") == 0 ? stdin : fopen(text, "rb");
  if (in == NULL) return nxr_fault_set(fault, "cannot read %s: %s", text, strerror(errno));
  bool good = append_bytes(pair, text, in, &n_tokens, fault);
  if (in != stdin) fclose(in);
  if (!good || (append_end && !nxr_dataset_pair_write(pair, &end, sizeof end, fault))) return false;
  n_tokens += append_end;
  if (n_tokens == 0) return nxr_fault_set(fault, "%s is empty", text);
  if (n_tokens > INT32_MAX)
    return nxr_fault_set(fault, "%s has more than %d tokens, more than one document can hold: split it", text,
                         INT32_MAX);
  *size = (int32_t)n_tokens;
  return true;
}

bool nxr_dataset_build(const char *const *texts, uint32_t n_texts, const char *prefix, bool append_end,
                       bool force, nxr_dataset *written, nxr_fault *fault) {
  nxr_dataset_pair pair;
  int32_t *sizes = calloc(n_texts, sizeof *sizes);
  if (sizes == NULL) return nxr_fault_set(fault, "out of memory");
  bool good = nxr_dataset_pair_open(&pair, prefix, force, fault);
  for (uint32_t i = 0; good && i < n_texts; i++)
    good = append_text(&pair, texts[i], append_end, &sizes[i], fault);
  const nxr_dataset_contents contents = {.type_code = TYPE_UINT16, .token_bytes = sizeof(uint16_t),
                                         .n_sequences = n_texts, .n_documents = n_texts, .sizes = sizes};
  good = good && nxr_dataset_pair_finish(&pair, &contents, written, fault);
  nxr_dataset_pair_close(&pair);
  free(sizes);
  return good;
}
