/* SPDX-License-Identifier: Apache-2.0 */
/* The stack, and the opcodes that make lists and dictionaries of what is on it. */
#include "schema/plan_check.h"
#include "schema/torch/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

static nx_object mark;

bool nx_pickle_damaged(nx_pickle_machine *m, const char *why) {
  return nx_fault_set(m->fault, 0, "%s is damaged: in its pickle %s", m->path, why);
}

bool nx_pickle_push(nx_pickle_machine *m, nx_object *object) {
  if (object == NULL) return nx_fault_set(m->fault, 0, "out of memory");
  if (m->n_stack == m->n_room) {
    size_t n_room = m->n_room ? 2 * m->n_room : 64;
    nx_object **longer = realloc(m->stack, n_room * sizeof *longer);
    if (longer == NULL) return nx_fault_set(m->fault, 0, "out of memory");
    m->stack = longer;
    m->n_room = n_room;
  }
  m->stack[m->n_stack++] = object;
  return true;
}

nx_object *nx_pickle_top(const nx_pickle_machine *m) {
  return m->n_stack > 0 && m->stack[m->n_stack - 1] != &mark ? m->stack[m->n_stack - 1] : NULL;
}

static bool misses(nx_pickle_machine *m) {
  return nx_pickle_damaged(m, "something is taken that is not there");
}

nx_object *nx_pickle_pop(nx_pickle_machine *m) {
  nx_object *object = nx_pickle_top(m);
  if (object == NULL) misses(m);
  else m->n_stack--;
  return object;
}

bool nx_pickle_pop_marked(nx_pickle_machine *m, size_t *first) {
  size_t at = m->n_stack;
  while (at > 0 && m->stack[at - 1] != &mark) at--;
  if (at == 0) return nx_pickle_damaged(m, "a list has no beginning");
  *first = at;
  return true;
}

nx_object *nx_pickle_make(nx_pickle_machine *m, nx_object_kind kind) {
  return nx_object_new(m->pickle, kind);
}

/* ---- lists and dictionaries ---- */

bool nx_pickle_do_mark(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return nx_pickle_push(m, &mark);
}
bool nx_pickle_do_empty_list(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return nx_pickle_push(m, nx_pickle_make(m, NX_OBJECT_LIST));
}
bool nx_pickle_do_empty_dict(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return nx_pickle_push(m, nx_pickle_make(m, NX_OBJECT_DICT));
}

/* The objects from stack[first] on are put into what stands there. */
static bool put(nx_pickle_machine *m, nx_object *into, size_t first) {
  for (size_t i = first; i < m->n_stack; i++)
    if (!nx_object_append(m->pickle, into, m->stack[i])) return nx_fault_set(m->fault, 0, "out of memory");
  m->n_stack = first;
  return true;
}

static bool put_marked(nx_pickle_machine *m, nx_object_kind kind) {
  size_t first = 0;
  nx_object *into = nx_pickle_make(m, kind);
  if (!nx_pickle_pop_marked(m, &first)) return false;
  if (into == NULL) return nx_fault_set(m->fault, 0, "out of memory");
  if (kind == NX_OBJECT_DICT && (m->n_stack - first) % 2) return nx_pickle_damaged(m, "a key has no value");
  if (!put(m, into, first)) return false;
  m->n_stack--;
  return nx_pickle_push(m, into);
}
bool nx_pickle_do_list(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return put_marked(m, NX_OBJECT_LIST);
}
bool nx_pickle_do_dict(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return put_marked(m, NX_OBJECT_DICT);
}

/* The number of the opcode says how many. */
bool nx_pickle_do_tuple(nx_pickle_machine *m, const nx_pickle_argument *a) {
  nx_object *into = nx_pickle_make(m, NX_OBJECT_LIST);
  size_t n = a->number, first = m->n_stack - n;
  if (m->n_stack < n) return misses(m);
  for (size_t i = first; i < m->n_stack; i++)
    if (m->stack[i] == &mark) return misses(m);
  if (into == NULL) return nx_fault_set(m->fault, 0, "out of memory");
  return put(m, into, first) && nx_pickle_push(m, into);
}

/* Into a list as items, else as keys and values. */
static bool add(nx_pickle_machine *m, size_t first, bool pairs) {
  nx_object *into = first > 0 ? m->stack[first - 1] : NULL;
  bool fits = into && into != &mark &&
              (into->kind == NX_OBJECT_CALL || into->kind == (pairs ? NX_OBJECT_DICT : NX_OBJECT_LIST));
  if (!fits || (pairs && (m->n_stack - first) % 2))
    return nx_pickle_damaged(m, "items are put into something else");
  if (!pairs && into->kind == NX_OBJECT_CALL) m->n_stack = first; /* nobody looks at them */
  return put(m, into, first);
}

static bool add_marked(nx_pickle_machine *m, bool pairs) {
  size_t first = 0;
  if (!nx_pickle_pop_marked(m, &first)) return false;
  memmove(&m->stack[first - 1], &m->stack[first], (m->n_stack - first) * sizeof *m->stack);
  m->n_stack--;
  return add(m, first - 1, pairs);
}
bool nx_pickle_do_appends(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return add_marked(m, false);
}
bool nx_pickle_do_set_items(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return add_marked(m, true);
}
bool nx_pickle_do_append(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return nx_pickle_top(m) ? add(m, m->n_stack - 1, false) : misses(m);
}
bool nx_pickle_do_set_item(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  bool has = m->n_stack > 2 && nx_pickle_top(m) && m->stack[m->n_stack - 2] != &mark;
  return has ? add(m, m->n_stack - 2, true) : misses(m);
}
