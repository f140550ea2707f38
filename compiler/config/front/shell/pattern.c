/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of a shell: *, ? and [...]; quoted bytes stand for themselves. */
#include "compiler/config/front/shell/shell.h"

#include <string.h>

enum { TEXT_MAX = 65536 };

/* Behind the ] that closes the [ at `at`; 0: none does. */
static size_t class_end(const nxc_text *pattern, size_t at) {
  size_t i = at + 1;
  if (i < pattern->n_bytes && (pattern->bytes[i] == '!' || pattern->bytes[i] == '^')) i++;
  for (size_t first = i; i < pattern->n_bytes; i++) {
    if (pattern->bytes[i] == '[' && i + 1 < pattern->n_bytes && pattern->bytes[i + 1] == ':') {
      while (i + 1 < pattern->n_bytes && !(pattern->bytes[i] == ':' && pattern->bytes[i + 1] == ']')) i++;
      i++;
      continue;
    }
    if (pattern->bytes[i] == ']' && i > first) return i + 1;
  }
  return 0;
}

static bool in_named_class(const char *name, size_t n_name, char c) {
  bool digit = c >= '0' && c <= '9', lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
  const struct {
    const char *name;
    bool fits;
  } classes[] = {{"digit", digit},
                 {"lower", lower},
                 {"upper", upper},
                 {"alpha", lower || upper},
                 {"alnum", digit || lower || upper},
                 {"space", c != '\0' && strchr(" \t\n\r\v\f", c) != NULL}};
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
    if (strlen(classes[i].name) == n_name && strncmp(classes[i].name, name, n_name) == 0)
      return classes[i].fits;
  return false;
}

static bool in_class(const nxc_text *pattern, size_t at, size_t end, char c) {
  size_t i = at + 1;
  bool negated = pattern->bytes[i] == '!' || pattern->bytes[i] == '^', fits = false;
  for (i += negated; i + 1 < end; i++) {
    const char *p = pattern->bytes + i;
    if (p[0] == '[' && p[1] == ':') {
      const char *close = memchr(p + 2, ':', end - i - 2);
      if (close != NULL) {
        fits = fits || in_named_class(p + 2, (size_t)(close - p - 2), c);
        i = (size_t)(close - pattern->bytes) + 1;
        continue;
      }
    }
    if (i + 3 < end && p[1] == '-') {
      fits = fits || (c >= p[0] && c <= p[2]);
      i += 2;
    } else {
      fits = fits || c == p[0];
    }
  }
  return fits != negated;
}

/* One sign of the pattern against one byte; *n_sign receives the length of the sign. */
static bool fits_byte(const nxc_text *pattern, size_t at, char c, size_t *n_sign) {
  bool quoted = pattern->marks[at] & NXC_MARK_QUOTED;
  char sign = pattern->bytes[at];
  *n_sign = 1;
  if (!quoted && sign == '?') return true;
  size_t end = !quoted && sign == '[' ? class_end(pattern, at) : 0;
  if (end == 0) return sign == c;
  *n_sign = end - at;
  return in_class(pattern, at, end, c);
}

