/* SPDX-License-Identifier: Apache-2.0 */
/* [ ... ], test and [[ ... ]]: what they compare. What asks for files is for a run to tell. */
#include "compiler/config/front/shell/shell.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

typedef struct test {
  nxc_shell *s;
  const nxc_text *words;
  size_t at, end;
  bool patterns; /* [[ ]]: the right side is a pattern */
  int depth;
} test;

static nxc_truth truth_of(bool value) {
  return value ? NXC_YES : NXC_NO;
}

static bool is(const test *t, size_t at, const char *what) {
  return at < t->end && nxc_text_is(&t->words[at], what);
}

static bool has_text(const nxc_text *word) {
  for (size_t i = 0; i < word->n_bytes; i++)
    if (!(word->marks[i] & NXC_MARK_UNKNOWN)) return true;
  return false;
}

static nxc_truth is_text(const nxc_text *word) {
  if (has_text(word)) return NXC_YES;
  return nxc_text_any(word, NXC_MARK_UNKNOWN) ? NXC_MAYBE : NXC_NO;
}

static nxc_truth compare_numbers(test *t, const nxc_text *a, const nxc_text *b, size_t which) {
  int64_t x, y;
  const char *text_a = nxc_text_string(t->s->arena, a), *text_b = nxc_text_string(t->s->arena, b);
  if (t->patterns) {
    if (!nxc_shell_sum(t->s, a, 0, &x) || !nxc_shell_sum(t->s, b, 0, &y)) return NXC_MAYBE;
    if (a->n_bytes == 0 || b->n_bytes == 0) return NXC_MAYBE;
  } else {
    char *end_a, *end_b;
    x = strtoll(text_a, &end_a, 10);
    y = strtoll(text_b, &end_b, 10);
    if (*text_a == '\0' || *text_b == '\0' || *end_a != '\0' || *end_b != '\0') return NXC_MAYBE;
  }
  const bool results[] = {x == y, x != y, x < y, x <= y, x > y, x >= y};
  return truth_of(results[which]);
}

/* =~: of a short pattern without repeats in numbers, so that it ends soon. */
static nxc_truth matches(test *t, const nxc_text *a, const nxc_text *b) {
  regex_t compiled;
  nxc_text escaped = {0};
  if (a->n_bytes > 1000 || b->n_bytes > 200 || nxc_text_any(a, NXC_MARK_UNKNOWN) ||
      nxc_text_any(b, NXC_MARK_UNKNOWN))
    return NXC_MAYBE;
  size_t n_repeats = 0; /* each doubles what it repeats */
  for (size_t i = 0; i < b->n_bytes; i++) n_repeats += b->bytes[i] == '+';
  if (n_repeats > 6) return NXC_MAYBE;
  for (size_t i = 0; i < b->n_bytes; i++) {
    bool quoted = b->marks[i] & NXC_MARK_QUOTED;
    if (!quoted && b->bytes[i] == '{') return NXC_MAYBE;
    if (quoted && isdigit((unsigned char)b->bytes[i]) && i > 0) quoted = false;
    if (quoted && ispunct((unsigned char)b->bytes[i])) nxc_text_put(t->s->arena, &escaped, '\\', 0, 0);
    nxc_text_put(t->s->arena, &escaped, b->bytes[i], 0, 0);
  }
  if (regcomp(&compiled, nxc_text_string(t->s->arena, &escaped), REG_EXTENDED | REG_NOSUB) != 0)
    return NXC_MAYBE;
  bool found = regexec(&compiled, nxc_text_string(t->s->arena, a), 0, NULL, 0) == 0;
  regfree(&compiled);
  nxc_shell_set_unknown(t->s, "BASH_REMATCH", 0);
  return truth_of(found);
}

static nxc_truth compare_texts(test *t, const nxc_text *a, const nxc_text *b) {
  if (t->patterns) return nxc_shell_fits(t->s, b, a);
  if (nxc_text_any(a, NXC_MARK_UNKNOWN) || nxc_text_any(b, NXC_MARK_UNKNOWN)) return NXC_MAYBE;
  return truth_of(a->n_bytes == b->n_bytes &&
                  (a->n_bytes == 0 || memcmp(a->bytes, b->bytes, a->n_bytes) == 0));
}

