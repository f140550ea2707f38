/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/document.h"
#include "compiler/document/document_read.h"
#include "compiler/document/nodes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* OmegaConf makes the text T alone into {T: null}. What could not be read is a text by chance. */
static nxc_node *root_of_text(nxc_reader *reader, nxc_node *scalar) {
  nxc_node *root = nxc_node_new(reader->arena, NXC_NODE_MAP, scalar->at);
  if (!reader->ok) return root;
  if (!reader->reading->omegaconf) {
    enum { SHOWN = 40 };
    const char *shown = nxc_value_show(reader->arena, &scalar->value);
    bool cut = strlen(shown) > SHOWN;
    if (cut && scalar->at.length > SHOWN) scalar->at.length = SHOWN;
    nxc_reader_error(reader, "NX1018", scalar->at, "write KEY: VALUE",
                     "the document is the text %.*s%s alone, not a map", cut ? SHOWN : (int)strlen(shown),
                     shown, cut ? "..." : "");
    return root;
  }
  nxc_node *value = nxc_node_new(reader->arena, NXC_NODE_SCALAR, scalar->at);
  value->raw = "";
  nxc_node_set_key(value, &scalar->value, scalar->raw, scalar->at);
  nxc_node_append(reader->arena, root, value);
  return root;
}

static nxc_node *make_root(nxc_reader *reader, nxc_node *root) {
  if (root && root->kind != NXC_NODE_SCALAR) return root;
  if (root && (root->value.kind == NXC_STRING || root->value.kind == NXC_MISSING))
    return root_of_text(reader, root);
  nxc_span at = root ? root->at : nxc_reader_span(reader, 0, 0, 1);
  if (root && root->value.kind != NXC_NULL)
    nxc_reader_error(reader, "NX1018", at, "write KEY: VALUE", "the document is one %s, not a map",
                     nxc_kind_name(root->value.kind));
  return nxc_node_new(reader->arena, NXC_NODE_MAP, at);
}

nxc_document *nxc_document_read(nxc_arena *arena, const nxc_source *source, const nxc_reading *reading,
                                nxc_sink *sink) {
  nxc_reader reader = {.arena = arena, .source = source, .reading = reading, .sink = sink, .ok = true};
  nxc_document *document = nxc_arena_alloc(arena, sizeof *document);
  char *text = nxc_reader_clean(&reader);
  reader.clean = text;
  nxc_node *root = text ? nxc_document_read_tree(&reader, text, source->n_bytes) : NULL;
  document->arena = arena;
  document->root = make_root(&reader, root);
  document->complete = reader.ok;
  return document;
}
