/* SPDX-License-Identifier: Apache-2.0 */
/* OmegaConf's own resolvers. */
#include "compiler/document/buffer.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"
#include "compiler/config/interpolation/resolvers.h"

#include <stdlib.h>
#include <string.h>

static bool is_text(const nxc_item *item) {
  return item->node == NULL && item->value.kind == NXC_STRING;
}

static nxc_step need_text(nxc_evaluator *m, const nxc_resolver *self, const nxc_item *arg) {
  if (is_text(arg)) return NXC_STEP_DONE;
  const char *kind = arg->node ? "list or map" : nxc_kind_name(arg->value.kind);
  return nxc_machine_fail(m, "NX1210", "put it in quotes", "%s takes text here, not a value of type %s",
                          self->name, kind);
}

/* Whether the call's result goes straight to oc.decode, whose name then stands below the call's own on the
 * stack. */
static bool is_decoded(const nxc_evaluator *m, const nxc_item *args) {
  const nxc_frame *frame = nxc_machine_top(m);
  const nxc_op *next = &frame->formula->ops[frame->position + 1];
  if (frame->position + 1 >= frame->formula->n_ops || next->code != NXC_OP_CALL || next->n != 1) return false;
  return is_text(&args[-2]) && strcmp(args[-2].value.text, "oc.decode") == 0;
}

nxc_step nxc_resolve_env(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                         nxc_item *result) {
  nxc_step step = need_text(m, self, &args[0]);
  if (step != NXC_STEP_DONE) return step;
  const char *name = args[0].value.text, *value = *name && !strchr(name, '=') ? getenv(name) : NULL;
  if (value == NULL && n == 1) {
    nxc_machine_variable(m, name, NULL, false);
    if (m->options->open) {
      nxc_machine_warn(m, "NX1224",
                       nxc_arena_printf(m->arena, "set it here too, or write ${oc.env:%s,DEFAULT}", name),
                       "the environment variable %s is not set here: what it gives is unknown", name);
      return NXC_STEP_FAILED;
    }
    return nxc_machine_fail(m, "NX1224",
                            nxc_arena_printf(m->arena, "set it, or write ${oc.env:%s,DEFAULT}", name),
                            "the environment variable %s is not set", name);
  }
  nxc_machine_variable(m, name, value, value == NULL);
  if (value) {
    value = nxc_arena_strdup(m->arena, value);
    result->value = nxc_string_value(value, strlen(value));
    return NXC_STEP_DONE;
  }
  if (args[1].value.kind == NXC_NULL) {
    result->value = args[1].value;
    return NXC_STEP_DONE;
  }
  if (args[1].value.kind != NXC_STRING && !m->options->omegaconf && !is_decoded(m, args))
    nxc_machine_warn(m, "NX1219", "write ${oc.decode:${oc.env:...}} for a number or a boolean",
                     "the default %s becomes text, as everything from oc.env",
                     nxc_machine_show(m, NULL, &args[1].value));
  return nxc_machine_join(m, &args[1], 1, result);
}

nxc_step nxc_resolve_select_key(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                                nxc_item *result) {
  nxc_step step = need_text(m, self, &args[0]);
  if (step != NXC_STEP_DONE) return step;
  bool absent;
  step = nxc_machine_walk(m, args[0].value.text, args[0].value.n_bytes, true, result, &absent);
  if (step != NXC_STEP_DONE) return step;
  if (absent) *result = n > 1 ? args[1] : (nxc_item){.value = {.kind = NXC_NULL}};
  return NXC_STEP_DONE;
}

nxc_step nxc_resolve_decode(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                            nxc_item *result) {
  (void)n;
  const nxc_frame *frame = nxc_machine_top(m);
  if (frame->decoded_item) {
    *result = *frame->decoded_item;
    return NXC_STEP_DONE;
  }
  if (args[0].value.kind == NXC_NULL) {
    *result = args[0];
    return NXC_STEP_DONE;
  }
  nxc_step step = need_text(m, self, &args[0]);
  if (step != NXC_STEP_DONE) return step;
  nxc_formula *formula = nxc_arena_alloc(m->arena, sizeof *formula);
  nxc_syntax_problem problem;
  size_t depth = 0;
  for (size_t i = m->n_frames; i-- > 0 && m->frames[i].decoded;) depth++;
  if (depth > 100) return nxc_resolver_fail(m, self, "texts decode to texts more than 100 deep");
  const nxc_marks marks = {.brace = true, .angle = !m->options->omegaconf};
  if (!nxc_formula_parse(m->arena, args[0].value.text, args[0].value.n_bytes, marks, true, formula, &problem))
    return nxc_machine_fail(m, "NX1201", problem.fix, "%s cannot read %s: %s", self->name,
                            nxc_machine_show(m, NULL, &args[0].value), problem.message);
  nxc_machine_decode(m, formula);
  return NXC_STEP_AGAIN;
}

/* What a text is as YAML: a lone word is a key without a value, nothing an empty map. NULL: no YAML. */
static const nxc_value *read_tree(nxc_arena *arena, const char *text) {
  const nxc_reading reading = {.omegaconf = true};
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_document *holder =
      nxc_document_read(arena, nxc_source_new(arena, "oc.create", "{}", 2), &reading, sink);
  const char *assignment = nxc_arena_printf(arena, "tree=%s", text);
  if (!nxc_document_set(holder, assignment, "oc.create", &reading, sink)) return NULL;
  const nxc_value *tree = nxc_node_value(arena, nxc_node_child(holder->root, "tree"));
  if (tree->kind != NXC_NULL && tree->kind != NXC_STRING) return tree;
  nxc_value *map = nxc_arena_alloc(arena, sizeof *map), *pair = nxc_arena_array(arena, 2, sizeof *pair);
  pair[0] = *tree;
  pair[1] = (nxc_value){.kind = NXC_NULL};
  *map = (nxc_value){.kind = NXC_MAP, .items = pair, .n_items = tree->kind == NXC_STRING};
  return map;
}

