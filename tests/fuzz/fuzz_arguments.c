/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds any bytes to Megatron's front, as a script, as arguments and as YAML, and binds what comes out.
 *
 * Whatever the text is, a tree comes out whose nodes stand in it, findings point into it, and what reading
 * gives does not depend on whether it is read once more. */
#include "compiler/config/binding/dialect.h"
#include "compiler/config/front/megatron/front_megatron.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <string.h>

static void check_span(nxc_span at) {
  if (at.source == NULL) return;
  assert(at.line >= 1 && at.line <= at.source->n_lines && at.column >= 1 && at.length >= 1);
}

static size_t check_tree(const nxc_node *node) {
  size_t n_nodes = 1;
  check_span(node->at);
  check_span(node->key_at);
  for (size_t i = 0; i < node->n_children; i++) n_nodes += check_tree(node->children[i]);
  return n_nodes;
}

static void bind_document(nxc_arena *arena, nxc_document *document, const nxc_source *source,
                          nxc_sink *sink) {
  const nxc_origin origin = {.first = source};
  nxc_settings *settings = nxc_settings_new(arena);
  const nxc_dialect *dialect = nxc_dialect_find("megatron");
  nxc_settings_speak(settings, dialect);
  nxc_binding *binding = nxc_binding_new(arena, dialect, nxc_megatron_versions[0], document, &origin,
                                          settings, sink);
  nxc_binding_read(binding);
  nxc_binding_apply(binding);
}

static size_t read_text(const nxc_source *source, bool as_arguments, bool bind) {
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  const nxc_front_texts texts = {.arena = arena,
                                 .sink = sink,
                                 .first = as_arguments ? NULL : source,
                                 .arguments = as_arguments ? source : NULL,
                                 .version = nxc_megatron_versions[0]};
  nxc_document *document = nxc_megatron_read(&texts);
  const nxc_resolving resolving = {0};
  nxc_megatron_resolve(document, &resolving, sink);
  size_t n_nodes = check_tree(document->root);
  if (bind) bind_document(arena, document, source, sink);
  assert(document->complete || nxc_sink_count(sink, NXC_SEVERITY_ERROR) > 0);
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) check_span(nxc_sink_finding(sink, i)->at);
  nxc_arena_free(arena);
  return n_nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  nxc_arena *arena = nxc_arena_new();
  const nxc_source *source = nxc_source_new(arena, "fuzz", (const char *)bytes, n_bytes);
  nxc_megatron_claims(source);
  if (is_chosen(bytes, n_bytes, 0, 0, 3)) read_text(source, false, true);
  if (is_chosen(bytes, n_bytes, 0, 1, 3))
    assert(read_text(source, false, false) == read_text(source, false, false));
  if (is_chosen(bytes, n_bytes, 0, 2, 3)) read_text(source, true, false);
  nxc_arena_free(arena);
  return 0;
}
