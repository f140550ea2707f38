/* SPDX-License-Identifier: Apache-2.0 */
/* {a,b} and {1..3}, which become words of their own before anything else is filled in. */
#include "compiler/config/front/shell/shell.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 4096 };

/* A place between two bytes of a word's literal text. */
typedef struct place {
  size_t part, byte;
} place;

static char byte_at(const nxc_shell_word *word, place at) {
  const nxc_shell_part *part = &word->parts[at.part];
  if (part->kind != NXC_PART_TEXT || part->quoted || at.byte >= part->text.n_bytes) return '\0';
  return part->text.marks[at.byte] & NXC_MARK_UNKNOWN ? '\0' : part->text.bytes[at.byte];
}

static bool step(const nxc_shell_word *word, place *at) {
  const nxc_shell_part *part = &word->parts[at->part];
  at->byte++;
  if (part->kind != NXC_PART_TEXT || part->quoted || at->byte >= part->text.n_bytes) at->part++, at->byte = 0;
  return at->part < word->n_parts;
}

static void append(nxc_shell *s, nxc_shell_word *to, const nxc_shell_word *word, place from, place end) {
  for (size_t i = from.part; i < word->n_parts && i <= end.part; i++) {
    nxc_shell_part part = word->parts[i];
    size_t first = i == from.part ? from.byte : 0, last = i == end.part ? end.byte : part.text.n_bytes;
    bool plain = part.kind == NXC_PART_TEXT && !part.quoted;
    if (i == end.part && end.byte == 0) break;
    if (plain) part.text = nxc_text_part(&part.text, first, last - first);
    if (plain && part.text.n_bytes == 0) continue;
    to->parts = nxc_arena_grow(s->arena, to->parts, to->n_parts, sizeof *to->parts);
    to->parts[to->n_parts++] = part;
  }
}

typedef struct braces {
  place open, close;
  place *commas; /* of the outermost level */
  size_t n_commas;
} braces;

/* The first { that a } closes with a comma or .. between. */
static bool find(nxc_shell *s, const nxc_shell_word *word, place from, braces *found) {
  place at = from;
  do {
    if (byte_at(word, at) != '{') continue;
    *found = (braces){.open = at};
    unsigned depth = 1;
    bool dots = false;
    for (place look = at; step(word, &look) && depth > 0;) {
      char c = byte_at(word, look);
      place next = look;
      depth += c == '{';
      depth -= c == '}';
      dots = dots || (c == '.' && depth == 1 && step(word, &next) && byte_at(word, next) == '.');
      if (c == ',' && depth == 1) {
        found->commas = nxc_arena_grow(s->arena, found->commas, found->n_commas, sizeof *found->commas);
        found->commas[found->n_commas++] = look;
      }
      found->close = look;
      if (depth == 0) break;
    }
    if (depth == 0 && (found->n_commas > 0 || dots)) return true;
    if (!nxc_shell_spend(s, word->n_parts, word->at)) return false;
  } while (step(word, &at));
  return false;
}

static void put_literal(nxc_shell *s, nxc_shell_word *word, const char *text, size_t at) {
  word->parts = nxc_arena_grow(s->arena, word->parts, word->n_parts, sizeof *word->parts);
  word->parts[word->n_parts++] =
      (nxc_shell_part){.kind = NXC_PART_TEXT, .text = nxc_text_from(s->arena, text, strlen(text), at, 0)};
}

