/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of lists, dicts and loops, and the functions that every template has. */
#include "chat/run.h"

#include <string.h>
#include <time.h>

enum { MOST_RANGE = 100000 };

/* -- lists, dicts, loops --------------------------------------------------------------------------------- */

static nxj_value list_index(nxj_run *run, nxj_value list, const nxj_arguments *arguments) {
  for (size_t i = 0; i < list.list->n; i++)
    if (nxj_equal(run->pool, list.list->items[i], arguments->given[0])) return nxj_int((int64_t)i);
  nxj_fail(run->pool, "the list has no such item");
}

static nxj_value list_count(nxj_run *run, nxj_value list, const nxj_arguments *arguments) {
  int64_t n = 0;
  for (size_t i = 0; i < list.list->n; i++)
    n += nxj_equal(run->pool, list.list->items[i], arguments->given[0]);
  return nxj_int(n);
}

/* What a sandbox that lets nothing change does. */
static nxj_value refuse_change(nxj_run *run, nxj_value self, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_fail(run->pool, "a template cannot change a %s", nxj_kind_name(self.kind));
}

static nxj_value dict_get(nxj_run *run, nxj_value dict, const nxj_arguments *arguments) {
  const nxj_value *value = nxj_dict_get(run->pool, dict.dict, arguments->given[0]);
  if (value) return *value;
  return arguments->given[1].kind == NXJ_ABSENT ? nxj_none() : arguments->given[1];
}

static nxj_value dict_keys(nxj_run *run, nxj_value dict, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_list keys = nxj_items(run->pool, dict);
  return nxj_list_of(run->pool, NXJ_LIST, keys.items, keys.n);
}

static nxj_value dict_values(nxj_run *run, nxj_value dict, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_value *values = nxj_array(run->pool, dict.dict->n, sizeof *values);
  for (size_t i = 0; i < dict.dict->n; i++) values[i] = dict.dict->pairs[i].value;
  return nxj_list_of(run->pool, NXJ_LIST, values, dict.dict->n);
}

static nxj_value dict_items(nxj_run *run, nxj_value dict, const nxj_arguments *arguments) {
  (void)arguments;
  nxj_value *pairs = nxj_array(run->pool, dict.dict->n, sizeof *pairs);
  nxj_work(run->pool, dict.dict->n);
  for (size_t i = 0; i < dict.dict->n; i++) {
    nxj_value *pair = nxj_array(run->pool, 2, sizeof *pair);
    pair[0] = dict.dict->pairs[i].key, pair[1] = dict.dict->pairs[i].value;
    pairs[i] = nxj_list_of(run->pool, NXJ_TUPLE, pair, 2);
  }
  return nxj_list_of(run->pool, NXJ_LIST, pairs, dict.dict->n);
}

static nxj_value loop_cycle(nxj_run *run, nxj_value loop, const nxj_arguments *arguments) {
  if (arguments->n == 0) nxj_fail(run->pool, "loop.cycle needs values");
  return arguments->values[loop.loop->index % arguments->n];
}

static nxj_value loop_changed(nxj_run *run, nxj_value loop, const nxj_arguments *arguments) {
  nxj_value *values = nxj_array(run->pool, arguments->n, sizeof *values);
  memcpy(values, arguments->values, arguments->n * sizeof *values);
  nxj_value now = nxj_list_of(run->pool, NXJ_TUPLE, values, arguments->n);
  bool changed = !nxj_equal(run->pool, now, loop.loop->changed);
  loop.loop->changed = now;
  return nxj_bool(changed);
}

const nxj_row nxj_list_methods[] = {
    {"append", NULL, refuse_change}, {"clear", NULL, refuse_change},   {"count", "value!", list_count},
    {"extend", NULL, refuse_change}, {"index", "value!", list_index},  {"insert", NULL, refuse_change},
    {"pop", NULL, refuse_change},    {"remove", NULL, refuse_change},  {"reverse", NULL, refuse_change},
    {"sort", NULL, refuse_change},   {NULL, NULL, NULL},
};

