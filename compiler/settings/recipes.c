/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/recipes.h"

#include <inttypes.h>
#include <string.h>

/* The kinds of data.kind that are made, the fields that they have by default, and which setting names the
 * second. */
static const struct {
  const char *name, *field, *second, *rejected;
  nx_recipe_kind kind;
  nxc_setting_id names_second;
} kinds[] = {
    {"text", "text", "", "", NX_RECIPE_TEXTS, NX_SETTING_DATA_LABELS},
    {"tokenized", "input_ids", "", "", NX_RECIPE_TOKENS, NX_SETTING_DATA_LABELS},
    {"dialogues", "messages", "", "", NX_RECIPE_DIALOGUES, NX_SETTING_DATA_LABELS},
    {"completions", "prompt", "completion", "", NX_RECIPE_COMPLETIONS, NX_SETTING_DATA_COMPLETION},
    {"pairs", "prompt", "chosen", "rejected", NX_RECIPE_PREFERENCES, NX_SETTING_DATA_COMPLETION},
    {"counting", "", "", "", NX_RECIPE_COUNTING, NX_SETTING_DATA_LABELS},
};

static const char *text_or(const nxc_settings *s, nxc_setting_id id, const char *otherwise) {
  return nxc_has(s, id) ? nxc_text(s, id) : otherwise;
}

/* An entry of a list beside the paths; one entry alone is for all. */
static const nxc_value *entry_at(const nxc_settings *s, nxc_setting_id id, size_t index) {
  size_t n = 0;
  const nxc_value *list = nxc_has(s, id) ? nxc_list(s, id, &n) : NULL;
  if (n == 1) index = 0;
  return index < n ? &list[index] : NULL;
}

static uint64_t number_at(const nxc_settings *s, nxc_setting_id id, size_t index) {
  const nxc_value *entry = entry_at(s, id, index);
  return entry ? (uint64_t)entry->integer : 0;
}

static nxc_recipe read(const nxc_settings *s, size_t kind, const char *path, size_t index) {
  bool made_up = kinds[kind].kind == NX_RECIPE_COUNTING, pairs = kinds[kind].kind == NX_RECIPE_PREFERENCES;
  const nxc_value *part = entry_at(s, NX_SETTING_DATA_PART, index);
  nxc_recipe recipe = {.input = made_up ? "" : path,
                       .field = text_or(s, NX_SETTING_DATA_FIELD, kinds[kind].field),
                       .labels = text_or(s, kinds[kind].names_second, kinds[kind].second),
                       .rejected = pairs ? text_or(s, NX_SETTING_DATA_REJECTED, kinds[kind].rejected) : "",
                       .reward = nxc_is(s, NX_SETTING_ALIGNMENT_STRATEGY, "kto")
                                     ? text_or(s, NX_SETTING_DATA_REWARD, "label")
                                     : "",
                       .part = part ? part->text : "",
                       .tokenizer = text_or(s, NX_SETTING_DATA_TOKENIZER, ""),
                       .template = text_or(s, NX_SETTING_DATA_TEMPLATE, "")};
  recipe.record = (nx_recipe){.kind = kinds[kind].kind,
                              .tokens = number_at(s, NX_SETTING_DATA_DOCUMENT_TOKENS, index),
                              .records = number_at(s, NX_SETTING_DATA_DOCUMENTS, index),
                              .vocab = (uint64_t)nxc_int_or(s, NX_SETTING_MODEL_VOCAB, 0)};
  if (!made_up) recipe.record.pieces = (uint32_t)number_at(s, NX_SETTING_DATA_PIECES, index);
  if (nxc_flag(s, NX_SETTING_DATA_MERGE)) {
    recipe.record.flags = NX_RECIPE_WHOLE;
    recipe.record.tokens = 0, recipe.record.pieces = 0;
  }
  if (recipe.record.pieces > 0) {
    recipe.record.piece = (uint32_t)number_at(s, NX_SETTING_DATA_PIECE, index);
    recipe.record.seed = (uint64_t)nxc_int_or(s, NX_SETTING_RUN_SEED, 0);
  }
  if (nxc_flag(s, NX_SETTING_DATA_APPEND_EOD)) recipe.record.flags |= NX_RECIPE_APPEND_EOD;
  if (nxc_is(s, NX_SETTING_DATA_LOSS_ON, "all")) recipe.record.flags |= NX_RECIPE_ALL_TOKENS;
  if (nxc_flag(s, NX_SETTING_DATA_CUT)) recipe.record.flags |= NX_RECIPE_CUT;
  if (!pairs) return recipe;
  if (nxc_is(s, NX_SETTING_DATA_PROMPT_KEEPS, "end")) recipe.record.flags |= NX_RECIPE_KEEP_END;
  if (nxc_is(s, NX_SETTING_ALIGNMENT_STRATEGY, "reward")) recipe.record.flags |= NX_RECIPE_LAST_COUNTS;
  recipe.record.prompt_tokens =
      (uint64_t)nxc_int_or(s, NX_SETTING_DATA_PROMPT_TOKENS, (int64_t)recipe.record.tokens / 2);
  return recipe;
}

