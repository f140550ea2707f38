/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/value.h"

#include "chat/text.h"

#include <string.h>

nxj_value nxj_undefined(const char *name) {
  return (nxj_value){.kind = NXJ_UNDEFINED, .text = name};
}

nxj_value nxj_none(void) {
  return (nxj_value){.kind = NXJ_NONE};
}

nxj_value nxj_bool(bool truth) {
  return (nxj_value){.kind = NXJ_BOOL, .truth = truth};
}

nxj_value nxj_int(int64_t integer) {
  return (nxj_value){.kind = NXJ_INT, .integer = integer};
}

nxj_value nxj_float(double number) {
  return (nxj_value){.kind = NXJ_FLOAT, .number = number};
}

nxj_value nxj_string(const char *text, size_t n_bytes) {
  return (nxj_value){.kind = NXJ_STRING, .text = text, .n_bytes = n_bytes};
}

nxj_value nxj_string_of(const char *text) {
  return nxj_string(text, strlen(text));
}

nxj_value nxj_list_of(nxj_pool *pool, nxj_kind kind, nxj_value *items, size_t n) {
  nxj_list *list = nxj_alloc(pool, sizeof *list);
  *list = (nxj_list){items, n};
  return (nxj_value){.kind = kind, .list = list};
}

void nxj_list_add(nxj_pool *pool, nxj_list *list, nxj_value item) {
  list->items = nxj_grow(pool, list->items, list->n, sizeof *list->items);
  list->items[list->n++] = item;
}

static void add_pair(nxj_pool *pool, nxj_dict *dict, nxj_value key, nxj_value value) {
  dict->pairs = nxj_grow(pool, dict->pairs, dict->n, sizeof *dict->pairs);
  dict->pairs[dict->n++] = (nxj_pair){key, value};
}

static nxj_pair *find_pair(nxj_pool *pool, const nxj_dict *dict, nxj_value key) {
  for (size_t i = 0; i < dict->n; i++)
    if (nxj_equal(pool, dict->pairs[i].key, key)) return &dict->pairs[i];
  return NULL;
}

void nxj_dict_set(nxj_pool *pool, nxj_dict *dict, nxj_value key, nxj_value value) {
  nxj_pair *pair = find_pair(pool, dict, key);
  if (pair) pair->value = value;
  else add_pair(pool, dict, key, value);
}

const nxj_value *nxj_dict_get(nxj_pool *pool, const nxj_dict *dict, nxj_value key) {
  const nxj_pair *pair = find_pair(pool, dict, key);
  return pair ? &pair->value : NULL;
}

static nxj_value from_array(nxj_pool *pool, const json_t *json) {
  size_t n = json_array_size(json);
  nxj_value *items = nxj_array(pool, n, sizeof *items);
  for (size_t i = 0; i < n; i++) items[i] = nxj_from_json(pool, json_array_get(json, i));
  return nxj_list_of(pool, NXJ_LIST, items, n);
}

static nxj_value from_object(nxj_pool *pool, const json_t *json) {
  nxj_dict *dict = nxj_alloc(pool, sizeof *dict);
  json_t *object = (json_t *)json; /* walking changes nothing */
  for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
    const char *key = json_object_iter_key(at);
    add_pair(pool, dict, nxj_string_of(nxj_copy(pool, key, strlen(key))),
             nxj_from_json(pool, json_object_iter_value(at)));
  }
  return (nxj_value){.kind = NXJ_DICT, .dict = dict};
}

static nxj_value from_container(nxj_pool *pool, const json_t *json) {
  nxj_enter(pool);
  nxj_value value = json_is_object(json) ? from_object(pool, json) : from_array(pool, json);
  nxj_leave(pool);
  return value;
}

nxj_value nxj_from_json(nxj_pool *pool, const json_t *json) {
  nxj_work(pool, 1);
  switch (json_typeof(json)) {
  case JSON_OBJECT:
  case JSON_ARRAY: return from_container(pool, json);
  case JSON_STRING:
    return nxj_string(nxj_copy(pool, json_string_value(json), json_string_length(json)),
                      json_string_length(json));
  case JSON_INTEGER: return nxj_int(json_integer_value(json));
  case JSON_REAL: return nxj_float(json_real_value(json));
  case JSON_TRUE: return nxj_bool(true);
  case JSON_FALSE: return nxj_bool(false);
  case JSON_NULL: break;
  }
  return nxj_none();
}

