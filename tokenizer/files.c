/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/files.h"

#include "schema/plan_check.h"
#include "tokenizer/bpe.h"
#include "tokenizer/open.h"
#include "tokenizer/unicode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

const char *const nxt_file_names[NXT_N_FILES + 1] = {
    [NXT_FILE_TOKENIZER_JSON] = "tokenizer.json",
    [NXT_FILE_SENTENCEPIECE] = "tokenizer.model",
    [NXT_FILE_VOCAB_JSON] = "vocab.json",
    [NXT_FILE_QWEN] = "qwen.tiktoken",
    [NXT_FILE_TIKTOKEN] = "tiktoken.model",
    [NXT_FILE_TEKKEN] = "tekken.json",
    [NXT_FILE_RANKS] = "ranks.json",
    [NXT_FILE_MERGES] = "merges.txt",
    [NXT_FILE_ROLES] = "special_tokens_map.json",
    [NXT_FILE_CONFIG] = "tokenizer_config.json",
    [NXT_FILE_ADDED] = "added_tokens.json",
    [NXT_FILE_TEMPLATE] = "chat_template.jinja",
    [NXT_FILE_TEMPLATE_JSON] = "chat_template.json",
};

static bool is_file(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* FOLDER/NAME; "" where that is longer than any path. */
static void join(char path[PATH_BYTES], const char *folder, const char *name) {
  if (snprintf(path, PATH_BYTES, "%s/%s", folder, name) >= PATH_BYTES) path[0] = '\0';
}

bool nxt_is_there(const char *path) {
  char inside[PATH_BYTES];
  if (!is_folder(path)) return is_file(path);
  for (int i = 0; i < NXT_N_TOKENIZER_FILES; i++) {
    join(inside, path, nxt_file_names[i]);
    if (is_file(inside)) return true;
  }
  return false;
}

/* ---- copies ---- */

static bool write_all(int file, const char *bytes, size_t n_bytes) {
  for (ssize_t n; n_bytes > 0; bytes += n, n_bytes -= (size_t)n) {
    n = write(file, bytes, n_bytes);
    if (n <= 0) return false;
  }
  return fsync(file) == 0;
}

static bool write_file(const char *folder, const char *name, const nxt_text *text, nx_fault *fault) {
  char path[PATH_BYTES];
  join(path, folder, name);
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0 && errno == EEXIST) return true;
  bool good = file >= 0 && write_all(file, text->items, text->n);
  if (file >= 0 && close(file) != 0) good = false;
  return good || nx_fault_set(fault, 0, "cannot write %s: %s", path, strerror(errno));
}

/* What a tokenizer's file is, by what it holds; NXT_N_FILES: it has no usual name. */
static nxt_file kind_of(const nxt_text *text) {
  if (text->n > 0 && text->items[0] == '\n') return NXT_FILE_SENTENCEPIECE;
  json_t *root = json_loadb(text->n > 0 ? text->items : "", text->n, JSON_ALLOW_NUL, NULL);
  nxt_file kind = root == NULL                      ? NXT_FILE_TIKTOKEN
                  : json_object_get(root, "model")  ? NXT_FILE_TOKENIZER_JSON
                  : json_object_get(root, "config") ? NXT_FILE_TEKKEN
                  : json_is_object(root)            ? NXT_FILE_VOCAB_JSON
                  : json_is_array(root)             ? NXT_FILE_RANKS
                                                    : NXT_N_FILES;
  json_decref(root);
  return kind;
}

/* A file as one of this kind; NXT_N_FILES: as what it is. */
static bool copy_file(const char *path, const char *folder, nxt_file kind, nx_fault *fault) {
  nxt_reading reading = {.path = path, .fault = fault};
  nxt_text text = {0};
  bool good = nxt_read_file(&reading, &text);
  if (good && kind == NXT_N_FILES) kind = kind_of(&text);
  if (good && kind == NXT_N_FILES)
    good = nx_fault_set(fault, 0, "%s has no name in a folder of transformers", path);
  good = good && write_file(folder, nxt_file_names[kind], &text, fault);
  free(text.items);
  return good;
}

