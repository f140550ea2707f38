/* SPDX-License-Identifier: Apache-2.0 */
/* Variables, and what becomes of them where two ways of a script meet. */
#include "compiler/document/names.h"
#include "compiler/config/front/shell/shell.h"
#include "compiler/diagnostics/secret.h"

#include <string.h>

nxc_truth nxc_truth_not(nxc_truth a) {
  return a == NXC_MAYBE ? NXC_MAYBE : a == NXC_YES ? NXC_NO : NXC_YES;
}

nxc_truth nxc_truth_and(nxc_truth a, nxc_truth b) {
  if (a == NXC_NO || b == NXC_NO) return NXC_NO;
  return a == NXC_YES && b == NXC_YES ? NXC_YES : NXC_MAYBE;
}

nxc_truth nxc_truth_or(nxc_truth a, nxc_truth b) {
  return nxc_truth_not(nxc_truth_and(nxc_truth_not(a), nxc_truth_not(b)));
}

/* -- variables ------------------------------------------------------------------------------------------- */

size_t nxc_shell_number(nxc_shell *s, const char *name) {
  void **number = nxc_names_slot(s->names, name, strlen(name));
  if (*number == NULL) {
    s->name_list = nxc_arena_grow(s->arena, s->name_list, s->n_names, sizeof *s->name_list);
    s->name_list[s->n_names++] = name;
    *number = (void *)(uintptr_t)s->n_names;
  }
  return (size_t)(uintptr_t)*number - 1;
}

const nxc_shell_value *nxc_shell_find(nxc_shell *s, const char *name) {
  size_t number = (size_t)(uintptr_t)nxc_names_find(s->names, name, strlen(name));
  return number > 0 && number <= s->state.n_values ? s->state.values[number - 1] : NULL;
}

static void set_number(nxc_shell *s, size_t number, const nxc_shell_value *value) {
  nxc_shell_state *state = &s->state;
  while (state->n_values <= number) {
    state->values = nxc_arena_grow(s->arena, state->values, state->n_values, sizeof *state->values);
    state->values[state->n_values++] = NULL;
  }
  state->values[number] = value;
}

/* A password goes where the variable goes, and is shown there as little as one of the environment. */
static void conceal(nxc_shell *s, const char *name, nxc_text *text) {
  bool number = true; /* NEW_TOKEN may count some */
  size_t n = strlen(name);
  bool folder = n >= 3 && strcmp(name + n - 3, "PWD") == 0;
  if (folder || *name == NXC_SHELL_FILE || !nxc_key_is_secret(name)) return;
  for (size_t i = 0; i < text->n_bytes; i++) number = number && strchr("0123456789.", text->bytes[i]);
  if (number) return;
  *text = nxc_text_copy(s->arena, text);
  for (size_t i = 0; i < text->n_bytes; i++) text->marks[i] |= NXC_MARK_ENVIRONMENT;
}

void nxc_shell_set(nxc_shell *s, const char *name, nxc_shell_value value) {
  const nxc_shell_value *before = nxc_shell_find(s, name);
  if (value.kind == NXC_SHELL_TEXT) conceal(s, name, &value.text);
  nxc_shell_value *kept = nxc_arena_alloc(s->arena, sizeof *kept);
  *kept = value;
  kept->exported = value.exported || (before != NULL && before->exported && value.kind != NXC_SHELL_UNSET);
  s->script->is_script = true;
  set_number(s, nxc_shell_number(s, name), kept);
}

void nxc_shell_set_text(nxc_shell *s, const char *name, nxc_text text, size_t at) {
  nxc_shell_set(s, name, (nxc_shell_value){.kind = NXC_SHELL_TEXT, .text = text, .at = at});
}

