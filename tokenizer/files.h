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
/* Of nxt_open's `path` to a folder that is there: what nxt_open finds in the folder is the same tokenizer.
 * Files that are there already stay. */
bool nxt_copy_files(const char *path, const char *folder, nx_fault *fault);
/* Merges that stand elsewhere than beside their vocabulary, as merges.txt; nothing where there are none. */
bool nxt_copy_merges(const char *path, const char *folder, nx_fault *fault);
/* A tokenizer whose ids are the bytes of a text, and 256 the end of one, in a folder that is there. */
bool nxt_write_bytes(const char *folder, nx_fault *fault);

/* Names that nxt_copy_files gives, and NULL: what stands beside weights may have them. The first hold a
 * tokenizer, the better ones before; ranks.json is Megatron-LM's list of ranks, which transformers does not
 * read. */
enum { NXT_N_TOKENIZER_FILES = 7 };
extern const char *const nxt_file_names[];

#endif
