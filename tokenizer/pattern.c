/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/pattern.h"

#include "schema/plan_check.h"
#include "tokenizer/memory.h"
#include "tokenizer/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nxt_pattern {
  pcre2_code *code;
};

/* What classes are where PCRE2's own are not the same: \s without U+180E, \w with marks. Oniguruma's \w has
 * the superscripts and fractions of Latin-1 too, but not within brackets. */
static const char blanks[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
static const char words[] =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}"
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";
static const char more_words[] = "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
static const char joiners[] = "\\x{200c}\\x{200d}"; /* words of Rust's */
static const char hexadecimal[] = "0-9A-Fa-f";

/* A pattern on its way from one flavour to the other. */
typedef struct rewrite {
  const char *at;
  nxt_flavour flavour;
  nxt_text out;
  unsigned depth;  /* classes around a class */
  const char *why; /* what cannot be rewritten */
} rewrite;

static void put(rewrite *r, const char *text) {
  nxt_text_add(&r->out, text, strlen(text));
}

static void put_class(rewrite *r, const char *members, bool negated, bool bracketed) {
  if (bracketed && negated) r->why = "a negated class within brackets";
  if (!bracketed) put(r, negated ? "[^" : "[");
  put(r, members);
  if (!bracketed) put(r, "]");
}

/* Categories, and their classes: what is younger than PCRE2's Unicode is written beside them. Digits are the
 * numbers that make words. */
static const struct {
  const char *name;
  uint16_t class, too;
} categories[] = {{"L", NXT_LETTER, 0}, {"Lu", NXT_UPPER, 0}, {"Ll", NXT_LOWER, 0},
                  {"M", NXT_MARK, 0}, {"N", NXT_NUMBER, 0}, {"Nd", NXT_NUMBER, NXT_WORD},
                  {"P", NXT_PUNCTUATION, 0}, {"S", NXT_SYMBOL, 0}};

static void put_younger(rewrite *r, const char *name, size_t n_name) {
  for (size_t k = 0; k < sizeof categories / sizeof *categories; k++) {
    if (strlen(categories[k].name) != n_name || strncmp(categories[k].name, name, n_name) != 0) continue;
    for (size_t i = 0; i < nxt_n_ages; i++) {
      char range[32];
      if ((nxt_ages[i].sets & categories[k].class) == 0) continue;
      if ((nxt_classes[nxt_ages[i].first] & categories[k].too) != categories[k].too) continue;
      snprintf(range, sizeof range, "\\x{%x}-\\x{%x}", nxt_ages[i].first, nxt_ages[i].last);
      put(r, range);
    }
  }
}

static void put_words(rewrite *r, bool negated, bool bracketed) {
  if (bracketed && negated) r->why = "a negated class within brackets";
  if (!bracketed) put(r, negated ? "[^" : "[");
  put(r, words);
  put(r, r->flavour == NXT_RUST ? joiners : bracketed ? "" : more_words);
  put_younger(r, "L", 1);
  put_younger(r, "M", 1);
  put_younger(r, "Nd", 2);
  if (!bracketed) put(r, "]");
}

static void put_digits(rewrite *r, bool negated, bool bracketed) {
  if (!bracketed) put(r, negated ? "[^" : "[");
  put(r, bracketed && negated ? "\\P{Nd}" : "\\p{Nd}");
  if (!bracketed || !negated) put_younger(r, "Nd", 2);
  if (!bracketed) put(r, "]");
}

/* \p{Name}: names longer than two letters are scripts, which PCRE2 would take with what others use of them.
 */
static void take_property(rewrite *r, bool bracketed) {
  const char *end = strchr(r->at, '}');
  if (r->at[2] != '{' || end == NULL) {
    r->why = "a \\p without braces";
    return;
  }
  const char *name = r->at + 3;
  bool negated = (*name == '^') != (r->at[1] == 'P');
  name += *name == '^';
  size_t n_name = (size_t)(end - name);
  if (!bracketed) put(r, negated ? "[^" : "[");
  put(r, bracketed && negated ? "\\P{" : "\\p{");
  if (n_name > 2 && strncmp(name, "Any", 3) != 0) put(r, "sc:");
  nxt_text_add(&r->out, name, n_name + 1);
  if (!bracketed || !negated) put_younger(r, name, n_name);
  if (!bracketed) put(r, "]");
  r->at = end + 1;
}

