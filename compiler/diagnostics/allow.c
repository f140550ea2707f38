/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/allow.h"

#include <string.h>

enum { LINE_BYTES_MAX = 16384 };
enum { IDS_MAX = sizeof((nxc_allow *)NULL)->ids / sizeof(char *), NX_DIGITS = 4 };

static size_t count_of(const char *text, size_t n_bytes, char first, char last) {
  size_t n = 0;
  while (n < n_bytes && text[n] >= first && text[n] <= last) n++;
  return n;
}

bool nxc_allow_is_id(const char *text, size_t n_bytes) {
  size_t n_letters = count_of(text, n_bytes, 'A', 'Z');
  size_t n_digits = count_of(text + n_letters, n_bytes - n_letters, '0', '9');
  if (n_letters + n_digits != n_bytes || n_letters < 2) return false;
  bool own = n_letters == 2 && memcmp(text, "NX", 2) == 0;
  return own ? n_digits == NX_DIGITS : n_digits >= 3;
}

/* The bytes of a line behind `# nxcfg: allow `; NULL where there are none. *hash receives the comment's
 * start. */
static const char *find_comment(const char *text, size_t n_bytes, const char **hash) {
  const char *end = text + n_bytes;
  const char *mark = memmem(text, n_bytes, "nxcfg:", 6);
  *hash = mark;
  while (*hash && *hash > text && (*hash)[-1] == ' ') (*hash)--;
  if (mark == NULL || *hash == text || (*hash)[-1] != '#') return NULL;
  (*hash)--;
  const char *at = mark + 6;
  while (at < end && *at == ' ') at++;
  return end - at >= 6 && memcmp(at, "allow ", 6) == 0 ? at + 6 : NULL;
}

bool nxc_allow_stands_in(const nxc_source *source) {
  return memmem(source->text, source->n_bytes, "nxcfg:", 6) != NULL;
}

/* In a line longer than any that people write no comment is looked for: it may have very many findings. */
bool nxc_allow_read(nxc_arena *arena, const nxc_source *source, uint32_t line, nxc_allow *allow) {
  size_t n_bytes;
  if (line < 1 || line > source->n_lines) return false;
  const char *text = nxc_source_line(source, line, &n_bytes), *end = text + n_bytes, *hash;
  const char *at = n_bytes <= LINE_BYTES_MAX ? find_comment(text, n_bytes, &hash) : NULL;
  if (at == NULL) return false;
  uint32_t column = 1, length = 0;
  for (const char *byte = text; byte < end; byte++) {
    bool begins = ((unsigned char)*byte & 0xC0) != 0x80;
    if (byte < hash) column += begins;
    else length += begins;
  }
  *allow = (nxc_allow){.alone = strspn(text, " \t") >= (size_t)(hash - text),
                       .at = {source, line, column, length}};
  for (;;) {
    while (at < end && (*at == ' ' || *at == ',')) at++;
    const char *word = at;
    while (at < end && *at != ' ' && *at != ',') at++;
    if (allow->n_ids < IDS_MAX && nxc_allow_is_id(word, (size_t)(at - word))) {
      allow->ids[allow->n_ids++] = nxc_arena_strndup(arena, word, (size_t)(at - word));
      continue;
    }
    allow->reason = nxc_arena_strndup(arena, word, (size_t)(end - word));
    return true;
  }
}

static bool names(const nxc_allow *allow, const char *id) {
  for (size_t i = 0; i < allow->n_ids; i++)
    if (strcmp(allow->ids[i], id) == 0) return true;
  return false;
}

bool nxc_allow_find(nxc_arena *arena, const nxc_finding *finding, nxc_allow *allow) {
  const nxc_source *source = finding->at.source;
  if (source == NULL) return false;
  if (nxc_allow_read(arena, source, finding->at.line, allow) && names(allow, finding->id)) return true;
  return nxc_allow_read(arena, source, finding->at.line - 1, allow) && allow->alone &&
         names(allow, finding->id);
}

/* The first suppressed finding of a source from this line on, at or after `index`. */
static size_t skip_to_line(const nxc_sink *sink, size_t index, const nxc_source *source, uint32_t line) {
  size_t n_suppressed = nxc_sink_n_suppressed(sink);
  for (; index < n_suppressed; index++) {
    const nxc_span at = nxc_sink_suppressed(sink, index)->at;
    if (at.source == source && at.line >= line) break;
  }
  return index;
}

/* Whether one of the suppressed findings, of which `first` is the first in the comment's line or behind it,
 * is so for its sake. */
static bool allows_something(const nxc_sink *sink, size_t first, const nxc_allow *allow, const char *id) {
  uint32_t last_line = allow->at.line + allow->alone;
  for (size_t i = first; i < nxc_sink_n_suppressed(sink); i++) {
    const nxc_finding *finding = nxc_sink_suppressed(sink, i);
    if (finding->at.source != allow->at.source || finding->at.line > last_line) return false;
    if (strcmp(finding->id, id) == 0) return true;
  }
  return false;
}

/* The comment goes, with its line where it stands alone; of several ids, of which another is in use, this
 * one. */
static nxc_repair without(nxc_arena *arena, const nxc_source *source, const nxc_allow *unused,
                          const char *id) {
  if (unused->n_ids < unused->n_given) {
    nxc_repair word = nxc_repair_word(arena, unused->at, id, "", true);
    if (word.n_edits == 0) return word;
    size_t begin = word.edits->begin, end = word.edits->end;
    end += strspn(source->text + end, ", ");
    return nxc_repair_removes(arena, source, begin, end, true);
  }
  uint32_t line = unused->at.line;
  size_t begin = nxc_span_offset(unused->at, false), end = nxc_span_offset(unused->at, true);
  if (unused->alone)
    return nxc_repair_removes(arena, source, source->line_start[line - 1], source->line_start[line], true);
  while (begin > 0 && (source->text[begin - 1] == ' ' || source->text[begin - 1] == '\t')) begin--;
  return nxc_repair_removes(arena, source, begin, end, true);
}

void nxc_allow_report_unused(nxc_sink *sink, const nxc_source *source,
                             bool (*excused)(const void *context, const char *id), const void *context) {
  if (!nxc_allow_stands_in(source)) return;
  nxc_arena *arena = nxc_sink_arena(sink);
  nxc_allow *unused = NULL;
  size_t n_unused = 0, behind = 0;
  for (uint32_t line = 1; line <= source->n_lines; line++) {
    nxc_allow allow, left;
    if (!nxc_allow_read(arena, source, line, &allow)) continue;
    left = allow;
    left.n_given = allow.n_ids;
    left.n_ids = 0;
    behind = skip_to_line(sink, behind, source, line);
    for (size_t i = 0; i < allow.n_ids; i++)
      if (!excused(context, allow.ids[i]) && !allows_something(sink, behind, &allow, allow.ids[i]))
        left.ids[left.n_ids++] = allow.ids[i];
    if (left.n_ids == 0) continue;
    unused = nxc_arena_grow(arena, unused, n_unused, sizeof *unused);
    unused[n_unused++] = left;
  }
  for (size_t i = 0; i < n_unused; i++) {
    for (size_t j = 0; j < unused[i].n_ids; j++) {
      const char *id = unused[i].ids[j];
      nxc_report_repair(sink, "NX1510", NXC_SEVERITY_WARNING, unused[i].at, "remove it",
                        without(arena, source, &unused[i], id),
                        "this comment allows %s, which is not found here", id);
    }
  }
}
