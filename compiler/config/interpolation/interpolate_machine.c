/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/canon.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"
#include "compiler/config/interpolation/interpolate_machine.h"
#include "compiler/config/interpolation/resolvers.h"

#include <assert.h>
#include <string.h>

nxc_frame *nxc_machine_top(const nxc_evaluator *machine) {
  return &machine->frames[machine->n_frames - 1];
}

/* Room for one more on a stack that shrinks as well, which nxc_arena_grow is not made for. */
static void *reserve(nxc_evaluator *m, void *items, size_t n, size_t *capacity, size_t item_bytes) {
  if (n < *capacity) return items;
  *capacity = *capacity ? 2 * *capacity : 16;
  void *larger = nxc_arena_array(m->arena, *capacity, item_bytes);
  return n ? memcpy(larger, items, n * item_bytes) : larger;
}

static void push_frame(nxc_evaluator *m, nxc_frame frame) {
  frame.base = m->n_items;
  m->frames = reserve(m, m->frames, m->n_frames, &m->frames_capacity, sizeof *m->frames);
  m->frames[m->n_frames++] = frame;
}

static void push_item(nxc_evaluator *m, const nxc_item *item) {
  m->items = reserve(m, m->items, m->n_items, &m->items_capacity, sizeof *m->items);
  m->items[m->n_items++] = *item;
}

nxc_step nxc_machine_need(nxc_evaluator *m, nxc_node *node) {
  if (node->derivation == NULL) return NXC_STEP_DONE;
  switch (node->state) {
  case NXC_STATE_DONE: return NXC_STEP_DONE;
  case NXC_STATE_FAILED: return NXC_STEP_FAILED;
  case NXC_STATE_ACTIVE: return nxc_machine_cycle(m, node);
  default: break;
  }
  node->state = NXC_STATE_ACTIVE;
  push_frame(m, (nxc_frame){.node = node, .formula = &((const nxc_resolved *)node->derivation)->formula});
  return NXC_STEP_AGAIN;
}

nxc_step nxc_machine_need_complete(nxc_evaluator *m, nxc_node *node) {
  nxc_step step = nxc_machine_need(m, node);
  if (step != NXC_STEP_DONE) return step;
  nxc_node *final = nxc_node_final(node);
  if (final->kind == NXC_NODE_SCALAR) return NXC_STEP_DONE;
  switch (final->state) {
  case NXC_STATE_DONE: return NXC_STEP_DONE;
  case NXC_STATE_FAILED: return NXC_STEP_FAILED;
  case NXC_STATE_ACTIVE: return nxc_machine_cycle(m, final);
  default: break;
  }
  final->state = NXC_STATE_ACTIVE;
  push_frame(m, (nxc_frame){.node = final, .completing = true});
  return NXC_STEP_AGAIN;
}

static size_t count_values(const nxc_value *value) {
  if (value->kind != NXC_LIST && value->kind != NXC_MAP) return 1;
  size_t n = 1;
  for (size_t i = 0; i < value->n_items; i++)
    n += count_values(&value->items[value->kind == NXC_MAP ? 2 * i + 1 : i]);
  return n;
}

nxc_step nxc_machine_spend(nxc_evaluator *m, size_t n_values) {
  if (n_values > m->n_flat_left)
    return nxc_machine_fail(m, "NX1213", NULL, "references copy lists and maps into more than %d values",
                            NXC_VALUE_NODES_MAX);
  m->n_flat_left -= n_values;
  return NXC_STEP_DONE;
}

nxc_step nxc_machine_flatten(nxc_evaluator *m, nxc_item *item) {
  if (item->node == NULL) return NXC_STEP_DONE;
  nxc_step step = nxc_machine_need_complete(m, item->node);
  if (step != NXC_STEP_DONE) return step;
  const nxc_value *value = nxc_node_value(m->arena, item->node);
  step = nxc_machine_spend(m, value ? count_values(value) : SIZE_MAX);
  if (step == NXC_STEP_DONE) *item = (nxc_item){.value = *value};
  return step;
}

