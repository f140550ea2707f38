/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of texts. */
#include "compiler/expression/expression_function.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const nxc_value *call_str(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  if (args[0]->kind == NXC_STRING) return args[0];
  const char *text = nxc_value_show(e->arena, args[0]);
  return nxc_value_of_text(e, text, strlen(text));
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

/* A text with another in the place of every one that it has. */
static const nxc_value *call_replace(evaluation *e, arguments args, size_t n_args) {
  if (!need_text(e, args, n_args)) return NULL;
  const char *from = args[1]->text, *found, *at = args[0]->text, *made = "";
  if (*from == '\0') return nxc_evaluation_fail(e, "replace needs a text to look for");
  for (; (found = strstr(at, from)) != NULL; at = found + args[1]->n_bytes)
    made = nxc_arena_printf(e->arena, "%s%.*s%s", made, (int)(found - at), at, args[2]->text);
  made = nxc_arena_printf(e->arena, "%s%s", made, at);
  return nxc_value_of_text(e, made, strlen(made));
}

const nxc_expression_function nxc_text_functions[] = {
    {"str", 1, 1, true, call_str, NULL},
    {"starts", 2, 2, true, call_starts, NULL},
    {"ends", 2, 2, true, call_ends, NULL},
    {"lower", 1, 1, true, call_lower, NULL},
    {"basename", 1, 1, true, call_basename, NULL},
    {"replace", 3, 3, true, call_replace, NULL},
    {"index", 2, 2, false, call_index, NULL},
    {"last_number", 1, 1, true, call_last_number, NULL},
    {"first_number", 1, 1, true, call_first_number, NULL},
    {"minutes", 1, 1, true, call_minutes, NULL},
    {"shares", 1, 1, true, call_shares, NULL},
    {"pieces", 1, 1, false, call_pieces, NULL},
    {0},
};
