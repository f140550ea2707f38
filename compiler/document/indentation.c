/* SPDX-License-Identifier: Apache-2.0 */
/* Which line of a text that is not YAML is indented wrongly: the one of those above the place that libyaml
 * gives up at with which the text would be YAML, were it indented as others are. */
#include "compiler/document/reader.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { INDENT_MAX = 64, LINES_MAX = 12, DELTA_MAX = 4, DEPTH_MAX = 64 };

typedef struct line {
  uint32_t number; /* 0: there is none */
  size_t indent;
  bool item, opens; /* begins with "- "; ends with the colon of a map or list below */
} line;

typedef struct search {
  const nxc_source *source;
  size_t n_with[INDENT_MAX]; /* lines that are indented so far */
  char *text;
  size_t least; /* cost of the best so far */
  uint32_t ended; /* the line that reading ends at */
  bool further;   /* a mend need not do more than let it go on */
} search;

static line read_line(const nxc_source *source, uint32_t number) {
  size_t n;
  const char *text = nxc_source_line(source, number, &n);
  line is = {.number = number};
  while (is.indent < n && text[is.indent] == ' ') is.indent++;
  for (size_t i = is.indent; i < n; i++)
    if (text[i] == '#' && (i == 0 || text[i - 1] == ' ')) n = i;
  while (n > is.indent && strchr(" \t\r", text[n - 1]) != NULL) n--;
  if (n == is.indent || is.indent >= INDENT_MAX) return (line){0};
  is.item = text[is.indent] == '-' && (is.indent + 1 == n || text[is.indent + 1] == ' ');
  is.opens = text[n - 1] == ':';
  return is;
}

static line neighbour(const nxc_source *source, uint32_t number, int step) {
  line found = {0};
  while (found.number == 0 && (step > 0 ? number < source->n_lines : number > 1))
    found = read_line(source, number = step > 0 ? number + 1 : number - 1);
  return found;
}

uint32_t nxc_yaml_ends_at(const char *text, size_t n_bytes) {
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) return 1;
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, (const unsigned char *)text, n_bytes);
  uint32_t ends_at = 0;
  size_t depth = 0;
  for (bool more = true; more && ends_at == 0;) {
    yaml_event_t event;
    if (!yaml_parser_parse(&parser, &event)) {
      ends_at = (uint32_t)parser.problem_mark.line + 1;
      break;
    }
    depth += event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SEQUENCE_START_EVENT;
    depth -= event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
    if (depth > DEPTH_MAX) ends_at = 1;
    more = event.type != YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
  }
  yaml_parser_delete(&parser);
  return ends_at;
}

bool nxc_yaml_goes_on(const char *text, size_t n_bytes, uint32_t ended, bool further) {
  uint32_t ends_at = nxc_yaml_ends_at(text, n_bytes);
  return ends_at == 0 || (further && ends_at > ended + 1);
}

/* What opens a map or list still holds the line below it. */
static bool holds(const line *above, size_t indent, const line *below, size_t below_indent) {
  return !above->opens || below->number == 0 || below_indent > indent ||
         (below->item && below_indent == indent);
}

static bool would_mend(const search *in, const line *is, size_t indent) {
  const nxc_source *source = in->source;
  line above = neighbour(source, is->number, -1), below = neighbour(source, is->number, 1);
  if (above.number > 0 && !holds(&above, above.indent, is, indent)) return false;
  if (below.indent > is->indent && !holds(is, indent, &below, below.indent)) return false;
  size_t begin = source->line_start[is->number - 1], end = begin + is->indent;
  memcpy(in->text, source->text, begin);
  memset(in->text + begin, ' ', indent);
  memcpy(in->text + begin + indent, source->text + end, source->n_bytes - end);
  return nxc_yaml_goes_on(in->text, source->n_bytes - is->indent + indent, in->ended, in->further);
}

static size_t apart(size_t a, size_t b) {
  return a > b ? a - b : b - a;
}

/* Heads of sections mostly stand where they should: they are moved where nothing else mends the text. */
static size_t cost_of(const line *is, size_t indent) {
  return apart(indent, is->indent) + (is->indent == 0 && is->opens ? DELTA_MAX : 0);
}

/* The nearest indentation that others have and that mends the text; of two that are as near the more usual.
 */
static void try_line(search *in, const line *is, nxc_misindented *best) {
  for (size_t indent = 0; indent < INDENT_MAX; indent++) {
    size_t delta = apart(indent, is->indent), cost = cost_of(is, indent);
    if (delta == 0 || delta > DELTA_MAX || in->n_with[indent] == 0) continue;
    if (best->line > 0 && cost > in->least) continue;
    if (best->line > 0 && cost == in->least && in->n_with[indent] <= in->n_with[best->indent]) continue;
    if (!would_mend(in, is, indent)) continue;
    *best = (nxc_misindented){.line = is->number, .is = is->indent, .indent = indent};
    in->least = cost;
  }
}

nxc_misindented nxc_misindented_line(const nxc_source *source, uint32_t number, bool further) {
  nxc_misindented best = {0};
  if (source == NULL || source->n_bytes > NXC_MENDED_BYTES_MAX || number == 0 || number > source->n_lines)
    return best;
  search in = {
      .source = source, .text = malloc(source->n_bytes + INDENT_MAX), .ended = number, .further = further};
  if (in.text == NULL) return best;
  for (uint32_t i = 1; i <= source->n_lines; i++) {
    line is = read_line(source, i);
    if (is.number > 0) in.n_with[is.indent]++;
  }
  line is = read_line(source, number);
  for (size_t i = 0; i < LINES_MAX; i++) {
    if (is.number > 0) try_line(&in, &is, &best);
    else if (i > 0) break;
    is = neighbour(source, is.number > 0 ? is.number : number, -1);
  }
  is = neighbour(source, 0, 1); /* deeper than all others, it makes a second document of them */
  if (best.line == 0 && is.number > 0) try_line(&in, &is, &best);
  free(in.text);
  return best;
}
