/* SPDX-License-Identifier: Apache-2.0 */
/* What Python's int() and float() make of texts. */
#include "compiler/config/front/arguments.h"

#include "compiler/document/scalar.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Without blanks around it. NULL where single underscores do not stand between digits. */
static const char *bare_number(nxc_arena *arena, const char *text) {
  while (isspace((unsigned char)*text)) text++;
  size_t n_bytes = strlen(text);
  while (n_bytes > 0 && isspace((unsigned char)text[n_bytes - 1])) n_bytes--;
  char *bare = nxc_arena_alloc(arena, n_bytes + 1);
  size_t n_bare = 0;
  for (size_t i = 0; i < n_bytes; i++) {
    bool between = i > 0 && isdigit((unsigned char)text[i - 1]) && i + 1 < n_bytes &&
                   isdigit((unsigned char)text[i + 1]);
    if (text[i] != '_') bare[n_bare++] = text[i];
    else if (!between) return NULL;
  }
  bare[n_bare] = '\0';
  return bare;
}

bool nxc_text_to_int(nxc_arena *arena, const char *text, nxc_value *value) {
  const char *bare = bare_number(arena, text), *problem;
  if (bare == NULL) return false;
  bool negative = *bare == '-';
  bare += *bare == '-' || *bare == '+';
  size_t n_digits = strspn(bare, "0123456789");
  if (n_digits == 0 || bare[n_digits] != '\0') return false;
  return nxc_integer_from_digits(arena, bare, n_digits, 10, negative, value, &problem);
}

bool nxc_text_to_float(nxc_arena *arena, const char *text, nxc_value *value) {
  static const char *const names[] = {"inf", "infinity", "nan"};
  const char *bare = bare_number(arena, text);
  if (bare == NULL || *bare == '\0') return false;
  const char *unsigned_part = bare + (*bare == '-' || *bare == '+');
  *value = (nxc_value){.kind = NXC_FLOAT};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcasecmp(unsigned_part, names[i]) != 0) continue;
    value->number = i == 2 ? NAN : *bare == '-' ? -INFINITY : INFINITY;
    return true;
  }
  if (unsigned_part[strspn(unsigned_part, "0123456789.eE+-")] != '\0') return false;
  return nxc_float_from_text(arena, bare, strlen(bare), &value->number);
}
