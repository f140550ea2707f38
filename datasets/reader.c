/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/reader.h"

#include <stdlib.h>

enum { BATCH_BYTES = 1 << 20, BATCH_RECORDS = 4096 };

static bool open_next(nxd_reader *reader, nxr_fault *fault) {
  const nxd_files *files = reader->files;
  size_t i = reader->place.file;
  return nxd_input_open(&reader->input, files->kinds[i], files->paths[i], reader->wanted, fault);
}

bool nxd_reader_open(nxd_reader *reader, const nxd_files *files, const nxd_wanted *wanted,
                     const nxd_place *place, uint64_t most_records, nxr_fault *fault) {
  *reader = (nxd_reader){.files = files, .wanted = wanted, .place = *place, .n_left = most_records};
  if (place->file >= files->n || (place->offset == 0 && place->line == 0)) return true;
  if (open_next(reader, fault) &&
      reader->input.kind->seek(&reader->input, place->offset, place->line, fault))
    return true;
  nxd_reader_close(reader);
  return false;
}

static void end_input(nxd_reader *reader) {
  reader->n_used += reader->input.kind->used(&reader->input);
  nxd_input_close(&reader->input);
  reader->place = (nxd_place){.file = reader->place.file + 1};
}

/* One record more; NXD_AT_END where all inputs have ended. */
static nxd_given read_record(nxd_reader *reader, nxd_batch *batch, nxr_fault *fault) {
  while (reader->place.file < reader->files->n) {
    if (reader->input.kind == NULL && !open_next(reader, fault)) return NXD_FAILED;
    nxd_given given = reader->input.kind->next(&reader->input, batch, fault);
    if (given == NXD_FAILED) return given;
    if (given == NXD_GIVEN) {
      batch->records[batch->n - 1].file = (uint32_t)reader->place.file;
      reader->place.offset = reader->input.offset, reader->place.line = reader->input.line;
      return given;
    }
    end_input(reader);
  }
  return NXD_AT_END;
}

bool nxd_reader_fill(nxd_reader *reader, nxd_batch *batch, nxr_fault *fault) {
  nxd_batch_empty(batch);
  while (reader->n_left > 0 && batch->bytes.n < BATCH_BYTES && batch->n < BATCH_RECORDS) {
    nxd_given given = read_record(reader, batch, fault);
    if (given == NXD_FAILED) return false;
    if (given == NXD_AT_END) break;
    if (!batch->records[batch->n - 1].goes_on) reader->n_left--;
    if (reader->chosen && !reader->chosen[reader->n_read++]) batch->n--;
  }
  return true;
}

/* Passes over records, up to a place, or all; how many there were. */
static bool pass_over(nxd_reader *reader, const nxd_place *place, uint64_t *n, nxr_fault *fault) {
  nxd_batch batch = {0};
  nxd_given given = NXD_GIVEN;
  bool ends = place != NULL, at_place = false;
  for (*n = 0; given == NXD_GIVEN && !at_place; *n += given == NXD_GIVEN) {
    const nxd_place *is = &reader->place;
    at_place = ends && (is->file > place->file ||
                        (is->file == place->file && is->offset >= place->offset && is->line >= place->line));
    if (at_place) break;
    nxd_batch_empty(&batch);
    given = read_record(reader, &batch, fault);
  }
  nxd_batch_free(&batch);
  return given != NXD_FAILED;
}

bool nxd_reader_open_piece(nxd_reader *reader, const nxd_files *files, const nxd_wanted *wanted,
                           const nxd_place *place, const nxd_piece *piece, nxr_fault *fault) {
  const nxd_place start = {0};
  uint64_t n = 0;
  bool good = nxd_reader_open(reader, files, wanted, &start, UINT64_MAX, fault) &&
              pass_over(reader, NULL, &n, fault);
  nxd_reader_close(reader);
  uint8_t *chosen = good ? nxd_piece_choose(piece, n) : NULL;
  if (good && chosen == NULL) good = nxr_fault_set(fault, "out of memory");
  if (!good || !nxd_reader_open(reader, files, wanted, &start, UINT64_MAX, fault)) {
    free(chosen);
    return false;
  }
  reader->chosen = chosen;
  if (pass_over(reader, place, &reader->n_read, fault)) return true;
  nxd_reader_close(reader);
  return false;
}

uint64_t nxd_reader_used(const nxd_reader *reader) {
  return reader->n_used + (reader->input.kind ? reader->input.kind->used(&reader->input) : 0);
}

void nxd_reader_close(nxd_reader *reader) {
  nxd_input_close(&reader->input);
  free(reader->chosen);
  reader->chosen = NULL;
}
