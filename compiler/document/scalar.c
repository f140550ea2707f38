/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/integer.h"
#include "compiler/document/scalar.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Patterns are matched by hand: each function below takes the text at `p` and gives what follows the part it
 * matches, or NULL. Text is NUL-terminated, and NUL matches nothing. */
static const char *skip_sign(const char *p) {
  return *p == '+' || *p == '-' ? p + 1 : p;
}

/* [0-9][0-9_]* */
static const char *digits_from(const char *p) {
  if (!isdigit((unsigned char)*p)) return NULL;
  while (isdigit((unsigned char)*p) || *p == '_') p++;
  return p;
}

static const char *skip_set(const char *p, const char *set) {
  return p + strspn(p, set);
}

/* [eE][-+]?[0-9]+; `needs_sign` makes the sign obligatory. */
static const char *exponent_at(const char *p, bool needs_sign) {
  if (*p != 'e' && *p != 'E') return NULL;
  const char *digits = skip_sign(p + 1);
  if (needs_sign && digits == p + 1) return NULL;
  const char *end = skip_set(digits, "0123456789");
  return end > digits ? end : NULL;
}

/* (:[0-5]?[0-9])+ */
static const char *sixties_at(const char *p) {
  if (*p != ':') return NULL;
  while (*p == ':') {
    const char *digits = p + 1, *end = skip_set(digits, "0123456789");
    if (end == digits || end > digits + 2 || (end == digits + 2 && *digits > '5')) return NULL;
    p = end;
  }
  return p;
}

static bool is_any(const char *text, const char *const *words) {
  for (; *words; words++)
    if (strcmp(text, *words) == 0) return true;
  return false;
}

