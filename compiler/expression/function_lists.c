/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of lists. */
#include "compiler/expression/expression_function.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const nxc_value *call_len(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  const nxc_value *value = args[0];
  if (value->kind == NXC_NULL) return nxc_value_of_int(e, 0);
  if (value->kind == NXC_STRING) return nxc_value_of_int(e, (int64_t)value->n_bytes);
  if (value->kind == NXC_LIST || value->kind == NXC_MAP) return nxc_value_of_int(e, (int64_t)value->n_items);
  return nxc_evaluation_fail(e, "%s has no length", nxc_kind_name(value->kind));
}

static const nxc_value *quantify(evaluation *e, arguments args, size_t n_args, bool decisive) {
  args = nxc_spread(e, args, &n_args);
  for (size_t i = 0; i < n_args; i++) {
    if (nxc_value_is_true(args[i]) == decisive) return nxc_value_of_bool(e, decisive);
  }
  return nxc_value_of_bool(e, !decisive);
}

static const nxc_value *call_any(evaluation *e, arguments args, size_t n_args) {
  return quantify(e, args, n_args, true);
}

static const nxc_value *call_all(evaluation *e, arguments args, size_t n_args) {
  return quantify(e, args, n_args, false);
}

static const nxc_value *call_contains(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return nxc_evaluation_contains(e, args[0], args[1]);
}

/* The items of a list, each once, in order of first occurrence. */
static const nxc_value *call_unique(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  if (args[0]->kind != NXC_LIST) return nxc_evaluation_fail(e, "unique needs a list");
  nxc_value *items = nxc_arena_array(e->arena, args[0]->n_items + 1, sizeof *items);
  size_t n_items = 0;
  for (size_t i = 0; i < args[0]->n_items; i++) {
    size_t same = 0;
    while (same < n_items && !nxc_values_same(&items[same], &args[0]->items[i])) same++;
    if (same == n_items) items[n_items++] = args[0]->items[i];
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n_items};
  return list;
}

/* Whether each item is greater than the one before it. */
static const nxc_value *call_rising(evaluation *e, arguments args, size_t n_args) {
  args = nxc_spread(e, args, &n_args);
  for (size_t i = 1; i < n_args; i++) {
    int order;
    if (!nxc_evaluation_compare(e, args[i], args[i - 1], &order)) return NULL;
    if (order <= 0) return nxc_value_of_bool(e, false);
  }
  return nxc_value_of_bool(e, true);
}

static const nxc_value *call_kind(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  const char *name = nxc_kind_name(args[0]->kind);
  return nxc_value_of_text(e, name, strlen(name));
}

/* The texts of a list that are no numbers, in order; of a single text, a list of it. What paths among
 * weights are. */
static const nxc_value *call_texts(evaluation *e, arguments args, size_t n_args) {
  args = nxc_spread(e, args, &n_args);
  nxc_value *items = nxc_arena_array(e->arena, n_args + 1, sizeof *items);
  size_t n_items = 0;
  for (size_t i = 0; i < n_args; i++) {
    char *end;
    if (args[i]->kind != NXC_STRING || (strtod(args[i]->text, &end), *end == '\0')) continue;
    items[n_items++] = *args[i];
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n_items};
  return list;
}

/* The numbers among them: the weights. */
static const nxc_value *call_numbers(evaluation *e, arguments args, size_t n_args) {
  args = nxc_spread(e, args, &n_args);
  nxc_value *items = nxc_arena_array(e->arena, n_args + 1, sizeof *items);
  size_t n_items = 0;
  for (size_t i = 0; i < n_args; i++) {
    bool text = args[i]->kind == NXC_STRING;
    char *end = NULL;
    double number = text ? strtod(args[i]->text, &end) : 0;
    if (text && *end == '\0' && end > args[i]->text)
      items[n_items++] = (nxc_value){.kind = NXC_FLOAT, .number = number};
    else if (args[i]->kind == NXC_INT || args[i]->kind == NXC_FLOAT) items[n_items++] = *args[i];
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n_items};
  return list;
}

