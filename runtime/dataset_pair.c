/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dataset_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MOST_ATTEMPTS = 1000 };

static bool write_fault(const nxr_dataset_file *out, nxr_fault *fault) {
  return nxr_fault_set(fault, "cannot write %s: %s", out->temporary, strerror(errno));
}

static bool exists_fault(const nxr_dataset_file *out, nxr_fault *fault) {
  return nxr_fault_set(fault, "%s exists: remove it, choose another name, or give --force", out->path);
}

static bool is_there(const nxr_dataset_file *out) {
  return access(out->path, F_OK) == 0;
}

/* A name that nobody else writes to. */
static bool open_temporary(nxr_dataset_file *out, nxr_fault *fault) {
  int file = -1;
  size_t length = strlen(out->temporary);
  for (int attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    if (attempt > 1) snprintf(out->temporary + length, sizeof out->temporary - length, "-%d", attempt);
    file = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) break;
  }
  out->started = file >= 0;
  out->file = file >= 0 ? fdopen(file, "wb") : NULL;
  if (file >= 0 && out->file == NULL) close(file);
  return out->file != NULL || write_fault(out, fault);
}

static bool open_file(nxr_dataset_file *out, const char *prefix, const char *ending, bool force,
                      nxr_fault *fault) {
  const size_t room = sizeof out->temporary - 16; /* for the number of an attempt */
  if (snprintf(out->path, sizeof out->path, "%s%s", prefix, ending) >= (int)sizeof out->path ||
      snprintf(out->temporary, room, "%s%s.tmp", prefix, ending) >= (int)room)
    return nxr_fault_set(fault, "the name of the dataset is too long");
  if (!force && is_there(out)) return exists_fault(out, fault);
  return open_temporary(out, fault);
}

bool nxr_dataset_pair_open(nxr_dataset_pair *pair, const char *prefix, bool force, nxr_fault *fault) {
  *pair = (nxr_dataset_pair){.prefix = prefix, .force = force};
  return open_file(&pair->data, prefix, ".bin", force, fault) &&
         open_file(&pair->index, prefix, ".idx", force, fault);
}

bool nxr_dataset_pair_write(nxr_dataset_pair *pair, const void *bytes, size_t n_bytes, nxr_fault *fault) {
  return fwrite(bytes, 1, n_bytes, pair->data.file) == n_bytes || write_fault(&pair->data, fault);
}

static bool write_index(nxr_dataset_file *index, const nxr_dataset_contents *contents, nxr_fault *fault) {
  FILE *file = index->file;
  const uint64_t version = 1, n_borders = contents->n_documents + 1;
  bool good = fwrite("MMIDIDX\0\0", 9, 1, file) == 1 && fwrite(&version, 8, 1, file) == 1 &&
              fwrite(&contents->type_code, 1, 1, file) == 1 &&
              fwrite(&contents->n_sequences, 8, 1, file) == 1 && fwrite(&n_borders, 8, 1, file) == 1 &&
              fwrite(contents->sizes, 4, contents->n_sequences, file) == contents->n_sequences;
  uint64_t pointer = 0;
  for (uint64_t i = 0; good && i < contents->n_sequences; i++) {
    good = fwrite(&pointer, 8, 1, file) == 1;
    pointer += (uint64_t)contents->sizes[i] * contents->token_bytes;
  }
  for (uint64_t i = 0; good && i < n_borders; i++)
    good = fwrite(contents->borders ? &contents->borders[i] : &i, 8, 1, file) == 1;
  return good || write_fault(index, fault);
}

static bool end_file(nxr_dataset_file *out, nxr_fault *fault) {
  bool good = fflush(out->file) == 0 && fsync(fileno(out->file)) == 0;
  if (!good) write_fault(out, fault);
  if (fclose(out->file) != 0 && good) good = write_fault(out, fault);
  out->file = NULL;
  return good;
}

/* Whoever gives names in this folder waits for the others; where nothing can be locked, nobody does. */
static int lock_folder(const char *path) {
  char folder[NXR_DATASET_PATH_BYTES];
  const char *slash = strrchr(path, '/');
  int length = slash == path ? 1 : slash ? (int)(slash - path) : 1;
  snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".");
  int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0) flock(lock, LOCK_EX);
  return lock;
}

static bool give_name(nxr_dataset_file *out, nxr_fault *fault) {
  if (rename(out->temporary, out->path) != 0)
    return nxr_fault_set(fault, "cannot name %s %s: %s", out->temporary, out->path, strerror(errno));
  out->started = false;
  return true;
}

/* An old index goes first and the new one comes last, so that an index never stands beside another dataset's
 * data, and data without an index never stays. */
static bool give_names(nxr_dataset_pair *pair, nxr_fault *fault) {
  if (!pair->force && is_there(&pair->data)) return exists_fault(&pair->data, fault);
  if (!pair->force && is_there(&pair->index)) return exists_fault(&pair->index, fault);
  if (unlink(pair->index.path) != 0 && errno != ENOENT)
    return nxr_fault_set(fault, "cannot replace %s: %s", pair->index.path, strerror(errno));
  if (!give_name(&pair->data, fault)) return false;
  if (give_name(&pair->index, fault)) return true;
  unlink(pair->data.path);
  return false;
}

static nxr_dataset describe(const char *prefix, const nxr_dataset_contents *contents) {
  nxr_dataset is = {.prefix = prefix, .type_code = contents->type_code, .token_bytes = contents->token_bytes,
                    .n_sequences = contents->n_sequences, .n_documents = contents->n_documents};
  for (uint64_t i = 0; i < contents->n_sequences; i++) is.n_tokens += (uint64_t)contents->sizes[i];
  return is;
}

bool nxr_dataset_pair_finish(nxr_dataset_pair *pair, const nxr_dataset_contents *contents,
                             nxr_dataset *written, nxr_fault *fault) {
  *written = describe(pair->prefix, contents);
  if (!write_index(&pair->index, contents, fault) || !end_file(&pair->data, fault) ||
      !end_file(&pair->index, fault))
    return false;
  int lock = lock_folder(pair->data.path);
  bool good = give_names(pair, fault);
  if (lock >= 0) close(lock);
  return good;
}

static void discard(nxr_dataset_file *out) {
  if (out->file) fclose(out->file);
  if (out->started) unlink(out->temporary);
}

void nxr_dataset_pair_close(nxr_dataset_pair *pair) {
  discard(&pair->data);
  discard(&pair->index);
}
