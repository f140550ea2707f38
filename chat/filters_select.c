/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of lists: what they choose, change, order and join. */
#include "chat/run.h"

#include <stdlib.h>
#include <string.h>

static bool is_true_argument(nxj_value argument) {
  return argument.kind != NXJ_ABSENT && nxj_is_true(argument);
}

/* "a.b.0" of an item; the item itself where no attribute is given. */
static nxj_value attribute_of(nxj_run *run, nxj_value item, nxj_value attribute) {
  if (!nxj_is_given(attribute)) return item;
  if (attribute.kind != NXJ_STRING) return nxj_item(run, item, attribute);
  char *path = nxj_copy(run->pool, attribute.text, attribute.n_bytes);
  for (char *part = path, *dot; part != NULL; part = dot) {
    dot = strchr(part, '.');
    if (dot) *dot++ = '\0';
    bool number = part[0] != '\0' && strspn(part, "0123456789") == strlen(part) && strlen(part) < 10;
    item = nxj_item(run, item, number ? nxj_int(strtoll(part, NULL, 10)) : nxj_string_of(part));
  }
  return item;
}

/* -- select and map: other filters and tests over items ---------------------------------------------------
 */

/* What select and map walk: of a false value nothing. */
static nxj_list items_of(nxj_run *run, nxj_value value) {
  return nxj_is_true(value) ? nxj_items(run->pool, value) : (nxj_list){NULL, 0};
}

/* The arguments from the `first` on, for the row that is named before them. */
static nxj_arguments *rest_of(nxj_run *run, const nxj_arguments *arguments, size_t first) {
  nxj_arguments *rest = nxj_alloc(run->pool, sizeof *rest);
  for (size_t i = first; i < arguments->n; i++, rest->n++) {
    rest->values[rest->n] = arguments->values[i];
    rest->names[rest->n] = arguments->names[i];
  }
  return rest;
}

static const char *row_name(nxj_run *run, const nxj_arguments *arguments, size_t at) {
  if (arguments->names[at] || arguments->values[at].kind != NXJ_STRING)
    nxj_fail(run->pool, "the name of a filter or test must be a text");
  return arguments->values[at].text;
}

static const nxj_row *need_test(nxj_run *run, const char *name) {
  const nxj_row *row = nxj_find_test(name);
  if (row == NULL) nxj_not_covered(run->pool, "test", name);
  return row;
}

static nxj_value select_items(nxj_run *run, nxj_value value, const nxj_arguments *arguments,
                              bool by_attribute, bool wanted) {
  if (by_attribute && arguments->n == 0) nxj_fail(run->pool, "selectattr and rejectattr need an attribute");
  nxj_value attribute = by_attribute ? arguments->values[0] : nxj_none();
  size_t at = by_attribute;
  const nxj_row *test = arguments->n > at ? need_test(run, row_name(run, arguments, at)) : NULL;
  nxj_arguments *rest = rest_of(run, arguments, at + 1);
  nxj_list items = items_of(run, value), kept = {NULL, 0};
  for (size_t i = 0; i < items.n; i++) {
    nxj_value judged = attribute_of(run, items.items[i], attribute);
    bool is = nxj_is_true(test ? nxj_call_row(run, test, judged, rest) : judged);
    if (is == wanted) nxj_list_add(run->pool, &kept, items.items[i]);
  }
  return nxj_list_of(run->pool, NXJ_ITERATOR, kept.items, kept.n);
}

static nxj_value filter_select(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return select_items(run, value, arguments, false, true);
}

static nxj_value filter_reject(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return select_items(run, value, arguments, false, false);
}

static nxj_value filter_selectattr(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return select_items(run, value, arguments, true, true);
}

static nxj_value filter_rejectattr(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return select_items(run, value, arguments, true, false);
}

static nxj_value named_argument(nxj_run *run, const nxj_arguments *arguments, const char *name) {
  for (size_t i = 0; i < arguments->n; i++) {
    if (arguments->names[i] && strcmp(arguments->names[i], name) == 0) return arguments->values[i];
    if (arguments->names[i] && strcmp(arguments->names[i], "attribute") &&
        strcmp(arguments->names[i], "default"))
      nxj_fail(run->pool, "map has no argument '%s'", arguments->names[i]);
  }
  return (nxj_value){.kind = NXJ_ABSENT};
}

