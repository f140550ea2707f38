/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of one value. A filter of text takes any value's text. */
#include "chat/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static nxj_value text_of(nxj_run *run, nxj_value value) {
  return nxj_str(run->pool, value);
}

static bool is_true_argument(nxj_value argument) {
  return argument.kind != NXJ_ABSENT && nxj_is_true(argument);
}

/* -- texts ----------------------------------------------------------------------------------------------- */

static nxj_value filter_trim(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value which = arguments->given[0];
  bool given = nxj_is_given(which);
  if (given) which = text_of(run, which);
  return nxj_strip(text_of(run, value), given ? &which : NULL, true, true);
}

static nxj_value filter_upper(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_cased(run->pool, text_of(run, value), NXJ_UPPER);
}

static nxj_value filter_lower(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_cased(run->pool, text_of(run, value), NXJ_LOWER);
}

static nxj_value filter_capitalize(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_cased(run->pool, text_of(run, value), NXJ_CAPITALIZED);
}

static bool is_between_words(nxj_value text, size_t at, size_t *n) {
  uint32_t c = nxj_decode(text.text + at, text.n_bytes - at, n);
  return nxj_is_space(c) || (c < 0x80 && c != 0 && strchr("-({[<", (int)c) != NULL);
}

static void put_cased(nxj_run *run, nxj_buffer *out, const char *text, size_t n_bytes, nxj_case form) {
  nxj_value cased = nxj_cased(run->pool, nxj_string(text, n_bytes), form);
  nxj_put(run->pool, out, cased.text, cased.n_bytes);
}

/* Unlike the method, a word begins at the start and behind space and -({[< alone. */
static nxj_value filter_title(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_value text = text_of(run, value);
  nxj_buffer title = {0};
  for (size_t begin = 0, end, n, m; begin < text.n_bytes; begin = end) {
    bool between = is_between_words(text, begin, &n);
    for (end = begin + n; end < text.n_bytes && is_between_words(text, end, &m) == between; end += m)
      continue;
    put_cased(run, &title, text.text + begin, n, NXJ_UPPER);
    put_cased(run, &title, text.text + begin + n, end - begin - n, NXJ_LOWER);
  }
  return nxj_buffer_value(run->pool, &title);
}

static nxj_value filter_string(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return text_of(run, value);
}

/* What is no HTML needs no mark; but + escapes what is joined to a text that has it. */
static nxj_value filter_safe(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value text = filter_string(run, value, arguments);
  text.is_safe = true;
  return text;
}

static nxj_value filter_replace(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_arguments texts = *arguments;
  texts.given[0] = text_of(run, arguments->given[0]);
  texts.given[1] = text_of(run, arguments->given[1]);
  return nxj_find_method(NXJ_STRING, "replace")->call(run, text_of(run, value), &texts);
}

static nxj_value indent_of(nxj_run *run, nxj_value width) {
  if (width.kind == NXJ_STRING) return width;
  int64_t n = width.kind == NXJ_ABSENT ? 4 : nxj_integer(run->pool, width, "the width");
  nxj_buffer text = {0};
  for (int64_t i = 0; i < n; i++) {
    nxj_work(run->pool, 1);
    nxj_put_text(run->pool, &text, " ");
  }
  return nxj_buffer_value(run->pool, &text);
}

/* The bytes of the first line, and with its end. */
static size_t line_bytes(const char *text, size_t n_bytes, size_t *with_end) {
  size_t at = 0, n = 0;
  for (; at < n_bytes; at += n)
    if (nxj_is_line_end(nxj_decode(text + at, n_bytes - at, &n))) break;
  *with_end = at == n_bytes ? at : at + n;
  if (at + 1 < n_bytes && text[at] == '\r' && text[at + 1] == '\n') ++*with_end;
  return at;
}

static nxj_value filter_indent(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value text = text_of(run, value), indent = indent_of(run, arguments->given[0]);
  bool first = is_true_argument(arguments->given[1]), blank = is_true_argument(arguments->given[2]);
  nxj_buffer out = {0};
  for (size_t at = 0, with_end, line = 0; at < text.n_bytes || line == 0; at += with_end, line++) {
    size_t n = line_bytes(text.text + at, text.n_bytes - at, &with_end);
    if (line > 0) nxj_put_text(run->pool, &out, "\n");
    if (line == 0 ? first : n > 0 || blank) nxj_put(run->pool, &out, indent.text, indent.n_bytes);
    nxj_put(run->pool, &out, text.text + at, n);
    bool ends_with_line = at + with_end == text.n_bytes && with_end > n;
    if (ends_with_line) nxj_put_text(run->pool, &out, "\n");
    if (ends_with_line && blank) nxj_put(run->pool, &out, indent.text, indent.n_bytes);
    if (with_end == 0) break;
  }
  return nxj_buffer_value(run->pool, &out);
}

/* -- numbers --------------------------------------------------------------------------------------------- */

/* A text as a number, as Python's int and float read it: space around it, one sign. */
static bool read_number(nxj_run *run, nxj_value text, int base, bool as_float, nxj_value *number) {
  nxj_value bare = nxj_strip(text, NULL, true, true);
  const char *copy = nxj_copy(run->pool, bare.text, bare.n_bytes);
  char *end;
  errno = 0;
  bool odd = bare.n_bytes == 0 || nxj_is_space((unsigned char)copy[0]) || strpbrk(copy, "xXpP") != NULL;
  if (odd) return false;
  *number = as_float ? nxj_float(strtod(copy, &end)) : nxj_int(strtoll(copy, &end, base));
  return end == copy + bare.n_bytes && errno == 0;
}

