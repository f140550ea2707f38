/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/expression/expression_cuts.h"
#include "compiler/expression/expression_ramp.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const nxc_value *const *arguments;
typedef nxc_evaluation evaluation;

/* One list argument stands for its items. */
static arguments spread(evaluation *e, arguments args, size_t *n_args) {
  if (*n_args != 1 || args[0]->kind != NXC_LIST) return args;
  const nxc_value **items = nxc_arena_array(e->arena, args[0]->n_items + 1, sizeof *items);
  for (size_t i = 0; i < args[0]->n_items; i++) items[i] = &args[0]->items[i];
  *n_args = args[0]->n_items;
  return items;
}

static const nxc_value *extreme(evaluation *e, arguments args, size_t n_args, int sign) {
  args = spread(e, args, &n_args);
  if (n_args == 0) return nxc_evaluation_fail(e, "min and max need a value");
  const nxc_value *best = args[0];
  for (size_t i = 1; i < n_args; i++) {
    int order;
    if (!nxc_evaluation_compare(e, args[i], best, &order)) return NULL;
    if (order * sign > 0) best = args[i];
  }
  return best;
}

static const nxc_value *call_min(evaluation *e, arguments args, size_t n_args) {
  return extreme(e, args, n_args, -1);
}

static const nxc_value *call_max(evaluation *e, arguments args, size_t n_args) {
  return extreme(e, args, n_args, 1);
}

static const nxc_value *to_int(evaluation *e, double number) {
  if (!(number > -9.2e18 && number < 9.2e18))
    return nxc_evaluation_fail(e, "the number is no integer that fits");
  return nxc_value_of_int(e, (int64_t)number);
}

static const nxc_value *rounded(evaluation *e, const nxc_value *value, double (*round_by)(double)) {
  double number;
  if (value->kind == NXC_INT) return value;
  if (!nxc_value_number(value, &number)) return nxc_evaluation_fail(e, "rounding needs a number");
  return to_int(e, round_by(number));
}

static const nxc_value *call_floor(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return rounded(e, args[0], floor);
}

static const nxc_value *call_ceil(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return rounded(e, args[0], ceil);
}

static const nxc_value *call_round(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  return rounded(e, args[0], nearbyint);
}

static const nxc_value *call_len(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  const nxc_value *value = args[0];
  if (value->kind == NXC_NULL) return nxc_value_of_int(e, 0);
  if (value->kind == NXC_STRING) return nxc_value_of_int(e, (int64_t)value->n_bytes);
  if (value->kind == NXC_LIST || value->kind == NXC_MAP) return nxc_value_of_int(e, (int64_t)value->n_items);
  return nxc_evaluation_fail(e, "%s has no length", nxc_kind_name(value->kind));
}

static const nxc_value *call_int(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  const nxc_value *value = args[0];
  if (value->kind == NXC_BOOL) return nxc_value_of_int(e, value->boolean);
  if (value->kind != NXC_STRING) return rounded(e, value, trunc);
  char *end;
  long long integer = strtoll(value->text, &end, 10);
  if (end == value->text || *end != '\0') return nxc_evaluation_fail(e, "%s is no integer", value->text);
  return nxc_value_of_int(e, integer);
}

static const nxc_value *call_float(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  double number;
  if (nxc_value_number(args[0], &number)) return nxc_value_of_number(e, number);
  if (args[0]->kind != NXC_STRING)
    return nxc_evaluation_fail(e, "%s is no number", nxc_kind_name(args[0]->kind));
  char *end;
  number = strtod(args[0]->text, &end);
  if (end == args[0]->text || *end != '\0') return nxc_evaluation_fail(e, "%s is no number", args[0]->text);
  return nxc_value_of_number(e, number);
}

static const nxc_value *call_str(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  if (args[0]->kind == NXC_STRING) return args[0];
  const char *text = nxc_value_show(e->arena, args[0]);
  return nxc_value_of_text(e, text, strlen(text));
}

static const nxc_value *call_sum(evaluation *e, arguments args, size_t n_args) {
  args = spread(e, args, &n_args);
  const nxc_value *sum = nxc_value_of_int(e, 0);
  for (size_t i = 0; i < n_args && sum != NULL; i++) sum = nxc_evaluation_add(e, sum, args[i]);
  return sum;
}