/* "wikicorpus" of "/data/wikicorpus.jsonl.gz". */
static const char *stem(nxc_arena *arena, const char *path) {
  size_t n = strlen(path);
  while (n > 0 && path[n - 1] == '/') n--;
  size_t first = n;
  while (first > 0 && path[first - 1] != '/') first--;
  size_t length = strcspn(path + first, ".");
  if (length > n - first || length == 0) length = n - first;
  return nxc_arena_printf(arena, "%.*s", (int)length, path + first);
}

/* What is said of a tokenizer that its files do not; "": nothing is. */
static const char *unsaid(const nxc_settings *s) {
  nxc_arena *arena = nxc_settings_arena(s);
  size_t n = 0;
  bool listed = nxc_has(s, NX_SETTING_RUN_TOKENIZER_SPECIAL);
  const nxc_value *special = listed ? nxc_list(s, NX_SETTING_RUN_TOKENIZER_SPECIAL, &n) : NULL;
  const char *merges = text_or(s, NX_SETTING_RUN_TOKENIZER_MERGES, "");
  const char *pattern = text_or(s, NX_SETTING_RUN_TOKENIZER_PATTERN, ""), *words = "";
  int64_t n_ids = nxc_int_or(s, NX_SETTING_RUN_TOKENIZER_SPECIAL_IDS, 0);
  for (size_t i = 0; i < n; i++) words = nxc_arena_printf(arena, "%s\n%s", words, special[i].text);
  if (merges[0] == '\0' && pattern[0] == '\0' && n == 0 && n_ids == 0) return "";
  return nxc_arena_printf(arena, "\n%s\n%s\n%" PRId64 "%s", merges, pattern, n_ids, words);
}

static void name(const nxc_settings *s, const char *path, nxc_recipe *recipe) {
  nxc_arena *arena = nxc_settings_arena(s);
  const char *folder = nxc_text(s, NX_SETTING_DATA_PREPARED);
  const nx_recipe *is = &recipe->record;
  const char *all =
      nxc_arena_printf(arena, "%u\n%s\n%s\n%s\n%s\n%s\n%s\n%u %" PRIu64 " %" PRIu64 " %" PRIu64, is->kind,
                       recipe->input, recipe->field, recipe->labels, recipe->part, recipe->tokenizer,
                       recipe->template, is->flags, is->tokens, is->records, is->vocab);
  if (is->kind == NX_RECIPE_PREFERENCES)
    all = nxc_arena_printf(arena, "%s\n%s\n%" PRIu64, all, recipe->rejected, is->prompt_tokens);
  if (recipe->reward[0] != '\0') all = nxc_arena_printf(arena, "%s\nreward %s", all, recipe->reward);
  if (is->pieces > 0 || is->kind == NX_RECIPE_MERGE)
    all = nxc_arena_printf(arena, "%s\n%u %u %" PRIu64, all, is->piece, is->pieces, is->seed);
  if (recipe->tokenizer[0] != '\0') all = nxc_arena_printf(arena, "%s%s", all, unsaid(s));
  char hex[65];
  nx_sha256_hex(all, strlen(all), hex);
  recipe->prefix = nxc_arena_printf(arena, "%s/%s-%.16s", folder, stem(arena, path), hex);
}

