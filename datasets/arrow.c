/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/arrow.h"

#include "datasets/arrow_flat.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_KIND = 1, MESSAGE_BODY_BYTES = 3 };
enum { KIND_SCHEMA = 1, KIND_DICTIONARY = 2, KIND_BATCH = 3 };
enum {
  FILE_HEAD_BYTES = 8,
  FILE_END_BYTES = 10
}; /* "ARROW1" and padding; bytes of the footer and "ARROW1" */

/* A message: what describes it, and its body. n_bytes 0: the end. */
typedef struct message {
  const uint8_t *bytes;
  size_t n_bytes;
  int64_t kind;
  nxd_arrow_bytes body;
} message;

static bool damaged(const nxd_arrow *arrow, const char *what, nxr_fault *fault) {
  return nxr_fault_set(fault, "%s %s", arrow->path, what);
}

static int64_t load_word(const nxd_arrow *arrow) {
  return arrow->end - arrow->at < 4 ? 0 : nxd_flat_load(arrow->file.bytes + arrow->at, 4);
}

static bool next_message(nxd_arrow *arrow, message *is, nxr_fault *fault) {
  *is = (message){0};
  int64_t n = load_word(arrow);
  if (arrow->end - arrow->at >= 4) arrow->at += 4;
  if (n == -1) {
    n = load_word(arrow);
    arrow->at += arrow->end - arrow->at >= 4 ? 4 : 0;
  }
  if (n == 0) return true;
  if (n < 0 || (uint64_t)n > arrow->end - arrow->at)
    return damaged(arrow, "is cut short, or is no Arrow stream", fault);
  nxd_flat flat = {.bytes = arrow->file.bytes + arrow->at, .n = (size_t)n};
  nxd_flat_table table = nxd_flat_root(&flat);
  uint64_t n_body = (uint64_t)nxd_flat_integer(&table, MESSAGE_BODY_BYTES, 8, 0);
  is->kind = nxd_flat_integer(&table, MESSAGE_KIND, 1, 0);
  arrow->at += (uint64_t)n;
  if (flat.damaged || n_body > arrow->end - arrow->at)
    return damaged(arrow, "is cut short, or damaged: a message ends behind its end", fault);
  is->bytes = flat.bytes, is->n_bytes = flat.n;
  is->body = (nxd_arrow_bytes){arrow->file.bytes + arrow->at, n_body};
  arrow->at += n_body;
  return true;
}

/* Where the messages stand: of a file behind its head and before its footer. */
static void find_messages(nxd_arrow *arrow) {
  const uint8_t *bytes = arrow->file.bytes;
  uint64_t n = arrow->file.n_bytes;
  arrow->end = n;
  if (n < FILE_HEAD_BYTES + FILE_END_BYTES || memcmp(bytes, "ARROW1", 6) != 0) return;
  arrow->at = FILE_HEAD_BYTES;
  uint64_t n_footer = (uint64_t)nxd_flat_load(bytes + n - FILE_END_BYTES, 4);
  bool has_footer =
      memcmp(bytes + n - 6, "ARROW1", 6) == 0 && n_footer <= n - FILE_HEAD_BYTES - FILE_END_BYTES;
  if (has_footer) arrow->end = n - FILE_END_BYTES - n_footer;
}

static bool read_head(nxd_arrow *arrow, nxr_fault *fault) {
  message first;
  if (!next_message(arrow, &first, fault)) return false;
  if (first.kind != KIND_SCHEMA)
    return damaged(arrow, "is no Arrow stream: it does not begin with a schema", fault);
  return nxd_arrow_read_schema(arrow, first.bytes, first.n_bytes, fault);
}

bool nxd_arrow_open(nxd_arrow *arrow, const char *path, nxr_fault *fault) {
  *arrow = (nxd_arrow){.path = path};
  if (!nxr_mapping_open(path, &arrow->file, fault)) return false;
  find_messages(arrow);
  if (read_head(arrow, fault)) return true;
  nxd_arrow_close(arrow);
  return false;
}

bool nxd_arrow_next(nxd_arrow *arrow, nxr_fault *fault) {
  for (message is;;) {
    nxd_arrow_forget(&arrow->rows);
    if (!next_message(arrow, &is, fault)) return false;
    if (is.n_bytes == 0) return true;
    if (is.kind == KIND_DICTIONARY &&
        !nxd_arrow_read_dictionary(arrow, is.bytes, is.n_bytes, is.body, fault))
      return false;
    if (is.kind != KIND_BATCH) continue;
    if (!nxd_arrow_read_batch(arrow, &arrow->rows, is.bytes, is.n_bytes, is.body, fault)) return false;
    if (arrow->rows.n_rows > 0) return true;
  }
}

void nxd_arrow_close(nxd_arrow *arrow) {
  nxd_arrow_forget(&arrow->rows);
  nxd_buffer_free(&arrow->rows.blocks);
  free(arrow->rows.columns);
  nxd_arrow_close_dictionaries(arrow);
  nxr_mapping_close(&arrow->file);
  *arrow = (nxd_arrow){0};
}
