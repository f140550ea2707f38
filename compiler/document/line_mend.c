/* SPDX-License-Identifier: Apache-2.0 */
/* Which line of a text that is not YAML would make it YAML, were one slip of its own undone: a colon without
 * its blank, a quote or bracket that nothing closes, a comment of another language, a comma that lacks. */
#include "compiler/document/reader.h"

#include <string.h>
#include <strings.h>

enum { TRIES_MAX = 96, LINES_MAX = 12, INDENT_ROOM = 256 };

/* A line as it was meant: a key, a value, and a comment. Offsets of its bytes. */
typedef struct look {
  nxc_arena *arena;
  const char *text;
  size_t n, indent, key_end, value, end, rest; /* value..end: without comma and comment; rest: those */
  size_t indent_near;
  bool has_block; /* below it */
} look;

typedef struct change {
  size_t begin, end; /* of the line */
  const char *text;
} change;

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c != '\0' && strchr("_-+.", c));
}

static bool is_quote(char c) {
  return c == '"' || c == '\'';
}

/* Behind the quoted text that begins here; n: nothing closes it in this line. */
static size_t behind_quoted(const char *text, size_t at, size_t n) {
  char quote = text[at++];
  while (at < n && text[at] != quote) at += quote == '"' && text[at] == '\\' ? 2 : 1;
  return at < n ? at + 1 : n + 1;
}

static size_t find_key_end(const char *text, size_t at, size_t n) {
  if (at < n && is_quote(text[at])) {
    size_t behind = behind_quoted(text, at, n);
    return behind <= n ? behind : at;
  }
  while (at < n && is_word(text[at])) at++;
  return at;
}

static look read_look(nxc_arena *arena, const nxc_source *source, uint32_t line) {
  look is = {.arena = arena};
  is.text = nxc_source_line(source, line, &is.n);
  while (is.indent < is.n && is_blank(is.text[is.indent])) is.indent++;
  size_t key = is.indent;
  if (is.indent + 1 < is.n && is.text[key] == '-' && is.text[key + 1] == ' ') key += 2;
  if (key < is.n && is.text[key] == '{') key++;
  is.value = is.key_end = find_key_end(is.text, key, is.n);
  while (is.value < is.n && (is_blank(is.text[is.value]) || strchr(":=", is.text[is.value]))) is.value++;
  is.end = is.n;
  size_t at = is.value;
  if (at < is.n && is_quote(is.text[at]) && behind_quoted(is.text, at, is.n) <= is.n)
    at = behind_quoted(is.text, at, is.n);
  for (; at < is.n; at++)
    if (is.text[at] == '#' && at > 0 && is_blank(is.text[at - 1]))
      is.end = at > is.value ? at : is.value, at = is.n;
  while (is.end > is.value && is_blank(is.text[is.end - 1])) is.end--;
  is.rest = is.end;
  if (is.end > is.value && is.text[is.end - 1] == ',') is.end--;
  return is;
}

static size_t indent_of(const nxc_source *source, uint32_t line) {
  size_t n, indent = 0;
  const char *text = line > 0 && line <= source->n_lines ? nxc_source_line(source, line, &n) : NULL;
  while (text != NULL && indent < n && text[indent] == ' ') indent++;
  return text != NULL && indent < n && !is_blank(text[indent]) && text[indent] != '#' ? indent : SIZE_MAX;
}

/* The next line above, or below, that says something; 0: none is near. */
static uint32_t telling_line(const nxc_source *source, uint32_t line, int step) {
  enum { APART_MAX = 8 };
  for (int n = 0; n < APART_MAX; n++) {
    line += (uint32_t)step;
    if (line < 1 || line > source->n_lines) return 0;
    if (indent_of(source, line) != SIZE_MAX) return line;
  }
  return 0;
}

static bool opens(const nxc_source *source, uint32_t line) {
  look is = read_look(NULL, source, line);
  return is.rest > is.indent && is.text[is.rest - 1] == ':';
}