/* What each map of a list has under a key; what stands for it in those that have nothing there. */
static const nxc_value *call_members(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  if (args[0]->kind != NXC_LIST) return nxc_evaluation_fail(e, "members needs a list of maps");
  nxc_value *items = nxc_arena_array(e->arena, args[0]->n_items + 1, sizeof *items);
  for (size_t i = 0; i < args[0]->n_items; i++) {
    const nxc_value *map = &args[0]->items[i];
    items[i] = *args[2];
    for (size_t at = 0; map->kind == NXC_MAP && at < map->n_items; at++)
      if (nxc_values_same(&map->items[2 * at], args[1]) && map->items[2 * at + 1].kind != NXC_NULL)
        items[i] = map->items[2 * at + 1];
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = args[0]->n_items};
  return list;
}

/* One of a list of values for each map; one value that is no list, or stands alone, is for all. NULL: it has
 * none. */
static const nxc_value *entry_of(const nxc_value *values, size_t index) {
  if (values->kind == NXC_NULL) return NULL;
  if (values->kind != NXC_LIST) return values;
  if (values->n_items == 1) index = 0;
  return index < values->n_items && values->items[index].kind != NXC_NULL ? &values->items[index] : NULL;
}

/* The other way round: maps with these keys, as many as the first list has, of a list of values for each
 * key. */
static const nxc_value *call_maps(evaluation *e, arguments args, size_t n_args) {
  const nxc_value *keys = args[0], *first = args[1];
  if (keys->kind != NXC_LIST || keys->n_items != n_args - 1 || first->kind != NXC_LIST)
    return nxc_evaluation_fail(e, "maps needs keys, and a list for each");
  nxc_value *maps = nxc_arena_array(e->arena, first->n_items + 1, sizeof *maps);
  for (size_t i = 0; i < first->n_items; i++) {
    nxc_value *items = nxc_arena_array(e->arena, 2 * keys->n_items, sizeof *items);
    size_t n = 0;
    for (size_t key = 0; key < keys->n_items; key++) {
      const nxc_value *entry = entry_of(args[key + 1], i);
      if (entry == NULL) continue;
      items[2 * n] = keys->items[key];
      items[2 * n++ + 1] = *entry;
    }
    maps[i] = (nxc_value){.kind = NXC_MAP, .items = items, .n_items = n};
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = maps, .n_items = first->n_items};
  return list;
}

/* How many items of a list stand for its entry `index`: those of a list that is no empty one, else one. */
static size_t parts_of(const nxc_value *lists, size_t index) {
  const nxc_value *entry = lists->kind == NXC_LIST && index < lists->n_items ? &lists->items[index] : NULL;
  return entry != NULL && entry->kind == NXC_LIST && entry->n_items > 0 ? entry->n_items : 1;
}

/* An entry of the second list for each item of the first's; those of the first itself where `own` is set, and
 * it has any. */
static const nxc_value *take_parts(evaluation *e, const nxc_value *lists, const nxc_value *others, bool own) {
  size_t n = 0;
  if (lists->kind != NXC_LIST || others->kind != NXC_LIST || others->n_items != lists->n_items)
    return nxc_evaluation_fail(e, "two lists of one length are needed");
  for (size_t i = 0; i < lists->n_items; i++) n += parts_of(lists, i);
  nxc_value *items = nxc_arena_array(e->arena, n + 1, sizeof *items);
  n = 0;
  for (size_t i = 0; i < lists->n_items; i++) {
    const nxc_value *entry = &lists->items[i];
    bool is_list = entry->kind == NXC_LIST && entry->n_items > 0,
         is_there = is_list || entry->kind == NXC_STRING;
    for (size_t k = 0; k < parts_of(lists, i); k++)
      items[n++] = !own || !is_there ? others->items[i] : is_list ? entry->items[k] : *entry;
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n};
  return list;
}

/* Texts and lists of texts as one list; of an entry that is neither, the other's. */
static const nxc_value *call_flat(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return take_parts(e, args[0], args[1], true);
}

/* Each value as often as the list beside it has items. */
static const nxc_value *call_repeated(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return take_parts(e, args[1], args[0], false);
}

