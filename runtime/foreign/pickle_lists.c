/* SPDX-License-Identifier: Apache-2.0 */
/* The stack, and the opcodes that make lists and dictionaries of what is on it. */
#include "runtime/foreign/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

nxr_object nxr_pickle_mark;

bool nxr_pickle_damaged(nxr_pickle_machine *m, const char *why) {
  return nxr_fault_set(m->fault, "%s is damaged: in its pickle %s", m->path, why);
}

bool nxr_pickle_push(nxr_pickle_machine *m, nxr_object *object) {
  if (object == NULL) return nxr_fault_set(m->fault, "out of memory");
  if (m->n_stack == m->n_room) {
    size_t n_room = m->n_room ? 2 * m->n_room : 64;
    nxr_object **longer = realloc(m->stack, n_room * sizeof *longer);
    if (longer == NULL) return nxr_fault_set(m->fault, "out of memory");
    m->stack = longer;
    m->n_room = n_room;
  }
  m->stack[m->n_stack++] = object;
  return true;
}

nxr_object *nxr_pickle_top(const nxr_pickle_machine *m) {
  return m->n_stack > 0 && m->stack[m->n_stack - 1] != &nxr_pickle_mark ? m->stack[m->n_stack - 1] : NULL;
}

nxr_object *nxr_pickle_pop(nxr_pickle_machine *m) {
  nxr_object *object = nxr_pickle_top(m);
  if (object == NULL) nxr_pickle_damaged(m, "something is taken that is not there");
  else m->n_stack--;
  return object;
}

bool nxr_pickle_pop_marked(nxr_pickle_machine *m, size_t *first) {
  size_t at = m->n_stack;
  while (at > 0 && m->stack[at - 1] != &nxr_pickle_mark) at--;
  if (at == 0) return nxr_pickle_damaged(m, "a list has no beginning");
  *first = at;
  return true;
}

nxr_object *nxr_pickle_make(nxr_pickle_machine *m, nxr_object_kind kind) {
  return nxr_object_new(m->pickle, kind);
}

/* ---- lists and dictionaries ---- */

bool nxr_pickle_do_mark(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  return nxr_pickle_push(m, &nxr_pickle_mark);
}
bool nxr_pickle_do_empty_list(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  return nxr_pickle_push(m, nxr_pickle_make(m, NXR_OBJECT_LIST));
}
bool nxr_pickle_do_empty_dict(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  return nxr_pickle_push(m, nxr_pickle_make(m, NXR_OBJECT_DICT));
}

/* The objects from stack[first] on are put into what stands there. */
static bool put(nxr_pickle_machine *m, nxr_object *into, size_t first) {
  for (size_t i = first; i < m->n_stack; i++)
    if (!nxr_object_append(m->pickle, into, m->stack[i])) return nxr_fault_set(m->fault, "out of memory");
  m->n_stack = first;
  return true;
}

static bool put_marked(nxr_pickle_machine *m, nxr_object_kind kind) {
  size_t first = 0;
  nxr_object *into = nxr_pickle_make(m, kind);
  if (!nxr_pickle_pop_marked(m, &first)) return false;
  if (into == NULL) return nxr_fault_set(m->fault, "out of memory");
  if (kind == NXR_OBJECT_DICT && (m->n_stack - first) % 2) return nxr_pickle_damaged(m, "a key has no value");
  if (!put(m, into, first)) return false;
  m->n_stack--;
  return nxr_pickle_push(m, into);
}
bool nxr_pickle_do_list(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  return put_marked(m, NXR_OBJECT_LIST);
}
bool nxr_pickle_do_dict(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  return put_marked(m, NXR_OBJECT_DICT);
}

/* The number of the opcode says how many. */
bool nxr_pickle_do_tuple(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  nxr_object *into = nxr_pickle_make(m, NXR_OBJECT_LIST);
  size_t n = a->number, first = m->n_stack - n;
  if (m->n_stack < n) return nxr_pickle_damaged(m, "something is taken that is not there");
  for (size_t i = first; i < m->n_stack; i++)
    if (m->stack[i] == &nxr_pickle_mark) return nxr_pickle_damaged(m, "something is taken that is not there");
  if (into == NULL) return nxr_fault_set(m->fault, "out of memory");
  return put(m, into, first) && nxr_pickle_push(m, into);
}

/* Into a list as items, else as keys and values. */
static bool add(nxr_pickle_machine *m, size_t first, bool pairs) {
  nxr_object *into = first > 0 ? m->stack[first - 1] : NULL;
  bool fits = into && into != &nxr_pickle_mark &&
              (into->kind == NXR_OBJECT_CALL || into->kind == (pairs ? NXR_OBJECT_DICT : NXR_OBJECT_LIST));
  if (!fits || (pairs && (m->n_stack - first) % 2))
    return nxr_pickle_damaged(m, "items are put into something else");
  if (!pairs && into->kind == NXR_OBJECT_CALL) m->n_stack = first; /* nobody looks at them */
  return put(m, into, first);
}

static bool add_marked(nxr_pickle_machine *m, bool pairs) {
  size_t first = 0;
  if (!nxr_pickle_pop_marked(m, &first)) return false;
  memmove(&m->stack[first - 1], &m->stack[first], (m->n_stack - first) * sizeof *m->stack);
  m->n_stack--;
  return add(m, first - 1, pairs);
}
bool nxr_pickle_do_appends(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  return add_marked(m, false);
}
bool nxr_pickle_do_set_items(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  return add_marked(m, true);
}
bool nxr_pickle_do_append(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  return nxr_pickle_top(m) ? add(m, m->n_stack - 1, false)
                           : nxr_pickle_damaged(m, "something is taken that is not there");
}
bool nxr_pickle_do_set_item(nxr_pickle_machine *m, const nxr_pickle_argument *a) {
  (void)a;
  bool has = m->n_stack > 2 && nxr_pickle_top(m) && m->stack[m->n_stack - 2] != &nxr_pickle_mark;
  return has ? add(m, m->n_stack - 2, true) : nxr_pickle_damaged(m, "something is taken that is not there");
}
