/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: a file is a record, or each of its lines; and lines that are JSON objects. */
#include "datasets/bytes.h"
#include "datasets/input.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 20 };
static const size_t MOST_LINE_BYTES = (size_t)1 << 30;

typedef struct text_state {
  nxd_buffer line; /* read ahead */
  size_t at;       /* in it: what has been given */
  nxd_bytes bytes;
} text_state;

static bool open_text(nxd_input *input, nxr_fault *fault) {
  text_state *state = calloc(1, sizeof *state);
  if (state == NULL) return nxr_fault_set(fault, "out of memory for %s", input->path);
  if (!nxd_bytes_open(&state->bytes, input->path, fault)) {
    free(state);
    return false;
  }
  input->state = state;
  return true;
}

static void close_text(nxd_input *input) {
  text_state *state = input->state;
  nxd_bytes_close(&state->bytes);
  nxd_buffer_free(&state->line);
  free(state);
}

static uint64_t used_of_text(const nxd_input *input) {
  const text_state *state = input->state;
  return state->bytes.n_used;
}

static bool seek_text(nxd_input *input, uint64_t offset, uint64_t line, nxr_fault *fault) {
  text_state *state = input->state;
  input->offset = offset, input->line = line;
  return nxd_bytes_skip(&state->bytes, offset, fault);
}

static nxd_given fail(nxr_fault *fault, const char *what, const char *path) {
  nxr_fault_set(fault, "%s %s", what, path);
  return NXD_FAILED;
}

/* Appends what comes next of the file to a buffer; -1 is a fault, 0 the end. */
static long read_on(text_state *state, nxd_buffer *to, size_t room, nxr_fault *fault) {
  size_t before = to->n;
  void *at = nxd_buffer_extend(to, room);
  if (at == NULL) {
    nxr_fault_set(fault, "out of memory for %s", state->bytes.path);
    return -1;
  }
  long n = nxd_bytes_read(&state->bytes, at, room, fault);
  to->n = before + (n > 0 ? (size_t)n : 0);
  return n;
}

/* What is no text of bytes that read as UTF-8, by what it begins with. */
static bool is_readable(const nxd_input *input, const uint8_t *bytes, size_t n, nxr_fault *fault) {
  static const struct {
    const char *begins;
    const char *is;
  } others[] = {
      {"\xff\xfe", "UTF-16: iconv -f UTF-16 -t UTF-8 makes one that is read"},
      {"\xfe\xff", "UTF-16: iconv -f UTF-16 -t UTF-8 makes one that is read"},
      {"PAR1", "Parquet: datasets.load_dataset('parquet', ...).save_to_disk(FOLDER) makes one that is read"},
      {"ARROW1", "an Arrow file: its name has to end with .arrow"},
      {"BZh", "compressed with bzip2: decompress it"},
      {"\xfd"
       "7zXZ",
       "compressed with xz: decompress it"}};
  for (size_t i = 0; input->offset == 0 && i < sizeof others / sizeof *others; i++) {
    size_t length = strlen(others[i].begins);
    if (n >= length && memcmp(bytes, others[i].begins, length) == 0)
      return nxr_fault_set(fault, "%s is no text, but %s", input->path, others[i].is);
  }
  return true;
}

/* -- a file
 * -------------------------------------------------------------------------------------------------- */

static nxd_given next_text(nxd_input *input, nxd_batch *batch, nxr_fault *fault) {
  text_state *state = input->state;
  if (input->line > 0) return NXD_AT_END;
  size_t first = batch->bytes.n;
  long n;
  do n = read_on(state, &batch->bytes, NXD_BYTES_ROOM, fault);
  while (n > 0 && (!input->wanted->pieces || batch->bytes.n - first < PIECE_BYTES));
  if (n < 0 || !is_readable(input, batch->bytes.bytes + first, batch->bytes.n - first, fault))
    return NXD_FAILED;
  nxd_record *record = nxd_batch_add(batch);
  if (record == NULL) return fail(fault, "out of memory for", input->path);
  record->fields[0] = (nxd_field){NXD_STRING, first, batch->bytes.n - first};
  record->goes_on = n > 0, record->goes_back = input->offset > 0;
  input->offset += batch->bytes.n - first;
  if (n == 0) input->line = 1; /* all of it */
  return NXD_GIVEN;
}