nxc_step nxc_machine_join(nxc_evaluator *m, const nxc_item *items, size_t n, nxc_item *result) {
  nxc_buffer text = {.arena = m->arena};
  for (size_t i = 0; i < n; i++) {
    const nxc_value *value = &items[i].value;
    if (items[i].node) value = nxc_node_raw_value(m->arena, items[i].node);
    bool is_text = value && value->kind == NXC_STRING;
    if (is_text && text.n_bytes + value->n_bytes > m->n_text_left) value = NULL;
    if (value) nxc_write_python(&text, value);
    if (value == NULL || text.n_bytes > m->n_text_left)
      return nxc_machine_fail(m, "NX1213", NULL, "references make more than %d MiB of text",
                              NXC_TEXT_BYTES_MAX / 1024 / 1024);
  }
  m->n_text_left -= text.n_bytes;
  *result = (nxc_item){.value = nxc_string_value(text.bytes ? text.bytes : "", text.n_bytes)};
  return NXC_STEP_DONE;
}

void nxc_machine_decode(nxc_evaluator *m, const nxc_formula *formula) {
  push_frame(m, (nxc_frame){.node = nxc_machine_top(m)->node, .decoded = true, .formula = formula});
}

static nxc_node *plant(nxc_evaluator *m, const nxc_node *over, const nxc_value *value, bool sealed) {
  bool is_map = value->kind == NXC_MAP, is_list = value->kind == NXC_LIST;
  nxc_node_kind kind = is_map ? NXC_NODE_MAP : is_list ? NXC_NODE_LIST : NXC_NODE_SCALAR;
  nxc_node *node = nxc_node_new(m->arena, kind, over->at);
  node->style = over->style;
  node->raw = over->raw;
  node->raw_bytes = over->raw_bytes;
  node->state = NXC_STATE_DONE;
  node->sealed = sealed;
  if (!is_map && !is_list) node->value = *value;
  for (size_t i = 0; (is_map || is_list) && i < value->n_items; i++) {
    nxc_node *child = plant(m, over, &value->items[is_map ? 2 * i + 1 : i], sealed);
    if (is_map) {
      const nxc_value *key = &value->items[2 * i];
      nxc_node_set_key(child, key, key->kind == NXC_STRING ? key->text : nxc_value_show(m->arena, key),
                       over->at);
    }
    nxc_node_append(m->arena, node, child);
  }
  return node;
}

nxc_node *nxc_machine_plant(nxc_evaluator *m, const nxc_value *value, bool sealed) {
  nxc_node *over = nxc_machine_top(m)->node, *node = plant(m, over, value, sealed);
  node->parent = over->parent;
  node->key = over->key;
  node->key_value = over->key_value;
  node->key_at = over->key_at;
  node->index = over->index;
  return node;
}

/* Operations. `own` are the n items an operation takes from the top of the stack. */
static nxc_step do_value(nxc_evaluator *m, const nxc_op *op, nxc_item *own, nxc_item *result) {
  (void)m;
  (void)own;
  *result = (nxc_item){.value = op->value};
  return NXC_STEP_DONE;
}

static nxc_step do_concat(nxc_evaluator *m, const nxc_op *op, nxc_item *own, nxc_item *result) {
  return nxc_machine_join(m, own, op->n, result);
}

static const char *show_item(nxc_evaluator *m, const nxc_item *item) {
  if (item->node) return item->node->kind == NXC_NODE_MAP ? "a map" : "a list";
  return nxc_arena_printf(m->arena, "the %s %s", nxc_kind_name(item->value.kind),
                          nxc_machine_show(m, NULL, &item->value));
}

static nxc_step do_key(nxc_evaluator *m, const nxc_op *op, nxc_item *own, nxc_item *result) {
  bool is_key = op->code == NXC_OP_KEY;
  *result = *own;
  if (own->node == NULL && own->value.kind == NXC_STRING) return NXC_STEP_DONE;
  return nxc_machine_fail(m, is_key ? "NX1211" : "NX1212", "quote the value where it is written",
                          "the inner reference is used as a %s and must give text, not %s",
                          is_key ? "key" : "resolver's name", show_item(m, own));
}

