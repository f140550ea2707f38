/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of texts. */
#include "chat/run.h"

#include <string.h>

static nxj_value need_text(nxj_run *run, nxj_value value) {
  if (value.kind != NXJ_STRING) nxj_fail(run->pool, "expected a str, found %s", nxj_kind_name(value.kind));
  return value;
}

static nxj_value a_list(nxj_run *run, nxj_list list) {
  return nxj_list_of(run->pool, NXJ_LIST, list.items, list.n);
}

/* -- texts ----------------------------------------------------------------------------------------------- */

static nxj_value strip(nxj_run *run, nxj_value text, const nxj_arguments *arguments, bool before,
                       bool behind) {
  nxj_value which = arguments->given[0];
  bool given = nxj_is_given(which);
  if (given) need_text(run, which);
  return nxj_strip(text, given ? &which : NULL, before, behind);
}

static nxj_value text_strip(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return strip(run, text, arguments, true, true);
}

static nxj_value text_lstrip(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return strip(run, text, arguments, true, false);
}

static nxj_value text_rstrip(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return strip(run, text, arguments, false, true);
}

static bool starts_at(nxj_value text, size_t at, nxj_value with) {
  return text.n_bytes - at >= with.n_bytes && memcmp(text.text + at, with.text, with.n_bytes) == 0;
}

static bool ends_with(nxj_value text, nxj_value with) {
  return text.n_bytes >= with.n_bytes && starts_at(text, text.n_bytes - with.n_bytes, with);
}

static nxj_value has_affix(nxj_run *run, nxj_value text, nxj_value affix, bool at_end) {
  nxj_list one = {&affix, 1}, affixes = affix.kind == NXJ_TUPLE ? *affix.list : one;
  for (size_t i = 0; i < affixes.n; i++) {
    nxj_value with = need_text(run, affixes.items[i]);
    if (at_end ? ends_with(text, with) : starts_at(text, 0, with)) return nxj_bool(true);
  }
  return nxj_bool(false);
}

static nxj_value text_startswith(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return has_affix(run, text, arguments->given[0], false);
}

static nxj_value text_endswith(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return has_affix(run, text, arguments->given[0], true);
}

static nxj_value text_removeprefix(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  nxj_value affix = need_text(run, arguments->given[0]);
  if (!starts_at(text, 0, affix)) return text;
  return nxj_string(text.text + affix.n_bytes, text.n_bytes - affix.n_bytes);
}

static nxj_value text_removesuffix(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  nxj_value affix = need_text(run, arguments->given[0]);
  return ends_with(text, affix) ? nxj_string(text.text, text.n_bytes - affix.n_bytes) : text;
}

static nxj_value text_upper(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_cased(run->pool, text, NXJ_UPPER);
}

static nxj_value text_lower(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_cased(run->pool, text, NXJ_LOWER);
}

static nxj_value text_title(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_cased(run->pool, text, NXJ_TITLE);
}

static nxj_value text_capitalize(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  (void)arguments;
  return nxj_cased(run->pool, text, NXJ_CAPITALIZED);
}

/* Where `part` stands at or behind byte `from`, or n_bytes + 1. */
static size_t find_text(nxj_run *run, nxj_value text, nxj_value part, size_t from) {
  const char *found = memmem(text.text + from, text.n_bytes - from, part.text, part.n_bytes);
  nxj_work(run->pool, 1 + (text.n_bytes - from) / 64);
  return found ? (size_t)(found - text.text) : text.n_bytes + 1;
}

static size_t rfind_text(nxj_run *run, nxj_value text, nxj_value part) {
  nxj_work(run->pool, 1 + text.n_bytes / 8);
  for (size_t at = text.n_bytes + 1; at-- > 0;)
    if (starts_at(text, at, part)) return at;
  return text.n_bytes + 1;
}

static nxj_value place_of(nxj_value text, size_t at) {
  return nxj_int(at > text.n_bytes ? -1 : (int64_t)nxj_code_points(text.text, at));
}

static nxj_value text_find(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return place_of(text, find_text(run, text, need_text(run, arguments->given[0]), 0));
}

static nxj_value text_rfind(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return place_of(text, rfind_text(run, text, need_text(run, arguments->given[0])));
}

static nxj_value text_count(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  nxj_value part = need_text(run, arguments->given[0]);
  if (part.n_bytes == 0) return nxj_int((int64_t)nxj_code_points(text.text, text.n_bytes) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = find_text(run, text, part, at)) <= text.n_bytes; at += part.n_bytes) n++;
  return nxj_int(n);
}

