/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of reading share: one arena and sink a test, and documents from texts. */
#ifndef NX_TESTS_READING_H
#define NX_TESTS_READING_H

#include "compiler/document/canon.h"
#include "compiler/config/interpolation/interpolate.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

static nxc_arena *arena;
static nxc_sink *sink;

static inline int set_up(void **state) {
  (void)state;
  arena = nxc_arena_new();
  sink = nxc_sink_new(arena);
  return 0;
}

static inline int tear_down(void **state) {
  (void)state;
  nxc_arena_free(arena);
  return 0;
}

static inline nxc_document *read_bytes(const char *bytes, size_t n_bytes) {
  const nxc_reading reading = {0};
  return nxc_document_read(arena, nxc_source_new(arena, "a.yaml", bytes, n_bytes), &reading, sink);
}

static inline nxc_document *read_text(const char *text) {
  return read_bytes(text, strlen(text));
}

static inline const char *canon_of(const nxc_node *node) {
  const nxc_value *value = nxc_node_value(arena, node);
  nxc_buffer text = {.arena = arena};
  if (value == NULL) return "too large";
  nxc_write_canon(&text, value);
  return text.bytes;
}

/* Every finding as "ID line:column+length message [remark line:column]". */
static inline const char *findings(void) {
  nxc_buffer text = {.arena = arena};
  nxc_buffer_puts(&text, "");
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *one = nxc_sink_finding(sink, i);
    nxc_buffer_puts(&text, nxc_arena_printf(arena, "%s%s %u:%u+%u %s", i ? "\n" : "", one->id, one->at.line,
                                            one->at.column, one->at.length, one->message));
    for (size_t k = 0; k < one->n_remarks; k++)
      nxc_buffer_puts(&text, nxc_arena_printf(arena, " [%s %u:%u]", one->remarks[k].text,
                                              one->remarks[k].at.line, one->remarks[k].at.column));
  }
  return text.bytes;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
