/* SPDX-License-Identifier: Apache-2.0 */
/* The text around YAML: places and findings in it, encoding, forbidden characters, directives, tabs. */
#include "compiler/document/reader.h"
#include "schema/characters.h"
#include "schema/plan_file.h"

#include <string.h>

void nxc_reader_error(nxc_reader *reader, const char *id, nxc_span at, const char *fix, const char *format,
                      ...) {
  va_list args;
  va_start(args, format);
  const char *message = nxc_arena_vprintf(reader->arena, format, args);
  va_end(args);
  nxc_report(reader->sink, id, NXC_SEVERITY_ERROR, at, fix, "%s", message);
  reader->ok = false;
}

void nxc_reader_warn(nxc_reader *reader, const char *id, nxc_span at, const char *fix, const char *format,
                     ...) {
  va_list args;
  va_start(args, format);
  const char *message = nxc_arena_vprintf(reader->arena, format, args);
  va_end(args);
  nxc_report(reader->sink, id, NXC_SEVERITY_WARNING, at, fix, "%s", message);
}

nxc_span nxc_reader_span(const nxc_reader *reader, size_t line, size_t column, size_t length) {
  const nxc_source *source = reader->source;
  if (line >= source->n_lines) line = source->n_lines - 1;
  if (length == 0) {
    size_t n_bytes, start = source->line_start[line];
    const char *text = nxc_source_line(source, (uint32_t)line + 1, &n_bytes);
    while (n_bytes > 0 && (text[n_bytes - 1] == ' ' || text[n_bytes - 1] == '\t')) n_bytes--;
    size_t n_columns = nxc_source_column(source, (uint32_t)line + 1, start + n_bytes);
    length = n_columns > column ? n_columns - column : 1;
  }
  return (nxc_span){source, (uint32_t)line + 1, (uint32_t)column + 1, (uint32_t)length};
}

/* libyaml's words for the usual mistakes, in ours. */
static const struct {
  const char *yaml, *message, *fix;
} syntax_texts[] = {
    {"mapping values are not allowed", "a ':' followed by a blank where no key can stand",
     "quote the value if the colon belongs to it, or correct the indentation"},
    {"could not find expected ':'", "a line that is neither a key with ':' nor part of the value above",
     "write a key, a colon and a blank (key: value); the line above may lack the blank"},
    {"did not find expected ',' or ']'", "this list needs ',' or ']' here",
     "put a comma behind the item before, or close the list; text with brackets needs quotes"},
    {"did not find expected ',' or '}'", "this map needs ',' or '}' here",
     "put a comma behind the entry before, or close the map; text with braces needs quotes"},
    {"found character that cannot start any token", "a value cannot start with this character",
     "quote the value; indent with spaces, not tabs"},
    {"did not find expected key", "the indentation fits no open map here",
     "align it with the keys it belongs to"},
    {"block sequence entries are not allowed", "a list item ('- ') cannot stand here",
     "put it on a line of its own"},
    {"found unexpected end of stream", "a quote is opened and never closed", "close the quote"},
    {"did not find expected node content",
     "a value is missing here, or begins with a character that needs quotes", "write the value, in quotes"},
    {"did not find expected '-' indicator", "the indentation fits no open list here", NULL},
};

/* Another indentation of one line that would make YAML of the text. */
static bool find_indentation(nxc_reader *reader, uint32_t number, bool further, nxc_line_mend *found) {
  nxc_arena *arena = reader->arena;
  const nxc_misindented line = nxc_misindented_line(reader->source, number, further);
  if (line.line == 0) return false;
  size_t begin = reader->source->line_start[line.line - 1],
         fewer = line.is > line.indent ? line.is - line.indent : 0;
  *found = (nxc_line_mend){.at = nxc_reader_span(reader, line.line - 1, line.is, 0),
                           .edit = {reader->source, begin, begin + fewer,
                                    nxc_arena_printf(arena, "%*s", (int)(line.indent + fewer - line.is), "")},
                           .message = nxc_arena_printf(
                               arena, "this line is indented by %zu, which fits no line around it", line.is),
                           .fix = nxc_arena_printf(arena, "indent it by %zu", line.indent)};
  return true;
}

static const char *mended_text(const nxc_reader *reader, const nxc_edit *edit, size_t *n_bytes) {
  size_t n = strlen(edit->text), n_behind = reader->source->n_bytes - edit->end;
  char *text = nxc_arena_alloc(reader->arena, edit->begin + n + n_behind + 1);
  memcpy(text, reader->clean, edit->begin);
  memcpy(text + edit->begin, edit->text, n);
  memcpy(text + edit->begin + n, reader->clean + edit->end, n_behind);
  *n_bytes = edit->begin + n + n_behind;
  text[*n_bytes] = '\0';
  return text;
}