static nxc_step do_reference(nxc_evaluator *m, const nxc_op *op, nxc_item *own, nxc_item *result) {
  (void)op;
  bool absent = false;
  nxc_step step = nxc_machine_walk(m, own->value.text, own->value.n_bytes, false, result, &absent);
  if (step != NXC_STEP_DONE || result->node == NULL) return step;
  for (const nxc_node *up = nxc_machine_top(m)->node->parent; up; up = up->parent)
    if (up == result->node)
      return nxc_machine_fail(m, "NX1207", NULL, "this reference stands inside the %s that it refers to",
                              result->node->kind == NXC_NODE_MAP ? "map" : "list");
  return NXC_STEP_DONE;
}

static nxc_step flatten_all(nxc_evaluator *m, nxc_item *items, size_t n) {
  for (size_t i = 0; i < n; i++) {
    nxc_step step = nxc_machine_flatten(m, &items[i]);
    if (step != NXC_STEP_DONE) return step;
  }
  return NXC_STEP_DONE;
}

static nxc_step do_list(nxc_evaluator *m, const nxc_op *op, nxc_item *own, nxc_item *result) {
  nxc_step step = flatten_all(m, own, op->n);
  if (step != NXC_STEP_DONE) return step;
  nxc_value *items = nxc_arena_array(m->arena, op->n, sizeof *items);
  for (size_t i = 0; i < op->n; i++) items[i] = own[i].value;
  *result = (nxc_item){.value = {.kind = NXC_LIST, .items = items, .n_items = op->n}};
  return NXC_STEP_DONE;
}

/* By the canonical text of a value, which is one for 0.0 and -0.0. */
static void **slot_of(nxc_arena *arena, nxc_names *names, nxc_value key) {
  nxc_buffer text = {.arena = arena};
  if (key.kind == NXC_FLOAT) key.number += 0.0;
  nxc_write_canon(&text, &key);
  return nxc_names_slot(names, text.bytes, text.n_bytes);
}

static nxc_step do_map(nxc_evaluator *m, const nxc_op *op, nxc_item *own, nxc_item *result) {
  nxc_step step = flatten_all(m, own, 2 * (size_t)op->n);
  if (step != NXC_STEP_DONE) return step;
  nxc_value *items = nxc_arena_array(m->arena, 2 * (size_t)op->n, sizeof *items);
  size_t n = 0;
  nxc_names *places = nxc_names_new(m->arena);
  for (size_t i = 0; i < op->n; i++) { /* a key given twice: the last value, at the first place */
    nxc_value **place = (nxc_value **)slot_of(m->arena, places, own[2 * i].value);
    if (*place == NULL) {
      *place = &items[2 * n++];
      **place = own[2 * i].value;
    }
    (*place)[1] = own[2 * i + 1].value;
  }
  *result = (nxc_item){.value = {.kind = NXC_MAP, .items = items, .n_items = n}};
  return NXC_STEP_DONE;
}

static nxc_step do_call(nxc_evaluator *m, const nxc_op *op, nxc_item *own, nxc_item *result) {
  return nxc_resolver_call(m, own[0].value.text, own + 1, op->n, result);
}

typedef nxc_step operation(nxc_evaluator *m, const nxc_op *op, nxc_item *own, nxc_item *result);

static const struct {
  operation *run;
  size_t n_fixed, n_each; /* items taken: n_fixed + n_each * op->n */
} operations[] = {
    [NXC_OP_VALUE] = {do_value, 0, 0},
    [NXC_OP_CONCAT] = {do_concat, 0, 1},
    [NXC_OP_KEY] = {do_key, 1, 0},
    [NXC_OP_NAME] = {do_key, 1, 0},
    [NXC_OP_REFERENCE] = {do_reference, 1, 0},
    [NXC_OP_CALL] = {do_call, 1, 1},
    [NXC_OP_LIST] = {do_list, 0, 1},
    [NXC_OP_MAP] = {do_map, 0, 2},
};

