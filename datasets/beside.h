/* SPDX-License-Identifier: Apache-2.0 */
/* PREFIX.tokenizer: a folder beside a dataset that was made of texts. It has the files of their tokenizer (or
 * one of bytes), for whoever makes texts of tokens again, and text.json, which says how many bytes became how
 * many tokens (runtime/data/dataset.h reads it). */
#ifndef NXD_BESIDE_H
#define NXD_BESIDE_H

#include "datasets/journal.h"
#include "tokenizer/tokenizer.h"

/* Makes the folder for a dataset whose parts are written; none where nothing is known of its texts.
 * `tokenizer` is NULL or "" where each byte was a token. */
bool nxd_write_beside(const char *folder, const char *tokenizer, const nxt_unsaid *unsaid,
                      const nxd_standing *standing, nxr_fault *fault);
/* Copies that of one dataset, but text.json, to another made of its documents, whose own is replaced; where
 * there is none there will be none. */
bool nxd_copy_beside(const char *from, const char *to, nxr_fault *fault);
/* Whether the tokenizers beside two datasets are the same, to the byte; or neither has one. */
bool nxd_same_beside(const char *prefix, const char *other);
/* Removes such a folder: nothing in it but its own files. */
void nxd_remove_beside(const char *folder);

#endif
