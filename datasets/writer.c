/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/writer.h"

#include "datasets/names.h"
#include "datasets/work_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const part_names[NXD_N_PARTS] = {"bin", "sizes", "borders", "weights", "rewards"};

static bool write_fault(const nxd_writer *writer, nxr_fault *fault) {
  return nxr_fault_set(fault, "cannot write %s.bin: %s", writer->is.prefix, strerror(errno));
}

/* How long each part is where the writer stands. */
static uint64_t part_bytes(const nxd_writer *writer, nxd_part part) {
  const nxd_standing *standing = &writer->standing;
  switch (part) {
    case NXD_DATA: return standing->n_tokens * writer->token_bytes;
    case NXD_SIZES: return standing->n_sequences * sizeof(int32_t);
    case NXD_BORDERS: return standing->n_documents * sizeof(uint64_t);
    case NXD_REWARDS: return standing->n_documents * sizeof(float);
    default: return standing->n_tokens * sizeof(float);
  }
}

/* Opens a part at the place that the writer goes on from: what stands behind it is cut off. */
static bool open_part(nxd_writer *writer, nxd_part part) {
  char path[NXD_PATH_BYTES + 16];
  struct stat is;
  uint64_t n_bytes = part_bytes(writer, part);
  snprintf(path, sizeof path, "%s/%s", writer->folder, part_names[part]);
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return false;
  bool whole = fstat(file, &is) == 0 && (uint64_t)is.st_size >= n_bytes;
  if (!whole) errno = ENODATA;
  if (!whole || ftruncate(file, (off_t)n_bytes) != 0 || lseek(file, 0, SEEK_END) < 0 ||
      (writer->parts[part] = fdopen(file, "r+b")) == NULL) {
    close(file);
    return false;
  }
  return true;
}

static bool has_part(const nxd_writer *writer, nxd_part part) {
  return part == NXD_WEIGHTS ? writer->is.weights : part != NXD_REWARDS || writer->is.rewards;
}

static bool open_parts(nxd_writer *writer, nxr_fault *fault) {
  for (nxd_part part = 0; part < NXD_N_PARTS; part++)
    if (has_part(writer, part) && !open_part(writer, part)) return write_fault(writer, fault);
  return true;
}

bool nxd_writer_open(nxd_writer *writer, const nxd_writer_options *options, nxr_fault *fault) {
  *writer = (nxd_writer){.is = *options, .lock = -1};
  writer->token_bytes = nxr_token_type_of(options->type_code)->bytes;
  if (!nxd_work_folder_open(options->prefix, options->key, writer->folder, &writer->lock, &writer->standing,
                            fault))
    return false;
  writer->committed = writer->standing.n_records > 0;
  if (writer->standing.complete) return true; /* killed while it got its names: finish goes on */
  return (options->force || !nxd_dataset_exists(options->prefix, fault)) && open_parts(writer, fault);
}

static bool put(nxd_writer *writer, nxd_part part, const void *bytes, size_t n_bytes, nxr_fault *fault) {
  return fwrite(bytes, 1, n_bytes, writer->parts[part]) == n_bytes || write_fault(writer, fault);
}

static bool put_weights(nxd_writer *writer, const float *weights, uint64_t n, nxr_fault *fault) {
  const float one = 1.0F;
  if (!writer->is.weights) return true;
  if (weights) return put(writer, NXD_WEIGHTS, weights, n * sizeof *weights, fault);
  for (uint64_t i = 0; i < n; i++)
    if (!put(writer, NXD_WEIGHTS, &one, sizeof one, fault)) return false;
  return true;
}

bool nxd_writer_tokens(nxd_writer *writer, const void *tokens, const float *weights, uint64_t n,
                       nxr_fault *fault) {
  writer->standing.n_tokens += n;
  return put(writer, NXD_DATA, tokens, n * writer->token_bytes, fault) &&
         put_weights(writer, weights, n, fault);
}

bool nxd_writer_end_sequence(nxd_writer *writer, uint64_t n_tokens, nxr_fault *fault) {
  if (n_tokens > INT32_MAX)
    return nxr_fault_set(fault,
                         "document %llu of %s has more than %d tokens, more than one can hold: split it",
                         (unsigned long long)writer->standing.n_documents, writer->is.prefix, INT32_MAX);
  const int32_t size = (int32_t)n_tokens;
  writer->standing.n_sequences++;
  return put(writer, NXD_SIZES, &size, sizeof size, fault);
}