const nxc_recipe *nxc_recipe_read(const nxc_settings *s, const char *path, size_t index) {
  const char *wanted = nxc_text(s, NX_SETTING_DATA_KIND);
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    if (strcmp(kinds[kind].name, wanted) != 0) continue;
    nxc_recipe *recipe = nxc_arena_alloc(nxc_settings_arena(s), sizeof *recipe);
    *recipe = read(s, kind, path, index);
    name(s, path, recipe);
    return recipe;
  }
  return NULL;
}

/* -- merges ---------------------------------------------------------------------------------------------- */

static uint32_t shuffles_of(const nxc_settings *s) {
  return nxc_is(s, NX_SETTING_DATA_MERGE_SHUFFLE, "each")  ? NX_RECIPE_SHUFFLE_EACH
         : nxc_is(s, NX_SETTING_DATA_MERGE_SHUFFLE, "all") ? NX_RECIPE_SHUFFLE_ALL
         : nxc_is(s, NX_SETTING_DATA_MERGE_SHUFFLE, "both") ? NX_RECIPE_SHUFFLE_EACH | NX_RECIPE_SHUFFLE_ALL
                                                            : 0;
}

/* A line for the piece that is asked for, or for each: that of -1 is all, one behind the other. */
static const char *add_lines(const nxc_settings *s, const char *lines, const char *prefix, size_t i) {
  nxc_arena *arena = nxc_settings_arena(s);
  uint64_t tokens = number_at(s, NX_SETTING_DATA_DOCUMENT_TOKENS, i);
  int64_t pieces = (int64_t)number_at(s, NX_SETTING_DATA_PIECES, i);
  int64_t piece = pieces > 0 ? (int64_t)number_at(s, NX_SETTING_DATA_PIECE, i) : 0;
  int64_t first = piece < 0 ? 0 : piece, end = piece < 0 ? pieces : piece + 1;
  for (int64_t at = first; at < end; at++)
    lines = nxc_arena_printf(arena, "%s%" PRIu64 " %" PRId64 " %" PRId64 " %s\n", lines, tokens, pieces, at,
                             prefix);
  return lines;
}

static nxc_recipe merge(const nxc_settings *s, const nxc_value *paths, size_t n) {
  nxc_arena *arena = nxc_settings_arena(s);
  const nxc_recipe **parts = nxc_arena_array(arena, n, sizeof *parts);
  const char *lines = "";
  for (size_t i = 0; i < n; i++) {
    parts[i] = nxc_recipe_read(s, paths[i].text, i);
    lines = add_lines(s, lines, parts[i]->prefix, i);
  }
  nxc_recipe recipe = *parts[0];
  recipe.input = lines, recipe.parts = parts, recipe.n_parts = n;
  recipe.field = recipe.labels = recipe.rejected = recipe.reward = recipe.part = recipe.template = "";
  recipe.record = (nx_recipe){.kind = NX_RECIPE_MERGE,
                              .flags = shuffles_of(s),
                              .vocab = recipe.record.vocab,
                              .seed = (uint64_t)nxc_int_or(s, NX_SETTING_RUN_SEED, 0),
                              .pieces = (uint32_t)nxc_int_or(s, NX_SETTING_DATA_MERGE_PIECES, 0),
                              .piece = (uint32_t)nxc_int_or(s, NX_SETTING_DATA_MERGE_PIECE, 0)};
  return recipe;
}

const nxc_recipe *nxc_recipe_merged(const nxc_settings *s, const nxc_value *paths, size_t n) {
  if (n == 0 || !nxc_flag(s, NX_SETTING_DATA_MERGE) || !nxc_recipe_read(s, paths[0].text, 0)) return NULL;
  nxc_recipe *recipe = nxc_arena_alloc(nxc_settings_arena(s), sizeof *recipe);
  *recipe = merge(s, paths, n);
  name(s, paths[0].text, recipe);
  recipe->tokenizer = "";
  return recipe;
}