/* As the line above or below that is deeper, but for what opens the lines below; SIZE_MAX: unknown. */
static size_t indent_beside(const nxc_source *source, uint32_t line) {
  uint32_t before = telling_line(source, line, -1), behind = telling_line(source, line, 1);
  size_t above = indent_of(source, before), below = indent_of(source, behind);
  if (above == SIZE_MAX) return below;
  size_t inside = opens(source, before) ? above + 2 : above;
  if (opens(source, line)) return inside;
  return below != SIZE_MAX && below > above ? below : inside;
}

static const char *quoted(const look *is) {
  size_t n = is->end - is->value;
  char quote = memchr(is->text + is->value, '"', n) != NULL ? '\'' : '"';
  return nxc_arena_printf(is->arena, "%c%.*s%c", quote, (int)n, is->text + is->value, quote);
}

/* -- slips ----------------------------------------------------------------------------------------------- */

static bool lacks_colon(const look *is, change *to) {
  bool has = is->key_end < is->n && is->text[is->key_end] == ':' &&
             (is->key_end + 1 == is->n || is_blank(is->text[is->key_end + 1]));
  if (has || is->key_end == 0 ||
      !(is_word(is->text[is->key_end - 1]) || is_quote(is->text[is->key_end - 1])) ||
      is->value == is->key_end || is->value >= is->end)
    return false;
  *to = (change){is->key_end, is->value, ": "};
  return true;
}

static bool foreign_comment(const look *is, change *to) {
  const char *rest = is->text + is->indent;
  size_t n = is->n - is->indent;
  if (n >= 2 && (memcmp(rest, "//", 2) == 0 || memcmp(rest, "/*", 2) == 0 || rest[0] == ';')) {
    *to = (change){is->indent, is->indent + (rest[0] == ';' ? 1 : 2), "#"};
    return true;
  }
  for (size_t at = is->value; at + 1 < is->n; at++) {
    bool begins = at > 0 && (is_blank(is->text[at - 1]) || is->text[at - 1] == ',') &&
                  (memcmp(is->text + at, "//", 2) == 0 || memcmp(is->text + at, "/*", 2) == 0);
    bool marks = is->text[at] == ';' || begins;
    if (is_quote(is->text[at])) at = behind_quoted(is->text, at, is->n) - 1;
    else if (marks) {
      *to = (change){at, at, " # "};
      return true;
    }
  }
  return false;
}

/* A number, a truth value: what is rarely quoted. */
static bool is_bare(const look *is) {
  const char *text = is->text + is->value + 1;
  size_t n = is->end - is->value - 1;
  return n > 0 && (strspn(text, "0123456789.") >= n || (n == 4 && strncasecmp(text, "true", n) == 0) ||
                   (n == 5 && strncasecmp(text, "false", n) == 0));
}

static bool open_quote(const look *is, change *to) {
  if (is->value >= is->end || !is_quote(is->text[is->value])) return false;
  if (behind_quoted(is->text, is->value, is->n) <= is->n) return false;
  if (is_bare(is)) *to = (change){is->value, is->value + 1, ""};
  else *to = (change){is->end, is->end, is->text[is->value] == '"' ? "\"" : "'"};
  return true;
}

static bool open_bracket(const look *is, change *to) {
  if (is->value + 1 >= is->end) return false;
  char first = is->text[is->value], last = is->text[is->end - 1];
  bool opens = first == '[' || first == '{', closes = last == ']' || last == '}';
  if (opens == closes) return false;
  bool list = memchr(is->text + is->value, ',', is->end - is->value) != NULL;
  if (opens && list) *to = (change){is->end, is->end, first == '[' ? "]" : "}"};
  else if (opens) *to = (change){is->value, is->value + 1, ""};
  else *to = (change){is->end - 1, is->end, ""};
  return true;
}

