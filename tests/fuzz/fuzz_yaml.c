/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds any bytes as YAML to the reader and the resolver, in both modes, and prints what comes out. */
#include "compiler/config/write/write.h"
#include "compiler/document/canon.h"
#include "compiler/config/interpolation/interpolate.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <string.h>

static void check_findings(const nxc_sink *sink) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    const nxc_span *at = &finding->at;
    assert(at->source == NULL || (at->line >= 1 && at->line <= at->source->n_lines && at->length >= 1));
  }
}

/* What is printed as YAML must read back as the same values. */
static void check_reread(nxc_arena *arena, const nxc_value *value, bool omegaconf) {
  const nxc_reading reading = {.omegaconf = omegaconf};
  const nxc_resolving resolving = {.omegaconf = omegaconf};
  nxc_buffer yaml = {.arena = arena}, before = {.arena = arena}, after = {.arena = arena};
  (omegaconf ? nxc_write_yaml_omegaconf : nxc_write_yaml)(&yaml, value);
  nxc_write_canon(&before, value);
  nxc_sink *sink = nxc_sink_new(arena);
  const nxc_source *source = nxc_source_new(arena, "again.yaml", yaml.bytes, yaml.n_bytes);
  nxc_document *document = nxc_document_read(arena, source, &reading, sink);
  if (!document->complete) return; /* surrogates and keys beyond libyaml's limits have no YAML form */
  nxc_resolve(document, &resolving, sink);
  const nxc_value *again = nxc_node_value(arena, document->root);
  if (again == NULL) return;
  nxc_write_canon(&after, again);
  if (strcmp(before.bytes, after.bytes) == 0) return;
  fprintf(stderr, "printed:\n%s\nbefore: %s\nafter:  %s\n", yaml.bytes, before.bytes, after.bytes);
  abort();
}

/* Errors behind which nobody knows what the text says: not slips that are read as if they were mended. */
static size_t n_lost(const nxc_sink *sink) {
  static const char *const mended[] = {"NX1001", "NX1005", "NX1010"};
  size_t n = 0;
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    bool lost = finding->severity == NXC_SEVERITY_ERROR;
    for (size_t k = 0; k < sizeof mended / sizeof *mended; k++)
      lost = lost && strcmp(finding->id, mended[k]) != 0;
    n += lost;
  }
  return n;
}

static void read_and_resolve(const uint8_t *bytes, size_t n_bytes, bool omegaconf) {
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  const nxc_reading reading = {.omegaconf = omegaconf};
  const nxc_resolving resolving = {.omegaconf = omegaconf, .probes = true};
  const nxc_source *source = nxc_source_new(arena, "fuzz.yaml", (const char *)bytes, n_bytes);
  nxc_document *document = nxc_document_read(arena, source, &reading, sink);
  nxc_resolution resolution = nxc_resolve(document, &resolving, sink);
  bool clean = document->complete && resolution.ok && nxc_sink_n_findings(sink) == 0;
  assert(document->complete || nxc_sink_count(sink, NXC_SEVERITY_ERROR) > 0);
  assert(!document->complete || n_lost(sink) == 0 || !resolution.ok);
  const nxc_value *value = resolution.ok ? nxc_node_public_value(arena, document->root) : NULL;
  if (value) {
    nxc_buffer text = {.arena = arena};
    nxc_write_json(&text, value);
    if (clean) check_reread(arena, value, omegaconf);
  }
  check_findings(sink);
  nxc_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  for (int omegaconf = 0; omegaconf < 2; omegaconf++)
    if (is_chosen(bytes, n_bytes, 0, (size_t)omegaconf, 2)) read_and_resolve(bytes, n_bytes, omegaconf);
  return 0;
}