static nxc_text unknown_text(nxc_shell *s, const char *name, size_t at) {
  const char *shown = nxc_arena_printf(s->arena, "$%s", name);
  return nxc_text_from(s->arena, shown, strlen(shown), at, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
}

void nxc_shell_set_unknown(nxc_shell *s, const char *name, size_t at) {
  nxc_shell_set_text(s, name, unknown_text(s, name, at), at);
}

void nxc_shell_set_local(nxc_shell *s, const char *name) {
  nxc_shell_frame *frame = s->frame;
  while (frame != NULL && frame->loop) frame = frame->outer;
  if (frame == NULL) return;
  size_t number = nxc_shell_number(s, name);
  for (size_t i = 0; i < frame->n_locals; i++)
    if (frame->locals[i].name == number) return;
  frame->locals = nxc_arena_grow(s->arena, frame->locals, frame->n_locals, sizeof *frame->locals);
  frame->locals[frame->n_locals].name = number;
  frame->locals[frame->n_locals++].before = nxc_shell_find(s, name);
  static const nxc_shell_value unset = {.kind = NXC_SHELL_UNSET};
  set_number(s, number, &unset);
}

const nxc_shell_item *nxc_shell_item_of(const nxc_shell_value *value, const char *key) {
  for (size_t i = 0; i < value->n_items; i++)
    if (strcmp(value->items[i].key, key) == 0) return &value->items[i];
  return NULL;
}

static bool is_before(const nxc_shell_value *value, const char *a, const char *b) {
  if (value->kind == NXC_SHELL_TABLE) return false; /* as they came */
  size_t n_a = strlen(a), n_b = strlen(b);
  return n_a != n_b ? n_a < n_b : strcmp(a, b) < 0;
}

void nxc_shell_put_item(nxc_shell *s, nxc_shell_value *value, const char *key, nxc_text text) {
  nxc_shell_item *items = NULL;
  size_t n_items = 0, from = 0;
  bool put = false, last = value->n_items == 0 || is_before(value, value->items[value->n_items - 1].key, key);
  if (last || !nxc_shell_spend(s, 0, value->at)) { /* appending, mostly */
    value->items = nxc_arena_grow(s->arena, value->items, value->n_items, sizeof *value->items);
    value->items[value->n_items++] = (nxc_shell_item){key, text};
    return;
  }
  for (; from <= value->n_items; from++) {
    bool same = from < value->n_items && strcmp(value->items[from].key, key) == 0;
    bool here = !put && (same || from == value->n_items || is_before(value, key, value->items[from].key));
    if (here && value->kind == NXC_SHELL_TABLE && !same && from < value->n_items) here = false;
    if (here) {
      items = nxc_arena_grow(s->arena, items, n_items, sizeof *items);
      items[n_items++] = (nxc_shell_item){key, text};
      put = true;
    }
    if (from == value->n_items || same) continue;
    items = nxc_arena_grow(s->arena, items, n_items, sizeof *items);
    items[n_items++] = value->items[from];
  }
  nxc_shell_spend(s, n_items, value->at);
  value->items = items;
  value->n_items = n_items;
}

/* -- ways that meet -------------------------------------------------------------------------------------- */

nxc_shell_state nxc_shell_snapshot(nxc_shell *s) {
  nxc_shell_state copy = s->state;
  copy.values = NULL;
  copy.n_values = 0;
  for (size_t i = 0; i < s->state.n_values; i++) {
    copy.values = nxc_arena_grow(s->arena, copy.values, copy.n_values, sizeof *copy.values);
    copy.values[copy.n_values++] = s->state.values[i];
  }
  nxc_shell_spend(s, s->state.n_values, 0);
  return copy;
}

void nxc_shell_come_back(nxc_shell *s, nxc_shell_state before) {
  for (size_t i = 0; i < s->state.n_values; i++) {
    if (*s->name_list[i] != NXC_SHELL_FILE) continue;
    while (before.n_values <= i) {
      before.values = nxc_arena_grow(s->arena, before.values, before.n_values, sizeof *before.values);
      before.values[before.n_values++] = NULL;
    }
    before.values[i] = s->state.values[i];
  }
  before.output = s->state.output;
  before.status = s->state.status;
  s->state = before;
}

static bool same_value(const nxc_shell_value *a, const nxc_shell_value *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL || a->kind != b->kind || a->n_items != b->n_items) return false;
  for (size_t i = 0; i < a->n_items; i++)
    if (strcmp(a->items[i].key, b->items[i].key) != 0 ||
        !nxc_text_equal(&a->items[i].text, &b->items[i].text))
      return false;
  return nxc_text_equal(&a->text, &b->text);
}

static void add_item(nxc_shell *s, nxc_shell_value *value, nxc_text text) {
  nxc_shell_put_item(s, value, nxc_arena_printf(s->arena, "%zu", value->n_items), text);
}

static bool same_item(const nxc_shell_item *a, const nxc_shell_item *b) {
  return strcmp(a->key, b->key) == 0 && nxc_text_equal(&a->text, &b->text);
}

/* The items that both begin with, and behind them what one or the other has. */
static const nxc_shell_value *join_arrays(nxc_shell *s, const nxc_shell_value *a, const nxc_shell_value *b) {
  nxc_shell_value joined = {.kind = NXC_SHELL_ARRAY, .at = a->at, .exported = a->exported && b->exported};
  size_t n_same = 0;
  while (n_same < a->n_items && n_same < b->n_items && same_item(&a->items[n_same], &b->items[n_same]))
    n_same++;
  for (size_t i = 0; i < n_same; i++) add_item(s, &joined, a->items[i].text);
  for (size_t i = n_same; i < a->n_items; i++) add_item(s, &joined, nxc_shell_perhaps(s, &a->items[i].text));
  for (size_t i = n_same; i < b->n_items; i++) add_item(s, &joined, nxc_shell_perhaps(s, &b->items[i].text));
  if (joined.n_items == n_same) add_item(s, &joined, unknown_text(s, "[@]", a->at));
  nxc_shell_value *kept = nxc_arena_alloc(s->arena, sizeof *kept);
  *kept = joined;
  return kept;
}

