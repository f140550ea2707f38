/* SPDX-License-Identifier: Apache-2.0 */
/* What a word of the text becomes: its values, divided into fields outside of quotes. */
#include "compiler/config/front/shell/shell.h"

#include <string.h>

const char *nxc_shell_ifs(nxc_shell *s) {
  const nxc_shell_value *value = nxc_shell_find(s, "IFS");
  bool known =
      value != NULL && value->kind == NXC_SHELL_TEXT && !nxc_text_any(&value->text, NXC_MARK_UNKNOWN);
  return known ? nxc_text_string(s->arena, &value->text) : " \t\n\r";
}

void nxc_shell_finish(nxc_shell *s, nxc_shell_fields *fields) {
  if (fields->open) {
    fields->items = nxc_arena_grow(s->arena, fields->items, fields->n_items, sizeof *fields->items);
    fields->items[fields->n_items++] = fields->draft;
  }
  fields->draft = (nxc_text){0};
  fields->open = false;
}

/* What is unknown may be several words outside of quotes, and is one between them. */
static unsigned char marks_put(unsigned char marks, bool quoted) {
  if (!quoted) return marks;
  return (unsigned char)((marks & ~NXC_MARK_MANY) | NXC_MARK_QUOTED);
}

void nxc_shell_put(nxc_shell *s, nxc_shell_fields *fields, const nxc_text *text, bool quoted) {
  if (!nxc_shell_spend(s, text->n_bytes, text->n_bytes ? text->origins[0] : 0)) return;
  for (size_t i = 0; i < text->n_bytes; i++)
    nxc_text_put(s->arena, &fields->draft, text->bytes[i], text->origins[i],
                 marks_put(text->marks[i], quoted));
  fields->open = fields->open || quoted || text->n_bytes > 0;
}

/* A placeholder is one word, as what is written there will be; its bytes, 0: none. */
static size_t put_left_open(nxc_shell *s, nxc_shell_fields *fields, const nxc_text *text, size_t at) {
  size_t n = fields->draft.n_bytes == 0 ? nxc_text_placeholder(text, at) : nxc_text_in_angles(text, at);
  for (size_t i = at; i < at + n; i++)
    nxc_text_put(s->arena, &fields->draft, text->bytes[i], text->origins[i], NXC_MARK_UNKNOWN);
  fields->open = fields->open || n > 0;
  return n;
}

void nxc_shell_put_divided(nxc_shell *s, nxc_shell_fields *fields, const nxc_text *text, bool listed) {
  const char *ifs = nxc_shell_ifs(s);
  bool hard = false; /* a sign that is no blank has ended a field, and divides no more */
  size_t n_open;
  if (!nxc_shell_spend(s, text->n_bytes, text->n_bytes ? text->origins[0] : 0)) return;
  for (size_t i = 0; i < text->n_bytes; i++) {
    char c = text->bytes[i];
    unsigned char marks = text->marks[i];
    bool whole = (marks & NXC_MARK_UNKNOWN) && !(marks & NXC_MARK_MAYBE);
    bool divides = c != '\0' && !whole && strchr(ifs, c) != NULL && !(listed && (marks & NXC_MARK_MAYBE));
    bool blank = divides && strchr(" \t\n\r", c) != NULL;
    if (!divides && (n_open = put_left_open(s, fields, text, i)) > 0) {
      i += n_open - 1;
      hard = false;
    } else if (!divides) {
      if ((marks & NXC_MARK_UNKNOWN) && !listed) marks |= NXC_MARK_MANY;
      nxc_text_put(s->arena, &fields->draft, c, text->origins[i], marks);
      fields->open = true;
      hard = false;
    } else if (blank) {
      hard = hard || fields->open;
      nxc_shell_finish(s, fields);
    } else {
      fields->open = fields->open || !hard || i == 0;
      nxc_shell_finish(s, fields);
      hard = false;
    }
  }
}

static void put_unknown(nxc_shell *s, nxc_shell_fields *fields, const nxc_text *written, bool quoted) {
  nxc_text unknown = nxc_text_copy(s->arena, written);
  for (size_t i = 0; i < unknown.n_bytes; i++)
    unknown.marks[i] = (unsigned char)(NXC_MARK_UNKNOWN | (quoted ? 0 : NXC_MARK_MANY));
  nxc_shell_put(s, fields, &unknown, quoted);
}

