/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/run.h"

#include <stdlib.h>
#include <string.h>

typedef enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;

static flow render_body(nxj_run *run, const nxj_nodes *body);

/* -- scopes ---------------------------------------------------------------------------------------------- */

static nxj_frame *new_frame(nxj_run *run, nxj_frame *outer) {
  nxj_frame *frame = nxj_alloc(run->pool, sizeof *frame);
  frame->outer = outer;
  return frame;
}

void nxj_set_variable(nxj_run *run, const char *name, nxj_value value) {
  for (nxj_variable *at = run->frame->variables; at != NULL; at = at->next) {
    if (strcmp(at->name, name) != 0) continue;
    at->value = value;
    return;
  }
  nxj_variable *variable = nxj_alloc(run->pool, sizeof *variable);
  *variable = (nxj_variable){name, value, run->frame->variables};
  run->frame->variables = variable;
}

static void assign(nxj_run *run, const nxj_node *target, nxj_value value) {
  if (target->kind == NXJ_NODE_NAME) {
    nxj_set_variable(run, target->name, value);
    return;
  }
  run->pool->line = target->line, run->pool->column = target->column;
  if (target->kind == NXJ_NODE_ATTRIBUTE) {
    nxj_value space = nxj_evaluate(run, target->a);
    nxj_need_defined(run, space);
    if (space.kind != NXJ_NAMESPACE) nxj_fail(run->pool, "'%s' is no namespace", target->a->name);
    nxj_dict_set(run->pool, space.dict, nxj_string_of(target->name), value);
    return;
  }
  nxj_list items = nxj_items(run->pool, value);
  if (items.n != target->items.n)
    nxj_fail(run->pool, "%zu values cannot be given to %zu names", items.n, target->items.n);
  size_t i = 0;
  for (const nxj_node *at = target->items.first; at != NULL; at = at->next) assign(run, at, items.items[i++]);
}

/* What a body writes, as a value. */
static nxj_value captured(nxj_run *run, const nxj_nodes *body, nxj_frame *frame) {
  nxj_buffer text = {0}, *out = run->out;
  nxj_frame *before = run->frame;
  bool outermost = run->is_outermost;
  run->out = &text, run->frame = frame, run->is_outermost = false;
  render_body(run, body);
  run->out = out, run->frame = before, run->is_outermost = outermost;
  return nxj_buffer_value(run->pool, &text);
}

/* -- statements ------------------------------------------------------------------------------------------ */

static flow render_text(nxj_run *run, const nxj_node *node) {
  nxj_put(run->pool, run->out, node->value.text, node->value.n_bytes);
  return FLOW_ON;
}

static flow render_output(nxj_run *run, const nxj_node *node) {
  nxj_value text = nxj_str(run->pool, nxj_evaluate(run, node->a));
  nxj_put(run->pool, run->out, text.text, text.n_bytes);
  return FLOW_ON;
}

static flow render_if(nxj_run *run, const nxj_node *node) {
  return render_body(run, nxj_is_true(nxj_evaluate(run, node->a)) ? &node->items : &node->otherwise);
}

/* The items that the loop's own condition lets through. */
static nxj_list filtered(nxj_run *run, const nxj_node *node, nxj_list items) {
  nxj_list kept = {NULL, 0};
  nxj_frame *outer = run->frame;
  for (size_t i = 0; i < items.n; i++) {
    run->frame = new_frame(run, outer);
    assign(run, node->a, items.items[i]);
    if (nxj_is_true(nxj_evaluate(run, node->c))) nxj_list_add(run->pool, &kept, items.items[i]);
  }
  run->frame = outer;
  return kept;
}

static flow render_for(nxj_run *run, const nxj_node *node) {
  nxj_list items = nxj_items(run->pool, nxj_evaluate(run, node->b));
  if (node->c) items = filtered(run, node, items);
  if (items.n == 0) return render_body(run, &node->otherwise);
  nxj_loop *loop = nxj_alloc(run->pool, sizeof *loop);
  *loop = (nxj_loop){.items = items};
  nxj_frame *outer = run->frame;
  flow then = FLOW_ON;
  for (; loop->index < items.n && then != FLOW_BREAK; loop->index++) {
    run->frame = new_frame(run, outer);
    nxj_set_variable(run, "loop", (nxj_value){.kind = NXJ_LOOP, .loop = loop});
    assign(run, node->a, items.items[loop->index]);
    then = render_body(run, &node->items);
  }
  run->frame = outer;
  return FLOW_ON;
}

static flow render_set(nxj_run *run, const nxj_node *node) {
  assign(run, node->a, nxj_evaluate(run, node->b));
  return FLOW_ON;
}

static flow render_set_block(nxj_run *run, const nxj_node *node) {
  nxj_value text = captured(run, &node->items, new_frame(run, run->frame));
  assign(run, node->a, node->b ? nxj_apply_filter(run, node->b, text) : text);
  return FLOW_ON;
}

static flow render_filter_block(nxj_run *run, const nxj_node *node) {
  nxj_value text = captured(run, &node->items, new_frame(run, run->frame));
  nxj_value kept = nxj_str(run->pool, nxj_apply_filter(run, node->b, text));
  nxj_put(run->pool, run->out, kept.text, kept.n_bytes);
  return FLOW_ON;
}