bool nxd_writer_end_document(nxd_writer *writer, float reward, nxr_fault *fault) {
  writer->standing.n_documents++;
  return put(writer, NXD_BORDERS, &writer->standing.n_sequences, sizeof(uint64_t), fault) &&
         (!writer->is.rewards || put(writer, NXD_REWARDS, &reward, sizeof reward, fault));
}

/* Puts a file that was written on disk. */
static bool store(FILE *file) {
  return fflush(file) == 0 && fdatasync(fileno(file)) == 0;
}

bool nxd_writer_commit(nxd_writer *writer, nxr_fault *fault) {
  if (writer->is.key == NULL) return true;
  for (nxd_part part = 0; part < NXD_N_PARTS; part++)
    if (writer->parts[part] && !store(writer->parts[part])) return write_fault(writer, fault);
  if (!nxd_journal_write(writer->folder, writer->is.key, &writer->standing, fault)) return false;
  writer->committed = true;
  return true;
}

/* -- the index ------------------------------------------------------------------------------------------- */

static bool copy_part(FILE *to, FILE *from) {
  uint8_t bytes[1 << 14];
  rewind(from);
  for (size_t n; (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
    if (fwrite(bytes, 1, n, to) != n) return false;
  return !ferror(from);
}

/* Where each sequence begins, in bytes: sequences follow one another. */
static bool write_pointers(FILE *to, FILE *sizes, uint32_t token_bytes) {
  int32_t size;
  uint64_t pointer = 0;
  rewind(sizes);
  while (fread(&size, sizeof size, 1, sizes) == 1) {
    if (fwrite(&pointer, sizeof pointer, 1, to) != 1) return false;
    pointer += (uint64_t)size * token_bytes;
  }
  return !ferror(sizes);
}

static bool write_index(nxd_writer *writer, FILE *to) {
  const uint64_t version = 1, n_sequences = writer->standing.n_sequences, first = 0,
                 n_borders = writer->standing.n_documents + 1;
  return fwrite("MMIDIDX\0\0", 9, 1, to) == 1 && fwrite(&version, 8, 1, to) == 1 &&
         fwrite(&writer->is.type_code, 1, 1, to) == 1 && fwrite(&n_sequences, 8, 1, to) == 1 &&
         fwrite(&n_borders, 8, 1, to) == 1 && copy_part(to, writer->parts[NXD_SIZES]) &&
         write_pointers(to, writer->parts[NXD_SIZES], writer->token_bytes) &&
         fwrite(&first, 8, 1, to) == 1 && copy_part(to, writer->parts[NXD_BORDERS]);
}

static bool make_index(nxd_writer *writer, nxr_fault *fault) {
  char path[NXD_PATH_BYTES + 16];
  snprintf(path, sizeof path, "%s/idx", writer->folder);
  FILE *index = fopen(path, "wb");
  bool good = index && write_index(writer, index) && store(index);
  if (index && fclose(index) != 0) good = false;
  return good || nxr_fault_set(fault, "cannot write %s.idx: %s", writer->is.prefix, strerror(errno));
}

/* All parts on disk, and a journal that says so. */
static bool complete(nxd_writer *writer, nxr_fault *fault) {
  for (nxd_part part = 0; part < NXD_N_PARTS; part++)
    if (writer->parts[part] && !store(writer->parts[part])) return write_fault(writer, fault);
  if (!make_index(writer, fault)) return false;
  writer->standing.complete = true;
  return writer->is.key == NULL ||
         nxd_journal_write(writer->folder, writer->is.key, &writer->standing, fault);
}

bool nxd_writer_finish(nxd_writer *writer, nxr_fault *fault) {
  const nxd_naming naming = {.folder = writer->folder, .prefix = writer->is.prefix,
                             .force = writer->is.force, .weights = writer->is.weights,
                             .rewards = writer->is.rewards,
                             .again = writer->standing.complete};
  if (!naming.again && !complete(writer, fault)) return false;
  writer->named = nxd_give_names(&naming, fault);
  return writer->named;
}

void nxd_writer_close(nxd_writer *writer) {
  for (nxd_part part = 0; part < NXD_N_PARTS; part++)
    if (writer->parts[part]) fclose(writer->parts[part]);
  if (writer->folder[0] == '\0') return;
  if (writer->committed && !writer->named) close(writer->lock);
  else nxd_work_folder_remove(writer->folder, writer->lock);
  writer->folder[0] = '\0';
}
