/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/words_shell.h"

#include <ctype.h>
#include <stdlib.h>
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

static nxc_truth truth_of(bool value) {
  return value ? NXC_YES : NXC_NO;
}

static bool is_word(const nxc_words *words, size_t i, const char *text) {
  return i < words->n_items && strcmp(words->items[i].text, text) == 0;
}

const char *nxc_shell_tested(const nxc_word *word) {
  if (word->unset == NULL) return word->text;
  const char *name = word->unset + strspn(word->unset, "${");
  bool variable = *word->unset == '$' && (isalpha((unsigned char)*name) || *name == '_');
  return variable && strcmp(word->text, word->unset) == 0 ? "" : NULL;
}

/* -eq and its like, on integers. */
static nxc_truth compare_numbers(const char *a, const char *b, const char *how) {
  static const char *const names[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
  char *end_a, *end_b;
  long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
  size_t i = 0;
  while (i < 6 && strcmp(names[i], how) != 0) i++;
  if (i == 6 || *a == '\0' || *b == '\0' || *end_a != '\0' || *end_b != '\0') return NXC_MAYBE;
  const bool results[] = {x == y, x != y, x < y, x <= y, x > y, x >= y};
  return truth_of(results[i]);
}

/* A OP B, or -n A, without what stands around it. */
static nxc_truth judge_plain(const nxc_words *words, size_t from, size_t end) {
  if (end - from == 1) {
    const char *value = nxc_shell_tested(&words->items[from]);
    return value ? truth_of(*value != '\0') : NXC_MAYBE;
  }
  if (end - from == 2) {
    const char *value = nxc_shell_tested(&words->items[from + 1]);
    if (value != NULL && is_word(words, from, "-n")) return truth_of(*value != '\0');
    if (value != NULL && is_word(words, from, "-z")) return truth_of(*value == '\0');
  }
  if (end - from != 3) return NXC_MAYBE;
  const char *a = nxc_shell_tested(&words->items[from]), *b = nxc_shell_tested(&words->items[from + 2]);
  const char *how = words->items[from + 1].text;
  if (a == NULL || b == NULL) return NXC_MAYBE;
  bool pattern = strpbrk(b, "*?[") != NULL;
  if (!pattern && (strcmp(how, "=") == 0 || strcmp(how, "==") == 0)) return truth_of(strcmp(a, b) == 0);
  if (!pattern && strcmp(how, "!=") == 0) return truth_of(strcmp(a, b) != 0);
  return compare_numbers(a, b, how);
}

static nxc_truth judge_range(const nxc_words *words, size_t from, size_t end);

/* The last `joint` (|| or -o) divides first, so that it binds least. */
static bool divide(const nxc_words *words, size_t from, size_t end, const char *joint, const char *old,
                   size_t *at) {
  for (size_t i = end - 1; i > from; i--) {
    if (i + 1 == end || (!is_word(words, i, joint) && !is_word(words, i, old))) continue;
    *at = i;
    return true;
  }
  return false;
}

static nxc_truth judge_range(const nxc_words *words, size_t from, size_t end) {
  size_t at;
  if (from >= end) return NXC_NO;
  for (size_t i = from; i < end; i++)
    if (is_word(words, i, "(") || is_word(words, i, ")")) return NXC_MAYBE;
  if (divide(words, from, end, "||", "-o", &at))
    return nxc_truth_or(judge_range(words, from, at), judge_range(words, at + 1, end));
  if (divide(words, from, end, "&&", "-a", &at))
    return nxc_truth_and(judge_range(words, from, at), judge_range(words, at + 1, end));
  if (is_word(words, from, "!")) return nxc_truth_not(judge_range(words, from + 1, end));
  return judge_plain(words, from, end);
}

nxc_truth nxc_shell_judge(const nxc_words *words) {
  size_t from = 0, end = words->n_items;
  bool negated = is_word(words, 0, "!");
  from += negated;
  nxc_truth found = NXC_MAYBE;
  bool brackets = is_word(words, from, "[") || is_word(words, from, "[[");
  if (brackets && (is_word(words, end - 1, "]") || is_word(words, end - 1, "]]"))) end--;
  if (brackets || is_word(words, from, "test")) found = judge_range(words, from + 1, end);
  if (is_word(words, from, "true") || is_word(words, from, ":")) found = NXC_YES;
  if (is_word(words, from, "false")) found = NXC_NO;
  return negated ? nxc_truth_not(found) : found;
}