static const nxc_value *call_product(evaluation *e, arguments args, size_t n_args) {
  args = spread(e, args, &n_args);
  int64_t product = 1;
  for (size_t i = 0; i < n_args; i++) {
    if (args[i]->kind != NXC_INT) return nxc_evaluation_fail(e, "product needs integers");
    if (__builtin_mul_overflow(product, args[i]->integer, &product))
      return nxc_evaluation_fail(e, "the result is too large");
  }
  return nxc_value_of_int(e, product);
}

static const nxc_value *quantify(evaluation *e, arguments args, size_t n_args, bool decisive) {
  args = spread(e, args, &n_args);
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

static const nxc_value *call_abs(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  double number;
  if (!nxc_value_number(args[0], &number)) return nxc_evaluation_fail(e, "abs needs a number");
  if (number >= 0) return args[0];
  if (args[0]->kind == NXC_FLOAT) return nxc_value_of_number(e, -number);
  if (args[0]->integer == INT64_MIN) return nxc_evaluation_fail(e, "the result is too large");
  return nxc_value_of_int(e, -args[0]->integer);
}

static const nxc_value *call_log2(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  double number;
  if (!nxc_value_number(args[0], &number) || number <= 0)
    return nxc_evaluation_fail(e, "log2 needs a positive number");
  double result = log2(number);
  return result == floor(result) ? to_int(e, result) : nxc_value_of_number(e, result);
}

static bool need_text(evaluation *e, arguments args, size_t n_args) {
  for (size_t i = 0; i < n_args; i++) {
    if (args[i]->kind == NXC_STRING) continue;
    nxc_evaluation_fail(e, "needs text, not %s", nxc_kind_name(args[i]->kind));
    return false;
  }
  return true;
}

static const nxc_value *call_starts(evaluation *e, arguments args, size_t n_args) {
  if (!need_text(e, args, n_args)) return NULL;
  return nxc_value_of_bool(e, strncmp(args[0]->text, args[1]->text, args[1]->n_bytes) == 0);
}

static const nxc_value *call_ends(evaluation *e, arguments args, size_t n_args) {
  if (!need_text(e, args, n_args)) return NULL;
  if (args[1]->n_bytes > args[0]->n_bytes) return nxc_value_of_bool(e, false);
  const char *end = args[0]->text + args[0]->n_bytes - args[1]->n_bytes;
  return nxc_value_of_bool(e, strcmp(end, args[1]->text) == 0);
}

static const nxc_value *call_lower(evaluation *e, arguments args, size_t n_args) {
  if (!need_text(e, args, n_args)) return NULL;
  char *text = nxc_arena_strndup(e->arena, args[0]->text, args[0]->n_bytes);
  for (size_t i = 0; i < args[0]->n_bytes; i++) text[i] = (char)tolower((unsigned char)text[i]);
  return nxc_value_of_text(e, text, args[0]->n_bytes);
}

static const nxc_value *call_basename(evaluation *e, arguments args, size_t n_args) {
  if (!need_text(e, args, n_args)) return NULL;
  const char *slash = strrchr(args[0]->text, '/');
  const char *name = slash ? slash + 1 : args[0]->text;
  return nxc_value_of_text(e, name, strlen(name));
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

/* Position of an item in a list, or of a text in a text; -1 when it is not there. */
static const nxc_value *call_index(evaluation *e, arguments args, size_t n_args) {
  if (args[0]->kind == NXC_STRING) {
    if (!need_text(e, args, n_args)) return NULL;
    const char *found = strstr(args[0]->text, args[1]->text);
    return nxc_value_of_int(e, found ? found - args[0]->text : -1);
  }
  if (args[0]->kind != NXC_LIST) return nxc_evaluation_fail(e, "index needs a list or text");
  for (size_t i = 0; i < args[0]->n_items; i++) {
    if (nxc_values_same(&args[0]->items[i], args[1])) return nxc_value_of_int(e, (int64_t)i);
  }
  return nxc_value_of_int(e, -1);
}

/* The last run of digits of a text as an integer, -1 when it has none: the 18 of "model.layers.18". */
static const nxc_value *call_last_number(evaluation *e, arguments args, size_t n_args) {
  if (!need_text(e, args, n_args)) return NULL;
  const char *text = args[0]->text;
  size_t end = args[0]->n_bytes;
  while (end > 0 && !isdigit((unsigned char)text[end - 1])) end--;
  size_t start = end;
  while (start > 0 && isdigit((unsigned char)text[start - 1])) start--;
  return nxc_value_of_int(e, start == end ? -1 : strtoll(text + start, NULL, 10));
}

/* The number that a text begins with, -127 of "-127,0"; its error where there is none. */
static const nxc_value *call_first_number(evaluation *e, arguments args, size_t n_args) {
  if (!need_text(e, args, n_args)) return NULL;
  char *end;
  long long number = strtoll(args[0]->text, &end, 10);
  if (end == args[0]->text) return nxc_evaluation_fail(e, "first_number needs a text that begins with one");
  return nxc_value_of_int(e, number);
}

/* Of a text "DD:HH:MM:SS", as Lightning writes times. */
static const nxc_value *call_minutes(evaluation *e, arguments args, size_t n_args) {
  if (!need_text(e, args, n_args)) return NULL;
  long long days, hours, minutes, seconds;
  int n_read = 0;
  int n = sscanf(args[0]->text, "%lld:%lld:%lld:%lld%n", &days, &hours, &minutes, &seconds, &n_read);
  if (n != 4 || args[0]->text[n_read] != '\0') return nxc_evaluation_fail(e, "minutes needs DD:HH:MM:SS");
  nxc_value *value = nxc_arena_alloc(e->arena, sizeof *value);
  double in_all = 60.0 * (24.0 * (double)days + (double)hours) + (double)minutes + (double)seconds / 60;
  *value = (nxc_value){.kind = NXC_FLOAT, .number = in_all};
  return value;
}

static const nxc_value *call_gcd(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  if (args[0]->kind != NXC_INT || args[1]->kind != NXC_INT)
    return nxc_evaluation_fail(e, "gcd needs integers");
  int64_t a = args[0]->integer, b = args[1]->integer;
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return nxc_value_of_int(e, a);
}

/* The pieces that | separates in a layout of pipeline stages: 5 of Et|(tt|)*3L, where * repeats what is
 * before it. */
static const nxc_value *call_pieces(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  if (args[0]->kind != NXC_STRING) return nxc_evaluation_fail(e, "pieces needs a text");
  int64_t n_bars = 0, n_inside = 0; /* the latter in parentheses, of which there is one level */
  bool inside = false;
  for (const char *c = args[0]->text; *c != '\0'; c++) {
    if (*c == '(') n_inside = 0;
    if (*c == '(' || *c == ')') inside = *c == '(';
    if (*c == '|' && inside) n_inside++;
    else if (*c == '|') n_bars++;
    if (*c != ')') continue;
    int64_t n_times = c[1] == '*' && isdigit((unsigned char)c[2]) ? strtoll(c + 2, NULL, 10) : 1;
    if (n_times > 1000000) return nxc_evaluation_fail(e, "the result is too large");
    n_bars += n_inside * n_times;
  }
  return nxc_value_of_int(e, n_bars + 1);
}

/* Whether each item is greater than the one before it. */
static const nxc_value *call_rising(evaluation *e, arguments args, size_t n_args) {
  args = spread(e, args, &n_args);
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
  args = spread(e, args, &n_args);
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
  args = spread(e, args, &n_args);
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

/* One of a list of values for each map; one value that is no list, or stands alone, is for all. NULL: it has none. */
static const nxc_value *entry_of(const nxc_value *values, size_t index) {
  if (values->kind == NXC_NULL) return NULL;
  if (values->kind != NXC_LIST) return values;
  if (values->n_items == 1) index = 0;
  return index < values->n_items && values->items[index].kind != NXC_NULL ? &values->items[index] : NULL;
}

/* The other way round: maps with these keys, as many as the first list has, of a list of values for each key. */
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

/* One to three shares in a text, whatever stands between them: "969, 30, 1". Null where the first has all. */
static const nxc_value *call_shares(evaluation *e, arguments args, size_t n_args) {
  enum { MOST = 3 };
  if (!need_text(e, args, n_args)) return NULL;
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  nxc_value *items = nxc_arena_array(e->arena, MOST, sizeof *items);
  size_t n_items = 0;
  double sum = 0;
  for (const char *text = args[0]->text; *(text += strcspn(text, ".0123456789")) != '\0';) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || n_items == MOST) return nxc_evaluation_fail(e, "shares needs one to three numbers");
    items[n_items++] = (nxc_value){.kind = NXC_FLOAT, .number = number};
    sum += number;
    text = end;
  }
  if (sum <= 0) return nxc_evaluation_fail(e, "shares needs a share above 0");
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n_items};
  if (items[0].number == sum) *list = (nxc_value){.kind = NXC_NULL};
  return list;
}