/* FROM..TO[..BY] of integers or letters; the words, NULL: it is none. */
static nxc_shell_word *sequence(nxc_shell *s, const nxc_shell_word *inside, size_t *n_words) {
  if (inside->n_parts != 1 || inside->parts[0].kind != NXC_PART_TEXT) return NULL;
  const char *text = nxc_text_string(s->arena, &inside->parts[0].text);
  char *end;
  long long from, to, by = 1;
  const char *dots = strstr(text, "..");
  bool letters = dots == text + 1 && text[0] > '9' && text[3] > '9' && text[4] == '\0';
  int width = 0;
  if (letters) {
    from = text[0], to = text[3];
  } else {
    from = strtoll(text, &end, 10);
    if (end == text || strncmp(end, "..", 2) != 0) return NULL;
    const char *second = end + 2;
    if (text[0] == '0' && end - text > 1) width = (int)(end - text);
    to = strtoll(second, &end, 10);
    if (end == second) return NULL;
    if (second[0] == '0' && end - second > width && end - second > 1) width = (int)(end - second);
    if (strncmp(end, "..", 2) == 0) by = llabs(strtoll(end + 2, &end, 10));
    if (*end != '\0' || width > 20) return NULL;
  }
  if (by == 0) by = 1;
  if (llabs(from) > 1000000000 || llabs(to) > 1000000000 || by > 1000000000 ||
      llabs(to - from) / by >= WORDS_MAX)
    return NULL;
  nxc_shell_word *words = NULL;
  for (long long i = from; from <= to ? i <= to : i >= to; i += from <= to ? by : -by) {
    nxc_shell_word word = {.at = inside->at};
    const char *shown =
        letters ? nxc_arena_printf(s->arena, "%c", (char)i) : nxc_arena_printf(s->arena, "%0*lld", width, i);
    put_literal(s, &word, shown, inside->at);
    words = nxc_arena_grow(s->arena, words, *n_words, sizeof *words);
    words[(*n_words)++] = word;
  }
  return words;
}

static nxc_shell_word *alternatives(nxc_shell *s, const nxc_shell_word *word, const braces *found,
                                    size_t *n_words) {
  nxc_shell_word *words = NULL, whole = {.at = word->at};
  place from = found->open;
  step(word, &from);
  *n_words = 0;
  if (found->n_commas == 0) {
    append(s, &whole, word, from, found->close);
    return sequence(s, &whole, n_words);
  }
  for (size_t i = 0; i <= found->n_commas; i++) {
    place end = i < found->n_commas ? found->commas[i] : found->close;
    nxc_shell_word one = {.at = word->at};
    append(s, &one, word, from, end);
    words = nxc_arena_grow(s->arena, words, *n_words, sizeof *words);
    words[(*n_words)++] = one;
    from = end;
    step(word, &from);
  }
  return words;
}

nxc_shell_word *nxc_shell_open_braces(nxc_shell *s, const nxc_shell_word *word, size_t *n_words) {
  braces found;
  place begin = {0, 0};
  bool any = false;
  for (size_t i = 0; i < word->n_parts; i++) {
    const nxc_shell_part *part = &word->parts[i];
    any = any || (part->kind == NXC_PART_TEXT && !part->quoted && part->text.n_bytes > 0 &&
                  memchr(part->text.bytes, '{', part->text.n_bytes));
  }
  if (!any || !find(s, word, begin, &found) || !nxc_shell_enter(s, word->at)) return NULL;
  size_t n_inside;
  nxc_shell_word *inside = alternatives(s, word, &found, &n_inside), *words = NULL;
  place behind = found.close, end = {word->n_parts, 0};
  bool more = step(word, &behind);
  *n_words = 0;
  for (size_t i = 0; inside != NULL && i < n_inside && !s->failed; i++) {
    nxc_shell_word whole = {.at = word->at};
    append(s, &whole, word, begin, found.open);
    append(s, &whole, &inside[i], begin, (place){inside[i].n_parts, 0});
    if (more) append(s, &whole, word, behind, end);
    size_t n_deeper = 1;
    const nxc_shell_word *deeper = nxc_shell_open_braces(s, &whole, &n_deeper);
    for (size_t k = 0; k < n_deeper; k++) {
      if (!nxc_shell_spend(s, 16, word->at)) break;
      words = nxc_arena_grow(s->arena, words, *n_words, sizeof *words);
      words[(*n_words)++] = deeper ? deeper[k] : whole;
    }
  }
  s->depth--;
  if (words == NULL) *n_words = 1;
  return words;
}