static nxj_value map_attribute(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value attribute = named_argument(run, arguments, "attribute");
  nxj_value otherwise = named_argument(run, arguments, "default");
  if (!nxj_is_given(attribute)) nxj_fail(run->pool, "map needs a filter or an attribute");
  nxj_list items = items_of(run, value), mapped = {NULL, 0};
  for (size_t i = 0; i < items.n; i++) {
    nxj_value item = attribute_of(run, items.items[i], attribute);
    bool replaced = item.kind == NXJ_UNDEFINED && otherwise.kind != NXJ_ABSENT;
    nxj_list_add(run->pool, &mapped, replaced ? otherwise : item);
  }
  return nxj_list_of(run->pool, NXJ_ITERATOR, mapped.items, mapped.n);
}

static nxj_value filter_map(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  if (arguments->n == 0 || arguments->names[0]) return map_attribute(run, value, arguments);
  const char *name = row_name(run, arguments, 0);
  const nxj_row *filter = nxj_find_filter(name);
  if (filter == NULL) nxj_not_covered(run->pool, "filter", name);
  nxj_arguments *rest = rest_of(run, arguments, 1);
  nxj_list items = items_of(run, value), mapped = {NULL, 0};
  for (size_t i = 0; i < items.n; i++)
    nxj_list_add(run->pool, &mapped, nxj_call_row(run, filter, items.items[i], rest));
  return nxj_list_of(run->pool, NXJ_ITERATOR, mapped.items, mapped.n);
}

/* -- order ----------------------------------------------------------------------------------------------- */

typedef struct keyed {
  nxj_value key, item;
} keyed;

/* Texts are ordered and compared without their case unless it is asked for. */
static nxj_value folded(nxj_run *run, nxj_value key, bool with_case) {
  return key.kind == NXJ_STRING && !with_case ? nxj_cased(run->pool, key, NXJ_LOWER) : key;
}

static keyed *keyed_items(nxj_run *run, nxj_list items, nxj_value attribute, bool with_case) {
  keyed *made = nxj_array(run->pool, items.n, sizeof *made);
  for (size_t i = 0; i < items.n; i++)
    made[i] = (keyed){folded(run, attribute_of(run, items.items[i], attribute), with_case), items.items[i]};
  return made;
}

/* Stable, as Python's; runs that double in length are merged. */
static keyed *sorted(nxj_run *run, keyed *from, size_t n, bool down) {
  keyed *to = nxj_array(run->pool, n, sizeof *to);
  for (size_t length = 1; length < n; length *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * length) {
      size_t middle = begin + length < n ? begin + length : n,
             end = middle + length < n ? middle + length : n;
      for (size_t at = begin, i = begin, j = middle; at < end; at++) {
        int order = i == middle ? 1 : j == end ? -1 : nxj_compare(run->pool, from[i].key, from[j].key);
        bool first = i != middle && (j == end || (down ? order >= 0 : order <= 0));
        to[at] = first ? from[i++] : from[j++];
      }
    }
    keyed *other = from;
    from = to, to = other;
  }
  return from;
}

static nxj_value sorted_list(nxj_run *run, keyed *items, size_t n, bool down) {
  items = sorted(run, items, n, down);
  nxj_value *list = nxj_array(run->pool, n, sizeof *list);
  for (size_t i = 0; i < n; i++) list[i] = items[i].item;
  return nxj_list_of(run->pool, NXJ_LIST, list, n);
}

static nxj_value filter_sort(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_list items = nxj_items(run->pool, value);
  keyed *made = keyed_items(run, items, arguments->given[2], is_true_argument(arguments->given[1]));
  return sorted_list(run, made, items.n, is_true_argument(arguments->given[0]));
}

static nxj_value filter_dictsort(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  if (value.kind != NXJ_DICT) nxj_fail(run->pool, "dictsort needs a dict, not %s", nxj_kind_name(value.kind));
  nxj_arguments none = {.n = 0};
  nxj_list items = *nxj_find_method(NXJ_DICT, "items")->call(run, value, &none).list;
  bool by_value = arguments->given[1].kind == NXJ_STRING && strcmp(arguments->given[1].text, "value") == 0;
  keyed *made = keyed_items(run, items, nxj_int(by_value), is_true_argument(arguments->given[0]));
  return sorted_list(run, made, items.n, is_true_argument(arguments->given[2]));
}

/* The least item (sign -1) or the greatest (sign 1); of several the first. */
static nxj_value extreme(nxj_run *run, nxj_value value, const nxj_arguments *arguments, int sign) {
  nxj_list items = nxj_items(run->pool, value);
  keyed *made = keyed_items(run, items, arguments->given[1], is_true_argument(arguments->given[0]));
  size_t best = 0;
  for (size_t i = 1; i < items.n; i++)
    if (sign * nxj_compare(run->pool, made[i].key, made[best].key) > 0) best = i;
  return items.n > 0 ? items.items[best] : nxj_undefined("the item of an empty list");
}