/* A list of numbers as one text: "969,30,1". */
static const nxc_value *call_joined(evaluation *e, arguments args, size_t n_args) {
  const char *text = "";
  args = nxc_spread(e, args, &n_args);
  for (size_t i = 0; i < n_args; i++) {
    double number;
    if (!nxc_value_number(args[i], &number)) return nxc_evaluation_fail(e, "joined needs numbers");
    text = nxc_arena_printf(e->arena, "%s%s%.15g", text, i > 0 ? "," : "", number);
  }
  return nxc_value_of_text(e, text, strlen(text));
}

/* Weights and paths in turn, as they are written; a path without a weight has 1. */
static const nxc_value *call_blend(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  const nxc_value *weights = args[0], *paths = args[1];
  if (paths->kind != NXC_LIST) return nxc_evaluation_fail(e, "blend needs a list of paths");
  size_t n_weights = weights->kind == NXC_LIST ? weights->n_items : 0;
  nxc_value *items = nxc_arena_array(e->arena, 2 * paths->n_items + 1, sizeof *items);
  for (size_t i = 0; i < paths->n_items; i++) {
    items[2 * i] = (nxc_value){.kind = NXC_FLOAT, .number = 1};
    if (i < n_weights) items[2 * i] = weights->items[i];
    items[2 * i + 1] = paths->items[i];
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = 2 * paths->n_items};
  return list;
}

static bool has_item(const nxc_value *list, const nxc_value *item) {
  for (size_t i = 0; i < list->n_items; i++)
    if (nxc_values_same(&list->items[i], item)) return true;
  return false;
}

/* The items of the first list that are in the second, too. Null is an empty list. */
static const nxc_value *call_common(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  bool lists = args[0]->kind == NXC_LIST && args[1]->kind == NXC_LIST;
  size_t n = lists ? args[0]->n_items : 0, n_items = 0;
  nxc_value *items = nxc_arena_array(e->arena, n + 1, sizeof *items);
  for (size_t i = 0; i < n; i++)
    if (has_item(args[1], &args[0]->items[i])) items[n_items++] = args[0]->items[i];
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n_items};
  return list;
}

/* An entry of a table of names: two in turn, or one that is the same on both sides. */
static const nxc_value *side_of(const nxc_value *entry, size_t side) {
  return entry->kind == NXC_LIST && entry->n_items == 2 ? &entry->items[side] : entry;
}

static const nxc_value *find_name(const nxc_value *table, const nxc_value *name, size_t side) {
  for (size_t i = 0; i < table->n_items; i++)
    if (nxc_values_same(side_of(&table->items[i], side), name)) return side_of(&table->items[i], 1 - side);
  return NULL;
}

/* Each item of a list by its other name in the table. NULL: `strict`, and the table lacks one; else that is
 * left out. */
static const nxc_value *rename_all(evaluation *e, arguments args, size_t side, bool strict) {
  if (args[1]->kind != NXC_LIST) return nxc_evaluation_fail(e, "renamed needs a table");
  size_t n_names = 1, n_items = 0;
  arguments names = nxc_spread(e, args, &n_names);
  nxc_value *items = nxc_arena_array(e->arena, n_names + 1, sizeof *items);
  for (size_t i = 0; i < n_names; i++) {
    const nxc_value *other = find_name(args[1], names[i], side);
    if (other == NULL && strict) return NULL;
    if (other != NULL) items[n_items++] = *other;
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n_items};
  return list;
}

static const nxc_value *call_renamed(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return rename_all(e, args, 0, false);
}

static const nxc_value *invert_renamed(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return rename_all(e, args, 1, true);
}

/* How many names of all layers a pattern matches: the names have a # where the number of the layer stands. */
static int64_t count_matched(evaluation *e, const char *pattern, int64_t n_layers, const nxc_value *names) {
  int64_t n = 0;
  for (size_t i = 0; i < names->n_items; i++) {
    const char *name = names->items[i].text, *mark = strchr(name, '#');
    for (int64_t layer = 0; layer < n_layers && mark != NULL; layer++) {
      const char *made =
          nxc_arena_printf(e->arena, "%.*s%lld%s", (int)(mark - name), name, (long long)layer, mark + 1);
      n += fnmatch(pattern, made, FNM_NOESCAPE) == 0;
    }
  }
  return n;
}