static const char *const null_words[] = {"", "~", "null", "Null", "NULL", NULL};
static const char *const true_words[] = {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", NULL};
static const char *const false_words[] = {"no",    "No",  "NO",  "false", "False",
                                          "FALSE", "off", "Off", "OFF",   NULL};
static const char *const infinity_words[] = {".inf", ".Inf", ".INF", NULL};
static const char *const nan_words[] = {".nan", ".NaN", ".NAN", NULL};

static bool is_float(const char *text) {
  if (is_any(skip_sign(text), infinity_words) || is_any(text, nan_words)) return true;
  const char *p, *whole = digits_from(skip_sign(text));
  if (whole && (p = exponent_at(whole, false)) && *p == '\0') return true;
  if (whole && *whole == '.') {
    const char *fraction = skip_set(whole + 1, "0123456789_");
    p = exponent_at(fraction, false);
    if (*(p ? p : fraction) == '\0') return true;
  }
  if (whole && (p = sixties_at(whole)) && *p == '.' && *skip_set(p + 1, "0123456789_") == '\0') return true;
  if (text[0] != '.') return false;
  const char *fraction = skip_set(text + 1, "0123456789_");
  if (fraction == text + 1) return false;
  p = exponent_at(fraction, true);
  return *(p ? p : fraction) == '\0';
}

static bool is_int(const char *text) {
  const char *p = skip_sign(text), *end;
  if (p[0] == '0') {
    if (p[1] == '\0') return true;
    if (p[1] == 'b') return p[2] && *skip_set(p + 2, "01_") == '\0';
    if (p[1] == 'x') return p[2] && *skip_set(p + 2, "0123456789abcdefABCDEF_") == '\0';
    return *skip_set(p + 1, "01234567_") == '\0';
  }
  if ((end = digits_from(p)) == NULL) return false;
  if (*end == '\0') return true;
  return (end = sixties_at(end)) && *end == '\0';
}

nxc_value nxc_string_value(const char *text, size_t n_bytes) {
  return (nxc_value){.kind = NXC_STRING, .text = text, .n_bytes = n_bytes};
}

static char *without_underscores(nxc_arena *arena, const char *text, size_t n_bytes) {
  char *copy = nxc_arena_alloc(arena, n_bytes + 1), *to = copy;
  for (size_t i = 0; i < n_bytes; i++)
    if (text[i] != '_') *to++ = text[i];
  return copy;
}

bool nxc_float_from_text(nxc_arena *arena, const char *text, size_t n_bytes, double *number) {
  const char *plain = without_underscores(arena, text, n_bytes);
  char *end;
  *number = strtod(plain, &end);
  return end > plain && *end == '\0';
}

/* a:b:c.d = (a * 60 + b) * 60 + c.d, summed from the right as the original does: the last bit agrees. */
static double sexagesimal_float(nxc_arena *arena, const char *text) {
  const char *plain = without_underscores(arena, text, strlen(text));
  const char *part = plain + strlen(plain);
  double sum = 0, base = 1;
  for (;; part--, base *= 60) {
    while (part > plain && part[-1] != ':') part--;
    sum += strtod(part, NULL) * base;
    if (part == plain) return sum;
  }
}

static bool read_float(nxc_arena *arena, const char *text, nxc_value *value, const char **problem) {
  const char *unsigned_text = skip_sign(text);
  double sign = *text == '-' ? -1 : 1, number = 0;
  if (strcasecmp(unsigned_text, ".inf") == 0) number = INFINITY;
  else if (strcasecmp(unsigned_text, ".nan") == 0) number = NAN;
  else if (strchr(unsigned_text, ':')) number = sexagesimal_float(arena, unsigned_text);
  else if (!nxc_float_from_text(arena, unsigned_text, strlen(unsigned_text), &number)) {
    *problem = "this is written like a float but has no digits";
    return false;
  }
  *value = (nxc_value){.kind = NXC_FLOAT, .number = sign * number};
  return true;
}

static bool read_int(nxc_arena *arena, const char *text, nxc_value *value, const char **problem) {
  bool negative = *text == '-';
  const char *p = skip_sign(text);
  if (strchr(p, ':')) return nxc_integer_sexagesimal(arena, p, negative, value, problem);
  int base = 10;
  if (p[0] == '0' && p[1]) base = p[1] == 'b' ? 2 : p[1] == 'x' ? 16 : 8;
  if (base == 2 || base == 16) p += 2;
  return nxc_integer_from_digits(arena, p, strlen(p), base, negative, value, problem);
}

bool nxc_scalar_read(nxc_arena *arena, const char *text, size_t n_bytes, nxc_value *value,
                     const char **problem) {
  *value = nxc_string_value(text, n_bytes);
  if (strlen(text) != n_bytes) return true;
  if (is_any(text, null_words)) *value = (nxc_value){.kind = NXC_NULL};
  else if (is_any(text, true_words)) *value = (nxc_value){.kind = NXC_BOOL, .boolean = true};
  else if (is_any(text, false_words)) *value = (nxc_value){.kind = NXC_BOOL, .boolean = false};
  else if (strcmp(text, "???") == 0) *value = (nxc_value){.kind = NXC_MISSING};
  else if (is_float(text)) return read_float(arena, text, value, problem);
  else if (is_int(text)) return read_int(arena, text, value, problem);
  return true;
}

const nxc_value *nxc_scalar_of(nxc_arena *arena, const char *text) {
  const char *problem;
  nxc_value *value = nxc_arena_alloc(arena, sizeof *value);
  nxc_scalar_read(arena, text, strlen(text), value, &problem);
  return value;
}

/* A float of PyYAML among OmegaConf's: it has a point and, where there is an exponent, a sign in that. */
static bool is_pyyaml_float(const char *text) {
  const char *exponent = strpbrk(text, "eE");
  bool digits = isdigit((unsigned char)skip_sign(text)[0]) || text[0] == '.';
  if (exponent == NULL || !digits) return true;
  return memchr(text, '.', (size_t)(exponent - text)) != NULL && (exponent[1] == '+' || exponent[1] == '-');
}

bool nxc_scalar_read_pyyaml(nxc_arena *arena, const char *text, size_t n_bytes, nxc_value *value,
                            const char **problem) {
  *value = nxc_string_value(text, n_bytes);
  if (text[0] == '.' && text[1] == '_') return true; /* ._5 */
  bool good = nxc_scalar_read(arena, text, n_bytes, value, problem);
  bool other = value->kind == NXC_MISSING || (value->kind == NXC_FLOAT && !is_pyyaml_float(text));
  if (other) *value = nxc_string_value(text, n_bytes);
  return good;
}

bool nxc_scalar_is_date(const char *text) {
  static const char pattern[] = "dddd-dd-dd";
  for (size_t i = 0; pattern[i] != '\0'; i++)
    if (pattern[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != pattern[i]) return false;
  return strchr(" \tTt", text[sizeof pattern - 1]) != NULL;
}

const char *nxc_scalar_pyyaml_float(nxc_arena *arena, const char *text) {
  if (!is_float(text) || is_pyyaml_float(text)) return NULL;
  size_t n_number = strcspn(text, "eE");
  const char *exponent = text + n_number + 1;
  bool has_point = memchr(text, '.', n_number) != NULL, has_sign = *exponent == '+' || *exponent == '-';
  return nxc_arena_printf(arena, "%.*s%se%s%s", (int)n_number, text, has_point ? "" : ".0",
                          has_sign ? "" : "+", exponent);
}

static bool read_bool_as(const char *text, nxc_value *value) {
  static const char *const yes[] = {"yes", "true", "on", NULL}, *const no[] = {"no", "false", "off", NULL};
  for (int i = 0; i < 3; i++) {
    if (strcasecmp(text, yes[i]) && strcasecmp(text, no[i])) continue;
    *value = (nxc_value){.kind = NXC_BOOL, .boolean = strcasecmp(text, yes[i]) == 0};
    return true;
  }
  return false;
}

static int base64_digit(char c) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

static bool read_binary(nxc_arena *arena, const char *text, size_t n_bytes, nxc_value *value) {
  char *bytes = nxc_arena_alloc(arena, n_bytes + 1);
  size_t n = 0, n_digits = 0, n_padding = 0;
  uint32_t bits = 0;
  for (size_t i = 0; i < n_bytes; i++) {
    if (isspace((unsigned char)text[i])) continue;
    int digit = base64_digit(text[i]);
    if (text[i] == '=') n_padding++;
    else if (digit < 0 || n_padding) return false;
    bits = bits << 6 | (uint32_t)(digit < 0 ? 0 : digit);
    if (++n_digits % 4) continue;
    for (int shift = 16; shift >= 0; shift -= 8) bytes[n++] = (char)(bits >> shift);
  }
  if (n_digits % 4 || n_padding > 2) return false;
  n -= n_padding;
  bytes[n] = '\0';
  *value = (nxc_value){.kind = NXC_BYTES, .text = bytes, .n_bytes = n};
  return true;
}

bool nxc_scalar_read_as(nxc_arena *arena, const char *type, const char *text, size_t n_bytes,
                        nxc_value *value, const char **problem) {
  nxc_value plain;
  *value = nxc_string_value(text, n_bytes);
  *problem = nxc_arena_printf(arena, "the tag !!%s does not fit this text", type);
  if (strcmp(type, "str") == 0) return true;
  if (strcmp(type, "null") == 0) {
    *value = (nxc_value){.kind = NXC_NULL};
    return true;
  }
  if (strcmp(type, "bool") == 0) return read_bool_as(text, value);
  if (strcmp(type, "binary") == 0) return read_binary(arena, text, n_bytes, value);
  if (!nxc_scalar_read(arena, text, n_bytes, &plain, problem)) return false;
  if (plain.kind == NXC_INT && strcmp(type, "int") == 0) {
    *value = plain;
    return true;
  }
  if (strcmp(type, "float") || (plain.kind != NXC_INT && plain.kind != NXC_FLOAT)) return false;
  return read_float(arena, text, value, problem);
}