static nxc_step run_operation(nxc_evaluator *m, const nxc_op *op) {
  size_t n_taken = operations[op->code].n_fixed + operations[op->code].n_each * op->n;
  size_t first = m->n_items - n_taken;
  nxc_item result = {0};
  nxc_step step = operations[op->code].run(m, op, n_taken ? m->items + first : NULL, &result);
  if (step != NXC_STEP_DONE) return step;
  m->n_items = first;
  push_item(m, &result);
  nxc_frame *frame = nxc_machine_top(m);
  frame->position++;
  frame->decoded_item = NULL;
  return NXC_STEP_DONE;
}

static void finish_formula(nxc_evaluator *m) {
  nxc_frame frame = *nxc_machine_top(m);
  nxc_item result = m->items[frame.base];
  m->n_items = frame.base;
  if (frame.decoded) {
    m->n_frames--;
    nxc_machine_top(m)->decoded_item =
        memcpy(nxc_arena_alloc(m->arena, sizeof result), &result, sizeof result);
    return;
  }
  bool plain_container = result.value.kind == NXC_LIST || result.value.kind == NXC_MAP;
  if (result.node) frame.node->target = result.node;
  else if (plain_container) frame.node->target = nxc_machine_plant(m, &result.value, true);
  else frame.node->value = result.value;
  frame.node->state = NXC_STATE_DONE;
  m->n_frames--;
}

static void fail_frame(nxc_evaluator *m) {
  bool decoded;
  m->ok = false;
  do {
    nxc_frame *frame = nxc_machine_top(m);
    decoded = frame->decoded;
    m->n_items = frame->base;
    frame->node->state = NXC_STATE_FAILED;
    frame->node->failed = !frame->completing;
    m->n_frames--;
  } while (decoded);
}

/* A list or map goes on with its other children when one fails, so that all problems are found. */
static void step_completing(nxc_evaluator *m) {
  size_t at = m->n_frames - 1;
  nxc_frame *frame = &m->frames[at];
  nxc_node *node = frame->node;
  while (frame->position < node->n_children) {
    nxc_node *child = node->children[frame->position];
    nxc_step step = nxc_machine_need_complete(m, child);
    if (step == NXC_STEP_AGAIN) return;
    if (step == NXC_STEP_FAILED) {
      m->ok = false;
      frame->broken = true;
      if (child->derivation) { /* also cuts a circle of maps that hold one another */
        child->failed = true;
        child->state = NXC_STATE_FAILED;
        child->target = NULL;
      }
    }
    frame->position++;
  }
  node->state = frame->broken ? NXC_STATE_FAILED : NXC_STATE_DONE;
  m->n_frames--;
}

void nxc_machine_run(nxc_evaluator *m) {
  while (m->n_frames > 0) {
    nxc_frame *frame = nxc_machine_top(m);
    if (frame->completing) step_completing(m);
    else if (frame->position == frame->formula->n_ops) finish_formula(m);
    else if (run_operation(m, &frame->formula->ops[frame->position]) == NXC_STEP_FAILED) fail_frame(m);
  }
}

bool nxc_machine_complete(nxc_evaluator *m, nxc_node *node) {
  nxc_step step;
  assert(m->n_frames == 0);
  while ((step = nxc_machine_need_complete(m, node)) == NXC_STEP_AGAIN) nxc_machine_run(m);
  return step == NXC_STEP_DONE;
}

bool nxc_machine_resolve(nxc_evaluator *m, nxc_node *node) {
  nxc_step step;
  assert(m->n_frames == 0);
  while ((step = nxc_machine_need(m, node)) == NXC_STEP_AGAIN) nxc_machine_run(m);
  return step == NXC_STEP_DONE;
}
