/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/build.h"

#include "datasets/beside.h"
#include "datasets/progress.h"
#include "datasets/reader.h"
#include "datasets/stop.h"
#include "datasets/workers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WORKERS = 256 };
enum { COMMIT_TOKENS = 1 << 23 }; /* between two commits */

typedef struct builder {
  const nxd_build *is;
  nxd_reader reader;
  nxd_workers workers;
  nxd_writer writer;
  nxd_progress progress;
  uint64_t n_open;      /* tokens of the document at hand that are written */
  uint64_t n_committed; /* tokens */
} builder;

/* -- writing
 * -------------------------------------------------------------------------------------------------- */

static bool write_documents(builder *b, const nxd_made *made, nxr_fault *fault) {
  const uint8_t *tokens = made->tokens.bytes;
  const float *weights = made->weights.n > 0 ? (const float *)(const void *)made->weights.bytes : NULL;
  const float *rewards = made->rewards.n > 0 ? (const float *)(const void *)made->rewards.bytes : NULL;
  const nxd_length *lengths = (const nxd_length *)(const void *)made->documents.bytes;
  for (size_t i = 0; i < made->documents.n / sizeof *lengths; i++) {
    uint64_t n = lengths[i].n_tokens;
    if (n > 0 && !nxd_writer_tokens(&b->writer, tokens, weights, n, fault)) return false;
    tokens += n * b->writer.token_bytes;
    if (weights) weights += n;
    b->n_open += n;
    if (lengths[i].goes_on) continue;
    if (!nxd_writer_end_sequence(&b->writer, b->n_open, fault) ||
        !nxd_writer_end_document(&b->writer, rewards ? rewards[i] : 0, fault))
      return false;
    b->n_open = 0;
  }
  return true;
}

static bool count(builder *b, const nxd_made *made, nxr_fault *fault) {
  nxd_standing *standing = &b->writer.standing;
  if (made->n_skipped > 0 && standing->n_skipped == 0)
    memcpy(standing->first_skipped, made->first_skipped, sizeof standing->first_skipped);
  standing->n_skipped += made->n_skipped;
  standing->n_empty += made->n_empty;
  standing->n_long += made->n_long;
  standing->n_text_bytes += made->n_text_bytes;
  standing->n_text_tokens += made->n_text_tokens;
  return made->n_skipped == 0 || b->is->skip || nxr_fault_set(fault, "%s", made->first_skipped);
}

static bool write_slot(builder *b, const nxd_slot *slot, nxr_fault *fault) {
  nxd_standing *standing = &b->writer.standing;
  if (!count(b, &slot->made, fault) || !write_documents(b, &slot->made, fault)) return false;
  standing->n_records += slot->batch.n;
  standing->place = slot->behind;
  if (b->n_open > 0 || standing->n_tokens - b->n_committed < COMMIT_TOKENS) return true;
  b->n_committed = standing->n_tokens;
  return nxd_writer_commit(&b->writer, fault);
}

/* -- the loop
 * ------------------------------------------------------------------------------------------------- */

/* What can be done next: write the oldest batch, else read one, else wait for a worker. */
static bool work(builder *b, nxr_fault *fault) {
  for (bool at_end = false;;) {
    if (nxd_stopped()) return nxr_fault_set(fault, "stopped by a signal");
    nxd_slot *slot = nxd_workers_made(&b->workers, at_end);
    if (slot) {
      if (!nxd_workers_good(&b->workers, fault) || !write_slot(b, slot, fault)) return false;
      nxd_workers_written(&b->workers);
      nxd_progress_show(&b->progress, nxd_reader_used(&b->reader), b->writer.standing.n_documents);
    } else if (at_end) {
      return nxd_workers_good(&b->workers, fault);
    } else {
      slot = nxd_workers_free(&b->workers);
      if (!nxd_reader_fill(&b->reader, &slot->batch, fault)) return false;
      slot->behind = b->reader.place;
      at_end = slot->batch.n == 0;
      if (!at_end) nxd_workers_give(&b->workers);
    }
  }
}