/* Of an empty old text the new one goes before each code point, and behind the last. */
static nxj_value text_replace(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  nxj_value old = need_text(run, arguments->given[0]), new = need_text(run, arguments->given[1]);
  nxj_value count = arguments->given[2];
  int64_t left = nxj_is_given(count) ? nxj_integer(run->pool, count, "the count") : -1;
  nxj_buffer out = {0};
  size_t at = 0;
  for (size_t found; left != 0 && (found = find_text(run, text, old, at)) <= text.n_bytes; left--) {
    nxj_put(run->pool, &out, text.text + at, found - at);
    nxj_put(run->pool, &out, new.text, new.n_bytes);
    at = found + old.n_bytes;
    if (old.n_bytes > 0) continue;
    if (at == text.n_bytes) break;
    size_t n = nxj_code_point_bytes(text.text + at, text.n_bytes - at);
    nxj_put(run->pool, &out, text.text + at, n);
    at += n;
  }
  nxj_put(run->pool, &out, text.text + at, text.n_bytes - at);
  return nxj_buffer_value(run->pool, &out);
}

static nxj_value split_at_space(nxj_run *run, nxj_value text, int64_t most) {
  nxj_list parts = {NULL, 0};
  for (;;) {
    text = nxj_strip(text, NULL, true, false);
    if (text.n_bytes == 0) break;
    size_t end = 0, n = 0;
    for (; end < text.n_bytes; end += n)
      if (nxj_is_space(nxj_decode(text.text + end, text.n_bytes - end, &n))) break;
    if (most >= 0 && (int64_t)parts.n == most) end = text.n_bytes;
    nxj_list_add(run->pool, &parts, nxj_string(nxj_copy(run->pool, text.text, end), end));
    text = nxj_string(text.text + end, text.n_bytes - end);
    if (most >= 0 && (int64_t)parts.n > most) break;
  }
  return a_list(run, parts);
}

static nxj_value text_split(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  nxj_value by = arguments->given[0], count = arguments->given[1];
  int64_t most = nxj_is_given(count) ? nxj_integer(run->pool, count, "the count") : -1;
  if (!nxj_is_given(by)) return split_at_space(run, text, most);
  if (need_text(run, by).n_bytes == 0) nxj_fail(run->pool, "split needs a separator that is not empty");
  nxj_list parts = {NULL, 0};
  size_t at = 0;
  for (size_t found; most != 0 && (found = find_text(run, text, by, at)) <= text.n_bytes; most--) {
    nxj_list_add(run->pool, &parts, nxj_string(nxj_copy(run->pool, text.text + at, found - at), found - at));
    at = found + by.n_bytes;
  }
  nxj_list_add(run->pool, &parts,
               nxj_string(nxj_copy(run->pool, text.text + at, text.n_bytes - at), text.n_bytes - at));
  return a_list(run, parts);
}

/* From behind; parts in order. */
static nxj_value text_rsplit(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  nxj_value by = arguments->given[0], count = arguments->given[1];
  if (!nxj_is_given(count) || nxj_integer(run->pool, count, "the count") < 0)
    return text_split(run, text, arguments);
  if (!nxj_is_given(by)) nxj_fail(run->pool, "rsplit at space with a count is not covered");
  if (need_text(run, by).n_bytes == 0) nxj_fail(run->pool, "rsplit needs a separator that is not empty");
  nxj_list parts = {NULL, 0}, turned = {NULL, 0};
  size_t end = text.n_bytes, at;
  for (int64_t left = nxj_integer(run->pool, count, "the count"); left > 0; left--) {
    at = rfind_text(run, nxj_string(text.text, end), by);
    if (at > end) break;
    size_t begin = at + by.n_bytes;
    nxj_list_add(run->pool, &parts,
                 nxj_string(nxj_copy(run->pool, text.text + begin, end - begin), end - begin));
    end = at;
  }
  nxj_list_add(run->pool, &turned, nxj_string(nxj_copy(run->pool, text.text, end), end));
  for (size_t i = parts.n; i-- > 0;) nxj_list_add(run->pool, &turned, parts.items[i]);
  return a_list(run, turned);
}

static nxj_value text_splitlines(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_list lines = {NULL, 0};
  for (size_t at = 0, n = 0; at < text.n_bytes;) {
    size_t end = at;
    for (; end < text.n_bytes; end += n)
      if (nxj_is_line_end(nxj_decode(text.text + end, text.n_bytes - end, &n))) break;
    nxj_list_add(run->pool, &lines, nxj_string(nxj_copy(run->pool, text.text + at, end - at), end - at));
    bool two = end + 1 < text.n_bytes && text.text[end] == '\r' && text.text[end + 1] == '\n';
    at = end == text.n_bytes ? end : end + (two ? 2 : n);
  }
  return a_list(run, lines);
}

