/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/key.h"

#include "schema/plan.h"

#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void add_text(struct sha256_ctx *state, const char *text) {
  sha256_update(state, strlen(text) + 1, (const uint8_t *)text);
}

static void add_number(struct sha256_ctx *state, int64_t number) {
  sha256_update(state, sizeof number, (const uint8_t *)&number);
}

static void add_file(struct sha256_ctx *state, const char *path, const char *kind) {
  char *whole = realpath(path, NULL);
  struct stat is;
  add_text(state, kind);
  add_text(state, whole ? whole : path);
  free(whole);
  if (stat(path, &is) != 0) return;
  add_number(state, is.st_size);
  add_number(state, is.st_mtim.tv_sec);
  add_number(state, is.st_mtim.tv_nsec);
}

static void add_unsaid(struct sha256_ctx *state, const nxt_unsaid *said) {
  if (said == NULL) return;
  if (said->merges) add_file(state, said->merges, "merges");
  add_text(state, said->pattern ? said->pattern : "");
  for (size_t i = 0; said->special && said->special[i]; i++) add_text(state, said->special[i]);
  add_number(state, said->n_special);
}

void nxd_key_of(const nxd_files *files, const nxd_recipe *recipe, const char *tokenizer, const char *template,
                uint64_t most_records, const nxd_piece *piece, bool skip, char key[65]) {
  struct sha256_ctx state;
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_init(&state);
  add_text(&state, NX_VERSION);
  for (size_t i = 0; i < files->n; i++) add_file(&state, files->paths[i], files->kinds[i]->name);
  if (tokenizer && tokenizer[0]) add_file(&state, tokenizer, "tokenizer");
  add_unsaid(&state, recipe->unsaid);
  if (template && template[0]) add_file(&state, template, "template");
  add_text(&state, recipe->maker->name);
  for (uint32_t i = 0; i < recipe->wanted.n_fields; i++) add_text(&state, recipe->wanted.fields[i]);
  const int64_t numbers[] = {recipe->end, (int64_t)recipe->most_tokens, recipe->cut, recipe->type_code,
                             (int64_t)recipe->vocab, (int64_t)most_records, skip, recipe->encoding,
                             recipe->all_tokens, (int64_t)recipe->prompt_tokens, recipe->keep_end,
                             recipe->last_counts, recipe->rewarded};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) add_number(&state, numbers[i]);
  const int64_t pieces[] = {(int64_t)piece->seed, piece->n, piece->which};
  for (size_t i = 0; piece->n > 0 && i < sizeof pieces / sizeof *pieces; i++) add_number(&state, pieces[i]);
  if (recipe->whole) add_text(&state, "whole");
  sha256_digest(&state, sizeof digest, digest);
  nx_hex(digest, key);
}