/* What mends the whole; else what lets reading go on to another slip; else without the line. */
static bool find_mend(nxc_reader *text, uint32_t line, uint32_t opened, nxc_line_mend *mend, bool *moved) {
  for (int further = 0; further < 2; further++) {
    if (nxc_find_line_mend(text, line, opened, false, further, mend)) return true;
    *moved = find_indentation(text, line, further, mend);
    if (*moved) return true;
  }
  return nxc_find_line_mend(text, line, opened, true, false, mend);
}

/* In the text as it stands there; none where a slip in the same line was undone before. */
static nxc_repair repair_of(const nxc_reader *reader, const nxc_line_mend *mend) {
  const nxc_source *read = mend->edit.source, *source = reader->source;
  uint32_t line = mend->at.line;
  size_t n_read, n;
  const char *as_read = nxc_source_line(read, line, &n_read), *text = nxc_source_line(source, line, &n);
  if (n != n_read || memcmp(as_read, text, n) != 0) return (nxc_repair){0};
  size_t begin = (size_t)(text - source->text), from = (size_t)(as_read - read->text);
  nxc_edit edit = {source, begin + mend->edit.begin - from, begin + mend->edit.end - from, mend->edit.text};
  return nxc_repair_copy(nxc_sink_arena(reader->sink), &(nxc_repair){&edit, 1, false});
}

const char *nxc_reader_syntax(nxc_reader *reader, const char *problem, nxc_span at, const char *context,
                              nxc_span opened, size_t *n_bytes) {
  const nxc_remark remark = {opened, context};
  nxc_finding finding = {.id = "NX1001",
                         .severity = NXC_SEVERITY_ERROR,
                         .message = problem ? problem : "this is not YAML",
                         .at = at,
                         .remarks = &remark,
                         .n_remarks = context ? 1 : 0};
  for (size_t i = 0; i < sizeof syntax_texts / sizeof *syntax_texts; i++) {
    if (strncmp(finding.message, syntax_texts[i].yaml, strlen(syntax_texts[i].yaml))) continue;
    finding.message = syntax_texts[i].message;
    finding.fix = syntax_texts[i].fix;
    break;
  }
  nxc_reader text = *reader; /* what was read */
  if (reader->mended != NULL) text.source = reader->mended, text.clean = reader->mended->text;
  nxc_line_mend mend;
  bool moved = false, known = find_mend(&text, at.line, context ? opened.line : 0, &mend, &moved);
  if (known) {
    finding.at = mend.at;
    finding.at.source = reader->source;
    finding.message = mend.message;
    finding.fix = mend.fix;
    finding.repair = repair_of(reader, &mend);
  }
  if (known && !moved) finding.n_remarks = 0;
  nxc_sink_report(reader->sink, &finding);
  reader->ok = false;
  return known && text.clean ? mended_text(&text, &mend.edit, n_bytes) : NULL;
}

enum { REPORTED_CHARACTERS_MAX = 8 };

static bool is_allowed(uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
  if (code < 0xA0) return code < 0x7F || code == 0x85;
  return code < 0xD800 || (code > 0xDFFF && code != 0xFEFF && code != 0xFFFE && code != 0xFFFF);
}

static void report_character(nxc_reader *reader, size_t offset, size_t n_bytes, uint32_t code) {
  const nxc_source *source = reader->source;
  size_t line = 0;
  while (line + 1 < source->n_lines && source->line_start[line + 1] <= offset) line++;
  size_t column = nxc_source_column(source, (uint32_t)line + 1, offset);
  nxc_span at = nxc_reader_span(reader, line, column, 1);
  if (n_bytes == 0)
    nxc_reader_error(reader, "NX1002", at, "save the file as UTF-8", "byte 0x%02X is not UTF-8 text",
                     (unsigned char)source->text[offset]);
  else
    nxc_reader_error(reader, "NX1002", at, "remove it, or write it as an escape inside double quotes",
                     code == 0       ? "the file holds a NUL byte"
                     : code == 0xFEFF ? "a byte-order mark (U+%04X) stands inside the file"
                                      : "the control character U+%04X cannot stand in YAML",
                     code);
}

/* %FOO lines before the document: libyaml refuses them, the original loaders pass over them. Of %TAG only so
 * many as people write: libyaml compares each with all before it. */
