/* SPDX-License-Identifier: Apache-2.0 */
/* A typed value: what a scalar, list or map means once it is read.
 *
 * Values are immutable and live in an arena. Integers outside int64_t keep their decimal digits in `digits`
 * and have kind NXC_INT with `digits` set; everywhere else `digits` is NULL. Strings may hold NUL bytes. Map
 * keys are values too (YAML has integer and boolean keys). */
#ifndef NXC_VALUE_H
#define NXC_VALUE_H

#include "compiler/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nxc_kind {
  NXC_NULL,
  NXC_BOOL,
  NXC_INT,
  NXC_FLOAT,
  NXC_STRING,
  NXC_BYTES, /* YAML's !!binary */
  NXC_LIST,
  NXC_MAP,
  NXC_MISSING /* OmegaConf's ??? : a value that must be given before use */
} nxc_kind;

typedef struct nxc_value nxc_value;
struct nxc_value {
  nxc_kind kind;
  union {
    bool boolean;
    int64_t integer;
    double number;
    struct {
      const char *text; /* NUL-terminated as well */
      size_t n_bytes;
    };
    struct {
      const nxc_value *items; /* list: n_items values; map: n_items pairs, key at 2i, value at 2i + 1 */
      size_t n_items;
    };
  };
  const char *digits;
};

/* With all that it consists of; keys and texts too. */
nxc_value *nxc_value_copy(nxc_arena *arena, const nxc_value *value);
bool nxc_value_equal(const nxc_value *a, const nxc_value *b);
/* One line for people: strings bare when they need no quotes, lists as [a, b]. */
const char *nxc_value_show(nxc_arena *arena, const nxc_value *value);
/* The shortest decimal text that reads back as the same double, in Python's repr form (1e-05, 1e+16, 0.1,
 * nan, -inf). */
const char *nxc_float_repr(nxc_arena *arena, double number);
/* JSON on one line; not-a-number and infinities are texts, bytes are null. */
const char *nxc_value_json(nxc_arena *arena, const nxc_value *value);
const char *nxc_kind_name(nxc_kind kind);

#endif
