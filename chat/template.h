/* SPDX-License-Identifier: Apache-2.0 */
/* Chat templates: the Jinja2 texts that tokenizers carry (chat_template), which make one text of a dialogue.
 *
 * Covered is what such templates use, with the meaning that transformers gives it (trim_blocks,
 * lstrip_blocks, loop controls, the generation tag, an immutable sandbox):
 *
 *   statements  if, for (with if, else, loop.*, several targets), set (names, namespaces, blocks), with,
 * macro, filter, break, continue, generation, raw, comments, whitespace control expressions literals, lists,
 * tuples, dicts, attributes, items, slices, calls, filters, tests, ~ + - * / // % **, comparisons (chained),
 * in, and, or, not, a if c else b functions   namespace, range, dict, raise_exception, strftime_now (only
 * where a clock is given) filters, tests, methods: the tables of filters.c, filters_select.c, tests.c and
 * methods.c
 *
 * What is not covered (import, include, extends, block, call, autoescape, recursive loops, HTML escaping,
 * %-formats, and filters, tests and methods that the tables lack) is refused by name, with its line and
 * column: where the template is opened if its text alone shows it, else where it is met.
 *
 * A template comes from a file: it takes no more steps and memory than its limits say, and calls nothing.
 * Rendering allocates from a pool of its own; one template may be rendered by several threads at once. */
#ifndef NXJ_TEMPLATE_H
#define NXJ_TEMPLATE_H

#include "runtime/files/fault.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxj_template nxj_template;

typedef struct nxj_limits {
  uint64_t steps, bytes; /* of one rendering; of its text's parse the bytes alone */
} nxj_limits;

#define NXJ_LIMITS_USUAL ((nxj_limits){.steps = 20000000, .bytes = (uint64_t)256 << 20})

/* Bytes [begin, end) of the text stand within a generation tag: the assistant's own. */
typedef struct nxj_span {
  size_t begin, end;
} nxj_span;

typedef struct nxj_text {
  char *text; /* UTF-8, NUL behind it; the caller frees both */
  size_t n_bytes;
  nxj_span *spans; /* ascending */
  size_t n_spans;
} nxj_text;

typedef struct nxj_named {
  const char *name;
  const json_t *value;
} nxj_named;

/* The names that a template sees: those of an object, and more: messages, tools, add_generation_prompt,
 * bos_token, ... */
typedef struct nxj_input {
  const json_t *names;
  const nxj_named *more;
  size_t n_more;
  bool has_clock; /* else a template has no strftime_now */
  int64_t clock;  /* seconds since 1970 (UTC), which strftime_now writes */
  nxj_limits limits;
} nxj_input;

/* The text is copied. `name` is what messages call it. NULL: the fault says why. */
nxj_template *nxj_template_open(const char *name, const char *text, size_t n_bytes, nxj_limits limits,
                                nxr_fault *fault);
void nxj_template_close(nxj_template *opened);
/* Whether it has a generation tag, so that spans say what the assistant said. */
bool nxj_template_has_generation(const nxj_template *opened);
/* On failure nothing is left to free. */
bool nxj_template_render(const nxj_template *opened, const nxj_input *input, nxj_text *rendered,
                         nxr_fault *fault);
void nxj_text_free(nxj_text *rendered);

#endif
