/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of plain scalars: from text to null, boolean, integer, float or string.
 *
 * The rules are OmegaConf's: YAML 1.1 core (PyYAML) with OmegaConf's own float pattern and without
 * timestamps, so that `3e-4` is a float, `010` is 8 and `1:30` is 90. Quoted text never comes here. A few
 * texts match a number's pattern and are no number (`0x_`): reading them fails, as in the original. */
#ifndef NXC_CONFIG_SCALAR_H
#define NXC_CONFIG_SCALAR_H

#include "compiler/value.h"

/* Longer integers are refused (Python refuses them too). */
enum { NXC_INTEGER_DIGITS_MAX = 4300 };

/* What is odd about a plain scalar: that its reading surprises people. NXC_ODD_NONE for nearly all. */
typedef enum nxc_oddity {
  NXC_ODD_NONE,
  NXC_ODD_BOOLEAN_WORD,  /* yes, off: a boolean */
  NXC_ODD_BOOLEAN_TEXT,  /* y, yEs: text */
  NXC_ODD_NULL_TEXT,     /* None, nUll: text */
  NXC_ODD_OCTAL,         /* 010: 8 */
  NXC_ODD_SEXAGESIMAL,   /* 1:30: 90 */
  NXC_ODD_NUMBER_TEXT,   /* -.5, 0o17, inf: text */
  NXC_ODD_UNDERSCORES,   /* 1_000_: 1000 */
  NXC_ODD_RANGE,         /* 1e400: infinity */
  NXC_ODD_MINUS_ZERO,    /* -0: the integer 0 */
  NXC_ODD_HOME,          /* $HOME/x: never expanded */
  NXC_ODD_MISSING_QUOTED /* '???': still a missing value */
} nxc_oddity;

/* Types plain text. Strings are not copied. False: the text looks like a number that cannot be read; *problem
 * says why, and *value is the string. */
bool nxc_scalar_read(nxc_arena *arena, const char *text, size_t n_bytes, nxc_value *value,
                     const char **problem);
/* The same by PyYAML's rules: a float needs a point, and a sign in its exponent, so that `3e-4` is text; ???
 * is text too. Dates stay text. */
bool nxc_scalar_read_pyyaml(nxc_arena *arena, const char *text, size_t n_bytes, nxc_value *value,
                            const char **problem);
/* 2024-01-01 and 2024-01-01 12:00:00, which PyYAML makes dates of, and OmegaConf texts. */
bool nxc_scalar_is_date(const char *text);
/* How PyYAML reads as a float what it takes for text only because of its exponent: 1.0e-2 for 1e-2. NULL: it
 * is another text. */
const char *nxc_scalar_pyyaml_float(nxc_arena *arena, const char *text);
/* Types text as an explicit tag demands: `type` is "null", "bool", "int", "float", "str" or "binary". */
bool nxc_scalar_read_as(nxc_arena *arena, const char *type, const char *text, size_t n_bytes,
                        nxc_value *value, const char **problem);
/* Plain text, typed; what looks like a number and is none is text. */
const nxc_value *nxc_scalar_of(nxc_arena *arena, const char *text);
nxc_oddity nxc_scalar_oddity(const char *text, size_t n_bytes, const nxc_value *value);

/* An integer from digits of a base (2, 8, 10, 16), underscores skipped. At least one digit. */
bool nxc_integer_from_digits(nxc_arena *arena, const char *digits, size_t n_digits, int base, bool negative,
                             nxc_value *value, const char **problem);
/* A float from decimal text, underscores skipped. False when it is no number. */
bool nxc_float_from_text(nxc_arena *arena, const char *text, size_t n_bytes, double *number);
nxc_value nxc_string_value(const char *text, size_t n_bytes);

#endif
