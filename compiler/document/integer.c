/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/integer.h"
#include "compiler/document/scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

enum { LIMB = 1000000000, LIMB_DIGITS = 9 };

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return (c | 0x20) - 'a' + 10;
}

/* limbs * factor + carry */
static size_t multiply_add(uint32_t *limbs, size_t n_limbs, uint64_t factor, uint64_t carry) {
  for (size_t k = 0; k < n_limbs; k++) {
    carry += (uint64_t)limbs[k] * factor;
    limbs[k] = (uint32_t)(carry % LIMB);
    carry /= LIMB;
  }
  if (carry) limbs[n_limbs++] = (uint32_t)carry;
  return n_limbs;
}

/* Decimal digits of a number given in another base, for numbers that no machine integer holds. */
static const char *long_decimal(nxc_arena *arena, const char *digits, size_t n_digits, int base,
                                bool negative) {
  uint32_t *limbs = nxc_arena_array(arena, n_digits / 4 + 2, sizeof *limbs);
  size_t n_limbs = 1;
  uint64_t factor = 1, part = 0; /* digits gathered so far: fewer multiplications of the whole */
  for (size_t i = 0; i < n_digits; i++) {
    if (digits[i] == '_') continue;
    part = part * (uint64_t)base + (uint64_t)digit_value(digits[i]);
    factor *= (uint64_t)base;
    if (factor < 1u << 26) continue;
    n_limbs = multiply_add(limbs, n_limbs, factor, part);
    factor = 1;
    part = 0;
  }
  n_limbs = multiply_add(limbs, n_limbs, factor, part);
  size_t room = n_limbs * LIMB_DIGITS + 2;
  char *text = nxc_arena_alloc(arena, room);
  int n = snprintf(text, room, "%s%" PRIu32, negative ? "-" : "", limbs[n_limbs - 1]);
  for (size_t k = n_limbs - 1; k-- > 0;) n += snprintf(text + n, room - (size_t)n, "%09" PRIu32, limbs[k]);
  return text;
}

bool nxc_integer_from_digits(nxc_arena *arena, const char *digits, size_t n_digits, int base, bool negative,
                             nxc_value *value, const char **problem) {
  if (n_digits > NXC_INTEGER_DIGITS_MAX) {
    *problem = "this integer has more than 4300 digits";
    return false;
  }
  bool any = false, fits = true;
  int64_t sum = 0; /* kept negative, whose range is larger by one */
  for (size_t i = 0; i < n_digits; i++) {
    if (digits[i] == '_') continue;
    any = true;
    fits = fits && !__builtin_mul_overflow(sum, (int64_t)base, &sum) &&
           !__builtin_sub_overflow(sum, (int64_t)digit_value(digits[i]), &sum);
  }
  if (!any) {
    *problem = "this is written like an integer but has no digits";
    return false;
  }
  if (fits && !negative) fits = !__builtin_mul_overflow(sum, (int64_t)-1, &sum);
  *value = (nxc_value){.kind = NXC_INT, .integer = fits ? sum : 0};
  if (!fits) value->digits = long_decimal(arena, digits, n_digits, base, negative);
  return true;
}

static bool to_wide(const nxc_value *integer, wide *number, const char **problem) {
  *number = integer->integer;
  if (integer->digits == NULL) return true;
  bool negative = integer->digits[0] == '-';
  wide sum = 0;
  for (const char *c = integer->digits + negative; *c; c++) {
    if (__builtin_mul_overflow(sum, (wide)10, &sum) || __builtin_add_overflow(sum, (wide)(*c - '0'), &sum)) {
      *problem = "the integer has more than 38 digits, which arithmetic here does not carry";
      return false;
    }
  }
  *number = negative ? -sum : sum;
  return true;
}

static nxc_value from_wide(nxc_arena *arena, wide number) {
  nxc_value value = {.kind = NXC_INT, .integer = (int64_t)number};
  if (value.integer == number) return value;
  char text[48], *at = text + sizeof text;
  *--at = '\0';
  unsigned_wide rest = number < 0 ? -(unsigned_wide)number : (unsigned_wide)number;
  for (; rest; rest /= 10) *--at = (char)('0' + (int)(rest % 10));
  if (number < 0) *--at = '-';
  value.integer = 0;
  value.digits = nxc_arena_strdup(arena, at);
  return value;
}

bool nxc_integer_sexagesimal(nxc_arena *arena, const char *text, bool negative, nxc_value *value,
                             const char **problem) {
  wide sum = 0, part = 0;
  for (const char *c = text;; c++) {
    if (*c == '_') continue;
    bool over = false;
    if (*c == ':' || *c == '\0') {
      over = __builtin_mul_overflow(sum, (wide)60, &sum) || __builtin_add_overflow(sum, part, &sum);
      part = 0;
    } else {
      over = __builtin_mul_overflow(part, (wide)10, &part) ||
             __builtin_add_overflow(part, (wide)(*c - '0'), &part);
    }
    if (over) {
      *problem = "this base-60 number is too large";
      return false;
    }
    if (*c == '\0') break;
  }
  *value = from_wide(arena, negative ? -sum : sum);
  return true;
}

static bool floor_divide(wide a, wide b, wide *result, const char **problem) {
  if (b == 0) {
    *problem = "division by zero";
    return false;
  }
  *result = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) --*result;
  return true;
}

bool nxc_integer_compute(nxc_arena *arena, char op, const nxc_value *a, const nxc_value *b, nxc_value *result,
                         const char **problem) {
  wide x, y, z = 0;
  if (!to_wide(a, &x, problem) || !to_wide(b, &y, problem)) return false;
  bool over = false;
  switch (op) {
  case '+': over = __builtin_add_overflow(x, y, &z); break;
  case '-': over = __builtin_sub_overflow(x, y, &z); break;
  case '*': over = __builtin_mul_overflow(x, y, &z); break;
  default:
    if (!floor_divide(x, y, &z, problem)) return false;
  }
  if (over) {
    *problem = "the result has more than 38 digits, which arithmetic here does not carry";
    return false;
  }
  *result = from_wide(arena, z);
  return true;
}

double nxc_integer_to_double(const nxc_value *integer) {
  return integer->digits ? strtod(integer->digits, NULL) : (double)integer->integer;
}

bool nxc_integer_from_double(nxc_arena *arena, double number, nxc_value *value, const char **problem) {
  if (!(fabs(number) < 1e38)) {
    *problem = "the result is not a finite integer";
    return false;
  }
  *value = from_wide(arena, (wide)number);
  return true;
}
