/* SPDX-License-Identifier: Apache-2.0 */
/* What goes through files: cat, cp, and of sed the replacing of words (s/A/B/, s/A/B/g), by which scripts
 * make the files of launches out of templates. A is words, with . for any byte, ^ and $ at its ends, and .*
 * before the end; what is more is not followed. */
#include "compiler/config/front/shell/shell.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 256 * 1024, ANY = 256, REST = 257, EDITS_MAX = 64, PATTERN_BYTES_MAX = 200 };

/* Half of what may be expanded is for files: what is beyond it is unknown, and the script is followed on. */
static bool afford(nxc_shell *s, size_t n_bytes) {
  if (n_bytes > NXC_SHELL_BYTES_MAX / 2 || s->n_expanded > NXC_SHELL_BYTES_MAX / 2 - n_bytes) return false;
  s->n_expanded += n_bytes;
  return true;
}

/* A file that the script wrote, or one that lies there; false: neither is known. */
static bool read_file(nxc_shell *s, const nxc_text *path, size_t at, nxc_text *text) {
  const nxc_text *written = nxc_shell_written_file(s, path);
  const char *found = written ? NULL : nxc_shell_find_file(s, path);
  const nxc_source *source = found ? nxc_source_read(s->arena, found, FILE_BYTES_MAX) : NULL;
  if (written == NULL && source == NULL) return false;
  if (!afford(s, written ? written->n_bytes : source->n_bytes)) return false;
  *text = written ? *written : nxc_text_from(s->arena, source->text, source->n_bytes, at, 0);
  return true;
}

/* Of the files that the words name, or of what the command is given; false: something is not known. */
static bool read_all(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at, nxc_text *text) {
  nxc_text file;
  *text = (nxc_text){0};
  if (n_words == 0 && s->input != NULL) *text = *s->input;
  if (n_words == 0) return s->input != NULL;
  for (size_t i = 0; i < n_words; i++) {
    if (words[i].n_bytes == 0 || words[i].bytes[0] == '-' || !read_file(s, &words[i], at, &file))
      return false;
    nxc_text_append(s->arena, text, &file);
  }
  return true;
}

bool nxc_shell_cat(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at, nxc_text *output) {
  nxc_text text;
  if (!read_all(s, words + 1, n_words - 1, at, &text) || !afford(s, text.n_bytes)) return false;
  nxc_text_append(s->arena, output, &text);
  return true;
}

bool nxc_shell_copy(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at, nxc_text *output) {
  nxc_text text;
  size_t first = n_words > 1 && nxc_text_is(&words[1], "-f") ? 2 : 1;
  (void)output;
  if (n_words == first + 2 && read_file(s, &words[first], at, &text))
    nxc_shell_keep_written(s, &words[first + 1], &text, false);
  return true;
}

/* -- sed ------------------------------------------------------------------------------------------------- */

typedef struct edit {
  const unsigned short *pattern; /* bytes, ANY and REST */
  size_t n_pattern;
  bool begins, ends, all;
  nxc_text by; /* unescaped; where & stands, `matched` */
  const bool *matched;
} edit;

/* Up to the delimiter; its end, or 0 where there is none. */
static size_t part_end(const nxc_text *script, size_t from, char delimiter) {
  for (size_t i = from; i < script->n_bytes; i++) {
    if (script->bytes[i] == '\\') i++;
    else if (script->bytes[i] == delimiter) return i;
  }
  return 0;
}

static bool read_pattern(nxc_shell *s, const nxc_text *part, char delimiter, edit *to) {
  unsigned short *pattern = nxc_arena_array(s->arena, part->n_bytes + 1, sizeof *pattern);
  size_t n = part->n_bytes;
  for (size_t i = 0; i < n; i++) {
    unsigned char byte = (unsigned char)part->bytes[i];
    bool last = i + 1 == n, star = !last && part->bytes[i + 1] == '*';
    if (byte == '\\' &&
        (last || (strchr(".*[]^$/\\", part->bytes[i + 1]) == NULL && part->bytes[i + 1] != delimiter)))
      return false;
    if (byte == '\\') pattern[to->n_pattern++] = (unsigned char)part->bytes[++i];
    else if (byte == '^' && i == 0) to->begins = true;
    else if (byte == '$' && last) to->ends = true;
    else if (byte == '.' && star && (i + 2 == n || (i + 3 == n && part->bytes[n - 1] == '$')))
      pattern[to->n_pattern++] = REST, i++;
    else if (star || strchr("*[]^$", byte)) return false;
    else pattern[to->n_pattern++] = byte == '.' ? ANY : byte;
  }
  to->pattern = pattern;
  return to->n_pattern > 0 && n <= PATTERN_BYTES_MAX && !nxc_text_any(part, NXC_MARK_UNKNOWN);
}

static bool read_replacement(nxc_shell *s, const nxc_text *part, edit *to) {
  bool *matched = nxc_arena_array(s->arena, part->n_bytes + 1, sizeof *matched);
  for (size_t i = 0; i < part->n_bytes; i++) {
    char byte = part->bytes[i];
    bool known = !(part->marks[i] & NXC_MARK_UNKNOWN), escaped = known && byte == '\\';
    if (escaped && ++i == part->n_bytes) return false;
    if (escaped && strchr("0123456789nrtlLuUE", part->bytes[i])) return false;
    matched[to->by.n_bytes] = known && !escaped && byte == '&';
    nxc_text_put(s->arena, &to->by, part->bytes[i], part->origins[i], part->marks[i]);
  }
  to->matched = matched;
  return true;
}

