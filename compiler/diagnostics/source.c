/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the line break at `at`, 0 where there is none. The breaks are YAML 1.1's (LF, CR, CRLF, NEL, LS,
 * PS), so that line numbers agree with the parser's. */
static size_t break_bytes(const unsigned char *at, size_t n_left) {
  if (at[0] == '\n') return 1;
  if (at[0] == '\r') return n_left > 1 && at[1] == '\n' ? 2 : 1;
  if (n_left > 1 && at[0] == 0xC2 && at[1] == 0x85) return 2;
  if (n_left > 2 && at[0] == 0xE2 && at[1] == 0x80 && (at[2] == 0xA8 || at[2] == 0xA9)) return 3;
  return 0;
}

static uint32_t find_lines(const char *text, size_t n_bytes, uint32_t *starts) {
  uint32_t n_lines = 1;
  if (starts) starts[0] = 0;
  for (size_t i = 0; i < n_bytes;) {
    unsigned char c = (unsigned char)text[i];
    bool may_break = c <= '\r' || c == 0xC2 || c == 0xE2;
    size_t n_break = may_break ? break_bytes((const unsigned char *)text + i, n_bytes - i) : 0;
    i += n_break ? n_break : 1;
    if (n_break == 0) continue;
    if (starts) starts[n_lines] = (uint32_t)i;
    n_lines++;
  }
  if (starts) starts[n_lines] = (uint32_t)n_bytes;
  return n_lines;
}

/* Characters are counted once for each block, so that no place in the text is far from a known one. */
enum { BLOCK_BYTES = 1024 };

static bool begins_character(char byte) {
  return ((unsigned char)byte & 0xC0) != 0x80;
}

static uint32_t count_characters(const char *text, size_t n_bytes) {
  uint32_t n_characters = 0;
  for (size_t i = 0; i < n_bytes; i++) n_characters += begins_character(text[i]);
  return n_characters;
}

static const uint32_t *count_blocks(nxc_arena *arena, const char *text, size_t n_bytes) {
  size_t n_blocks = n_bytes / BLOCK_BYTES;
  uint32_t *before = nxc_arena_array(arena, n_blocks + 1, sizeof *before);
  for (size_t i = 0; i < n_blocks; i++)
    before[i + 1] = before[i] + count_characters(text + i * BLOCK_BYTES, BLOCK_BYTES);
  return before;
}

/* Takes over `text`, which is NUL-terminated. A leading byte-order mark is not part of the text. */
static const nxc_source *source_over(nxc_arena *arena, const char *name, const char *text, size_t n_bytes,
                                     bool editable) {
  size_t n_mark_bytes = n_bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  text += n_mark_bytes;
  n_bytes -= n_mark_bytes;
  uint32_t *starts = nxc_arena_array(arena, (size_t)find_lines(text, n_bytes, NULL) + 1, sizeof *starts);
  nxc_source *source = nxc_arena_alloc(arena, sizeof *source);
  *source = (nxc_source){.name = nxc_arena_strdup(arena, name),
                         .text = text,
                         .n_bytes = n_bytes,
                         .editable = editable,
                         .n_mark_bytes = n_mark_bytes};
  source->n_lines = find_lines(text, n_bytes, starts);
  source->line_start = starts;
  source->block_characters = count_blocks(arena, text, n_bytes);
  return source;
}

const nxc_source *nxc_source_new(nxc_arena *arena, const char *name, const char *text, size_t n_bytes) {
  return source_over(arena, name, nxc_arena_strndup(arena, text, n_bytes), n_bytes, false);
}

static char *read_all(nxc_arena *arena, int file, size_t expected_bytes, size_t limit_bytes,
                      size_t *n_bytes) {
  size_t capacity = expected_bytes < limit_bytes ? expected_bytes + 1 : limit_bytes + 1;
  if (capacity < 4096) capacity = 4096;
  char *text = nxc_arena_alloc(arena, capacity + 1);
  *n_bytes = 0;
  for (;;) {
    if (*n_bytes == capacity) {
      char *larger = nxc_arena_alloc(arena, 2 * capacity + 1);
      text = memcpy(larger, text, *n_bytes);
      capacity *= 2;
    }
    ssize_t n_read = read(file, text + *n_bytes, capacity - *n_bytes);
    if (n_read < 0 && errno == EINTR) continue;
    if (n_read < 0) return NULL;
    *n_bytes += (size_t)n_read;
    if (*n_bytes > limit_bytes) {
      errno = EFBIG;
      return NULL;
    }
    if (n_read == 0) break;
  }
  text[*n_bytes] = '\0';
  return text;
}

/* -- texts in place of files ----------------------------------------------------------------------------- */

static const nxc_overlay *overlays_now;

void nxc_source_lay_over(const nxc_overlay *overlays) {
  overlays_now = overlays;
}

static const nxc_overlay *find_overlay(const char *path) {
  if (overlays_now == NULL || overlays_now->path == NULL) return NULL;
  char absolute[PATH_MAX] = "-";
  bool there = strcmp(path, "-") == 0 || realpath(path, absolute) != NULL;
  for (const nxc_overlay *over = overlays_now; over->path != NULL; over++)
    if (strcmp(over->path, path) == 0 || (there && strcmp(over->path, absolute) == 0)) return over;
  return NULL;
}

/* -- reading --------------------------------------------------------------------------------------------- */