static void blank_directives(nxc_reader *reader, char *text) {
  enum { TAGS_MAX = 64 };
  const nxc_source *source = reader->source;
  int n_tags = 0;
  for (uint32_t line = 0; line < source->n_lines; line++) {
    char *at = text + source->line_start[line];
    if (*at == '#' || *at == '\n' || *at == '\r') continue;
    if (*at != '%') return;
    bool known = strncmp(at, "%YAML", 5) == 0 || strncmp(at, "%TAG", 4) == 0;
    if (known && ++n_tags <= TAGS_MAX) continue;
    *at = '#';
    if (known && n_tags == TAGS_MAX + 1)
      nxc_reader_error(reader, "NX1006", nxc_reader_span(reader, line, 0, 0), NULL,
                       "the file has more than %d directives", TAGS_MAX);
    if (known) continue;
    if (!reader->reading->omegaconf)
      nxc_reader_warn(reader, "NX1022", nxc_reader_span(reader, line, 0, 0), "remove the line",
                      "this directive means nothing and is ignored");
  }
}

/* By its mark, or without one by the zero halves of its first two characters. */
static bool is_utf16(const unsigned char *bytes, size_t n_bytes) {
  if (n_bytes >= 2 && (memcmp(bytes, "\xFF\xFE", 2) == 0 || memcmp(bytes, "\xFE\xFF", 2) == 0)) return true;
  if (n_bytes < 4) return false;
  bool little = bytes[0] && !bytes[1] && bytes[2] && !bytes[3],
       big = !bytes[0] && bytes[1] && !bytes[2] && bytes[3];
  return little || big;
}

char *nxc_reader_clean(nxc_reader *reader) {
  const nxc_source *source = reader->source;
  const unsigned char *bytes = (const unsigned char *)source->text;
  nxc_span start = nxc_reader_span(reader, 0, 0, 1);
  if (source->n_bytes > NXC_DOCUMENT_BYTES_MAX) {
    nxc_reader_error(reader, "NX1006", start, NULL, "the file is larger than 16 MiB");
    return NULL;
  }
  if (source->n_bytes >= strlen(NX_PLAN_MAGIC) && memcmp(bytes, NX_PLAN_MAGIC, strlen(NX_PLAN_MAGIC)) == 0) {
    nxc_reader_error(reader, "NX1003", start,
                     "name the configuration that it was made of; nxcfg show prints what a plan holds",
                     "the file is a plan");
    return NULL;
  }
  if (is_utf16(bytes, source->n_bytes)) {
    nxc_reader_error(reader, "NX1003", start, "save the file as UTF-8", "the file is UTF-16");
    return NULL;
  }
  static const char *const stand_in[] = {"_", "_", "\xC2\xB7", "\xE2\x80\xA2", "\xF0\x9F\x98\x80"};
  char *clean = nxc_arena_strndup(reader->arena, source->text, source->n_bytes);
  int n_bad = 0;
  for (size_t i = 0; i < source->n_bytes;) {
    uint32_t code = 0;
    if ((bytes[i] >= ' ' && bytes[i] < 0x7F) || bytes[i] == '\n') { /* nearly all */
      i++;
      continue;
    }
    size_t n = nx_character_decode(source->text + i, source->n_bytes - i, &code);
    if (n == 0 || !is_allowed(code)) {
      if (n_bad++ < REPORTED_CHARACTERS_MAX) report_character(reader, i, n, code);
      memcpy(clean + i, stand_in[n], n ? n : 1);
      reader->stand_ins = true;
    }
    i += n ? n : 1;
  }
  blank_directives(reader, clean);
  return clean;
}

size_t nxc_reader_offset(const nxc_reader *reader, size_t line, size_t column) {
  const nxc_source *source = reader->source;
  return line < source->n_lines ? nxc_source_offset(source, (uint32_t)line + 1, column) : source->n_bytes;
}

void nxc_reader_check_tabs(nxc_reader *reader, const size_t *texts, size_t n_texts) {
  const nxc_source *source = reader->source;
  if (memchr(source->text, '\t', source->n_bytes) == NULL) return;
  size_t next = 0;
  for (uint32_t line = 0; line < source->n_lines; line++) {
    size_t i = source->line_start[line], end = source->line_start[line + 1];
    for (; i < end; i++) {
      while (next < n_texts && texts[2 * next + 1] <= i) next++;
      if (next < n_texts && texts[2 * next] <= i) {
        i = (texts[2 * next + 1] < end ? texts[2 * next + 1] : end) - 1;
        continue;
      }
      char before = i > source->line_start[line] ? source->text[i - 1] : ' ';
      if (source->text[i] == '#' && (before == ' ' || before == '\t')) break;
      if (source->text[i] != '\t') continue;
      size_t column = nxc_source_column(source, line + 1, i);
      size_t behind = i + strspn(source->text + i, "\t");
      const nxc_edit blank = {source, i, behind, " "};
      nxc_report_repair(reader->sink, "NX1008", NXC_SEVERITY_ERROR, nxc_reader_span(reader, line, column, 1),
                        "write spaces instead",
                        nxc_repair_copy(nxc_sink_arena(reader->sink), &(nxc_repair){&blank, 1, true}),
                        "a tab outside quotes, which YAML loaders reject");
      break;
    }
  }
}
