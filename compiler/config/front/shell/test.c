/* SPDX-License-Identifier: Apache-2.0 */
/* [ ... ], test and [[ ... ]]: what they compare. What asks for files is for a run to tell. */
#include "compiler/document/names.h"
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
  bool failed;   /* bash says that it is no test, which holds as little as its contrary */
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

static nxc_truth fail(test *t) {
  t->failed = true;
  return NXC_NO;
}

static nxc_truth compare_numbers(test *t, const nxc_text *a, const nxc_text *b, size_t which) {
  int64_t x, y;
  const char *text_a = nxc_text_string(t->s->arena, a), *text_b = nxc_text_string(t->s->arena, b);
  if (t->patterns) {
    if (!nxc_shell_sum(t->s, a, 0, &x) || !nxc_shell_sum(t->s, b, 0, &y)) return NXC_MAYBE;
    if (a->n_bytes == 0 || b->n_bytes == 0) return NXC_MAYBE;
  } else {
    if (nxc_text_any(a, NXC_MARK_UNKNOWN) || nxc_text_any(b, NXC_MARK_UNKNOWN)) return NXC_MAYBE;
    char *end_a, *end_b;
    x = strtoll(text_a, &end_a, 10);
    y = strtoll(text_b, &end_b, 10);
    bool numbers = end_a > text_a && end_b > text_b && end_a[strspn(end_a, " \t")] == '\0' &&
                   end_b[strspn(end_b, " \t")] == '\0';
    if (!numbers) return fail(t);
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

static bool is_question(const nxc_text *word) {
  return word->n_bytes == 2 && word->bytes[0] == '-' && strchr("abcdefghkLnNoOprRsStuvwxzG", word->bytes[1]);
}

/* No quotes around what may be empty: then `what` stands alone in the test, and a word alone is true. */
static void report_always(const test *t, const nxc_text *what) {
  if (what->n_bytes == 0) return;
  nxc_span at = nxc_shell_place(t->s, what->origins[0], what->n_bytes);
  const char *key = nxc_arena_printf(t->s->arena, "always %zu", (size_t)what->origins[0]);
  void **noted = nxc_names_slot(t->s->noted, key, strlen(key));
  if (*noted == NULL)
    nxc_report(t->s->sink, "NX5925", NXC_SEVERITY_WARNING, at, "put what stands behind it in double quotes",
               "where what stands behind %s is empty, this test is true: without quotes the word %s is "
               "alone, and not empty",
               nxc_text_string(t->s->arena, what), nxc_text_string(t->s->arena, what));
  *noted = t->s;
}

/* -n, -z, -v and the questions about files; false: the first word is none of them. */
static bool judge_one(test *t, size_t at, nxc_truth *truth) {
  const nxc_text *what = &t->words[at], *word = &t->words[at + 1];
  if (!is_question(what)) return false;
  nxc_text known = nxc_shell_known_text(t->s, word);
  char kind = what->bytes[1];
  bool open = !t->patterns && nxc_text_all(word, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
  if (open && kind == 'n') report_always(t, what);
  *truth = NXC_MAYBE;
  if (kind == 'n') *truth = open ? NXC_YES : is_text(&known);
  if (kind == 'z') *truth = nxc_truth_not(is_text(&known));
  if (kind == 'v') *truth = is_assigned(t, word);
  if (strchr("aefr", kind) && nxc_shell_find_file(t->s, word) != NULL) *truth = NXC_YES;
  return true;
}

static nxc_truth judge_or(test *t);

static nxc_truth judge_primary(test *t) {
  nxc_truth truth = NXC_MAYBE;
  if (++t->depth > 64) t->at = t->end;
  size_t left = t->end - t->at;
  nxc_text a = left > 0 ? nxc_shell_known_text(t->s, &t->words[t->at]) : (nxc_text){0};
  nxc_text b = left > 2 ? nxc_shell_known_text(t->s, &t->words[t->at + 2]) : (nxc_text){0};
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

/* Between [ and ] the number of words decides what they mean. */
static nxc_truth judge_words(test *t) {
  size_t n = t->end - t->at;
  nxc_truth truth = NXC_NO;
  if (n == 0) return NXC_NO;
  const nxc_text *words = &t->words[t->at];
  nxc_text first = nxc_shell_known_text(t->s, &words[0]);
  if (n == 1) {
    if (is_question(&first) && first.bytes[1] != 'z') report_always(t, &first);
    return is_text(&first);
  }
  nxc_text last = nxc_shell_known_text(t->s, &words[n - 1]);
  if (n == 2 && judge_one(t, t->at, &truth)) return truth;
  if (n == 3 && judge_two(t, &first, t->at + 1, &last, &truth)) return truth;
  if (n == 3 && nxc_text_is(&words[1], "-a")) return nxc_truth_and(is_text(&first), is_text(&last));
  if (n == 3 && nxc_text_is(&words[1], "-o")) return nxc_truth_or(is_text(&first), is_text(&last));
  if (n <= 4 && nxc_text_is(&words[0], "!")) {
    t->at++;
    return nxc_truth_not(judge_words(t));
  }
  if (n == 3 && nxc_text_is(&words[0], "(") && nxc_text_is(&words[2], ")")) {
    nxc_text inside = nxc_shell_known_text(t->s, &words[1]);
    return is_text(&inside);
  }
  if (n <= 3) return fail(t);
  truth = judge_or(t);
  return t->at < t->end ? fail(t) : truth;
}

/* Words without those that nothing gives a value, and that no quotes keep. */
static nxc_text *words_that_stay(nxc_arena *arena, const nxc_text *words, size_t *n_words) {
  nxc_text *kept = nxc_arena_array(arena, *n_words + 1, sizeof *kept);
  size_t n = 0;
  for (size_t i = 0; i < *n_words; i++)
    if (!nxc_text_all(&words[i], NXC_MARK_UNDEFINED | NXC_MARK_MANY)) kept[n++] = words[i];
  *n_words = n;
  return kept;
}

nxc_truth nxc_shell_test(nxc_shell *s, const nxc_text *words, size_t n_words, bool patterns) {
  test t = {.s = s, .patterns = patterns};
  t.words = patterns ? words : words_that_stay(s->arena, words, &n_words);
  t.end = n_words;
  if (patterns) {
    nxc_truth truth = judge_or(&t);
    return t.at < t.end ? NXC_MAYBE : truth;
  }
  nxc_truth truth = judge_words(&t);
  for (size_t i = 0; i < n_words && t.failed; i++)
    if (nxc_text_any(&t.words[i], NXC_MARK_UNKNOWN))
      return NXC_MAYBE; /* it may be as many words as it needs */
  return t.failed ? NXC_NO : truth;
}
