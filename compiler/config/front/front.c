/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/defaults_list.h"

#include "compiler/document/buffer.h"

#include <string.h>

nxc_document *nxc_front_read_yaml(const nxc_front_texts *texts) {
  const nxc_reading reading = {.omegaconf = texts->omegaconf};
  nxc_document *document = nxc_defaults_compose(texts, &reading);
  for (size_t i = 0; i < texts->n_layers; i++) {
    nxc_document *layer = nxc_document_read(texts->arena, texts->layers[i], &reading, texts->sink);
    document->complete = nxc_document_layer(document, layer, texts->sink) && document->complete;
  }
  for (size_t i = 0; i < texts->n_sets; i++) {
    bool good = nxc_document_set(document, texts->sets[i], "--set", &reading, texts->sink);
    document->complete = document->complete && good;
  }
  return document;
}

nxc_resolution nxc_front_resolve_angles(nxc_document *document, const nxc_resolving *resolving,
                                        nxc_sink *sink) {
  nxc_resolving angles = *resolving;
  angles.angles_only = true;
  return nxc_resolve(document, &angles, sink);
}

/* What a shell would not take for a word, were it the first: A=1, if, for. */
static bool begins_command(const char *word) {
  static const char *const words[] = {"if", "case", "for", "while", "until", "select", "function"};
  bool found = *word != '-' && strchr(word, '=') != NULL;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) found = found || strcmp(word, words[i]) == 0;
  return found && strpbrk(word, "' ") == NULL;
}

const nxc_source *nxc_front_join(nxc_arena *arena, const char *const *arguments, size_t n_arguments) {
  nxc_buffer text = {.arena = arena};
  nxc_buffer_puts(&text, "");
  for (size_t i = 0; i < n_arguments; i++) {
    if (i > 0) nxc_buffer_puts(&text, strncmp(arguments[i], "--", 2) == 0 ? "\n" : " ");
    if (i == 0 && begins_command(arguments[i]))
      nxc_buffer_puts(&text, nxc_arena_printf(arena, "'%s'", arguments[i]));
    else nxc_write_shell_word(&text, arguments[i], false);
  }
  return nxc_source_new(arena, "<arguments>", text.bytes, text.n_bytes);
}
