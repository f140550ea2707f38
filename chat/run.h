/* SPDX-License-Identifier: Apache-2.0 */
/* A rendering under way. */
#ifndef NXJ_RUN_H
#define NXJ_RUN_H

#include "chat/calls.h"
#include "chat/template.h"
#include "chat/text.h"

typedef struct nxj_variable nxj_variable;

struct nxj_variable {
  const char *name;
  nxj_value value;
  nxj_variable *next;
};

/* The names of a scope. A loop's pass, a macro's call, with and generation have one of their own; if has
 * none. */
typedef struct nxj_frame {
  struct nxj_frame *outer;
  nxj_variable *variables;
} nxj_frame;

struct nxj_loop {
  nxj_list items;
  size_t index; /* from 0 */
  nxj_value changed; /* what loop.changed() was given last, or absent */
};

struct nxj_run {
  nxj_pool *pool;
  nxj_frame *frame;
  nxj_buffer *out;  /* what statements write to */
  const int64_t *clock; /* or NULL */
  bool is_outermost; /* `out` is the rendered text, and no block or macro that is used as a value */
  nxj_span *spans;
  size_t n_spans;
};

nxj_value nxj_evaluate(nxj_run *run, const nxj_node *node);
nxj_value nxj_item(nxj_run *run, nxj_value of, nxj_value key);
/* Fails where the value is undefined. */
void nxj_need_defined(nxj_run *run, nxj_value value);
/* Over arguments as they stand in the text. */
nxj_value nxj_apply_filter(nxj_run *run, const nxj_node *filter, nxj_value inner);

void nxj_set_variable(nxj_run *run, const char *name, nxj_value value);

nxj_value nxj_call_macro(nxj_run *run, const nxj_callable *macro, const nxj_arguments *arguments);
void nxj_render(nxj_run *run, const nxj_nodes *body);

#endif