static bool copy_beside(const char *from, nxt_file first, const char *folder, nx_fault *fault) {
  char path[PATH_BYTES];
  for (nxt_file i = first; i < NXT_N_FILES; i++) {
    join(path, from, nxt_file_names[i]);
    if (is_file(path) && !copy_file(path, folder, i, fault)) return false;
  }
  return true;
}

static bool is_usual(const char *name) {
  for (int i = 0; i < NXT_N_TOKENIZER_FILES; i++)
    if (strcmp(name, nxt_file_names[i]) == 0) return true;
  return false;
}

void nxt_merges_of(const char *vocab, const nxt_unsaid *unsaid, char *path, size_t room) {
  static const char name[] = "vocab.json";
  const char *said = unsaid != NULL ? unsaid->merges : NULL, *slash = strrchr(vocab, '/');
  size_t n = strlen(vocab), n_name = sizeof name - 1;
  bool usual = n >= n_name && strcmp(vocab + n - n_name, name) == 0, folder = is_folder(vocab);
  size_t n_before = folder ? n : usual ? n - n_name : slash ? (size_t)(slash + 1 - vocab) : 0;
  if (said != NULL && is_file(said)) snprintf(path, room, "%s", said);
  else snprintf(path, room, "%.*s%smerges.txt", (int)n_before, vocab, folder ? "/" : "");
}

bool nxt_copy_files(const char *path, const nxt_unsaid *unsaid, const char *folder, nx_fault *fault) {
  char from[PATH_BYTES], merges[PATH_BYTES];
  nxt_merges_of(path, unsaid, merges, sizeof merges);
  if (is_file(merges) && !copy_file(merges, folder, NXT_FILE_MERGES, fault)) return false;
  if (is_folder(path)) return copy_beside(path, 0, folder, fault);
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  snprintf(from, sizeof from, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
  if (is_usual(name)) return copy_beside(from, 0, folder, fault);
  return copy_file(path, folder, NXT_N_FILES, fault) && copy_beside(from, NXT_FILE_ROLES, folder, fault);
}

/* ---- bytes ---- */

static const char config_of_bytes[] =
    "{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"clean_up_tokenization_spaces\": false,"
    " \"bos_token\": \"<|endoftext|>\", \"eos_token\": \"<|endoftext|>\"}\n";

static json_t *describe_bytes(void) {
  json_t *vocab = json_object();
  for (uint32_t byte = 0; byte < 256; byte++) {
    char name[5];
    size_t n = nxt_put_char(nxt_byte_char((uint8_t)byte), name);
    name[n] = '\0';
    json_object_set_new(vocab, name, json_integer(byte));
  }
  json_t *level = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                            "trim_offsets", 0, "use_regex", 0);
  json_t *end = json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", 256, "content", "<|endoftext|>",
                          "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
  json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:o, s:[]}", "type", "BPE", "dropout",
                            "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                            "byte_fallback", 0, "vocab", vocab, "merges");
  return json_pack("{s:s, s:n, s:n, s:[o], s:n, s:O, s:n, s:o, s:o}", "version", "1.0", "truncation",
                   "padding", "added_tokens", end, "normalizer", "pre_tokenizer", level, "post_processor",
                   "decoder", level, "model", model);
}

bool nxt_write_bytes(const char *folder, nx_fault *fault) {
  json_t *root = describe_bytes();
  char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
  json_decref(root);
  if (text == NULL) return nx_fault_set(fault, 0, "out of memory");
  const nxt_text tokenizer = {text, strlen(text), 0};
  const nxt_text config = {(char *)(uintptr_t)config_of_bytes, sizeof config_of_bytes - 1, 0};
  bool good = write_file(folder, nxt_file_names[NXT_FILE_TOKENIZER_JSON], &tokenizer, fault) &&
              write_file(folder, nxt_file_names[NXT_FILE_CONFIG], &config, fault);
  free(text);
  return good;
}