static void take_escape(rewrite *r, bool bracketed) {
  char what = r->at[1];
  if (what == 'p' || what == 'P') {
    take_property(r, bracketed);
    return;
  }
  if (what == 's' || (what == 'S' && !bracketed))
    put_class(r, blanks, what == 'S', bracketed);
  else if (what == 'w' || what == 'W')
    put_words(r, what == 'W', bracketed);
  else if (what == 'd' || what == 'D')
    put_digits(r, what == 'D', bracketed);
  else if ((what == 'h' || what == 'H') && r->flavour == NXT_ONIGURUMA)
    put_class(r, hexadecimal, what == 'H', bracketed);
  else
    nxt_text_add(&r->out, r->at, what == '\0' ? 1 : 2);
  r->at += what == '\0' ? 1 : 2;
}

static void take_members(rewrite *r);

/* A class within a class: its members are the outer one's. Not one that says what it is not, nor where a
 * range would become of them. */
static void take_nested(rewrite *r) {
  enum { MOST_DEPTH = 8 };
  char first = r->at[1], before = r->out.n > 0 ? r->out.items[r->out.n - 1] : '\0';
  r->at++;
  bool plain = first != '^' && first != ']' && first != '-' && before != '-' && r->depth < MOST_DEPTH;
  r->depth++;
  if (plain) take_members(r);
  r->depth--;
  if (r->why == NULL && (!plain || *r->at != ']' || r->at[-1] == '-')) r->why = "a class within a class";
  r->at += *r->at != '\0';
}

/* The members of a class, up to what ends it: ']', or "&&" (of which the caller knows what to do). */
static void take_members(rewrite *r) {
  bool first = true;
  for (; *r->at != '\0' && r->why == NULL; first = false) {
    if (*r->at == ']' && !first) return;
    if (r->at[0] == '&' && r->at[1] == '&') return;
    if (r->at[0] == '[' && r->at[1] == ':') {
      const char *end = strstr(r->at, ":]");
      size_t n = end != NULL ? (size_t)(end + 2 - r->at) : 1;
      nxt_text_add(&r->out, r->at, n);
      r->at += n;
    } else if (*r->at == '[') {
      take_nested(r);
    } else if (*r->at == '\\') {
      take_escape(r, true);
    } else {
      nxt_text_add(&r->out, r->at++, 1);
    }
  }
}

/* [A], or [A&&[^B]] as (?:(?![B])[A]). */
static void take_class(rewrite *r) {
  nxt_text before = r->out;
  r->out = (nxt_text){0};
  nxt_text_add(&r->out, "[", 1);
  r->at++;
  if (*r->at == '^') nxt_text_add(&r->out, r->at++, 1);
  take_members(r);
  nxt_text class = r->out;
  nxt_text_add(&class, "]", 1);
  r->out = before;
  bool cut = strncmp(r->at, "&&[^", 4) == 0;
  if (cut) {
    r->at += 4;
    put(r, "(?:(?![");
    take_members(r);
    put(r, "])");
    r->at += *r->at != '\0';
  }
  nxt_text_add(&r->out, class.items, class.n);
  free(class.items);
  if (cut) put(r, ")");
  if (r->why == NULL && *r->at != ']')
    r->why = *r->at ? "an intersection of classes" : "a class without an end";
  r->at += *r->at != '\0';
}

static void take_group(rewrite *r) {
  if (r->flavour == NXT_ONIGURUMA && r->at[1] == '?') {
    const char *flags = r->at + 2;
    size_t n = strspn(flags, "imx-");
    if (flags[n] == ':' || flags[n] == ')')
      if (memchr(flags, 'm', n) != NULL) r->why = "the option m";
  }
  nxt_text_add(&r->out, r->at++, 1);
}

/* {1,3}+ : possessive to PCRE2 and Rust, two repetitions to Oniguruma. */
static void take_repetition(rewrite *r) {
  size_t n = strspn(r->at + 1, "0123456789,");
  if (r->flavour == NXT_ONIGURUMA && n > 0 && r->at[n + 1] == '}' && r->at[n + 2] == '+') r->why = "{...}+";
  nxt_text_add(&r->out, r->at++, 1);
}

