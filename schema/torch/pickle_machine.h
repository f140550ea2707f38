/* SPDX-License-Identifier: Apache-2.0 */
/* The stack machine that a pickle is a program for: what pickle.c and pickle_lists.c share. */
#ifndef NX_PICKLE_MACHINE_H
#define NX_PICKLE_MACHINE_H

#include "schema/torch/pickle_objects.h"

/* The stack may have marks: where a list of items begins. `memo` has what is named later by number. */
typedef struct nx_pickle_machine {
  nx_pickle *pickle;
  const char *path;
  const uint8_t *at, *end;
  nx_object **stack, **memo;
  size_t n_stack, n_room, n_memo;
  bool ended;
  nx_fault *fault;
} nx_pickle_machine;

/* What stands behind an opcode: a number, or bytes. */
typedef struct nx_pickle_argument {
  uint64_t number;
  const char *bytes, *second;
  size_t n_bytes, n_second;
} nx_pickle_argument;

/* What an opcode does; false: the fault says why. */
typedef bool nx_pickle_code(nx_pickle_machine *m, const nx_pickle_argument *a);

bool nx_pickle_damaged(nx_pickle_machine *m, const char *why);
/* NULL is taken for no memory. */
bool nx_pickle_push(nx_pickle_machine *m, nx_object *object);
/* NULL: there is none, or a mark; pop says so. */
nx_object *nx_pickle_top(const nx_pickle_machine *m);
nx_object *nx_pickle_pop(nx_pickle_machine *m);
/* Everything behind the last mark, from *first on; the mark goes. */
bool nx_pickle_pop_marked(nx_pickle_machine *m, size_t *first);
nx_object *nx_pickle_make(nx_pickle_machine *m, nx_object_kind kind);

/* pickle_lists.c */
nx_pickle_code nx_pickle_do_mark;
nx_pickle_code nx_pickle_do_empty_list;
nx_pickle_code nx_pickle_do_empty_dict;
nx_pickle_code nx_pickle_do_list;
nx_pickle_code nx_pickle_do_dict;
nx_pickle_code nx_pickle_do_tuple;
nx_pickle_code nx_pickle_do_appends;
nx_pickle_code nx_pickle_do_set_items;
nx_pickle_code nx_pickle_do_append;
nx_pickle_code nx_pickle_do_set_item;

#endif