static const nxc_value *call_matched(evaluation *e, arguments args, size_t n_args) {
  enum { MOST_LAYERS = 1000 };
  const nxc_value *patterns = args[0], *names = args[2];
  (void)n_args;
  bool lists = patterns->kind == NXC_LIST && args[1]->kind == NXC_INT && names->kind == NXC_LIST;
  for (size_t i = 0; lists && i < patterns->n_items; i++) lists = patterns->items[i].kind == NXC_STRING;
  for (size_t i = 0; lists && i < names->n_items; i++) lists = names->items[i].kind == NXC_STRING;
  if (!lists || args[1]->integer > MOST_LAYERS)
    return nxc_evaluation_fail(e, "matched needs patterns, a number of layers, and names");
  nxc_value *items = nxc_arena_array(e->arena, patterns->n_items + 1, sizeof *items);
  for (size_t i = 0; i < patterns->n_items; i++)
    items[i] = (nxc_value){.kind = NXC_INT,
                           .integer = count_matched(e, patterns->items[i].text, args[1]->integer, names)};
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = patterns->n_items};
  return list;
}

/* Of so many places every N-th with 1, but for those of a list (from 0), and the others with 0. */
static const nxc_value *call_marks(evaluation *e, arguments args, size_t n_args) {
  enum { MOST_PLACES = 10000 };
  (void)n_args;
  bool good = args[0]->kind == NXC_INT && args[1]->kind == NXC_INT && args[2]->kind == NXC_LIST;
  if (!good || args[0]->integer < 0 || args[0]->integer > MOST_PLACES || args[1]->integer < 1)
    return nxc_evaluation_fail(e, "marks needs a number of places, a step, and a list of places");
  size_t n = (size_t)args[0]->integer;
  nxc_value *items = nxc_arena_array(e->arena, n + 1, sizeof *items);
  for (size_t i = 0; i < n; i++) {
    const nxc_value place = {.kind = NXC_INT, .integer = (int64_t)i};
    bool marked = (place.integer + 1) % args[1]->integer == 0 && !has_item(args[2], &place);
    items[i] = (nxc_value){.kind = NXC_INT, .integer = marked};
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n};
  return list;
}

const nxc_expression_function nxc_list_functions[] = {
    {"len", 1, 1, false, call_len, NULL},
    {"any", 1, MANY, false, call_any, NULL},
    {"all", 1, MANY, false, call_all, NULL},
    {"contains", 2, 2, false, call_contains, NULL},
    {"unique", 1, 1, false, call_unique, NULL},
    {"rising", 1, MANY, false, call_rising, NULL},
    {"kind", 1, 1, false, call_kind, NULL},
    {"texts", 1, 1, false, call_texts, NULL},
    {"numbers", 1, 1, false, call_numbers, NULL},
    {"members", 3, 3, false, call_members, NULL},
    {"maps", 2, MANY, false, call_maps, NULL},
    {"flat", 2, 2, false, call_flat, NULL},
    {"repeated", 2, 2, false, call_repeated, NULL},
    {"joined", 1, 1, false, call_joined, NULL},
    {"blend", 2, 2, false, call_blend, NULL},
    {"common", 2, 2, false, call_common, NULL},
    {"renamed", 2, 2, false, call_renamed, invert_renamed},
    {"matched", 3, 3, false, call_matched, NULL},
    {"marks", 3, 3, false, call_marks, NULL},
    {0},
};

arguments nxc_spread(evaluation *e, arguments args, size_t *n_args) {
  if (*n_args != 1 || args[0]->kind != NXC_LIST) return args;
  const nxc_value **items = nxc_arena_array(e->arena, args[0]->n_items + 1, sizeof *items);
  for (size_t i = 0; i < args[0]->n_items; i++) items[i] = &args[0]->items[i];
  *n_args = args[0]->n_items;
  return items;
}