static bool value_above_block(const look *is, change *to) {
  static const char *const nothing[] = {"null", "Null", "~", "{}", "[]", "''", "\"\""};
  for (size_t i = 0; is->has_block && i < sizeof nothing / sizeof *nothing; i++)
    if (strlen(nothing[i]) == is->end - is->value &&
        memcmp(is->text + is->value, nothing[i], is->end - is->value) == 0) {
      bool flow = is->text[is->key_end - 1] == '"' && is->text[is->value] == '{';
      *to = (change){is->key_end + 1, is->end, flow ? " {" : ""};
      return true;
    }
  return false;
}

static bool behind_value(const look *is, change *to) {
  if (is->value >= is->end) return false;
  bool quotes = is_quote(is->text[is->value]);
  size_t behind = quotes ? behind_quoted(is->text, is->value, is->end) : is->value + 1;
  if (behind >= is->end || (!quotes && (is->text[is->value] != '{' || behind + 1 != is->end))) return false;
  *to = (change){behind, is->end, ""};
  return true;
}

static bool lone_backslash(const look *is, change *to) {
  if (is->value >= is->end || is->text[is->value] != '"' || is->text[is->end - 1] != '"') return false;
  char *text = nxc_arena_alloc(is->arena, 2 * (is->end - is->value) + 1);
  size_t n = 0;
  for (size_t at = is->value; at < is->end; at++) {
    text[n++] = is->text[at];
    if (is->text[at] != '\\') continue;
    if (is->text[at + 1] == '\\') at++;
    text[n++] = '\\';
  }
  text[n] = '\0';
  *to = (change){is->value, is->end, text};
  return n > is->end - is->value;
}

static bool needs_quotes(const look *is, change *to) {
  if (is->value >= is->end || is_quote(is->text[is->value]) || is->key_end >= is->n ||
      is->text[is->key_end] != ':')
    return false;
  bool begins =
           strchr("@`%*&!|>,]}?", is->text[is->value]) != NULL || memcmp(is->text + is->value, "- ", 2) == 0,
       inside = is->text[is->end - 1] == ':';
  for (size_t at = is->value; at + 1 < is->end; at++)
    inside |= (is->text[at] == ':' && is->text[at + 1] == ' ') || strchr("{[", is->text[at]) != NULL;
  if (!begins && !inside) return false;
  *to = (change){is->value, is->end, quoted(is)};
  return true;
}

static bool lacks_comma(const look *is, change *to) {
  if (is->rest != is->end || is->end <= is->indent || strchr("{[,", is->text[is->end - 1])) return false;
  *to = (change){is->end, is->end, ","};
  return true;
}

static bool tab(const look *is, change *to) {
  if (memchr(is->text, '\t', is->indent) == NULL || is->indent_near == SIZE_MAX) return false;
  *to = (change){0, is->indent, nxc_arena_printf(is->arena, "%*s", (int)is->indent_near, "")};
  return true;
}

static bool needless(const look *is, change *to) {
  *to = (change){is->indent, is->indent, "# "};
  return is->value < is->end || !is->has_block;
}

static const struct {
  bool (*find)(const look *is, change *to);
  const char *message, *fix;
} slips[] = {
    {tab, "this line is indented with a tab, which YAML does not take", "indent with spaces"},
    {foreign_comment, "this is no comment of YAML", "begin comments with #, behind a blank"},
    {open_quote, "a quote is opened and never closed", "close the quote, or leave it out"},
    {lone_backslash, "a backslash in double quotes begins an escape, and this is none",
     "write \\\\, or use single quotes"},
    {behind_value, "something stands behind the value", "leave it out"},
    {open_bracket, "a bracket has no other that belongs to it", "close it, or leave it out"},
    {value_above_block, "this key has a value, and a block below it as well", "leave the value out"},
    {lacks_colon, "this line has no colon with a blank behind it", "write key: value"},
    {needs_quotes, "this value means something else in YAML without quotes", "put it in quotes"},
    {lacks_comma, "a comma lacks behind this entry", "put a comma behind it"},
    {needless, "this line cannot stand here", "correct it, move it, or leave it out"},
};
enum { N_SLIPS = sizeof slips / sizeof *slips, NEEDLESS = N_SLIPS - 1 };