const nxd_input_kind nxd_input_text = {"text",    ".txt .md .text", open_text, next_text,
                                       seek_text, used_of_text,     close_text};

/* -- lines
 * --------------------------------------------------------------------------------------------------- */

/* The next line, without its end, in the read-ahead; *n_bytes what it takes of the file. */
static nxd_given find_line(nxd_input *input, size_t *length, size_t *n_bytes, nxr_fault *fault) {
  text_state *state = input->state;
  nxd_buffer *line = &state->line;
  for (size_t searched = state->at;;) {
    const uint8_t *end = line->n > searched ? memchr(line->bytes + searched, '\n', line->n - searched) : NULL;
    if (end) {
      *length = (size_t)(end - line->bytes) - state->at, *n_bytes = *length + 1;
      return NXD_GIVEN;
    }
    if (state->at > 0) { /* what was given makes room */
      memmove(line->bytes, line->bytes + state->at, line->n - state->at);
      line->n -= state->at, state->at = 0;
    }
    searched = line->n;
    if (line->n > MOST_LINE_BYTES) return fail(fault, "a line has more than 1 GiB in", input->path);
    long n = read_on(state, line, NXD_BYTES_ROOM, fault);
    if (n < 0) return NXD_FAILED;
    if (n > 0) continue;
    *length = *n_bytes = line->n;
    return line->n > 0 ? NXD_GIVEN : NXD_AT_END;
  }
}

static bool is_blank(const uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r') return false;
  return true;
}

static nxd_given next_line(nxd_input *input, nxd_batch *batch, nxr_fault *fault) {
  text_state *state = input->state;
  size_t length, n_bytes;
  const uint8_t *line;
  do {
    nxd_given found = find_line(input, &length, &n_bytes, fault);
    if (found != NXD_GIVEN) return found;
    line = state->line.bytes + state->at;
    if (!is_readable(input, line, length, fault)) return NXD_FAILED;
    state->at += n_bytes;
    input->offset += n_bytes, input->line++;
  } while (is_blank(line, length));
  if (line[length - 1] == '\r') length--;
  nxd_record *record = nxd_batch_add(batch);
  void *bytes = record ? nxd_batch_field(batch, record, 0, NXD_STRING, length) : NULL;
  if (bytes == NULL) return fail(fault, "out of memory for", input->path);
  memcpy(bytes, line, length);
  record->line = input->line;
  return NXD_GIVEN;
}

const nxd_input_kind nxd_input_lines = {"lines",   "",           open_text, next_line,
                                        seek_text, used_of_text, close_text};

/* -- JSON objects, a line each
 * ------------------------------------------------------------------------------- */

static nxd_given next_object(nxd_input *input, nxd_batch *batch, nxr_fault *fault) {
  nxd_given given = next_line(input, batch, fault);
  if (given != NXD_GIVEN) return given;
  nxd_record *record = &batch->records[batch->n - 1];
  record->is_object = true;
  record->fields[0].form = NXD_VALUE;
  bool mark = record->line == 1 && record->fields[0].n >= 3 &&
              memcmp(batch->bytes.bytes + record->fields[0].at, "\xef\xbb\xbf", 3) == 0;
  if (mark) record->fields[0].at += 3, record->fields[0].n -= 3; /* of the byte order */
  return NXD_GIVEN;
}

const nxd_input_kind nxd_input_jsonl = {"jsonl",   ".jsonl .ndjson .json", open_text, next_object,
                                        seek_text, used_of_text,           close_text};