static bool is_text(const nxc_shell_value *value) {
  return value != NULL && value->kind == NXC_SHELL_TEXT;
}

/* What is not set is none, unless a file that is not read may set it. */
static const nxc_text *text_of(const nxc_shell *s, const nxc_shell_value *value) {
  static const nxc_text none;
  if (is_text(value)) return &value->text;
  bool unset = value == NULL ? !s->sources : value->kind == NXC_SHELL_UNSET;
  return unset ? &none : NULL;
}

static bool is_options(const nxc_text *text) {
  return text->n_bytes > 2 && text->bytes[0] == '-' && text->bytes[1] == '-';
}

static const nxc_shell_value *join_values(nxc_shell *s, size_t number, const nxc_shell_value *a,
                                          const nxc_shell_value *b) {
  const char *name = s->name_list[number];
  if (same_value(a, b)) return a != NULL && b != NULL && a->exported ? a : b;
  if (*name == NXC_SHELL_FILE && (a == NULL || b == NULL)) return a ? a : b; /* it was there before */
  bool arrays = a != NULL && b != NULL && (a->kind == NXC_SHELL_ARRAY || b->kind == NXC_SHELL_ARRAY) &&
                (a->kind == NXC_SHELL_ARRAY || a->kind == NXC_SHELL_UNSET) &&
                (b->kind == NXC_SHELL_ARRAY || b->kind == NXC_SHELL_UNSET);
  if (arrays) return join_arrays(s, a, b);
  nxc_shell_value *joined = nxc_arena_alloc(s->arena, sizeof *joined);
  const nxc_shell_value *from = a ? a : b;
  *joined = (nxc_shell_value){.kind = NXC_SHELL_TEXT, .at = from->at};
  joined->exported = (a != NULL && a->exported) || (b != NULL && b->exported);
  const nxc_text *one = text_of(s, a), *other = text_of(s, b);
  bool joins = one != NULL && other != NULL &&
               ((is_text(a) && is_text(b)) || is_options(one) || is_options(other));
  if (!joins || !nxc_shell_join_texts(s, name, one, other, &joined->text))
    joined->text = unknown_text(s, name, from->at);
  return joined;
}

static void join_states(nxc_shell *s, nxc_shell_state *into, const nxc_shell_state *other) {
  size_t n_values = into->n_values > other->n_values ? into->n_values : other->n_values;
  for (size_t i = 0; i < n_values; i++) {
    const nxc_shell_value *a = i < into->n_values ? into->values[i] : NULL;
    const nxc_shell_value *b = i < other->n_values ? other->values[i] : NULL;
    if (i >= into->n_values) {
      into->values = nxc_arena_grow(s->arena, into->values, into->n_values, sizeof *into->values);
      into->n_values++;
    }
    into->values[i] = a == b ? a : join_values(s, i, a, b);
  }
  bool same = into->n_arguments == other->n_arguments && into->arguments == other->arguments;
  into->arguments_known = into->arguments_known && other->arguments_known && same;
  into->drops_patterns = into->drops_patterns || other->drops_patterns;
  if (into->status != other->status) into->status = NXC_MAYBE;
  if (!nxc_text_equal(&into->output, &other->output))
    into->output = nxc_text_from(s->arena, "$(...)", 6, 0, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
}

/* The way that was followed to here, beside those that came before. */
void nxc_shell_join(nxc_shell *s, nxc_shell_ways *ways) {
  if (s->ended) return;
  if (ways->any) join_states(s, &ways->state, &s->state);
  else ways->state = nxc_shell_snapshot(s);
  ways->any = true;
}

void nxc_shell_take(nxc_shell *s, const nxc_shell_ways *ways) {
  s->ended = !ways->any;
  if (ways->any) s->state = ways->state;
}

bool nxc_shell_same(const nxc_shell_state *a, const nxc_shell_state *b) {
  if (a->n_values != b->n_values || a->arguments != b->arguments || a->n_arguments != b->n_arguments)
    return false;
  for (size_t i = 0; i < a->n_values; i++)
    if (!same_value(a->values[i], b->values[i])) return false;
  return true;
}
