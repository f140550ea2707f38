/* SPDX-License-Identifier: Apache-2.0 */
/* $NAME and ${...}: what a variable, an array or a parameter of a function gives. */
#include "compiler/document/names.h"
#include "compiler/config/front/shell/shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* -- what a name has ------------------------------------------------------------------------------------- */

/* The fields of a name, before its operator. */
typedef struct found {
  bool set;      /* it has a value here, which may be unknown */
  bool list;     /* $@, ${A[@]}: fields of their own */
  bool missing;  /* nothing gives it one */
  nxc_text *items;
  const char **keys;
  size_t n_items;
} found;

static void add(nxc_shell *s, found *to, const char *key, nxc_text text) {
  to->items = nxc_arena_grow(s->arena, to->items, to->n_items, sizeof *to->items);
  to->keys = nxc_arena_grow(s->arena, to->keys, to->n_items, sizeof *to->keys);
  to->keys[to->n_items] = key;
  to->items[to->n_items++] = text;
  to->set = true;
}

static nxc_text marked(nxc_shell *s, const nxc_text *written, unsigned char marks) {
  nxc_text text = nxc_text_copy(s->arena, written);
  for (size_t i = 0; i < text.n_bytes; i++) text.marks[i] = marks;
  return text;
}

static void add_unknown(nxc_shell *s, found *to, const nxc_text *written, unsigned char marks) {
  add(s, to, "0", marked(s, written, (unsigned char)(NXC_MARK_UNKNOWN | marks)));
}

static void add_number(nxc_shell *s, found *to, size_t number, const nxc_text *written) {
  const char *shown = nxc_arena_printf(s->arena, "%zu", number);
  add(s, to, "0",
      nxc_text_from(s->arena, shown, strlen(shown), written->n_bytes ? written->origins[0] : 0, 0));
}

/* $1, $@, $# and the other names that are no variables; false: it is one. */
static bool find_special(nxc_shell *s, const char *name, const nxc_text *written, found *to) {
  const nxc_shell_state *state = &s->state;
  if (isdigit((unsigned char)*name) && strcmp(name, "0") != 0) {
    size_t number = strtoul(name, NULL, 10);
    if (number >= 1 && number <= state->n_arguments) add(s, to, "0", state->arguments[number - 1]);
    else if (!state->arguments_known) to->missing = s->assumes = nxc_shell_ask(s, number + state->n_shifted);
  } else if (*name == '@' || *name == '*') {
    to->list = true;
    to->set = state->n_arguments > 0;
    for (size_t i = 0; i < state->n_arguments; i++) add(s, to, "0", state->arguments[i]);
  } else if (*name == '#') {
    if (state->arguments_known) add_number(s, to, state->n_arguments, written);
    else add_unknown(s, to, written, NXC_MARK_ARGUMENT);
  } else if (*name == '?' && state->status != NXC_MAYBE) {
    add_number(s, to, state->status == NXC_NO, written);
  } else if (*name == '0' || strcmp(name, "BASH_SOURCE") == 0) {
    add(s, to, "0", nxc_shell_own_path(s, written));
  } else if (strchr("?-$!", *name)) {
    add_unknown(s, to, written, 0);
  } else {
    return false;
  }
  return true;
}

/* The index that a subscript stands for; NULL: it cannot be told. */
static const char *key_of(nxc_shell *s, const nxc_shell_word *subscript, const nxc_shell_value *value) {
  if (subscript == NULL) return "0";
  nxc_text text = nxc_shell_expand_one(s, subscript);
  int64_t index;
  if (nxc_text_any(&text, NXC_MARK_UNKNOWN)) return NULL;
  if (value != NULL && value->kind == NXC_SHELL_TABLE) return nxc_text_string(s->arena, &text);
  if (!nxc_shell_sum(s, &text, subscript->at, &index)) return NULL;
  if (index < 0 && value != NULL && value->n_items > 0)
    index += strtoll(value->items[value->n_items - 1].key, NULL, 10) + 1;
  return nxc_arena_printf(s->arena, "%lld", (long long)index);
}

