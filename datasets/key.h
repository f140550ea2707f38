/* SPDX-License-Identifier: Apache-2.0 */
/* What tells one dataset that is to be built from another: SHA-256 of its inputs (names, sizes and times of
 * change), its tokenizer's file, and its recipe. */
#ifndef NXD_KEY_H
#define NXD_KEY_H

#include "datasets/files.h"
#include "datasets/maker.h"
#include "datasets/pieces.h"

void nxd_key_of(const nxd_files *files, const nxd_recipe *recipe, const char *tokenizer, const char *template,
                uint64_t most_records, const nxd_piece *piece, bool skip, char key[65]);

#endif
