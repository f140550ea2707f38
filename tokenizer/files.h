/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer's files, as they stand in a folder that transformers reads, and copies of them.
 *
 * A file that has its usual name is one of a tokenizer's folder, all of whose files are copied. One with a
 * name of its own gets the usual one, and the files that say which role special tokens play are copied with
 * it. */
#ifndef NXT_FILES_H
#define NXT_FILES_H

#include "tokenizer/tokenizer.h"

/* Whether there is such a file, or a folder with one that nxt_open reads. */
bool nxt_is_there(const char *path);
/* Where the merges of a vocab.json, or of a folder with one, are: what is said of them, where that is there;
 * else merges.txt in its folder, and of NAME-vocab.json NAME-merges.txt. */
void nxt_merges_of(const char *vocab, const nxt_unsaid *unsaid, char *path, size_t room);
/* Of nxt_open_with's `path` to a folder that is there: what it finds in the folder, of which the same is said
 * but for merges, is the same tokenizer. Files that are there already stay. */
bool nxt_copy_files(const char *path, const nxt_unsaid *unsaid, const char *folder, nx_fault *fault);
/* A tokenizer whose ids are the bytes of a text, and 256 the end of one, in a folder that is there. */
bool nxt_write_bytes(const char *folder, nx_fault *fault);

/* What nxt_copy_files calls files. The first hold a tokenizer, the better ones before; ranks.json is
 * Megatron-LM's list of ranks, which transformers does not read. */
typedef enum nxt_file {
  NXT_FILE_TOKENIZER_JSON,
  NXT_FILE_SENTENCEPIECE,
  NXT_FILE_VOCAB_JSON,
  NXT_FILE_QWEN,
  NXT_FILE_TIKTOKEN,
  NXT_FILE_TEKKEN,
  NXT_FILE_RANKS,
  NXT_N_TOKENIZER_FILES,
  NXT_FILE_MERGES = NXT_N_TOKENIZER_FILES,
  NXT_FILE_ROLES, /* this, and what stands behind, says more of any tokenizer */
  NXT_FILE_CONFIG,
  NXT_FILE_ADDED,
  NXT_FILE_TEMPLATE,
  NXT_FILE_TEMPLATE_JSON,
  NXT_N_FILES
} nxt_file;
/* Their names, and NULL: what stands beside weights may have them. */
extern const char *const nxt_file_names[NXT_N_FILES + 1];

#endif