static nxj_value text_join(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  nxj_list items = nxj_items(run->pool, arguments->given[0]);
  nxj_buffer out = {0};
  for (size_t i = 0; i < items.n; i++) {
    nxj_value item = need_text(run, items.items[i]);
    if (i > 0) nxj_put(run->pool, &out, text.text, text.n_bytes);
    nxj_put(run->pool, &out, item.text, item.n_bytes);
  }
  return nxj_buffer_value(run->pool, &out);
}

/* The argument that a field names: by the next place, by a number or by its name. */
static nxj_value field_value(nxj_run *run, nxj_value field, const nxj_arguments *arguments, size_t *next) {
  static const char digits[] = "0123456789";
  size_t at = field.n_bytes == 0 ? (*next)++ : arguments->n;
  bool number = field.n_bytes == 1 && strchr(digits, field.text[0]) != NULL;
  if (number) at = (size_t)(field.text[0] - '0');
  for (size_t i = 0; i < arguments->n; i++) {
    const char *name = arguments->names[i];
    bool named =
        name != NULL && strlen(name) == field.n_bytes && memcmp(name, field.text, field.n_bytes) == 0;
    if (named || (name == NULL && i == at)) return arguments->values[i];
  }
  nxj_fail(run->pool, "the field {%.*s} of format is not covered", (int)field.n_bytes, field.text);
}

/* Fields without a form: {}, {0}, {name}. */
static nxj_value text_format(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  nxj_buffer out = {0};
  size_t next = 0;
  for (size_t at = 0; at < text.n_bytes; at++) {
    char c = text.text[at];
    bool twice = (c == '{' || c == '}') && at + 1 < text.n_bytes && text.text[at + 1] == c;
    if (c != '{' || twice) {
      nxj_put(run->pool, &out, &text.text[at], 1);
      at += twice;
      continue;
    }
    const char *end = memchr(text.text + at, '}', text.n_bytes - at);
    if (end == NULL) nxj_fail(run->pool, "a field of format has no end");
    nxj_value field = nxj_string(text.text + at + 1, (size_t)(end - text.text) - at - 1);
    nxj_value value = nxj_str(run->pool, field_value(run, field, arguments, &next));
    nxj_put(run->pool, &out, value.text, value.n_bytes);
    at += field.n_bytes + 1;
  }
  return nxj_buffer_value(run->pool, &out);
}

static nxj_value all_bytes(nxj_run *run, nxj_value text, const char *set) {
  if (!nxj_is_ascii(text)) nxj_fail(run->pool, "kinds of characters beyond ASCII are not covered");
  for (size_t i = 0; i < text.n_bytes; i++)
    if (text.text[i] == '\0' || strchr(set, text.text[i]) == NULL) return nxj_bool(false);
  return nxj_bool(text.n_bytes > 0);
}

static nxj_value text_isdigit(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  (void)arguments;
  return all_bytes(run, text, "0123456789");
}

static nxj_value text_isalpha(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  (void)arguments;
  return all_bytes(run, text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

static nxj_value text_isspace(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  (void)run, (void)arguments;
  return nxj_bool(text.n_bytes > 0 && nxj_strip(text, NULL, true, true).n_bytes == 0);
}

static nxj_value text_islower(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return nxj_find_test("lower")->call(run, text, arguments);
}

static nxj_value text_isupper(nxj_run *run, nxj_value text, const nxj_arguments *arguments) {
  return nxj_find_test("upper")->call(run, text, arguments);
}

const nxj_row nxj_text_methods[] = {
    {"capitalize", "", text_capitalize},
    {"count", "sub!", text_count},
    {"endswith", "suffix!", text_endswith},
    {"find", "sub!", text_find},
    {"format", NULL, text_format},
    {"isalpha", "", text_isalpha},
    {"isdigit", "", text_isdigit},
    {"islower", "", text_islower},
    {"isspace", "", text_isspace},
    {"isupper", "", text_isupper},
    {"join", "iterable!", text_join},
    {"lower", "", text_lower},
    {"lstrip", "chars", text_lstrip},
    {"removeprefix", "prefix!", text_removeprefix},
    {"removesuffix", "suffix!", text_removesuffix},
    {"replace", "old! new! count", text_replace},
    {"rfind", "sub!", text_rfind},
    {"rsplit", "sep maxsplit", text_rsplit},
    {"rstrip", "chars", text_rstrip},
    {"split", "sep maxsplit", text_split},
    {"splitlines", "", text_splitlines},
    {"startswith", "prefix!", text_startswith},
    {"strip", "chars", text_strip},
    {"title", "", text_title},
    {"upper", "", text_upper},
    {NULL, NULL, NULL},
};
