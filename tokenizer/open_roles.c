/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/open_roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const keys[NXT_N_ROLES] = {
    [NXT_BOS] = "bos_token", [NXT_EOS] = "eos_token", [NXT_PAD] = "pad_token", [NXT_UNK] = "unk_token"};

/* A token is its text, or an object with the text as `content`. What the tokenizer does not know has no id.
 */
static void take_role(nxt_tokenizer *tokenizer, const json_t *token, uint32_t *role) {
  const json_t *text = json_is_object(token) ? json_object_get(token, "content") : token;
  uint32_t id;
  if (json_is_string(text) && nxt_find(tokenizer, json_string_value(text), json_string_length(text), &id))
    *role = id;
}

static bool read_beside(nxt_reading *reading, const char *name) {
  char path[4096];
  struct stat status;
  const char *slash = strrchr(reading->path, '/');
  int n_folder = slash != NULL ? (int)(slash + 1 - reading->path) : 0;
  snprintf(path, sizeof path, "%.*s%s", n_folder, reading->path, name);
  if (stat(path, &status) != 0) return true;
  nxt_reading beside = {.tokenizer = reading->tokenizer, .path = path, .fault = reading->fault};
  nxt_text text = {0};
  json_t *root = nxt_read_file(&beside, &text) ? nxt_parse_json(&beside, &text) : NULL;
  for (int role = 0; role < NXT_N_ROLES; role++)
    take_role(reading->tokenizer, json_object_get(root, keys[role]), &reading->tokenizer->roles[role]);
  bool done = root != NULL;
  json_decref(root);
  free(text.items);
  return done;
}

bool nxt_read_roles(nxt_reading *reading) {
  return read_beside(reading, "special_tokens_map.json") && read_beside(reading, "tokenizer_config.json");
}
