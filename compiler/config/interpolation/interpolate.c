/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/nearest.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"
#include "compiler/config/interpolation/interpolate_machine.h"

#include <string.h>

static nxc_marks marks_of(const nxc_resolving *options) {
  return (nxc_marks){.brace = !options->angles_only, .angle = !options->omegaconf};
}

static void give_formula(nxc_evaluator *m, nxc_node *node) {
  nxc_resolved *resolved = nxc_arena_alloc(m->arena, sizeof *resolved);
  nxc_syntax_problem problem;
  bool ok = nxc_formula_parse(m->arena, node->raw, node->raw_bytes, marks_of(m->options), false,
                              &resolved->formula, &problem);
  node->derivation = &resolved->derivation;
  resolved->derivation.angle = resolved->formula.angle;
  if (!ok) {
    nxc_report(m->sink, "NX1201", NXC_SEVERITY_ERROR, nxc_node_span_inside(node, problem.offset, 1),
               problem.fix, "%s", problem.message);
    node->state = NXC_STATE_FAILED;
    node->failed = true;
    m->ok = false;
  } else if (resolved->formula.empty_argument && !m->options->omegaconf) {
    nxc_report(m->sink, "NX1222", NXC_SEVERITY_WARNING, node->at, "write '' for it",
               "an empty argument, which newer loaders refuse");
  }
}

/* Parses every scalar that needs it: grammar errors count also in keys that nothing reads. */
static void parse_all(nxc_evaluator *m, nxc_node *node, const nxc_node **first_angle) {
  if (node->kind == NXC_NODE_SCALAR) {
    if (node->derivation || node->value.kind != NXC_STRING) return;
    if (!nxc_formula_needed(node->raw, node->raw_bytes, marks_of(m->options))) return;
    give_formula(m, node);
    if (node->derivation->angle && *first_angle == NULL) *first_angle = node;
  }
  for (size_t i = 0; i < node->n_children; i++) parse_all(m, node->children[i], first_angle);
}

static nxc_evaluator start(nxc_document *document, const nxc_resolving *options, nxc_sink *sink,
                         const nxc_node **first_angle) {
  nxc_evaluator machine = {.arena = document->arena,
                         .document = document,
                         .options = options,
                         .sink = sink,
                         .ok = true,
                         .n_text_left = NXC_TEXT_BYTES_MAX,
                         .n_flat_left = NXC_VALUE_NODES_MAX};
  *first_angle = NULL;
  parse_all(&machine, document->root, first_angle);
  return machine;
}

static nxc_resolution summary(const nxc_evaluator *m, const nxc_node *first_angle) {
  return (nxc_resolution){
      .ok = m->ok, .variables = m->variables, .n_variables = m->n_variables, .first_angle = first_angle};
}

nxc_resolution nxc_resolve(nxc_document *document, const nxc_resolving *resolving, nxc_sink *sink) {
  const nxc_node *first_angle;
  nxc_evaluator m = start(document, resolving, sink, &first_angle);
  m.ok = nxc_machine_complete(&m, document->root) && m.ok;
  return summary(&m, first_angle);
}

static bool fail_step(nxc_evaluator *m, const char *id, const nxc_node *at, const char *fix,
                      const char *message) {
  nxc_report(m->sink, id, NXC_SEVERITY_ERROR, nxc_node_span(at), fix, "%s", message);
  m->ok = false;
  return false;
}

static nxc_node *child_by_step(nxc_evaluator *m, nxc_node *in, const char *step) {
  nxc_node *child = nxc_node_item(in, step, strlen(step));
  nxc_value typed;
  const char *problem;
  if (child || in->kind != NXC_NODE_MAP || !nxc_scalar_read(m->arena, step, strlen(step), &typed, &problem))
    return child;
  return nxc_node_find_key(m->arena, in, &typed);
}

/* From *node one step down; *node becomes the child. */
static bool take_step(nxc_evaluator *m, nxc_node **node, const char *step) {
  if (!nxc_machine_resolve(m, *node)) return false;
  nxc_node *in = nxc_node_final(*node), *child = NULL;
  const char *path = nxc_node_path(m->arena, *node);
  if (*path == '\0') path = "the document";
  if (in->kind == NXC_NODE_SCALAR)
    return fail_step(m, "NX1217", *node, NULL,
                     nxc_arena_printf(m->arena, "%s is %s and holds no %s", path,
                                      nxc_machine_show(m, *node, &in->value), step));
  child = child_by_step(m, in, step);
  if (child) {
    *node = child;
    return true;
  }
  if (in->kind == NXC_NODE_LIST)
    return fail_step(m, "NX1216", *node, NULL,
                     nxc_arena_printf(m->arena, "%s has %zu items, the first is 0: there is no item %s", path,
                                      in->n_children, step));
  const char **names = nxc_arena_array(m->arena, in->n_children, sizeof *names);
  for (size_t i = 0; i < in->n_children; i++) names[i] = in->children[i]->key;
  return fail_step(m, "NX1215", *node,
                   nxc_did_you_mean(m->arena, "", nxc_nearest(step, names, in->n_children)),
                   nxc_arena_printf(m->arena, "%s has no key %s", path, step));
}