static bool explain_nothing(const builder *b, nxr_fault *fault) {
  if (b->writer.standing.n_documents > 0) return true;
  if (b->writer.standing.n_skipped > 0)
    return nxr_fault_set(fault, "nothing to write: every record is malformed, the first is %s",
                         b->writer.standing.first_skipped);
  if (b->writer.standing.n_empty > 0 || b->writer.standing.n_long > 0)
    return nxr_fault_set(fault,
                         "nothing to write: nothing is left of %s: %llu records have no token that counts, "
                         "and %llu are too long",
                         b->is->files->paths[0], (unsigned long long)b->writer.standing.n_empty,
                         (unsigned long long)b->writer.standing.n_long);
  if (b->is->piece.n > 0)
    return nxr_fault_set(fault, "nothing to write: piece %u of %u of %s has no record", b->is->piece.which,
                         b->is->piece.n, b->is->files->paths[0]);
  return nxr_fault_set(fault, "nothing to write: %s is empty", b->is->files->paths[0]);
}

static uint32_t count_workers(uint32_t wanted) {
  long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (wanted == 0) wanted = n_cores > 0 ? (uint32_t)n_cores : 1;
  return wanted < MOST_WORKERS ? wanted : MOST_WORKERS;
}

static bool open_reader(builder *b, nxr_fault *fault) {
  const nxd_standing *standing = &b->writer.standing;
  const nxd_wanted *wanted = &b->is->recipe->wanted;
  if (b->is->piece.n > 0)
    return nxd_reader_open_piece(&b->reader, b->is->files, wanted, &standing->place, &b->is->piece, fault);
  uint64_t most = b->is->most_records ? b->is->most_records - standing->n_records : UINT64_MAX;
  return nxd_reader_open(&b->reader, b->is->files, wanted, &standing->place, most, fault);
}

static bool build_open(builder *b, nxr_fault *fault) {
  const nxd_standing *standing = &b->writer.standing;
  b->n_committed = standing->n_tokens;
  nxd_progress_begin(&b->progress, b->is->watched, b->is->files->n_bytes);
  if (!open_reader(b, fault)) return false;
  bool good = nxd_workers_open(&b->workers, b->is->recipe, (const char *const *)b->is->files->paths,
                               count_workers(b->is->n_workers), fault) &&
              work(b, fault);
  nxd_workers_close(&b->workers);
  nxd_reader_close(&b->reader);
  nxd_progress_end(&b->progress);
  return good && explain_nothing(b, fault);
}

static void explain_rest(const nxd_writer *writer, nxr_fault *fault) {
  nxr_fault why = *fault;
  fault->text[0] = '\0';
  nxr_fault_set(fault, "%.600s; the same command goes on from where it stood (%.300s)", why.text,
                writer->folder);
}

static bool write_beside(const builder *b, nxr_fault *fault) {
  char folder[NXD_PATH_BYTES + 16];
  snprintf(folder, sizeof folder, "%s/tokenizer", b->writer.folder);
  return nxd_write_beside(folder, b->is->tokenizer, b->is->recipe->unsaid, &b->writer.standing, fault);
}

bool nxd_build_run(const nxd_build *build, nxd_standing *standing, nxr_fault *fault) {
  builder *b = calloc(1, sizeof *b);
  if (b == NULL) return nxr_fault_set(fault, "out of memory");
  b->is = build;
  const nxd_writer_options options = {.prefix = build->prefix,
                                      .key = build->key,
                                      .type_code = build->recipe->type_code,
                                      .weights = build->recipe->maker->weights,
                                      .rewards = build->recipe->rewarded,
                                      .force = build->force};
  bool good = nxd_writer_open(&b->writer, &options, fault) &&
              (b->writer.standing.complete || build_open(b, fault)) && write_beside(b, fault) &&
              nxd_writer_finish(&b->writer, fault);
  *standing = b->writer.standing;
  if (!good && b->writer.committed) explain_rest(&b->writer, fault);
  nxd_writer_close(&b->writer);
  free(b);
  return good;
}