const char *nxj_kind_name(nxj_kind kind) {
  static const char *const names[] = {[NXJ_ABSENT] = "nothing", [NXJ_UNDEFINED] = "undefined",
                                      [NXJ_NONE] = "None",      [NXJ_BOOL] = "bool",
                                      [NXJ_INT] = "int",        [NXJ_FLOAT] = "float",
                                      [NXJ_STRING] = "str",     [NXJ_LIST] = "list",
                                      [NXJ_TUPLE] = "tuple",    [NXJ_ITERATOR] = "generator",
                                      [NXJ_DICT] = "dict",      [NXJ_NAMESPACE] = "namespace",
                                      [NXJ_LOOP] = "loop",      [NXJ_CALLABLE] = "function"};
  return names[kind];
}

/* List, tuple or iterator. */
static bool is_list(nxj_value value) {
  return value.kind == NXJ_LIST || value.kind == NXJ_TUPLE || value.kind == NXJ_ITERATOR;
}

bool nxj_is_number(nxj_value value) {
  return value.kind == NXJ_BOOL || value.kind == NXJ_INT || value.kind == NXJ_FLOAT;
}

bool nxj_is_true(nxj_value value) {
  switch (value.kind) {
  case NXJ_ABSENT:
  case NXJ_UNDEFINED:
  case NXJ_NONE: return false;
  case NXJ_BOOL: return value.truth;
  case NXJ_INT: return value.integer != 0;
  case NXJ_FLOAT: return value.number != 0;
  case NXJ_STRING: return value.n_bytes > 0;
  case NXJ_LIST:
  case NXJ_TUPLE: return value.list->n > 0;
  case NXJ_DICT: return value.dict->n > 0;
  default: return true;
  }
}

double nxj_number(nxj_value value) {
  return value.kind == NXJ_FLOAT ? value.number : value.kind == NXJ_INT ? (double)value.integer : value.truth;
}

int64_t nxj_integer(nxj_pool *pool, nxj_value value, const char *what) {
  if (value.kind == NXJ_BOOL) return value.truth;
  if (value.kind != NXJ_INT) nxj_fail(pool, "%s must be an int, not %s", what, nxj_kind_name(value.kind));
  return value.integer;
}

static bool equal_dicts(nxj_pool *pool, const nxj_dict *one, const nxj_dict *other) {
  if (one->n != other->n) return false;
  for (size_t i = 0; i < one->n; i++) {
    const nxj_value *value = nxj_dict_get(pool, other, one->pairs[i].key);
    if (value == NULL || !nxj_equal(pool, one->pairs[i].value, *value)) return false;
  }
  return true;
}

static bool equal_lists(nxj_pool *pool, const nxj_list *one, const nxj_list *other) {
  if (one->n != other->n) return false;
  for (size_t i = 0; i < one->n; i++)
    if (!nxj_equal(pool, one->items[i], other->items[i])) return false;
  return true;
}

static bool equal_numbers(nxj_value one, nxj_value other) {
  if (one.kind == NXJ_INT && other.kind == NXJ_INT) return one.integer == other.integer;
  return nxj_number(one) == nxj_number(other);
}

static bool equal_containers(nxj_pool *pool, nxj_value one, nxj_value other) {
  nxj_enter(pool);
  bool equal = one.kind == NXJ_DICT ? equal_dicts(pool, one.dict, other.dict)
                                    : equal_lists(pool, one.list, other.list);
  nxj_leave(pool);
  return equal;
}

bool nxj_equal(nxj_pool *pool, nxj_value one, nxj_value other) {
  nxj_work(pool, 1);
  if (nxj_is_number(one) && nxj_is_number(other)) return equal_numbers(one, other);
  if (one.kind != other.kind) return false;
  switch (one.kind) {
  case NXJ_STRING: return one.n_bytes == other.n_bytes && memcmp(one.text, other.text, one.n_bytes) == 0;
  case NXJ_LIST:
  case NXJ_TUPLE:
  case NXJ_DICT: return equal_containers(pool, one, other);
  case NXJ_ITERATOR: return one.list == other.list;
  case NXJ_NAMESPACE: return one.dict == other.dict;
  case NXJ_LOOP: return one.loop == other.loop;
  case NXJ_CALLABLE: return one.callable == other.callable;
  default: return true; /* none, undefined */
  }
}