static const nxc_source *read_path(nxc_arena *arena, const char *path, size_t limit_bytes, bool file_alone) {
  const nxc_overlay *over = find_overlay(path);
  if (over != NULL)
    return source_over(arena, strcmp(path, "-") == 0 ? "<stdin>" : path,
                       nxc_arena_strndup(arena, over->text, over->n_bytes), over->n_bytes, true);
  bool standard_input = strcmp(path, "-") == 0;
  int file = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | (file_alone ? O_NONBLOCK : 0));
  if (file < 0) return NULL;
  struct stat facts = {0};
  bool is_file = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode), is_folder = S_ISDIR(facts.st_mode);
  size_t n_bytes;
  bool refused = file_alone && !is_file && !is_folder;
  char *text =
      refused ? NULL : read_all(arena, file, is_file ? (size_t)facts.st_size : 0, limit_bytes, &n_bytes);
  int problem = refused ? EINVAL : errno;
  if (!standard_input) close(file);
  errno = problem;
  if (text == NULL) return NULL;
  return source_over(arena, standard_input ? "<stdin>" : path, text, n_bytes, true);
}

const nxc_source *nxc_source_read(nxc_arena *arena, const char *path, size_t limit_bytes) {
  return read_path(arena, path, limit_bytes, false);
}

const nxc_source *nxc_source_read_file(nxc_arena *arena, const char *path, size_t limit_bytes) {
  return read_path(arena, path, limit_bytes, true);
}

/* Bytes of the break that a line of the text ends with. */
static size_t final_break_bytes(const char *line, size_t n_bytes) {
  for (size_t n = n_bytes < 3 ? n_bytes : 3; n > 0; n--)
    if (break_bytes((const unsigned char *)line + n_bytes - n, n) == n) return n;
  return 0;
}

const char *nxc_source_line(const nxc_source *source, uint32_t line, size_t *n_bytes) {
  *n_bytes = 0;
  if (line < 1 || line > source->n_lines) return "";
  const char *start = source->text + source->line_start[line - 1];
  size_t n = source->line_start[line] - source->line_start[line - 1];
  *n_bytes = n - final_break_bytes(start, n);
  return start;
}

const char *nxc_source_line_key(const nxc_source *source, uint32_t line, size_t *n_bytes) {
  size_t n_line, n = 0;
  const char *text = nxc_source_line(source, line, &n_line);
  while (n < n_line && (isalnum((unsigned char)text[n]) || text[n] == '_' || text[n] == '-')) n++;
  *n_bytes = n < n_line && text[n] == ':' ? n : 0;
  return text;
}

bool nxc_source_line_has_key(const nxc_source *source, uint32_t line, const char *const *keys) {
  size_t n_key;
  const char *key = nxc_source_line_key(source, line, &n_key);
  for (; *keys != NULL; keys++)
    if (n_key == strlen(*keys) && memcmp(key, *keys, n_key) == 0) return true;
  return false;
}

size_t nxc_source_characters(const nxc_source *source, size_t offset) {
  size_t block = offset / BLOCK_BYTES, start = block * BLOCK_BYTES;
  return source->block_characters[block] + count_characters(source->text + start, offset - start);
}

size_t nxc_source_column(const nxc_source *source, uint32_t line, size_t offset) {
  size_t start = source->line_start[line - 1];
  if (offset - start <= BLOCK_BYTES) return count_characters(source->text + start, offset - start);
  return nxc_source_characters(source, offset) - nxc_source_characters(source, start);
}

/* The last line that begins at or before the offset. */
nxc_place nxc_source_place(const nxc_source *source, size_t offset) {
  uint32_t low = 1, high = source->n_lines + 1;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (source->line_start[middle - 1] <= offset) low = middle;
    else high = middle;
  }
  return (nxc_place){low, (uint32_t)nxc_source_column(source, low, offset) + 1};
}

/* The last block with at most this many characters before it. */
static size_t block_before(const nxc_source *source, size_t n_characters) {
  size_t low = 0, high = source->n_bytes / BLOCK_BYTES + 1;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (source->block_characters[middle] <= n_characters) low = middle;
    else high = middle;
  }
  return low;
}

size_t nxc_source_offset(const nxc_source *source, uint32_t line, size_t column) {
  size_t n_bytes;
  const char *text = nxc_source_line(source, line, &n_bytes);
  size_t at = (size_t)(text - source->text), end = at + n_bytes;
  if (n_bytes > BLOCK_BYTES) {
    size_t n_before = nxc_source_characters(source, at) + column, block = block_before(source, n_before);
    if (block * BLOCK_BYTES > at) {
      at = block * BLOCK_BYTES;
      column = n_before - source->block_characters[block];
      while (at < end && !begins_character(source->text[at])) at++;
    }
  }
  for (; at < end && column > 0; column--)
    do at++;
    while (at < end && !begins_character(source->text[at]));
  return at < end ? at : end;
}

size_t nxc_span_offset(nxc_span at, bool end) {
  return nxc_source_offset(at.source, at.line, (size_t)at.column - 1 + (end ? at.length : 0));
}

bool nxc_span_same(nxc_span a, nxc_span b) {
  return a.source == b.source && a.line == b.line && a.column == b.column && a.length == b.length;
}

bool nxc_span_reads(nxc_span at, const char *text) {
  if (at.source == NULL || at.line < 1 || at.line > at.source->n_lines) return false;
  size_t start = nxc_span_offset(at, false), n_bytes = nxc_span_offset(at, true) - start;
  return n_bytes == strlen(text) && memcmp(at.source->text + start, text, n_bytes) == 0;
}
