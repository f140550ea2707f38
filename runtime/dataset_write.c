/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TYPE_UINT16 = 8, END_OF_DOCUMENT = 256, CHUNK_BYTES = 1 << 16 };

typedef struct output {
  FILE *file;
  bool started; /* the temporary file is ours */
  char temporary[4096], path[4096];
} output;

static bool write_fault(const output *out, nxr_fault *fault) {
  return nxr_fault_set(fault, "cannot write %s: %s", out->temporary, strerror(errno));
}

static bool output_open(output *out, const char *prefix, const char *ending, bool force, nxr_fault *fault) {
  if (snprintf(out->path, sizeof out->path, "%s%s", prefix, ending) >= (int)sizeof out->path ||
      snprintf(out->temporary, sizeof out->temporary, "%s%s.tmp", prefix, ending) >=
          (int)sizeof out->temporary)
    return nxr_fault_set(fault, "the name of the dataset is too long");
  if (!force && access(out->path, F_OK) == 0)
    return nxr_fault_set(fault, "%s exists: remove it, choose another name, or give --force", out->path);
  out->file = fopen(out->temporary, "wb");
  out->started = out->file != NULL;
  return out->started || write_fault(out, fault);
}

static bool output_close(output *out, nxr_fault *fault) {
  bool good = fflush(out->file) == 0 && fsync(fileno(out->file)) == 0;
  if (!good) write_fault(out, fault);
  if (fclose(out->file) != 0 && good) good = write_fault(out, fault);
  out->file = NULL;
  return good;
}

static bool output_rename(const output *out, nxr_fault *fault) {
  if (rename(out->temporary, out->path) == 0) return true;
  return nxr_fault_set(fault, "cannot name %s %s: %s", out->temporary, out->path, strerror(errno));
}

/* Both files are safe before either gets its name. An old index goes first and the new one comes last, so
 * that an index never stands beside another dataset's data. */
static bool publish(output *data, output *index, nxr_fault *fault) {
  if (!output_close(data, fault) || !output_close(index, fault)) return false;
  if (unlink(index->path) != 0 && errno != ENOENT)
    return nxr_fault_set(fault, "cannot replace %s: %s", index->path, strerror(errno));
  return output_rename(data, fault) && output_rename(index, fault);
}

static void output_discard(output *out) {
  if (out->file) fclose(out->file);
  if (out->started) unlink(out->temporary);
}

/* Appends one text as 16-bit tokens; *n_tokens receives how many. */
static bool append_text(output *data, const char *text, bool append_end, uint64_t *n_tokens,
                        nxr_fault *fault) {
  FILE *in = strcmp(text, "-") == 0 ? stdin : fopen(text, "rb");
  if (in == NULL) return nxr_fault_set(fault, "cannot read %s: %s", text, strerror(errno));
  static unsigned char bytes[CHUNK_BYTES];
  static uint16_t tokens[CHUNK_BYTES];
  size_t n;
  bool good = true;
  *n_tokens = 0;
  while (good && (n = fread(bytes, 1, sizeof bytes, in)) > 0) {
    for (size_t i = 0; i < n; i++) tokens[i] = bytes[i];
    good = fwrite(tokens, sizeof *tokens, n, data->file) == n || write_fault(data, fault);
    *n_tokens += n;
  }
  if (good && ferror(in)) good = nxr_fault_set(fault, "cannot read %s: %s", text, strerror(errno));
  if (in != stdin) fclose(in);
  if (good && append_end) {
    const uint16_t end = END_OF_DOCUMENT;
    good = fwrite(&end, sizeof end, 1, data->file) == 1 || write_fault(data, fault);
    *n_tokens += 1;
  }
  if (good && *n_tokens == 0) return nxr_fault_set(fault, "%s is empty", text);
  if (good && *n_tokens > INT32_MAX)
    return nxr_fault_set(fault, "%s has more than %d tokens, more than one document can hold: split it", text,
                         INT32_MAX);
  return good;
}

static bool write_index(output *index, const uint64_t *sizes, uint32_t n, nxr_fault *fault) {
  const uint64_t version = 1, n_sequences = n, n_borders = (uint64_t)n + 1;
  const uint8_t type = TYPE_UINT16;
  bool good = fwrite("MMIDIDX\0\0", 9, 1, index->file) == 1 && fwrite(&version, 8, 1, index->file) == 1 &&
              fwrite(&type, 1, 1, index->file) == 1 && fwrite(&n_sequences, 8, 1, index->file) == 1 &&
              fwrite(&n_borders, 8, 1, index->file) == 1;
  for (uint32_t i = 0; good && i < n; i++) {
    const int32_t size = (int32_t)sizes[i];
    good = fwrite(&size, 4, 1, index->file) == 1;
  }
  uint64_t pointer = 0;
  for (uint32_t i = 0; good && i < n; i++) {
    good = fwrite(&pointer, 8, 1, index->file) == 1;
    pointer += sizes[i] * sizeof(uint16_t);
  }
  for (uint64_t i = 0; good && i <= n; i++) good = fwrite(&i, 8, 1, index->file) == 1;
  return good || write_fault(index, fault);
}

bool nxr_dataset_build(const char *const *texts, uint32_t n_texts, const char *prefix, bool append_end,
                       bool force, nxr_fault *fault) {
  output data = {0}, index = {0};
  uint64_t *sizes = calloc(n_texts, sizeof *sizes);
  if (sizes == NULL) return nxr_fault_set(fault, "out of memory");
  bool good =
      output_open(&data, prefix, ".bin", force, fault) && output_open(&index, prefix, ".idx", force, fault);
  for (uint32_t i = 0; good && i < n_texts; i++)
    good = append_text(&data, texts[i], append_end, &sizes[i], fault);
  good = good && write_index(&index, sizes, n_texts, fault);
  good = good && publish(&data, &index, fault);
  if (!good) {
    output_discard(&data);
    output_discard(&index);
  }
  free(sizes);
  return good;
}