static int compare_lists(nxj_pool *pool, const nxj_list *one, const nxj_list *other) {
  size_t i = 0;
  while (i < one->n && i < other->n && nxj_equal(pool, one->items[i], other->items[i])) i++;
  if (i == one->n || i == other->n) return one->n < other->n ? -1 : one->n > other->n;
  nxj_enter(pool);
  int order = nxj_compare(pool, one->items[i], other->items[i]);
  nxj_leave(pool);
  return order;
}

int nxj_compare(nxj_pool *pool, nxj_value one, nxj_value other) {
  nxj_work(pool, 1);
  if (one.kind == NXJ_INT && other.kind == NXJ_INT)
    return one.integer < other.integer ? -1 : one.integer > other.integer;
  if (nxj_is_number(one) && nxj_is_number(other)) {
    double first = nxj_number(one), second = nxj_number(other);
    return first < second ? -1 : first > second;
  }
  if (one.kind == NXJ_STRING && other.kind == NXJ_STRING) {
    size_t n = one.n_bytes < other.n_bytes ? one.n_bytes : other.n_bytes;
    int order = memcmp(one.text, other.text, n); /* of UTF-8 that of the code points */
    return order != 0 ? order : one.n_bytes < other.n_bytes ? -1 : one.n_bytes > other.n_bytes;
  }
  if (one.kind == other.kind && (one.kind == NXJ_LIST || one.kind == NXJ_TUPLE))
    return compare_lists(pool, one.list, other.list);
  nxj_fail(pool, "%s and %s have no order", nxj_kind_name(one.kind), nxj_kind_name(other.kind));
}

bool nxj_contains(nxj_pool *pool, nxj_value container, nxj_value item) {
  if (container.kind == NXJ_STRING) {
    if (item.kind != NXJ_STRING)
      nxj_fail(pool, "'in' of a str needs a str, not %s", nxj_kind_name(item.kind));
    nxj_work(pool, container.n_bytes / 64);
    return memmem(container.text, container.n_bytes, item.text, item.n_bytes) != NULL;
  }
  if (container.kind == NXJ_DICT) return nxj_dict_get(pool, container.dict, item) != NULL;
  if (container.kind == NXJ_UNDEFINED) return false;
  if (!is_list(container)) nxj_fail(pool, "%s cannot be searched", nxj_kind_name(container.kind));
  for (size_t i = 0; i < container.list->n; i++)
    if (nxj_equal(pool, container.list->items[i], item)) return true;
  return false;
}

nxj_list nxj_items(nxj_pool *pool, nxj_value value) {
  nxj_list items = {NULL, 0};
  if (is_list(value)) return *value.list;
  if (value.kind == NXJ_DICT) {
    items.items = nxj_array(pool, value.dict->n, sizeof *items.items);
    for (; items.n < value.dict->n; items.n++) items.items[items.n] = value.dict->pairs[items.n].key;
  } else if (value.kind == NXJ_STRING) {
    for (size_t at = 0, n; at < value.n_bytes; at += n) {
      n = nxj_code_point_bytes(value.text + at, value.n_bytes - at);
      nxj_list_add(pool, &items, nxj_string(nxj_copy(pool, value.text + at, n), n));
    }
  } else if (value.kind != NXJ_UNDEFINED) {
    nxj_fail(pool, "%s cannot be walked", nxj_kind_name(value.kind));
  }
  nxj_work(pool, items.n);
  return items;
}

size_t nxj_length(nxj_pool *pool, nxj_value value) {
  if (value.kind == NXJ_UNDEFINED) return 0;
  if (value.kind == NXJ_STRING) return nxj_code_points(value.text, value.n_bytes);
  if (value.kind == NXJ_DICT) return value.dict->n;
  if (value.kind == NXJ_LIST || value.kind == NXJ_TUPLE) return value.list->n;
  nxj_fail(pool, "%s has no length", nxj_kind_name(value.kind));
}
