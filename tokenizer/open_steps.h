/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of steps in tokenizer.json: an object with a type, or a Sequence of such. */
#ifndef NXT_OPEN_STEPS_H
#define NXT_OPEN_STEPS_H

#include "tokenizer/open.h"

typedef struct nxt_step_kind {
  const char *type;
  bool (*read)(nxt_reading *reading, const json_t *step);
} nxt_step_kind;

typedef struct nxt_step_kinds {
  const char *what, *sequence; /* in messages; the key of a Sequence's steps */
  const nxt_step_kind *items;
  size_t n;
} nxt_step_kinds;

bool nxt_read_steps(nxt_reading *reading, const json_t *step, const nxt_step_kinds *kinds);
/* A step's `pattern`: {"String": ...}, of which `text` is what is looked for, or {"Regex": ...}. */
bool nxt_json_pattern(nxt_reading *reading, const json_t *step, nxt_pattern **pattern, nxt_text *text);

#endif