/* A OP B; false: the middle is no operator of two sides. */
static bool judge_two(test *t, const nxc_text *a, size_t middle, const nxc_text *b, nxc_truth *truth) {
  static const char *const numbers[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (!is(t, middle, numbers[i])) continue;
    *truth = compare_numbers(t, a, b, i);
    return true;
  }
  bool less = is(t, middle, "<"), more = is(t, middle, ">"), unlike = is(t, middle, "!=");
  if (is(t, middle, "=") || is(t, middle, "==")) {
    *truth = compare_texts(t, a, b);
  } else if (unlike) {
    *truth = nxc_truth_not(compare_texts(t, a, b));
  } else if (is(t, middle, "=~")) {
    *truth = matches(t, a, b);
  } else if (less || more) {
    bool known = !nxc_text_any(a, NXC_MARK_UNKNOWN) && !nxc_text_any(b, NXC_MARK_UNKNOWN);
    int order = strcmp(nxc_text_string(t->s->arena, a), nxc_text_string(t->s->arena, b));
    *truth = !known ? NXC_MAYBE : truth_of(less ? order < 0 : order > 0);
  } else {
    *truth = NXC_MAYBE;
    return is(t, middle, "-nt") || is(t, middle, "-ot") || is(t, middle, "-ef");
  }
  return true;
}

static nxc_truth is_assigned(test *t, const nxc_text *word) {
  const char *name = nxc_text_string(t->s->arena, word);
  const nxc_shell_value *value = nxc_shell_find(t->s, name);
  if (nxc_text_any(word, NXC_MARK_UNKNOWN) || strchr(name, '[') != NULL) return NXC_MAYBE;
  if (value != NULL) return truth_of(value->kind != NXC_SHELL_UNSET);
  return truth_of(getenv(name) != NULL);
}

/* -n, -z, -v and the questions about files; false: the first word is none of them. */
static bool judge_one(test *t, size_t at, nxc_truth *truth) {
  const nxc_text *what = &t->words[at], *word = &t->words[at + 1];
  if (what->n_bytes != 2 || what->bytes[0] != '-' || !isalpha((unsigned char)what->bytes[1])) return false;
  nxc_text known = nxc_shell_known_text(word);
  char kind = what->bytes[1];
  *truth = NXC_MAYBE;
  if (kind == 'n') *truth = is_text(&known);
  if (kind == 'z') *truth = nxc_truth_not(is_text(&known));
  if (kind == 'v') *truth = is_assigned(t, word);
  if (strchr("aefr", kind) && nxc_shell_find_file(t->s, word) != NULL) *truth = NXC_YES;
  return strchr("abcdefghkLnNoOprRsStuvwxzG", kind) != NULL;
}

static nxc_truth judge_or(test *t);

static nxc_truth judge_primary(test *t) {
  nxc_truth truth = NXC_MAYBE;
  if (++t->depth > 64) t->at = t->end;
  size_t left = t->end - t->at;
  nxc_text a = left > 0 ? nxc_shell_known_text(&t->words[t->at]) : (nxc_text){0};
  nxc_text b = left > 2 ? nxc_shell_known_text(&t->words[t->at + 2]) : (nxc_text){0};
  if (left == 0) {
    truth = NXC_NO;
  } else if (left >= 3 && judge_two(t, &a, t->at + 1, &b, &truth)) {
    t->at += 3;
  } else if (is(t, t->at, "!") && left > 1) {
    t->at++;
    truth = nxc_truth_not(judge_primary(t));
  } else if (is(t, t->at, "(") && left > 1) {
    t->at++;
    truth = judge_or(t);
    t->at += is(t, t->at, ")");
  } else if (left >= 2 && judge_one(t, t->at, &truth)) {
    t->at += 2;
  } else {
    truth = is_text(&a);
    t->at++;
  }
  t->depth--;
  return truth;
}

static nxc_truth judge_and(test *t) {
  nxc_truth truth = judge_primary(t);
  while (is(t, t->at, t->patterns ? "&&" : "-a")) {
    t->at++;
    truth = nxc_truth_and(truth, judge_primary(t));
  }
  return truth;
}

static nxc_truth judge_or(test *t) {
  nxc_truth truth = judge_and(t);
  while (is(t, t->at, t->patterns ? "||" : "-o")) {
    t->at++;
    truth = nxc_truth_or(truth, judge_and(t));
  }
  return truth;
}

nxc_truth nxc_shell_test(nxc_shell *s, const nxc_text *words, size_t n_words, bool patterns) {
  test t = {.s = s, .words = words, .end = n_words, .patterns = patterns};
  nxc_truth truth = judge_or(&t);
  return t.at < t.end ? NXC_MAYBE : truth;
}
