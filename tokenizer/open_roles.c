/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/open_roles.h"

#include "tokenizer/vocabulary.h"

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

static bool add(nxt_reading *reading, const json_t *token, bool special) {
  json_t *is = json_is_object(token) ? json_copy((json_t *)(uintptr_t)token) : json_object();
  if (!json_is_object(token)) json_object_set(is, "content", (json_t *)(uintptr_t)token);
  if (special) json_object_set_new(is, "special", json_true());
  bool good = nxt_add_token(reading, is);
  json_decref(is);
  return good;
}

/* A special token: what was one before stays as it is, and of several of the same text the last counts.
 * `mine` has those that were added here. */
static bool add_special(nxt_reading *reading, const json_t *token, json_t *mine) {
  const json_t *content = json_is_object(token) ? json_object_get(token, "content") : token;
  const char *text = json_string_value(content);
  size_t n_bytes = json_string_length(content);
  const nxt_vocabulary *added = &reading->tokenizer->added.names;
  if (text == NULL || (nxt_vocabulary_id(added, text, n_bytes) != NXT_NONE && !json_object_get(mine, text)))
    return true;
  json_object_set_new(mine, text, json_true());
  return add(reading, token, true);
}

static bool add_specials(nxt_reading *reading, const json_t *config, json_t *mine) {
  static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                      "pad_token", "cls_token", "mask_token"};
  static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};
  const json_t *token;
  const char *role;
  size_t k;
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (!add_special(reading, json_object_get(config, roles[i]), mine)) return false;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) { /* or roles that the model alone has */
    json_t *list = json_object_get(config, lists[i]);
    json_object_foreach(list, role, token)
      if (!add_special(reading, token, mine)) return false;
    json_array_foreach(list, k, token)
      if (!add_special(reading, token, mine)) return false;
  }
  return true;
}

/* First those that stand with their ids, in the order of the file, which say anew what added ones are. */
static bool add_tokens(nxt_reading *reading, const json_t *config) {
  const json_t *token;
  const char *id;
  json_object_foreach((json_t *)(uintptr_t)json_object_get(config, "added_tokens_decoder"), id, token)
    if (json_is_object(token) && !add(reading, token, false)) return false;
  json_t *mine = json_object();
  bool good = add_specials(reading, config, mine);
  json_decref(mine);
  return good;
}

static bool read_beside(nxt_reading *reading, const char *name, bool adds) {
  char path[4096];
  struct stat status;
  const char *slash = strrchr(reading->path, '/');
  int n_folder = slash != NULL ? (int)(slash + 1 - reading->path) : 0;
  snprintf(path, sizeof path, "%.*s%s", n_folder, reading->path, name);
  if (stat(path, &status) != 0) return true;
  nxt_reading beside = {.tokenizer = reading->tokenizer,
                        .path = path,
                        .fault = reading->fault,
                        .adds_tokens = reading->adds_tokens && adds};
  nxt_text text = {0};
  json_t *root = nxt_read_file(&beside, &text) ? nxt_parse_json(&beside, &text) : NULL;
  bool done = root != NULL && (!beside.adds_tokens || add_tokens(&beside, root));
  for (int role = 0; role < NXT_N_ROLES; role++)
    take_role(reading->tokenizer, json_object_get(root, keys[role]), &reading->tokenizer->roles[role]);
  json_decref(root);
  free(text.items);
  return done;
}

bool nxt_read_roles(nxt_reading *reading) {
  return read_beside(reading, "special_tokens_map.json", false) &&
         read_beside(reading, "tokenizer_config.json", true);
}