/* -- the search ------------------------------------------------------------------------------------------ */

typedef struct search {
  const nxc_source *source;
  nxc_arena *arena;
  const char *clean;
  char *text;
  size_t first, end; /* slips to look for */
  size_t n_tries;
  uint32_t ended; /* the line that reading ends at */
  bool further;   /* a mend need not do more than let it go on */
} search;

static bool would_mend(search *in, uint32_t line, const change *to) {
  size_t begin = in->source->line_start[line - 1] + to->begin,
         end = in->source->line_start[line - 1] + to->end, n = strlen(to->text),
         n_bytes = in->source->n_bytes;
  if (in->n_tries++ >= TRIES_MAX) return false;
  memcpy(in->text, in->clean, begin);
  memcpy(in->text + begin, to->text, n);
  memcpy(in->text + begin + n, in->clean + end, n_bytes - end);
  return nxc_yaml_goes_on(in->text, n_bytes - (end - begin) + n, in->ended, in->further);
}

/* The two lines below stand in this one, or are its items. */
static bool has_block(const nxc_source *source, uint32_t line, const look *is) {
  size_t below = indent_of(source, line + 1), second = indent_of(source, line + 2);
  if (below == SIZE_MAX || second == SIZE_MAX || below < is->indent || second < is->indent) return false;
  bool item = source->text[source->line_start[line] + below] == '-';
  return item || (below > is->indent && second > is->indent);
}

static bool try_line(search *in, uint32_t line, nxc_line_mend *found) {
  const nxc_source *source = in->source;
  look is = read_look(in->arena, source, line);
  if (is.indent == is.n || is.text[is.indent] == '#') return false;
  is.indent_near = indent_beside(source, line);
  is.has_block = has_block(source, line, &is);
  for (size_t i = in->first; i < in->end; i++) {
    change to;
    if (!slips[i].find(&is, &to)) continue;
    bool to_the_end = slips[i].find == open_quote && in->ended + 1 >= source->n_lines;
    uint32_t ended = in->ended;
    if (to_the_end) in->ended = line; /* all behind it was text */
    bool good = would_mend(in, line, &to);
    in->ended = ended;
    if (!good) continue;
    size_t start = source->line_start[line - 1], at = to.begin > is.value ? is.value : to.begin;
    *found =
        (nxc_line_mend){.at = {source, line, (uint32_t)nxc_source_column(source, line, start + at) + 1, 1},
                        .edit = {source, start + to.begin, start + to.end, to.text},
                        .message = slips[i].message,
                        .fix = slips[i].fix};
    return true;
  }
  return false;
}

/* What was opened may stand far above the place where reading ends. */
static bool leaves_open(const nxc_source *source, uint32_t line) {
  look is = read_look(NULL, source, line);
  change to;
  return is.indent < is.n && is.text[is.indent] != '#' && (open_quote(&is, &to) || open_bracket(&is, &to));
}

bool nxc_find_line_mend(nxc_reader *reader, uint32_t number, uint32_t opened, bool needless, bool further,
                        nxc_line_mend *found) {
  const nxc_source *source = reader->source;
  if (reader->clean == NULL || source->n_bytes > NXC_MENDED_BYTES_MAX || number > source->n_lines)
    return false;
  search in = {.source = source,
               .arena = reader->arena,
               .clean = reader->clean,
               .text = nxc_arena_alloc(reader->arena, 2 * source->n_bytes + INDENT_ROOM),
               .ended = number,
               .further = further,
               .first = needless ? NEEDLESS : 0,
               .end = needless ? N_SLIPS : NEEDLESS};
  if (try_line(&in, number, found) || (opened > 0 && try_line(&in, opened, found))) return true;
  uint32_t line = number;
  for (size_t n = 0; line > 1 && n < LINES_MAX; n++)
    if (--line != opened && try_line(&in, line, found)) return true;
  while (line > 1)
    if (leaves_open(source, --line) && try_line(&in, line, found)) return true;
  return false;
}