static void find_value(nxc_shell *s, const nxc_shell_parameter *p, const nxc_shell_value *value,
                       const nxc_text *written, found *to) {
  if (value->kind == NXC_SHELL_UNSET) return;
  if (value->kind == NXC_SHELL_TEXT) {
    const char *key = key_of(s, p->subscript, value);
    if (key == NULL) add_unknown(s, to, written, 0);
    else if (strcmp(key, "0") == 0) add(s, to, "0", value->text);
    return;
  }
  if (p->all != '\0') {
    for (size_t i = 0; i < value->n_items; i++) add(s, to, value->items[i].key, value->items[i].text);
    return;
  }
  const char *key = key_of(s, p->subscript, value);
  const nxc_shell_item *item = key ? nxc_shell_item_of(value, key) : NULL;
  bool open = value->n_items > 0 &&
              nxc_text_all(&value->items[value->n_items - 1].text, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
  if (item != NULL) add(s, to, key, item->text);
  else if (key == NULL || open) add_unknown(s, to, written, 0);
}

/* What has no value in the script: the environment's, or none. `minds`: the script can do without. */
static void find_outside(nxc_shell *s, const nxc_shell_parameter *p, const nxc_text *written, bool minds,
                         found *to) {
  size_t at = written->n_bytes ? written->origins[0] : 0;
  nxc_text of_job;
  if (p->all == '\0' && getenv(p->name) == NULL && nxc_shell_job_value(s, p->name, at, &of_job)) {
    add(s, to, "0", of_job);
    return;
  }
  const char *value = nxc_shell_read_environment(s, p->name, at, minds && p->op != '+');
  if (minds || s->testing) *nxc_names_slot(s->expected, p->name, strlen(p->name)) = s;
  if (value != NULL && p->all == '\0')
    add(s, to, "0",
        nxc_text_from(s->arena, value, strlen(value), at,
                      NXC_MARK_ENVIRONMENT | (strcmp(p->name, "PWD") == 0 ? NXC_MARK_FOLDER : 0)));
  else to->missing = s->assumes = true;
}

static found find(nxc_shell *s, const nxc_shell_parameter *p, const nxc_text *written) {
  found to = {.list = p->all == '@' || p->all == '*'};
  bool minds = p->op != '\0' && strchr("-=+?", p->op) != NULL;
  if (find_special(s, p->name, written, &to)) return to;
  const nxc_shell_value *value = nxc_shell_find(s, p->name);
  if (value != NULL) find_value(s, p, value, written, &to);
  else find_outside(s, p, written, minds, &to);
  return to;
}

/* -- operators ------------------------------------------------------------------------------------------- */

static bool is_empty(const found *value) {
  for (size_t i = 0; i < value->n_items; i++)
    if (value->items[i].n_bytes > 0 && !nxc_text_all(&value->items[i], NXC_MARK_UNDEFINED)) return false;
  return true;
}

/* Unknown altogether, so that it may be empty. */
static bool may_be_empty(const found *value) {
  for (size_t i = 0; i < value->n_items; i++)
    if (!nxc_text_all(&value->items[i], NXC_MARK_UNKNOWN)) return false;
  return value->n_items > 0;
}

/* A number of an offset or a length. */
static bool number_of(nxc_shell *s, const nxc_shell_word *word, int64_t otherwise, int64_t *number) {
  *number = otherwise;
  if (word == NULL) return true;
  nxc_text text = nxc_shell_expand_one(s, word);
  return nxc_shell_sum(s, &text, word->at, number);
}

static int64_t first_from(const found *value, int64_t index) {
  size_t i = 0;
  while (i < value->n_items && strtoll(value->keys[i], NULL, 10) < index) i++;
  return (int64_t)i;
}

/* ${A[@]:from:count} and ${X:from:count}. */
static bool cut_out(nxc_shell *s, const nxc_shell_parameter *p, found *value) {
  int64_t from, count;
  bool arguments = *p->name == '@' || *p->name == '*';
  int64_t n = value->list ? (int64_t)value->n_items : (int64_t)(value->n_items ? value->items[0].n_bytes : 0);
  if (!number_of(s, p->first, 0, &from) || !number_of(s, p->second, INT64_MAX, &count)) return false;
  for (size_t i = 0; i < value->n_items; i++)
    if (nxc_text_any(&value->items[i], NXC_MARK_UNKNOWN | NXC_MARK_MANY) ||
        (!value->list && nxc_text_any(&value->items[i], NXC_MARK_UNKNOWN)))
      return false;
  if (arguments && from > 0) from--;
  if (from < 0) from = from + n;
  bool gaps = value->list && !arguments && n > 0;
  if (from < 0 || (from > n && !gaps)) from = n, count = 0;
  if (count < 0) count = value->list ? 0 : n - from + count;
  if (count < 0) return false;
  if (value->list && !arguments) from = first_from(value, from); /* of an array with gaps: by index */
  if (count > n - from) count = n - from;
  if (value->list) {
    value->items = value->items ? value->items + from : NULL;
    value->keys = value->keys ? value->keys + from : NULL;
    value->n_items = (size_t)count;
  } else if (value->n_items > 0) {
    value->items[0] = nxc_text_part(&value->items[0], (size_t)from, (size_t)count);
  }
  return true;
}

static bool change_case(nxc_shell *s, const nxc_shell_parameter *p, nxc_text *text) {
  if (nxc_text_any(text, NXC_MARK_UNKNOWN) || (p->first != NULL && p->first->n_parts > 0)) return false;
  *text = nxc_text_copy(s->arena, text);
  for (size_t i = 0; i < text->n_bytes && (p->twice || i == 0); i++) {
    unsigned char c = (unsigned char)text->bytes[i];
    text->bytes[i] = (char)(p->op == '^' ? toupper(c) : tolower(c));
  }
  return true;
}

/* # % / ^ and , on each item. */
static bool change(nxc_shell *s, const nxc_shell_parameter *p, nxc_text *text) {
  if (p->op == '^' || p->op == ',') return change_case(s, p, text);
  nxc_text pattern = nxc_shell_expand_one(s, p->first), by = {0};
  if (p->op == '%' && nxc_text_is(&pattern, "/*") && nxc_shell_parent(s, text)) return true;
  if (p->second != NULL) by = nxc_shell_expand_one(s, p->second);
  if (p->op == '/') return nxc_shell_replace(s, text, &pattern, &by, p->twice, p->anchor);
  return nxc_shell_cut(s, text, &pattern, p->op, p->twice);
}

/* ${#X}, ${#A[@]}, ${!A[@]} and ${!X}; false: it cannot be told. */
static bool take_count(nxc_shell *s, const nxc_shell_parameter *p, const nxc_text *written, found *value) {
  found count = {0};
  for (size_t i = 0; i < value->n_items; i++)
    if (nxc_text_any(&value->items[i], NXC_MARK_UNKNOWN) &&
        (!value->list || nxc_text_any(&value->items[i], NXC_MARK_MANY)))
      return false;
  if (value->missing && !value->list) return false;
  size_t n_bytes = 0;
  for (size_t i = 0; value->n_items > 0 && i < value->items[0].n_bytes; i++)
    n_bytes += ((unsigned char)value->items[0].bytes[i] & 0xC0) != 0x80;
  if (*p->name == '@' || *p->name == '*') {
    if (!s->state.arguments_known) return false;
  }
  add_number(s, &count, value->list ? value->n_items : n_bytes, written);
  *value = count;
  return true;
}

static bool take_indirect(nxc_shell *s, const nxc_shell_parameter *p, const nxc_text *written, found *value) {
  if (p->all != '\0') {
    size_t at = written->n_bytes ? written->origins[0] : 0;
    for (size_t i = 0; i < value->n_items; i++) {
      if (nxc_text_any(&value->items[i], NXC_MARK_UNKNOWN | NXC_MARK_MANY)) return false;
      value->items[i] = nxc_text_from(s->arena, value->keys[i], strlen(value->keys[i]), at, 0);
    }
    return true;
  }
  if (value->n_items != 1 || nxc_text_any(&value->items[0], NXC_MARK_UNKNOWN)) return false;
  const char *name = nxc_text_string(s->arena, &value->items[0]);
  if (*name == '\0' ||
      name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")] != '\0')
    return false;
  nxc_shell_parameter other = *p;
  other.name = name;
  other.indirect = false;
  *value = find(s, &other, written);
  return true;
}

/* -- the result ------------------------------------------------------------------------------------------ */

static void put_found(nxc_shell *s, nxc_shell_fields *fields, const found *value,
                      const nxc_shell_parameter *p, bool quoted, bool divides) {
  bool star = p->all == '*' || strcmp(p->name, "*") == 0;
  bool joins = value->list && ((quoted && star) || !divides);
  const char *ifs = nxc_shell_ifs(s);
  if (quoted && (!value->list || star)) fields->open = true;
  for (size_t i = 0; i < value->n_items && !s->failed; i++) {
    nxc_text text = value->items[i], gap = {0};
    if (i > 0 && joins) {
      char between = star ? *ifs : ' ';
      if (between != '\0') gap = nxc_text_from(s->arena, &between, 1, text.n_bytes ? text.origins[0] : 0, 0);
      nxc_shell_put(s, fields, &gap, quoted);
    } else if (i > 0) {
      nxc_shell_finish(s, fields);
    }
    bool many = value->list && nxc_text_all(&text, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
    if (quoted && many) nxc_shell_put_divided(s, fields, &text, true);
    else if (quoted || !divides) nxc_shell_put(s, fields, &text, quoted);
    else nxc_shell_put_divided(s, fields, &text, false);
  }
}

static void put_unknown(nxc_shell *s, nxc_shell_fields *fields, const nxc_text *written, bool quoted,
                        bool list, unsigned char marks) {
  bool many = !quoted || list;
  nxc_text text = marked(s, written, (unsigned char)(NXC_MARK_UNKNOWN | marks | (many ? NXC_MARK_MANY : 0)));
  if (quoted && list) nxc_shell_put_divided(s, fields, &text, true);
  else nxc_shell_put(s, fields, &text, quoted);
}

/* The operand: outside of quotes its own blanks divide as well. */
static void put_first(nxc_shell *s, nxc_shell_fields *fields, const nxc_shell_parameter *p, bool quoted,
                      bool divides) {
  for (size_t i = 0; i < p->first->n_parts; i++) {
    nxc_shell_word one = {.parts = &p->first->parts[i], .n_parts = 1, .at = p->first->at};
    bool plain = one.parts->kind == NXC_PART_TEXT && !one.parts->quoted && !quoted;
    if (plain && divides) nxc_shell_put_divided(s, fields, &one.parts->text, true);
    else nxc_shell_put_parts(s, fields, &one, quoted, divides);
  }
}

static bool is_blank(const nxc_shell_word *word) {
  for (size_t i = 0; i < word->n_parts; i++)
    if (word->parts[i].kind != NXC_PART_TEXT || word->parts[i].text.n_bytes > 0) return false;
  return true;
}

/* - = + and ?; true: the operand took the value's place, or nothing did. */
static bool put_operand(nxc_shell *s, nxc_shell_fields *fields, const nxc_shell_part *part, found *value,
                        bool quoted, bool divides) {
  const nxc_shell_parameter *p = part->parameter;
  bool unknown = p->colon && may_be_empty(value) && !is_empty(value);
  bool holds = value->set && !(p->colon && is_empty(value));
  if (unknown && p->op != '?') {
    put_unknown(s, fields, &part->text, quoted, value->list, 0);
    return true;
  }
  if (p->op == '+') {
    if (holds) put_first(s, fields, p, quoted, divides);
    else if (quoted && !value->list) fields->open = true;
    return true;
  }
  bool optional = value->missing && isdigit((unsigned char)*p->name) && is_blank(p->first);
  if (holds || optional) return false; /* an argument that may be left out is not told either way */
  if (p->op == '?') {
    put_unknown(s, fields, &part->text, quoted, value->list, 0);
  } else if (p->op == '=' && p->subscript == NULL) {
    nxc_text given = nxc_shell_expand_one(s, p->first);
    nxc_shell_set_text(s, p->name, given, part->text.origins[0]);
    value->n_items = 0;
    add(s, value, "0", given);
    return false;
  } else if (quoted) {
    fields->open = true;
    nxc_shell_put_parts(s, fields, p->first, true, divides);
  } else {
    put_first(s, fields, p, false, divides);
  }
  return true;
}

/* What nothing gives a value: empty to a test; where the script reads another file, that may give it one. */
static void put_missing(nxc_shell *s, nxc_shell_fields *fields, const nxc_shell_part *part, bool quoted,
                        bool list) {
  const char *name = part->parameter->name;
  bool argument = isdigit((unsigned char)*name), given = nxc_shell_is_given(name);
  unsigned char marks = argument ? NXC_MARK_ARGUMENT : given || s->sources ? 0 : NXC_MARK_UNDEFINED;
  if (list && argument) return;
  nxc_text text = part->text;
  if (argument && s->state.n_shifted > 0) { /* as it was called before the shift, or two were one */
    const char *first = nxc_arena_printf(s->arena, "$%zu", strtoul(name, NULL, 10) + s->state.n_shifted);
    text = nxc_text_from(s->arena, first, strlen(first), part->text.origins[0], 0);
  }
  put_unknown(s, fields, &text, quoted, list, marks);
}

void nxc_shell_put_parameter(nxc_shell *s, nxc_shell_fields *fields, const nxc_shell_part *part, bool quoted,
                             bool divides) {
  const nxc_shell_parameter *p = part->parameter;
  if (!nxc_shell_enter(s, part->text.origins[0])) return;
  found value = find(s, p, &part->text);
  bool operand = p->op != '\0' && strchr("-=+?", p->op) != NULL, good = true;
  if (p->indirect) good = take_indirect(s, p, &part->text, &value);
  if (good && p->length) good = take_count(s, p, &part->text, &value);
  if (good && p->op == ':') good = !value.missing && cut_out(s, p, &value);
  for (size_t i = 0; good && p->op != '\0' && strchr("#%/^,", p->op) && i < value.n_items; i++)
    good = change(s, p, &value.items[i]);
  if (!good) put_unknown(s, fields, &part->text, quoted, value.list, 0);
  else if (operand && put_operand(s, fields, part, &value, quoted, divides)) good = true;
  else if (value.missing && !value.set) put_missing(s, fields, part, quoted, value.list);
  else put_found(s, fields, &value, p, quoted, divides);
  s->depth--;
}

nxc_text nxc_shell_known_text(nxc_shell *s, const nxc_text *text) {
  if (!nxc_text_any(text, NXC_MARK_UNDEFINED)) return *text;
  nxc_text known = {0};
  for (size_t i = 0; i < text->n_bytes; i++)
    if (!(text->marks[i] & NXC_MARK_UNDEFINED))
      nxc_text_put(s->arena, &known, text->bytes[i], text->origins[i], text->marks[i]);
  return known;
}

bool nxc_shell_lookup(nxc_shell *s, const char *name, size_t at, nxc_text *text) {
  nxc_shell_parameter p = {.name = name};
  nxc_text written = nxc_text_from(s->arena, name, strlen(name), at, 0);
  found value = find(s, &p, &written);
  *text = value.n_items > 0 ? value.items[0] : (nxc_text){0};
  return !value.missing && !nxc_text_any(text, NXC_MARK_UNKNOWN);
}