/* s/A/B/ or s/A/B/g, one or more with ; between them. */
static bool read_script(nxc_shell *s, const nxc_text *script, edit *edits, size_t *n_edits) {
  size_t i = 0;
  while (i < script->n_bytes) {
    if (strchr(" ;\n", script->bytes[i])) {
      i++;
      continue;
    }
    if (script->bytes[i] != 's' || i + 2 > script->n_bytes || *n_edits == EDITS_MAX) return false;
    char delimiter = script->bytes[i + 1];
    size_t from = i + 2, middle = part_end(script, from, delimiter);
    size_t end = middle ? part_end(script, middle + 1, delimiter) : 0;
    if (end == 0) return false;
    edit *to = &edits[(*n_edits)++];
    *to = (edit){.all = end + 1 < script->n_bytes && script->bytes[end + 1] == 'g'};
    const nxc_text pattern = nxc_text_part(script, from, middle - from);
    const nxc_text by = nxc_text_part(script, middle + 1, end - middle - 1);
    if (!read_pattern(s, &pattern, delimiter, to) || !read_replacement(s, &by, to)) return false;
    i = end + 1 + to->all;
    if (i < script->n_bytes && strchr(" ;\n", script->bytes[i]) == NULL) return false;
  }
  return *n_edits > 0;
}

/* The bytes that it fits at `at`, whose line ends at `end`; 0: it does not. What is not known fits nothing.
 */
static size_t fits(const edit *e, const nxc_text *text, size_t begin, size_t at, size_t end) {
  size_t i = at;
  if (e->begins && at != begin) return 0;
  for (size_t k = 0; k < e->n_pattern; k++) {
    if (e->pattern[k] == REST) return end - at;
    if (i == end || (text->marks[i] & NXC_MARK_UNKNOWN)) return 0;
    if (e->pattern[k] != ANY && e->pattern[k] != (unsigned char)text->bytes[i]) return 0;
    i++;
  }
  return e->ends && i != end ? 0 : i - at;
}

static bool put_replacement(nxc_shell *s, const edit *e, const nxc_text *found, nxc_text *to) {
  if (!afford(s, e->by.n_bytes)) return false;
  for (size_t i = 0; i < e->by.n_bytes; i++) {
    if (e->matched[i] && !afford(s, found->n_bytes)) return false;
    if (e->matched[i]) nxc_text_append(s->arena, to, found);
    else nxc_text_put(s->arena, to, e->by.bytes[i], e->by.origins[i], e->by.marks[i]);
  }
  return true;
}

/* False: it becomes too long. */
static bool apply(nxc_shell *s, const edit *e, nxc_text *text) {
  nxc_text result = {0};
  if (!afford(s, text->n_bytes)) return false;
  for (size_t begin = 0, i = 0; begin < text->n_bytes; begin = i) {
    const char *newline = memchr(text->bytes + begin, '\n', text->n_bytes - begin);
    size_t end = newline ? (size_t)(newline - text->bytes) : text->n_bytes;
    bool done = false;
    for (i = begin; i < end;) {
      size_t n = done && !e->all ? 0 : fits(e, text, begin, i, end);
      const nxc_text found = nxc_text_part(text, i, n > 0 ? n : 1);
      if (n == 0) nxc_text_append(s->arena, &result, &found);
      else if (!put_replacement(s, e, &found, &result)) return false;
      done = done || n > 0;
      i += found.n_bytes;
    }
    if (newline) nxc_text_put(s->arena, &result, '\n', text->origins[end], text->marks[end]), i = end + 1;
  }
  *text = result;
  return true;
}

static bool edit_text(nxc_shell *s, const edit *edits, size_t n_edits, nxc_text *text) {
  for (size_t i = 0; i < n_edits; i++)
    if (!apply(s, &edits[i], text)) return false;
  return true;
}

typedef struct sed {
  edit edits[EDITS_MAX];
  size_t n_edits, n_words;
  bool in_place;
} sed;

/* Options, and the script where none has one; the words that are left are files. */
static bool read_sed(nxc_shell *s, const nxc_text *words, size_t n_words, sed *of) {
  size_t i = 1;
  bool scripted = false;
  for (; i < n_words && words[i].n_bytes > 1 && words[i].bytes[0] == '-'; i++) {
    bool script = nxc_text_is(&words[i], "-e");
    of->in_place = of->in_place || words[i].bytes[1] == 'i';
    if (!script && words[i].bytes[1] != 'i') return false;
    if (!script) continue;
    if (++i == n_words || !read_script(s, &words[i], of->edits, &of->n_edits)) return false;
    scripted = true;
  }
  if (!scripted && (i == n_words || !read_script(s, &words[i++], of->edits, &of->n_edits))) return false;
  of->n_words = i;
  return true;
}

bool nxc_shell_edit(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at, nxc_text *output) {
  sed *of = nxc_arena_alloc(s->arena, sizeof *of);
  nxc_text text;
  *of = (sed){0};
  bool known = read_sed(s, words, n_words, of);
  for (size_t i = known ? of->n_words : 1; of->in_place && i < n_words; i++) {
    bool read = read_file(s, &words[i], at, &text);
    if (read && !(known && edit_text(s, of->edits, of->n_edits, &text)))
      text = nxc_text_from(s->arena, "$(sed)", 6, at, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
    if (read) nxc_shell_keep_written(s, &words[i], &text, false);
  }
  if (of->in_place) return true;
  if (!known || !read_all(s, words + of->n_words, n_words - of->n_words, at, &text) ||
      !edit_text(s, of->edits, of->n_edits, &text))
    return false;
  nxc_text_append(s->arena, output, &text);
  return true;
}
