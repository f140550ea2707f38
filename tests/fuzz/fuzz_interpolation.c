/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds any text as one value, `it`, among values of every kind that it may refer to, and resolves it.
 *
 * Whatever the text is: what resolving the whole document gives is what resolving `it` alone gives, resolving
 * once more changes nothing, and findings stand in the text. */
#include "compiler/document/canon.h"
#include "compiler/config/interpolation/interpolate.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <string.h>

static const char others[] = "i: 7\n"
                             "f: 2.5\n"
                             "s: text\n"
                             "n: null\n"
                             "m: ???\n"
                             "l: [1, two, {x: 3}]\n"
                             "d: {x: 1, y: {z: '${i}', w: '${..x}'}, 'k.k': 2, 5: five}\n"
                             "r: '${it}'\n"
                             "token: hidden\n";

/* Other bytes than printable ASCII as the code points of the same numbers, but those from C3 to DF with their
 * one following byte as they are, so that characters of two bytes occur too. */
static void write_quoted(nxc_buffer *text, const uint8_t *bytes, size_t n_bytes) {
  nxc_buffer_puts(text, "it: \"");
  for (size_t i = 0; i < n_bytes; i++) {
    bool two = bytes[i] >= 0xC3 && bytes[i] <= 0xDF && i + 1 < n_bytes && (bytes[i + 1] & 0xC0) == 0x80;
    bool plain = bytes[i] >= ' ' && bytes[i] < 127 && bytes[i] != '"' && bytes[i] != '\\';
    if (two) nxc_buffer_put(text, (const char *)&bytes[i++], 2);
    else if (plain) nxc_buffer_put(text, (const char *)&bytes[i], 1);
    else nxc_buffer_puts(text, nxc_arena_printf(text->arena, "\\x%02X", bytes[i]));
  }
  nxc_buffer_puts(text, "\"\n");
}

static void check_findings(const nxc_sink *sink) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_span *at = &nxc_sink_finding(sink, i)->at;
    assert(at->source == NULL || (at->line >= 1 && at->line <= at->source->n_lines && at->length >= 1));
  }
}

static const char *canon(nxc_arena *arena, const nxc_node *node) {
  const nxc_value *value = nxc_node_value(arena, node);
  nxc_buffer text = {.arena = arena};
  if (value != NULL) nxc_write_canon(&text, value);
  return value ? text.bytes : NULL;
}

static nxc_document *read_source(nxc_arena *arena, const nxc_source *source, nxc_sink *sink) {
  const nxc_reading reading = {.omegaconf = true};
  nxc_document *document = nxc_document_read(arena, source, &reading, sink);
  assert(document->complete && nxc_node_child(document->root, "it") != NULL);
  return document;
}

/* `it` as canon, NULL where it cannot be resolved. */
static const char *resolve_whole(nxc_arena *arena, const nxc_source *source, const nxc_resolving *resolving) {
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_document *document = read_source(arena, source, sink);
  nxc_resolution first = nxc_resolve(document, resolving, sink);
  check_findings(sink);
  assert(first.ok == (nxc_sink_count(sink, NXC_SEVERITY_ERROR) == 0));
  const char *before = first.ok ? canon(arena, document->root) : NULL;
  nxc_resolution second = nxc_resolve(document, resolving, sink);
  const char *after = first.ok ? canon(arena, document->root) : NULL;
  assert(!first.ok || second.ok);
  assert((before == NULL) == (after == NULL) && (before == NULL || strcmp(before, after) == 0));
  return first.ok ? canon(arena, nxc_node_child(document->root, "it")) : NULL;
}

static const char *resolve_alone(nxc_arena *arena, const nxc_source *source, const nxc_resolving *resolving) {
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_document *document = read_source(arena, source, sink);
  nxc_node *found;
  nxc_resolution resolution =
      nxc_resolve_at(document, (const char *const[]){"it"}, 1, resolving, sink, &found);
  check_findings(sink);
  if (resolution.ok) nxc_node_public_value(arena, found);
  return resolution.ok ? canon(arena, found) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  static const nxc_resolving ways[] = {
      {.probes = true}, {.omegaconf = true, .probes = true}, {.angles_only = true}};
  enum { N_WAYS = sizeof ways / sizeof *ways };
  for (size_t i = 0; i < N_WAYS; i++) {
    if (!is_chosen(bytes, n_bytes, 0, i, N_WAYS)) continue;
    nxc_arena *arena = nxc_arena_new();
    nxc_buffer text = {.arena = arena};
    nxc_buffer_puts(&text, others);
    write_quoted(&text, bytes, n_bytes);
    const nxc_source *source = nxc_source_new(arena, "fuzz.yaml", text.bytes, text.n_bytes);
    const char *whole = resolve_whole(arena, source, &ways[i]),
               *alone = resolve_alone(arena, source, &ways[i]);
    bool missing =
        whole != NULL && strcmp(whole, "s\"???\"") == 0; /* what is asked for alone must be there */
    assert(whole == NULL || missing || (alone != NULL && strcmp(whole, alone) == 0));
    nxc_arena_free(arena);
  }
  return 0;
}
