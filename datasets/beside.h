/* SPDX-License-Identifier: Apache-2.0 */
/* PREFIX.tokenizer: a folder beside a dataset that was made of texts. It has the files of their tokenizer (or
 * one of bytes), for whoever makes texts of tokens again, and text.json, which says how many bytes became how
 * many tokens (runtime/data/dataset.h reads it). */
#ifndef NXD_BESIDE_H
#define NXD_BESIDE_H

#include "datasets/journal.h"

/* Makes the folder for a dataset whose parts are written; none where nothing is known of its texts.
 * `tokenizer` is NULL or "" where each byte was a token. */
bool nxd_write_beside(const char *folder, const char *tokenizer, const nxd_standing *standing,
                      nxr_fault *fault);
/* Removes such a folder: nothing in it but its own files. */
void nxd_remove_beside(const char *folder);

#endif