nxc_step nxc_resolve_create(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                            nxc_item *result) {
  (void)n;
  const nxc_value *value = &args[0].value,
                  *tree = is_text(&args[0]) ? read_tree(m->arena, value->text) : value;
  if (tree != NULL) value = tree;
  if (value->kind == NXC_NULL) {
    *result = args[0];
    return NXC_STEP_DONE;
  }
  if (value->kind != NXC_LIST && value->kind != NXC_MAP)
    return nxc_machine_fail(m, "NX1210", NULL, "%s takes a list or a map, not the %s %s", self->name,
                            nxc_kind_name(value->kind), nxc_machine_show(m, NULL, value));
  result->node = nxc_machine_plant(m, value, false);
  return NXC_STEP_DONE;
}

/* The map that the key names, everything in it resolved when `whole`. */
static nxc_step find_map(nxc_evaluator *m, const nxc_resolver *self, const nxc_item *arg, bool whole,
                         nxc_node **map) {
  nxc_step step = need_text(m, self, arg);
  if (step != NXC_STEP_DONE) return step;
  nxc_item found = {0};
  bool absent;
  step = nxc_machine_walk(m, arg->value.text, arg->value.n_bytes, true, &found, &absent);
  if (step != NXC_STEP_DONE) return step;
  if (absent) return nxc_machine_fail(m, "NX1210", NULL, "%s: there is no %s", self->name, arg->value.text);
  if (found.node == NULL || found.node->kind != NXC_NODE_MAP)
    return nxc_machine_fail(m, "NX1210", NULL, "%s: %s is not a map", self->name, arg->value.text);
  *map = found.node;
  return whole ? nxc_machine_need_complete(m, found.node) : NXC_STEP_DONE;
}

nxc_step nxc_resolve_dict_keys(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                               nxc_item *result) {
  (void)n;
  nxc_node *map;
  nxc_step step = find_map(m, self, &args[0], false, &map);
  if (step != NXC_STEP_DONE) return step;
  step = nxc_machine_spend(m, map->n_children);
  if (step != NXC_STEP_DONE) return step;
  nxc_value *keys = nxc_arena_array(m->arena, map->n_children, sizeof *keys);
  for (size_t i = 0; i < map->n_children; i++) keys[i] = map->children[i]->key_value;
  nxc_value list = {.kind = NXC_LIST, .items = keys, .n_items = map->n_children};
  result->node = nxc_machine_plant(m, &list, false);
  return NXC_STEP_DONE;
}

nxc_step nxc_resolve_dict_values(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                                 nxc_item *result) {
  (void)n;
  nxc_node *map;
  nxc_step step = find_map(m, self, &args[0], true, &map);
  if (step != NXC_STEP_DONE) return step;
  step = nxc_machine_spend(m, map->n_children);
  if (step != NXC_STEP_DONE) return step;
  nxc_value empty = {.kind = NXC_LIST};
  nxc_node *list = nxc_machine_plant(m, &empty, false);
  for (size_t i = 0; i < map->n_children; i++) {
    nxc_node *from = nxc_node_final(map->children[i]),
             *item = nxc_node_new(m->arena, NXC_NODE_SCALAR, from->at);
    item->style = from->style;
    item->raw = from->raw ? from->raw : "";
    item->raw_bytes = from->raw_bytes;
    item->value = from->value;
    item->state = NXC_STATE_DONE;
    if (from->kind != NXC_NODE_SCALAR) item->target = from;
    nxc_node_append(m->arena, list, item);
  }
  result->node = list;
  return NXC_STEP_DONE;
}

/* string.Template's safe_substitute for the two names that oc.deprecated knows. */
static const char *substitute(nxc_arena *arena, const char *message, const char *old_key,
                              const char *new_key) {
  static const char old_name[] = "$OLD_KEY", new_name[] = "$NEW_KEY";
  nxc_buffer text = {.arena = arena};
  for (const char *c = message; *c;) {
    bool is_old = strncmp(c, old_name, strlen(old_name)) == 0,
         is_new = strncmp(c, new_name, strlen(new_name)) == 0;
    if (is_old || is_new) {
      nxc_buffer_puts(&text, is_old ? old_key : new_key);
      c += strlen(old_name);
    } else {
      nxc_buffer_put(&text, c++, 1);
    }
  }
  return text.bytes ? text.bytes : "";
}

nxc_step nxc_resolve_deprecated(nxc_evaluator *m, const nxc_resolver *self, nxc_item *args, size_t n,
                                nxc_item *result) {
  nxc_step step = need_text(m, self, &args[0]);
  if (step == NXC_STEP_DONE && n > 1) step = need_text(m, self, &args[1]);
  if (step != NXC_STEP_DONE) return step;
  const char *key = args[0].value.text;
  bool absent;
  step = nxc_machine_walk(m, key, args[0].value.n_bytes, true, result, &absent);
  if (step != NXC_STEP_DONE) return step;
  if (absent) return nxc_machine_fail(m, "NX1210", NULL, "%s: there is no %s", self->name, key);
  if (!m->options->omegaconf) {
    const char *message = n > 1 ? args[1].value.text : "$OLD_KEY is deprecated; use $NEW_KEY";
    const char *old_key = nxc_node_path(m->arena, nxc_machine_top(m)->node);
    nxc_machine_warn(m, "NX1223", NULL, "%s", substitute(m->arena, message, old_key, key));
  }
  return NXC_STEP_DONE;
}