nxc_resolution nxc_resolve_at(nxc_document *document, const char *const *steps, size_t n_steps,
                              const nxc_resolving *resolving, nxc_sink *sink, nxc_node **found) {
  const nxc_node *first_angle;
  nxc_evaluator m = start(document, resolving, sink, &first_angle);
  nxc_node *node = document->root;
  bool ok = true;
  *found = NULL;
  for (size_t i = 0; ok && i < n_steps; i++) ok = take_step(&m, &node, steps[i]);
  ok = ok && nxc_machine_complete(&m, node);
  m.ok = m.ok && ok; /* what failed in an earlier run is not reported again */
  if (ok) {
    const nxc_node *final = nxc_node_final(node);
    bool missing = final->kind == NXC_NODE_SCALAR && final->value.kind == NXC_MISSING;
    if (missing && n_steps > 0) m.ok = nxc_report_missing(m.arena, node, sink) == 0;
    else *found = node;
  }
  return summary(&m, first_angle);
}

nxc_resolution nxc_resolve_select(nxc_document *document, const char *key, const nxc_resolving *resolving,
                                  nxc_sink *sink, nxc_node **found) {
  const nxc_node *first_angle;
  nxc_evaluator m = start(document, resolving, sink, &first_angle);
  nxc_item item;
  bool absent = true;
  *found = NULL;
  if (m.ok && nxc_machine_select(&m, key, &item, &absent) && !absent) {
    nxc_node *node = item.node;
    if (node == NULL) {
      node = nxc_node_new(m.arena, NXC_NODE_SCALAR, document->root->at);
      node->value = item.value;
    }
    if (nxc_machine_complete(&m, node)) *found = node;
  }
  return summary(&m, first_angle);
}

size_t nxc_report_missing(nxc_arena *arena, const nxc_node *node, nxc_sink *sink) {
  const nxc_node *final = nxc_node_final(node);
  if (final->kind == NXC_NODE_SCALAR) {
    if (final->value.kind != NXC_MISSING) return 0;
    nxc_report(sink, "NX1214", NXC_SEVERITY_ERROR, nxc_node_span(node),
               "give it a value in the file, or with --set", "%s is ???: it must be given a value before use",
               nxc_node_path(arena, node));
    return 1;
  }
  size_t n = 0;
  for (size_t i = 0; node == final && i < node->n_children; i++)
    n += nxc_report_missing(arena, node->children[i], sink);
  return n;
}

void nxc_machine_note(nxc_evaluator *m, const nxc_node *read, const char *variable) {
  if (m->n_frames == 0) return;
  nxc_node *node = nxc_machine_top(m)->node;
  nxc_resolved *resolved = (nxc_resolved *)node->derivation;
  if (resolved == NULL) return;
  nxc_derivation *derivation = &resolved->derivation;
  const nxc_op *op = nxc_machine_operation(m);
  resolved->references =
      nxc_arena_grow(m->arena, resolved->references, derivation->n_references, sizeof *resolved->references);
  resolved->references[derivation->n_references++] = (nxc_reference){op->offset, op->length, read, variable};
  derivation->references = resolved->references;
  if (variable) derivation->from_environment = true;
  if (read == NULL) return;
  if (read->reader == NULL) ((nxc_node *)read)->reader = node;
  const nxc_derivation *inner = read->derivation;
  if (inner && inner->from_environment) derivation->from_environment = true;
  if (nxc_node_is_secret(read)) derivation->from_secret = true;
}

void nxc_machine_variable(nxc_evaluator *m, const char *name, const char *value, bool default_taken) {
  name = nxc_machine_public(m, name);
  if (value) nxc_machine_note(m, NULL, name);
  if (m->variable_names == NULL) m->variable_names = nxc_names_new(m->arena);
  void **slot = nxc_names_slot(m->variable_names, name, strlen(name));
  if (*slot) return;
  *slot = m;
  nxc_span at = nxc_machine_place(m);
  m->variables = nxc_arena_grow(m->arena, m->variables, m->n_variables, sizeof *m->variables);
  m->variables[m->n_variables++] = (nxc_variable){name, value, default_taken, at};
}