/* The values are of the scope outside. */
static flow render_with(nxj_run *run, const nxj_node *node) {
  nxj_frame *outer = run->frame, *inner = new_frame(run, outer);
  for (const nxj_node *at = node->otherwise.first; at != NULL; at = at->next) {
    nxj_value value = nxj_evaluate(run, at->b);
    run->frame = inner;
    assign(run, at->a, value);
    run->frame = outer;
  }
  run->frame = inner;
  flow then = render_body(run, &node->items);
  run->frame = outer;
  return then;
}

static flow render_macro(nxj_run *run, const nxj_node *node) {
  nxj_callable *macro = nxj_alloc(run->pool, sizeof *macro);
  *macro = (nxj_callable){.macro = node, .frame = run->frame};
  nxj_set_variable(run, node->name, (nxj_value){.kind = NXJ_CALLABLE, .callable = macro});
  return FLOW_ON;
}

static flow render_generation(nxj_run *run, const nxj_node *node) {
  size_t begin = run->out->n;
  nxj_frame *outer = run->frame;
  run->frame = new_frame(run, outer);
  render_body(run, &node->items);
  run->frame = outer;
  if (!run->is_outermost)
    nxj_fail(run->pool,
             "a generation tag within a macro, a set block or another generation tag is not covered");
  run->spans = nxj_grow(run->pool, run->spans, run->n_spans, sizeof *run->spans);
  run->spans[run->n_spans++] = (nxj_span){begin, run->out->n};
  return FLOW_ON;
}

static flow render_break(nxj_run *run, const nxj_node *node) {
  (void)run, (void)node;
  return FLOW_BREAK;
}

static flow render_continue(nxj_run *run, const nxj_node *node) {
  (void)run, (void)node;
  return FLOW_CONTINUE;
}

static flow render_node(nxj_run *run, const nxj_node *node) {
  static flow (*const renderers[NXJ_N_NODES])(nxj_run *, const nxj_node *) = {
      [NXJ_NODE_TEXT] = render_text,
      [NXJ_NODE_OUTPUT] = render_output,
      [NXJ_NODE_IF] = render_if,
      [NXJ_NODE_FOR] = render_for,
      [NXJ_NODE_SET] = render_set,
      [NXJ_NODE_SET_BLOCK] = render_set_block,
      [NXJ_NODE_WITH] = render_with,
      [NXJ_NODE_MACRO] = render_macro,
      [NXJ_NODE_FILTER_BLOCK] = render_filter_block,
      [NXJ_NODE_GENERATION] = render_generation,
      [NXJ_NODE_BREAK] = render_break,
      [NXJ_NODE_CONTINUE] = render_continue};
  nxj_work(run->pool, 1);
  run->pool->line = node->line, run->pool->column = node->column;
  return renderers[node->kind](run, node);
}

static flow render_body(nxj_run *run, const nxj_nodes *body) {
  flow then = FLOW_ON;
  nxj_enter(run->pool);
  for (const nxj_node *at = body->first; at != NULL && then == FLOW_ON; at = at->next)
    then = render_node(run, at);
  nxj_leave(run->pool);
  return then;
}

void nxj_render(nxj_run *run, const nxj_nodes *body) {
  render_body(run, body);
}

/* -- macros ---------------------------------------------------------------------------------------------- */

static const nxj_value *argument_of(const nxj_arguments *arguments, size_t position, const char *name) {
  if (position < arguments->n && arguments->names[position] == NULL) return &arguments->values[position];
  for (size_t i = 0; i < arguments->n; i++)
    if (arguments->names[i] && strcmp(arguments->names[i], name) == 0) return &arguments->values[i];
  return NULL;
}

static void check_macro_arguments(nxj_run *run, const nxj_node *macro, const nxj_arguments *arguments) {
  for (size_t i = 0; i < arguments->n; i++) {
    bool known = arguments->names[i] == NULL && i < macro->otherwise.n;
    for (const nxj_node *at = macro->otherwise.first; at != NULL && !known; at = at->next)
      known = arguments->names[i] && strcmp(arguments->names[i], at->name) == 0;
    if (!known)
      nxj_fail(run->pool, "the macro '%s' takes no argument %s", macro->name,
               arguments->names[i] ? arguments->names[i] : "more");
  }
}

nxj_value nxj_call_macro(nxj_run *run, const nxj_callable *callable, const nxj_arguments *arguments) {
  const nxj_node *macro = callable->macro;
  nxj_frame *frame = new_frame(run, callable->frame), *before = run->frame;
  check_macro_arguments(run, macro, arguments);
  size_t position = 0;
  run->frame = frame;
  for (const nxj_node *at = macro->otherwise.first; at != NULL; at = at->next, position++) {
    const nxj_value *given = argument_of(arguments, position, at->name);
    nxj_set_variable(run, at->name,
                     given   ? *given
                     : at->a ? nxj_evaluate(run, at->a)
                             : nxj_undefined(at->name));
  }
  run->frame = before;
  return captured(run, &macro->items, frame);
}