static nxj_value filter_int(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value otherwise = arguments->given[0].kind == NXJ_ABSENT ? nxj_int(0) : arguments->given[0], number;
  int64_t base =
      arguments->given[1].kind == NXJ_ABSENT ? 10 : nxj_integer(run->pool, arguments->given[1], "the base");
  if (base < 2 || base > 36) nxj_fail(run->pool, "an int of base %lld is not covered", (long long)base);
  if (value.kind == NXJ_INT || value.kind == NXJ_BOOL) return nxj_int(nxj_integer(run->pool, value, "it"));
  if (value.kind == NXJ_FLOAT) {
    bool fits = value.number > -9.2e18 && value.number < 9.2e18;
    return fits ? nxj_int((int64_t)value.number) : otherwise;
  }
  if (value.kind != NXJ_STRING) return otherwise;
  if (read_number(run, value, (int)base, false, &number)) return number;
  bool is_float = read_number(run, value, 10, true, &number) && fabs(number.number) < 9.2e18;
  return is_float ? nxj_int((int64_t)number.number) : otherwise;
}

static nxj_value filter_float(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value otherwise = arguments->given[0].kind == NXJ_ABSENT ? nxj_float(0) : arguments->given[0], number;
  if (nxj_is_number(value)) return nxj_float(nxj_number(value));
  return value.kind == NXJ_STRING && read_number(run, value, 10, true, &number) ? number : otherwise;
}

static nxj_value filter_abs(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  if (!nxj_is_number(value)) nxj_fail(run->pool, "abs needs a number, not %s", nxj_kind_name(value.kind));
  if (value.kind == NXJ_FLOAT) return nxj_float(fabs(value.number));
  int64_t integer = nxj_integer(run->pool, value, "it");
  if (integer == INT64_MIN) nxj_fail(run->pool, "an int beyond 64 bits is not covered");
  return nxj_int(integer < 0 ? -integer : integer);
}

static nxj_value filter_round(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  if (!nxj_is_number(value)) nxj_fail(run->pool, "round needs a number, not %s", nxj_kind_name(value.kind));
  nxj_value places = arguments->given[0], method = arguments->given[1];
  int64_t n = places.kind == NXJ_ABSENT ? 0 : nxj_integer(run->pool, places, "the precision");
  if (n < -15 || n > 15) nxj_fail(run->pool, "round to %lld places is not covered", (long long)n);
  const char *how = method.kind == NXJ_STRING ? method.text : "common";
  double scale = pow(10, (double)n), scaled = nxj_number(value) * scale;
  double rounded = strcmp(how, "ceil") == 0    ? ceil(scaled)
                   : strcmp(how, "floor") == 0 ? floor(scaled)
                                               : rint(scaled);
  return nxj_float(rounded / scale);
}

/* -- any value ------------------------------------------------------------------------------------------- */

static nxj_value filter_default(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)run;
  bool replaced =
      value.kind == NXJ_UNDEFINED || (is_true_argument(arguments->given[1]) && !nxj_is_true(value));
  if (!replaced) return value;
  return arguments->given[0].kind == NXJ_ABSENT ? nxj_string("", 0) : arguments->given[0];
}

static nxj_value filter_length(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_int((int64_t)nxj_length(run->pool, value));
}

static void read_separators(nxj_run *run, nxj_value pair, nxj_json_form *form) {
  if (!nxj_is_given(pair)) return;
  nxj_list texts = nxj_items(run->pool, pair);
  if (texts.n != 2 || texts.items[0].kind != NXJ_STRING || texts.items[1].kind != NXJ_STRING)
    nxj_fail(run->pool, "separators of tojson are two texts");
  form->item_separator = texts.items[0], form->key_separator = texts.items[1];
}

static nxj_value filter_tojson(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value indent = arguments->given[1];
  if (!nxj_is_given(indent)) indent = nxj_none();
  else if (indent.kind != NXJ_STRING) indent = nxj_int(nxj_integer(run->pool, indent, "the indent"));
  nxj_json_form form = {.ascii = is_true_argument(arguments->given[0]),
                        .indent = indent,
                        .item_separator = nxj_string_of(indent.kind == NXJ_NONE ? ", " : ","),
                        .key_separator = nxj_string_of(": "),
                        .sorted = is_true_argument(arguments->given[3])};
  read_separators(run, arguments->given[2], &form);
  return nxj_json(run->pool, value, &form);
}

static nxj_value filter_items(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  if (value.kind == NXJ_UNDEFINED) return nxj_list_of(run->pool, NXJ_ITERATOR, NULL, 0);
  if (value.kind != NXJ_DICT) nxj_fail(run->pool, "items needs a dict, not %s", nxj_kind_name(value.kind));
  return nxj_find_method(NXJ_DICT, "items")->call(run, value, arguments);
}

const nxj_row nxj_filters[] = {
    {"abs", "", filter_abs},
    {"capitalize", "", filter_capitalize},
    {"count", "", filter_length},
    {"d", "default_value boolean", filter_default},
    {"default", "default_value boolean", filter_default},
    {"float", "default", filter_float},
    {"indent", "width first blank", filter_indent},
    {"int", "default base", filter_int},
    {"items", "", filter_items},
    {"length", "", filter_length},
    {"lower", "", filter_lower},
    {"replace", "old! new! count", filter_replace},
    {"round", "precision method", filter_round},
    {"safe", "", filter_safe},
    {"string", "", filter_string},
    {"title", "", filter_title},
    {"tojson", "ensure_ascii indent separators sort_keys", filter_tojson},
    {"trim", "chars", filter_trim},
    {"upper", "", filter_upper},
    {NULL, NULL, NULL},
};