static nxj_value filter_min(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return extreme(run, value, arguments, -1);
}

static nxj_value filter_max(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  return extreme(run, value, arguments, 1);
}

static nxj_value filter_unique(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_list items = nxj_items(run->pool, value), seen = {NULL, 0}, kept = {NULL, 0};
  keyed *made = keyed_items(run, items, arguments->given[1], is_true_argument(arguments->given[0]));
  for (size_t i = 0; i < items.n; i++) {
    bool again = false;
    for (size_t j = 0; j < seen.n && !again; j++) again = nxj_equal(run->pool, seen.items[j], made[i].key);
    if (again) continue;
    nxj_list_add(run->pool, &seen, made[i].key);
    nxj_list_add(run->pool, &kept, made[i].item);
  }
  return nxj_list_of(run->pool, NXJ_ITERATOR, kept.items, kept.n);
}

static nxj_value filter_reverse(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_value none = nxj_none(), back = nxj_int(-1);
  if (value.kind == NXJ_STRING) return nxj_slice(run->pool, value, none, none, back);
  nxj_list items = nxj_items(run->pool, value);
  nxj_value *turned = nxj_array(run->pool, items.n, sizeof *turned);
  for (size_t i = 0; i < items.n; i++) turned[i] = items.items[items.n - 1 - i];
  return nxj_list_of(run->pool, NXJ_ITERATOR, turned, items.n);
}

/* -- whole lists ----------------------------------------------------------------------------------------- */

static nxj_value filter_first(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_list items = nxj_items(run->pool, value);
  return items.n > 0 ? items.items[0] : nxj_undefined("the first item of an empty list");
}

static nxj_value filter_last(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_list items = nxj_items(run->pool, value);
  return items.n > 0 ? items.items[items.n - 1] : nxj_undefined("the last item of an empty list");
}

static nxj_value filter_list(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_list items = nxj_items(run->pool, value);
  return nxj_list_of(run->pool, NXJ_LIST, items.items, items.n);
}

static nxj_value filter_join(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value between =
      arguments->given[0].kind == NXJ_ABSENT ? nxj_string("", 0) : nxj_str(run->pool, arguments->given[0]);
  nxj_list items = nxj_items(run->pool, value);
  nxj_buffer text = {0};
  for (size_t i = 0; i < items.n; i++) {
    if (i > 0) nxj_put(run->pool, &text, between.text, between.n_bytes);
    nxj_value item = nxj_str(run->pool, attribute_of(run, items.items[i], arguments->given[1]));
    nxj_put(run->pool, &text, item.text, item.n_bytes);
  }
  return nxj_buffer_value(run->pool, &text);
}

static nxj_value filter_sum(nxj_run *run, nxj_value value, const nxj_arguments *arguments) {
  nxj_value sum = arguments->given[1].kind == NXJ_ABSENT ? nxj_int(0) : arguments->given[1];
  nxj_list items = nxj_items(run->pool, value);
  nxj_node left = {.kind = NXJ_NODE_CONSTANT}, right = left,
           plus = {.kind = NXJ_NODE_ARITHMETIC, .name = "+"};
  plus.a = &left, plus.b = &right;
  plus.line = run->pool->line, plus.column = run->pool->column;
  for (size_t i = 0; i < items.n; i++) {
    left.value = sum, right.value = attribute_of(run, items.items[i], arguments->given[0]);
    sum = nxj_evaluate(run, &plus);
  }
  return sum;
}

const nxj_row nxj_selecting_filters[] = {
    {"dictsort", "case_sensitive by reverse", filter_dictsort},
    {"first", "", filter_first},
    {"join", "d attribute", filter_join},
    {"last", "", filter_last},
    {"list", "", filter_list},
    {"map", NULL, filter_map},
    {"max", "case_sensitive attribute", filter_max},
    {"min", "case_sensitive attribute", filter_min},
    {"reject", NULL, filter_reject},
    {"rejectattr", NULL, filter_rejectattr},
    {"reverse", "", filter_reverse},
    {"select", NULL, filter_select},
    {"selectattr", NULL, filter_selectattr},
    {"sort", "reverse case_sensitive attribute", filter_sort},
    {"sum", "attribute start", filter_sum},
    {"unique", "case_sensitive attribute", filter_unique},
    {NULL, NULL, NULL},
};
