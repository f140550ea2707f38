/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/meant.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *nxc_text_meant(nxc_arena *arena, const char *text) {
  static const char *const comments[] = {" //", "/*", " #"};
  size_t end = strlen(text);
  for (size_t i = 0; i < sizeof comments / sizeof *comments; i++) {
    const char *comment = strstr(text, comments[i]);
    if (comment != NULL && (size_t)(comment - text) < end) end = (size_t)(comment - text);
  }
  while (end > 0 && strchr(" \t\"',;", text[end - 1]) != NULL) end--;
  size_t begin = strspn(text, " \t\"'");
  return begin < end ? nxc_arena_strndup(arena, text + begin, end - begin) : "";
}

/* -- numbers --------------------------------------------------------------------------------------------- */

static bool is_whole_type(const nxc_domain *domain) {
  return domain->type == NXC_TYPE_INT || domain->type == NXC_TYPE_LIST_INT;
}

static double number_of(const nxc_value *value) {
  return value->kind == NXC_INT ? (double)value->integer : value->number;
}

static bool is_within(const nxc_domain *domain, double number) {
  return (domain->min == NULL || number >= number_of(domain->min)) &&
         (domain->max == NULL || number <= number_of(domain->max)) &&
         (domain->above == NULL || number > number_of(domain->above));
}

/* Without an exponent, which not every system reads; NULL: it needs one. */
static const char *written(nxc_arena *arena, const nxc_domain *domain, double number) {
  if (!(fabs(number) < 1e15)) return NULL;
  const char *text = nxc_arena_printf(arena, is_whole_type(domain) ? "%.0f" : "%.10g", number);
  return strchr(text, 'e') == NULL ? text : NULL;
}

nxc_meant nxc_nearest_number(nxc_arena *arena, const nxc_domain *domain, double number) {
  double nearest = is_whole_type(domain) ? floor(number) : number;
  if (nearest < 0 && nearest != -1 && is_within(domain, -nearest)) nearest = -nearest;
  if (domain->min && nearest < number_of(domain->min)) nearest = number_of(domain->min);
  if (domain->max && nearest > number_of(domain->max)) nearest = number_of(domain->max);
  if (is_whole_type(domain) && domain->above && nearest <= number_of(domain->above))
    nearest = floor(number_of(domain->above)) + 1;
  const char *text = is_within(domain, nearest) ? written(arena, domain, nearest) : NULL;
  return (nxc_meant){text, text != NULL && nearest == number};
}

/* Digits in groups of three, a fraction, an exponent; *end receives what stands behind. */
static bool read_digits(nxc_arena *arena, const char *text, double *number, const char **end) {
  char *plain = nxc_arena_alloc(arena, strlen(text) + 1), *to = plain;
  size_t i = 0;
  for (; text[i] != '\0'; i++) {
    bool group = text[i] == ',' && i > 0 && strspn(text + i + 1, "0123456789") == 3;
    if (group || (text[i] == '_' && isdigit((unsigned char)text[i + 1]))) continue;
    bool exponent = (text[i] == 'e' || text[i] == 'E') && to > plain;
    bool sign = (text[i] == '-' || text[i] == '+') && (i == 0 || text[i - 1] == 'e' || text[i - 1] == 'E');
    if (!isdigit((unsigned char)text[i]) && text[i] != '.' && !exponent && !sign) break;
    *to++ = text[i];
  }
  *to = '\0';
  char *behind;
  *number = strtod(plain, &behind);
  *end = text + i - (size_t)(to - behind); /* what is no part of the number is given back */
  return behind > plain && isfinite(*number);
}

/* What a letter behind a number makes of it; 0: it says no number, and may be a unit. */
static double factor_of(const char *unit, bool whole) {
  static const struct {
    const char *unit;
    double factor, whole;
  } factors[] = {{"k", 1e3, 1024}, {"m", 1e6, 1e6}, {"b", 1e9, 1e9}, {"%", 0.01, 1}};
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
    if (strcasecmp(unit, factors[i].unit) == 0) return whole ? factors[i].whole : factors[i].factor;
  return 0;
}

nxc_meant nxc_number_meant(nxc_arena *arena, const nxc_domain *domain, const char *text) {
  enum { UNIT_MAX = 16 };
  const char *plain = nxc_text_meant(arena, text), *end, *last;
  double number, other;
  const char *digits = plain + strspn(plain, "~<>= ");
  if (!read_digits(arena, digits, &number, &end)) return (nxc_meant){0};
  size_t n_digits = (size_t)(end - digits);
  bool all = strlen(plain) + 2 >= strlen(text); /* but for quotes: a comment would be lost */
  bool certain = all && *plain != '~' && *plain != '<' && *plain != '>' && *end == '\0';
  end += strspn(end, " _");
  const char *behind = end + 1 + strspn(*end ? end + 1 : "", " ");
  if ((*end == '*' || *end == 'x') && read_digits(arena, behind, &other, &last) && *last == '\0') {
    number *= other;
  } else if (*end != '\0') {
    if ((!isalpha((unsigned char)*end) && *end != '%') || strlen(end) > UNIT_MAX) return (nxc_meant){0};
    double factor = factor_of(end, is_whole_type(domain)); /* of a unit that fits */
    if (factor > 0 && is_within(domain, number * factor)) number *= factor;
  }
  bool exact = number == strtod(digits, NULL);
  bool plain_digits = n_digits == strspn(digits, "0123456789.");
  if (exact && plain_digits && !is_whole_type(domain) && is_within(domain, number)) /* 1.0 stays 1.0 */
    return (nxc_meant){nxc_arena_strndup(arena, digits, n_digits), certain};
  nxc_meant meant = nxc_nearest_number(arena, domain, number);
  meant.certain = meant.certain && certain;
  return meant;
}

/* -- booleans -------------------------------------------------------------------------------------------- */

nxc_meant nxc_boolean_meant(const char *word) {
  static const char *const words[][2] = {
      {"false", "true"},       {"no", "yes"},         {"off", "on"}, {"n", "y"},
      {"disabled", "enabled"}, {"disable", "enable"}, {"f", "t"},    {"0", "1"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    for (int which = 0; which < 2; which++)
      if (strcasecmp(word, words[i][which]) == 0) return (nxc_meant){which ? "True" : "False", true};
  return (nxc_meant){0};
}
