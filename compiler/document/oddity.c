/* SPDX-License-Identifier: Apache-2.0 */
/* Plain scalars whose reading surprises people (scalar.h). */
#include "compiler/document/scalar.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static bool is_word(const char *text, const char *const *words, int (*compare)(const char *, const char *)) {
  for (; *words; words++)
    if (compare(text, *words) == 0) return true;
  return false;
}

static bool has_stray_underscore(const char *text) {
  for (const char *c = text; (c = strchr(c, '_')); c++)
    if (c == text || !isxdigit((unsigned char)c[-1]) || !isxdigit((unsigned char)c[1])) return true;
  return false;
}

/* Text that some YAML reader, or any person, takes for a number. */
static bool looks_like_number(const char *text) {
  static const char *const names[] = {"inf", "infinity", "nan", ".inf", ".nan", NULL};
  const char *p = text + (*text == '+' || *text == '-');
  if (is_word(p, names, strcasecmp)) return true;
  if (p[0] == '0' && strchr("oOxXbB", p[1]) && p[1] && p[2]) {
    const char *digits = (p[1] | 0x20) == 'x' ? "0123456789abcdefABCDEF_.pP" : "0123456789_";
    return p[2 + strspn(p + 2, digits)] == '\0';
  }
  const char *c = p + strspn(p, "0123456789_");
  bool any = c > p && *p != '_';
  if (*c == '.') {
    const char *fraction = c + 1;
    c = fraction + strspn(fraction, "0123456789_");
    any = any || (c > fraction && *fraction != '_');
  }
  if (any && (*c == 'e' || *c == 'E')) {
    c += 1 + (c[1] == '+' || c[1] == '-');
    const char *digits = c;
    c += strspn(c, "0123456789_");
    any = c > digits;
  }
  /* 0_8 and 1e5_ look more like names than like numbers. */
  return any && *c == '\0' && strcmp(text, "0_8") != 0 && c[-1] != '_';
}

static bool is_zero_text(const char *text) {
  for (const char *c = text; *c && *c != 'e' && *c != 'E'; c++)
    if (*c >= '1' && *c <= '9') return false;
  return true;
}

static nxc_oddity number_oddity(const char *text, const nxc_value *value) {
  const char *p = text + (*text == '+' || *text == '-');
  if (strchr(text, ':')) return NXC_ODD_SEXAGESIMAL;
  if (has_stray_underscore(text)) return NXC_ODD_UNDERSCORES;
  if (value->kind == NXC_INT) {
    if (p[0] == '0' && p[1] && p[1] != 'x' && p[1] != 'b') return NXC_ODD_OCTAL;
    return strcmp(text, "-0") == 0 ? NXC_ODD_MINUS_ZERO : NXC_ODD_NONE;
  }
  if (isinf(value->number) && isdigit((unsigned char)p[0])) return NXC_ODD_RANGE;
  return value->number == 0 && !is_zero_text(text) ? NXC_ODD_RANGE : NXC_ODD_NONE;
}

static nxc_oddity text_oddity(const char *text) {
  static const char *const booleans[] = {"y", "n", "yes", "no", "on", "off", "true", "false", NULL};
  static const char *const nulls[] = {"none", "null", "nil", NULL};
  if (is_word(text, booleans, strcasecmp)) return NXC_ODD_BOOLEAN_TEXT;
  bool word_of_an_option = strcmp(text, "none") == 0; /* several options have it among their values */
  if (!word_of_an_option && is_word(text, nulls, strcasecmp)) return NXC_ODD_NULL_TEXT;
  if (strncmp(text, "$HOME", 5) == 0) return NXC_ODD_HOME;
  return looks_like_number(text) ? NXC_ODD_NUMBER_TEXT : NXC_ODD_NONE;
}

nxc_oddity nxc_scalar_oddity(const char *text, size_t n_bytes, const nxc_value *value) {
  static const char *const plain_booleans[] = {"true", "false", NULL};
  if (n_bytes > 400 || strlen(text) != n_bytes) return NXC_ODD_NONE;
  switch (value->kind) {
  case NXC_BOOL: return is_word(text, plain_booleans, strcasecmp) ? NXC_ODD_NONE : NXC_ODD_BOOLEAN_WORD;
  case NXC_INT:
  case NXC_FLOAT: return number_oddity(text, value);
  case NXC_STRING: return text_oddity(text);
  default: return NXC_ODD_NONE;
  }
}