static bool take_all(rewrite *r) {
  while (*r->at != '\0' && r->why == NULL) {
    if (*r->at == '\\')
      take_escape(r, false);
    else if (*r->at == '[')
      take_class(r);
    else if (*r->at == '(')
      take_group(r);
    else if (*r->at == '{')
      take_repetition(r);
    else
      nxt_text_add(&r->out, r->at++, 1);
  }
  return r->why == NULL;
}

static pcre2_code *compile(const nxt_text *text, nxt_flavour flavour, const char *original, nx_fault *fault) {
  uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C |
                     (flavour == NXT_ONIGURUMA ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY);
  int error;
  PCRE2_SIZE offset;
  pcre2_compile_context *context = pcre2_compile_context_create(NULL);
  if (context != NULL) pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_code *code = pcre2_compile((PCRE2_SPTR)text->items, text->n, options, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (code == NULL) {
    PCRE2_UCHAR message[128] = "";
    pcre2_get_error_message(error, message, sizeof message);
    nx_fault_set(fault, 0, "the pattern \"%.200s\" is not covered: %s", original, (const char *)message);
    return NULL;
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return code;
}

nxt_pattern *nxt_pattern_open(const char *text, nxt_flavour flavour, nx_fault *fault) {
  rewrite r = {.at = text, .flavour = flavour};
  pcre2_code *code = NULL;
  if (take_all(&r))
    code = compile(&r.out, flavour, text, fault);
  else
    nx_fault_set(fault, 0, "the pattern \"%.200s\" is not covered: %s", text, r.why);
  free(r.out.items);
  if (code == NULL) return NULL;
  nxt_pattern *pattern = nxt_new(1, sizeof *pattern);
  pattern->code = code;
  return pattern;
}

void nxt_pattern_close(nxt_pattern *pattern) {
  if (pattern == NULL) return;
  pcre2_code_free(pattern->code);
  free(pattern);
}

struct nxt_matcher {
  pcre2_match_data *data;
  pcre2_match_context *context;
  pcre2_jit_stack *stack;
};

enum { STACK_FIRST = 32 << 10, STACK_MOST = 4 << 20 };

nxt_matcher *nxt_matcher_open(void) {
  nxt_matcher *matcher = nxt_new(1, sizeof *matcher);
  matcher->data = pcre2_match_data_create(1, NULL);
  matcher->context = pcre2_match_context_create(NULL);
  matcher->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, NULL);
  if (matcher->context != NULL) pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
  return matcher;
}

void nxt_matcher_close(nxt_matcher *matcher) {
  pcre2_match_data_free(matcher->data);
  pcre2_jit_stack_free(matcher->stack);
  pcre2_match_context_free(matcher->context);
  free(matcher);
}

/* Longer words than the compiled code has room for are left to the interpreter. */
static int match_at(const nxt_pattern *pattern, nxt_matcher *matcher, const char *text, size_t n_bytes,
                    size_t from) {
  PCRE2_SPTR subject = (PCRE2_SPTR)text;
  int found =
      pcre2_match(pattern->code, subject, n_bytes, from, PCRE2_NO_UTF_CHECK, matcher->data, matcher->context);
  if (found != PCRE2_ERROR_JIT_STACKLIMIT) return found;
  return pcre2_match(pattern->code, subject, n_bytes, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, matcher->data,
                     matcher->context);
}

int nxt_pattern_find(const nxt_pattern *pattern, nxt_matcher *matcher, const char *text, size_t n_bytes,
                     size_t from, size_t last_end, size_t match[2], nx_fault *fault) {
  while (from <= n_bytes) {
    int found = match_at(pattern, matcher, text, n_bytes, from);
    if (found == PCRE2_ERROR_NOMATCH) return 0;
    if (found < 0) {
      nx_fault_set(fault, 0, "a pattern of the tokenizer takes too long at byte %zu of a text", from);
      return -1;
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(matcher->data);
    if (at[0] < at[1] || at[0] != last_end) {
      match[0] = at[0];
      match[1] = at[1];
      return 1;
    }
    from += from < n_bytes ? nxt_char_bytes(text[from]) : 1;
  }
  return 0;
}