static void put_computed(nxc_shell *s, nxc_shell_fields *fields, const nxc_shell_part *part, bool quoted,
                         bool divides) {
  int64_t value;
  if (part->kind == NXC_PART_UNKNOWN) {
    put_unknown(s, fields, &part->text, true);
  } else if (part->kind == NXC_PART_ARITHMETIC) {
    size_t at = part->text.n_bytes ? part->text.origins[0] : 0;
    nxc_text sum = nxc_shell_expand_one(s, part->sum);
    bool known = nxc_shell_sum(s, &sum, at, &value);
    const char *shown = nxc_arena_printf(s->arena, "%lld", known ? (long long)value : 0);
    nxc_text text = nxc_text_from(s->arena, shown, strlen(shown), at, 0);
    if (known) nxc_shell_put(s, fields, &text, quoted);
    else put_unknown(s, fields, &part->text, quoted);
  } else {
    nxc_text output = nxc_shell_run_taken(s, part->command);
    bool folder = nxc_text_any(&output, NXC_MARK_FOLDER); /* which is unknown as well */
    bool named = folder || nxc_text_any(&output, NXC_MARK_ARGUMENT);
    if (!named && nxc_text_all(&output, NXC_MARK_UNKNOWN)) put_unknown(s, fields, &part->text, quoted);
    else if (quoted || !divides) nxc_shell_put(s, fields, &output, quoted);
    else nxc_shell_put_divided(s, fields, &output, false);
  }
}

void nxc_shell_put_parts(nxc_shell *s, nxc_shell_fields *fields, const nxc_shell_word *word, bool quoted,
                         bool divides) {
  for (size_t i = 0; i < word->n_parts && !s->failed; i++) {
    const nxc_shell_part *part = &word->parts[i];
    bool inside = quoted || part->quoted;
    if (part->kind == NXC_PART_PARAMETER) {
      nxc_shell_put_parameter(s, fields, part, inside, divides);
    } else if (part->kind == NXC_PART_TEXT) {
      nxc_shell_put(s, fields, &part->text, inside); /* ~ stays: no path is opened */
    } else {
      put_computed(s, fields, part, inside, divides);
    }
  }
}

static bool is_pattern(const nxc_text *field) {
  for (size_t i = 0; i < field->n_bytes; i++) {
    char c = field->bytes[i];
    bool sign = c == '*' || c == '?' || c == '[';
    if (sign && !(field->marks[i] & (NXC_MARK_QUOTED | NXC_MARK_UNKNOWN))) return true;
  }
  return false;
}

/* Which files there will be is not known: such a pattern may be no word, or several. */
static void forget_patterns(nxc_shell_fields *fields, size_t from) {
  for (size_t i = from; i < fields->n_items; i++) {
    nxc_text *field = &fields->items[i];
    if (!is_pattern(field)) continue;
    for (size_t k = 0; k < field->n_bytes; k++) field->marks[k] = NXC_MARK_UNKNOWN | NXC_MARK_MANY;
  }
}

void nxc_shell_expand(nxc_shell *s, const nxc_shell_word *word, nxc_shell_fields *fields) {
  size_t n_words = 1, n_before = fields->n_items;
  const nxc_shell_word *words = s->plain ? NULL : nxc_shell_open_braces(s, word, &n_words);
  for (size_t i = 0; i < n_words && !s->failed; i++) {
    nxc_shell_put_parts(s, fields, words ? &words[i] : word, false, true);
    nxc_shell_finish(s, fields);
  }
  if (s->state.drops_patterns) forget_patterns(fields, n_before);
}

nxc_text nxc_shell_expand_one(nxc_shell *s, const nxc_shell_word *word) {
  nxc_shell_fields fields = {0};
  nxc_shell_put_parts(s, &fields, word, false, false);
  if (fields.n_items == 0) return fields.draft;
  nxc_shell_finish(s, &fields); /* "$@" in an assignment: its words with blanks between */
  nxc_text whole = {0};
  for (size_t i = 0; i < fields.n_items; i++) {
    if (i > 0) nxc_text_put(s->arena, &whole, ' ', word->at, 0);
    nxc_text_append(s->arena, &whole, &fields.items[i]);
  }
  return whole;
}
