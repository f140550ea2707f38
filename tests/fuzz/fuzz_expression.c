/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds any text to the parser and the evaluator of expressions. */
#include "compiler/expression/expression.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <string.h>

/* A value of each kind, by the last letter of the name; others are unknown. */
static const nxc_value *look_up(void *context, const nxc_name *name) {
  static const nxc_value items[] = {{.kind = NXC_STRING, .text = "a.7", .n_bytes = 3},
                                    {.kind = NXC_INT, .integer = 7}};
  static const nxc_value integer = {.kind = NXC_INT, .integer = INT64_MIN},
                         number = {.kind = NXC_FLOAT, .number = 0.5};
  static const nxc_value text = {.kind = NXC_STRING, .text = "12", .n_bytes = 2}, none = {.kind = NXC_NULL};
  static const nxc_value list = {.kind = NXC_LIST, .items = items, .n_items = 2};
  static const nxc_value map = {.kind = NXC_MAP, .items = items, .n_items = 1};
  (void)context;
  switch (name->path[0]) {
  case 'i': return &integer;
  case 'f': return &number;
  case 's': return &text;
  case 'n': return &none;
  case 'l': return &list;
  case 'm': return &map;
  default: return NULL;
  }
}

static bool is_given(void *context, const nxc_name *name) {
  (void)context;
  return name->path[0] == 'i';
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  nxc_arena *arena = nxc_arena_new();
  const char *text = nxc_arena_strndup(arena, (const char *)bytes, n_bytes), *error;
  size_t error_at;
  const nxc_expression *expression = nxc_expression_parse(arena, text, &error, &error_at);
  assert((expression == NULL) == (error != NULL) && error_at <= strlen(text));
  if (expression != NULL) {
    const nxc_scope scope = {look_up, is_given, NULL};
    const nxc_value *value = nxc_expression_evaluate(arena, expression, &scope, &error);
    assert(value == NULL || error == NULL);
    if (value != NULL) nxc_value_show(arena, value);
  }
  nxc_arena_free(arena);
  return 0;
}