/* A list of numbers as one text: "969,30,1". */
static const nxc_value *call_joined(evaluation *e, arguments args, size_t n_args) {
  const char *text = "";
  args = spread(e, args, &n_args);
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
    if (nxc_values_same(side_of(&table->items[i], side), name))
      return side_of(&table->items[i], 1 - side);
  return NULL;
}

/* Each item of a list by its other name in the table. NULL: `strict`, and the table lacks one; else that is
 * left out. */
static const nxc_value *rename_all(evaluation *e, arguments args, size_t side, bool strict) {
  if (args[1]->kind != NXC_LIST) return nxc_evaluation_fail(e, "renamed needs a table");
  size_t n_names = 1, n_items = 0;
  arguments names = spread(e, args, &n_names);
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

enum { MANY = 64 };

static const nxc_expression_function functions[] = {
    {"min", 1, MANY, false, call_min, NULL},
    {"max", 1, MANY, false, call_max, NULL},
    {"floor", 1, 1, false, call_floor, NULL},
    {"ceil", 1, 1, false, call_ceil, NULL},
    {"round", 1, 1, false, call_round, NULL},
    {"len", 1, 1, false, call_len, NULL},
    {"int", 1, 1, true, call_int, NULL},
    {"float", 1, 1, true, call_float, NULL},
    {"str", 1, 1, true, call_str, NULL},
    {"sum", 1, MANY, false, call_sum, NULL},
    {"product", 1, MANY, false, call_product, NULL},
    {"any", 1, MANY, false, call_any, NULL},
    {"all", 1, MANY, false, call_all, NULL},
    {"abs", 1, 1, false, call_abs, NULL},
    {"log2", 1, 1, false, call_log2, NULL},
    {"starts", 2, 2, true, call_starts, NULL},
    {"ends", 2, 2, true, call_ends, NULL},
    {"lower", 1, 1, true, call_lower, NULL},
    {"basename", 1, 1, true, call_basename, NULL},
    {"contains", 2, 2, false, call_contains, NULL},
    {"unique", 1, 1, false, call_unique, NULL},
    {"index", 2, 2, false, call_index, NULL},
    {"last_number", 1, 1, true, call_last_number, NULL},
    {"first_number", 1, 1, true, call_first_number, NULL},
    {"rising", 1, MANY, false, call_rising, NULL},
    {"minutes", 1, 1, true, call_minutes, NULL},
    {"gcd", 2, 2, false, call_gcd, NULL},
    {"kind", 1, 1, false, call_kind, NULL},
    {"texts", 1, 1, false, call_texts, NULL},
    {"numbers", 1, 1, false, call_numbers, NULL},
    {"members", 3, 3, false, call_members, NULL},
    {"maps", 2, MANY, false, call_maps, NULL},
    {"shares", 1, 1, true, call_shares, NULL},
    {"joined", 1, 1, false, call_joined, NULL},
    {"blend", 2, 2, false, call_blend, NULL},
    {"common", 2, 2, false, call_common, NULL},
    {"pieces", 1, 1, false, call_pieces, NULL},
    {"renamed", 2, 2, false, call_renamed, invert_renamed},
    {"stage_cuts", 7, 7, false, nxc_call_stage_cuts, NULL},
    {"weighted_cuts", 4, 4, false, nxc_call_weighted_cuts, NULL},
    {"layout_cuts", 1, 1, false, nxc_call_layout_cuts, NULL},
    {"deepspeed_cuts", 4, 8, false, nxc_call_deepspeed_cuts, NULL},
    {"ramped_steps", 5, 5, false, nxc_call_ramped_steps, NULL},
};

const nxc_expression_function *nxc_expression_function_find(const char *name, size_t n_bytes) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strlen(functions[i].name) == n_bytes && memcmp(functions[i].name, name, n_bytes) == 0)
      return &functions[i];
  }
  return NULL;
}