const nxj_row nxj_dict_methods[] = {
    {"clear", NULL, refuse_change},  {"get", "key! default", dict_get},   {"items", "", dict_items},
    {"keys", "", dict_keys},         {"pop", NULL, refuse_change},        {"popitem", NULL, refuse_change},
    {"setdefault", NULL, refuse_change}, {"update", NULL, refuse_change}, {"values", "", dict_values},
    {NULL, NULL, NULL},
};

const nxj_row nxj_loop_methods[] = {
    {"changed", NULL, loop_changed},
    {"cycle", NULL, loop_cycle},
    {NULL, NULL, NULL},
};

/* -- functions ------------------------------------------------------------------------------------------- */

/* Of names and values, behind those of a dict that is given. */
static nxj_value make_dict(nxj_run *run, nxj_kind kind, const nxj_arguments *arguments) {
  nxj_dict *dict = nxj_alloc(run->pool, sizeof *dict);
  for (size_t i = 0; i < arguments->n; i++) {
    nxj_value value = arguments->values[i];
    if (arguments->names[i]) {
      nxj_dict_set(run->pool, dict, nxj_string_of(arguments->names[i]), value);
      continue;
    }
    if (value.kind != NXJ_DICT || i > 0) nxj_fail(run->pool, "dict and namespace take names and one dict");
    for (size_t j = 0; j < value.dict->n; j++)
      nxj_dict_set(run->pool, dict, value.dict->pairs[j].key, value.dict->pairs[j].value);
  }
  return (nxj_value){.kind = kind, .dict = dict};
}

static nxj_value call_dict(nxj_run *run, nxj_value self, const nxj_arguments *arguments) {
  (void)self;
  return make_dict(run, NXJ_DICT, arguments);
}

static nxj_value call_namespace(nxj_run *run, nxj_value self, const nxj_arguments *arguments) {
  (void)self;
  return make_dict(run, NXJ_NAMESPACE, arguments);
}

static nxj_value call_range(nxj_run *run, nxj_value self, const nxj_arguments *arguments) {
  (void)self;
  const nxj_value *given = arguments->given;
  int64_t first = nxj_integer(run->pool, given[0], "the range"), end = first, step = 1;
  if (given[1].kind == NXJ_ABSENT) first = 0;
  else end = nxj_integer(run->pool, given[1], "the range");
  if (given[2].kind != NXJ_ABSENT) step = nxj_integer(run->pool, given[2], "the step");
  if (step == 0) nxj_fail(run->pool, "the step of a range cannot be 0");
  nxj_list numbers = {NULL, 0};
  for (int64_t at = first; step > 0 ? at < end : at > end;) {
    if (numbers.n == MOST_RANGE) nxj_fail(run->pool, "a range has more than %d numbers", MOST_RANGE);
    nxj_list_add(run->pool, &numbers, nxj_int(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  nxj_work(run->pool, numbers.n);
  return nxj_list_of(run->pool, NXJ_LIST, numbers.items, numbers.n);
}

static nxj_value call_raise(nxj_run *run, nxj_value self, const nxj_arguments *arguments) {
  (void)self;
  nxj_value message = nxj_str(run->pool, arguments->given[0]);
  nxj_fail(run->pool, "the template refuses this dialogue: %.*s",
           (int)(message.n_bytes < 300 ? message.n_bytes : 300), message.text);
}

static nxj_value call_now(nxj_run *run, nxj_value self, const nxj_arguments *arguments) {
  (void)self;
  char text[256];
  struct tm day;
  time_t seconds = (time_t)*run->clock;
  nxj_value format = arguments->given[0];
  if (format.kind != NXJ_STRING || gmtime_r(&seconds, &day) == NULL)
    nxj_fail(run->pool, "strftime_now needs a format");
  size_t n = strftime(text, sizeof text, format.text, &day);
  if (n == 0 && format.n_bytes > 0) nxj_fail(run->pool, "the format of strftime_now is too long");
  return nxj_string(nxj_copy(run->pool, text, n), n);
}

const nxj_row nxj_functions[] = {
    {"dict", NULL, call_dict},
    {"namespace", NULL, call_namespace},
    {"raise_exception", "message!", call_raise},
    {"range", "start! stop step", call_range},
    {"strftime_now", "format!", call_now},
    {NULL, NULL, NULL},
};