/* The last * is the only one that need be tried again. */
static bool fits(nxc_shell *s, const nxc_text *pattern, const char *text, size_t n_bytes) {
  size_t p = 0, t = 0, star = SIZE_MAX, tried = 0, n_sign;
  while (t < n_bytes) {
    s->n_steps++;
    if (p < pattern->n_bytes && pattern->bytes[p] == '*' && !(pattern->marks[p] & NXC_MARK_QUOTED)) {
      star = p++;
      tried = t;
    } else if (p < pattern->n_bytes && fits_byte(pattern, p, text[t], &n_sign)) {
      p += n_sign;
      t++;
    } else if (star != SIZE_MAX) {
      p = star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern->n_bytes && pattern->bytes[p] == '*' && !(pattern->marks[p] & NXC_MARK_QUOTED)) p++;
  return p == pattern->n_bytes;
}

/* +(...) and its like are followed by nothing here. */
static bool is_extended(const nxc_text *pattern) {
  for (size_t i = 0; i + 1 < pattern->n_bytes; i++)
    if (strchr("?*+@!", pattern->bytes[i]) && pattern->bytes[i] != '\0' && pattern->bytes[i + 1] == '(' &&
        !(pattern->marks[i] & NXC_MARK_QUOTED))
      return true;
  return false;
}

static bool can_tell(nxc_shell *s, const nxc_text *pattern, const nxc_text *text) {
  enum { STEPS_MAX = 50 * 1000 * 1000 };
  return !nxc_text_any(pattern, NXC_MARK_UNKNOWN) && !nxc_text_any(text, NXC_MARK_UNKNOWN) &&
         !is_extended(pattern) && text->n_bytes < TEXT_MAX && s->n_steps < STEPS_MAX;
}

nxc_truth nxc_shell_fits(nxc_shell *s, const nxc_text *pattern, const nxc_text *text) {
  bool any = pattern->n_bytes == 1 && *pattern->bytes == '*' && !(*pattern->marks & NXC_MARK_QUOTED);
  if (any) return NXC_YES;
  if (!can_tell(s, pattern, text)) return NXC_MAYBE;
  return fits(s, pattern, text->bytes, text->n_bytes) ? NXC_YES : NXC_NO;
}

bool nxc_shell_cut(nxc_shell *s, nxc_text *text, const nxc_text *pattern, char op, bool longest) {
  if (!can_tell(s, pattern, text)) return false;
  size_t n = text->n_bytes;
  for (size_t i = 0; i <= n; i++) {
    size_t n_cut = longest ? n - i : i;
    const char *from = op == '#' ? text->bytes : text->bytes + (n - n_cut);
    if (!fits(s, pattern, from, n_cut)) continue;
    *text = op == '#' ? nxc_text_part(text, n_cut, n - n_cut) : nxc_text_part(text, 0, n - n_cut);
    break;
  }
  return true;
}

/* The longest part at `at` that fits; SIZE_MAX: none. */
static size_t longest_at(nxc_shell *s, const nxc_text *text, const nxc_text *pattern, size_t at,
                         char anchor) {
  for (size_t n = text->n_bytes - at + 1; n-- > 0;) {
    if (anchor == '%' && at + n != text->n_bytes) continue;
    if (fits(s, pattern, text->bytes + at, n)) return n;
  }
  return SIZE_MAX;
}

static nxc_text unquoted(nxc_shell *s, const nxc_text *text) {
  nxc_text copy = nxc_text_copy(s->arena, text);
  for (size_t i = 0; i < copy.n_bytes; i++) copy.marks[i] &= (unsigned char)~NXC_MARK_QUOTED;
  return copy;
}

/* Where nothing fits: an empty pattern at the end that it names, and all of an empty text. */
static bool replace_nothing(nxc_shell *s, nxc_text *text, const nxc_text *pattern, const nxc_text *by,
                            char anchor) {
  bool named = pattern->n_bytes == 0 && anchor != '\0';
  if (!named && (text->n_bytes > 0 || !fits(s, pattern, "", 0) || pattern->n_bytes == 0)) return true;
  nxc_text made = {0};
  if (anchor != '%') nxc_text_append(s->arena, &made, by);
  nxc_text_append(s->arena, &made, text);
  if (anchor == '%') nxc_text_append(s->arena, &made, by);
  *text = made;
  return nxc_shell_spend(s, made.n_bytes, made.n_bytes > 0 ? made.origins[0] : 0);
}

bool nxc_shell_replace(nxc_shell *s, nxc_text *text, const nxc_text *pattern, const nxc_text *with, bool all,
                       char anchor) {
  if (!can_tell(s, pattern, text)) return false;
  const nxc_text by = unquoted(s, with);
  if (pattern->n_bytes == 0 || text->n_bytes == 0) return replace_nothing(s, text, pattern, &by, anchor);
  nxc_text made = {0};
  bool done = false;
  for (size_t i = 0; i < text->n_bytes;) {
    bool tries = !(done && !all) && (anchor != '#' || i == 0);
    size_t n = tries ? longest_at(s, text, pattern, i, anchor) : SIZE_MAX;
    if (n == SIZE_MAX || n == 0) {
      nxc_text_put(s->arena, &made, text->bytes[i], text->origins[i], text->marks[i]);
      i++;
      continue;
    }
    nxc_text_append(s->arena, &made, &by);
    if (!nxc_shell_spend(s, by.n_bytes, text->origins[i])) return false;
    done = true;
    i += n;
  }
  *text = made;
  return true;
}
