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
  bool is_list;    /* a file of JSON: its records are the members of one list */
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

/* More of the file in the read-ahead, where what was given makes room; -1 is a fault, 0 the end. */
static long read_ahead(const nxd_input *input, nxr_fault *fault) {
  text_state *state = input->state;
  nxd_buffer *line = &state->line;
  if (state->at > 0) {
    memmove(line->bytes, line->bytes + state->at, line->n - state->at);
    line->n -= state->at, state->at = 0;
  }
  if (line->n <= MOST_LINE_BYTES) return read_on(state, line, NXD_BYTES_ROOM, fault);
  nxr_fault_set(fault, "a record has more than 1 GiB in %s", input->path);
  return -1;
}

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
    searched = line->n - state->at;
    long n = read_ahead(input, fault);
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

const nxd_input_kind nxd_input_jsonl = {"jsonl",   ".jsonl .ndjson", open_text, next_object,
                                        seek_text, used_of_text,     close_text};

/* -- JSON: a list of objects, or an object on each line
 * ------------------------------------------------------------------------- */

/* Past blanks, and past `sign` once if it stands there; the byte that follows, or -1: none does, -2: a fault.
 */
static int skip_to(nxd_input *input, char sign, nxr_fault *fault) {
  text_state *state = input->state;
  for (bool skips = true;;) {
    if (state->at == state->line.n) {
      long n = read_ahead(input, fault);
      if (n <= 0) return n < 0 ? -2 : -1;
    }
    char c = (char)state->line.bytes[state->at];
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n' && (c != sign || !skips)) return (unsigned char)c;
    skips = skips && c != sign;
    state->at++, input->offset++;
  }
}

typedef struct json_scan {
  size_t n; /* bytes that were looked at */
  long depth;
  bool in_text, escaped;
} json_scan;

/* Whether the member of a list ends before this byte. */
static bool ends_before(json_scan *scan, char c) {
  if (scan->in_text) {
    scan->in_text = c != '"' || scan->escaped;
    scan->escaped = c == '\\' && !scan->escaped;
    return false;
  }
  if (scan->depth <= 0 && (c == ',' || c == ']')) return true;
  scan->in_text = c == '"';
  scan->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
  return false;
}

/* Makes a whole member stand in the read-ahead; how long it is: 0 is a fault. */
static size_t find_member(nxd_input *input, nxr_fault *fault) {
  text_state *state = input->state;
  for (json_scan scan = {0};; scan.n++) {
    if (state->at + scan.n == state->line.n) {
      long n = read_ahead(input, fault);
      if (n == 0) nxr_fault_set(fault, "%s is cut short: its list does not end", input->path);
      if (n <= 0) return 0;
    }
    if (ends_before(&scan, (char)state->line.bytes[state->at + scan.n])) return scan.n > 0 ? scan.n : 1;
  }
}

static nxd_given next_member(nxd_input *input, nxd_batch *batch, nxr_fault *fault) {
  text_state *state = input->state;
  int c = skip_to(input, input->line == 0 ? '[' : ',', fault);
  if (c == -1) nxr_fault_set(fault, "%s is cut short: its list does not end", input->path);
  if (c < 0) return NXD_FAILED;
  if (c == ']') return NXD_AT_END;
  size_t n = find_member(input, fault);
  if (n == 0) return NXD_FAILED;
  nxd_record *record = nxd_batch_add(batch);
  void *bytes = record ? nxd_batch_field(batch, record, 0, NXD_VALUE, n) : NULL;
  if (bytes == NULL) return fail(fault, "out of memory for", input->path);
  memcpy(bytes, state->line.bytes + state->at, n);
  state->at += n, input->offset += n;
  record->line = ++input->line;
  record->is_object = true;
  return NXD_GIVEN;
}

static nxd_given next_json(nxd_input *input, nxd_batch *batch, nxr_fault *fault) {
  const text_state *state = input->state;
  return state->is_list ? next_member(input, batch, fault) : next_object(input, batch, fault);
}

/* A list is known by what the file begins with. */
static bool open_json(nxd_input *input, nxr_fault *fault) {
  if (!open_text(input, fault)) return false;
  text_state *state = input->state;
  long n = read_ahead(input, fault);
  size_t at = n >= 3 && memcmp(state->line.bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  while (n > 0 && at < state->line.n && strchr(" \t\r\n", state->line.bytes[at]) &&
         state->line.bytes[at] != '\0')
    at++;
  state->is_list = n > 0 && at < state->line.n && state->line.bytes[at] == '[';
  if (state->is_list) state->at = at, input->offset = at;
  if (n < 0) close_text(input);
  return n >= 0;
}

/* What was read ahead is read again. */
static bool seek_json(nxd_input *input, uint64_t offset, uint64_t line, nxr_fault *fault) {
  text_state *state = input->state;
  if (offset == 0) return true;
  nxd_bytes_close(&state->bytes);
  state->line.n = state->at = 0;
  return nxd_bytes_open(&state->bytes, input->path, fault) && seek_text(input, offset, line, fault);
}

const nxd_input_kind nxd_input_json = {"json",    ".json",      open_json, next_json,
                                       seek_json, used_of_text, close_text};
