/* SPDX-License-Identifier: Apache-2.0 */
/* The stack machine that a pickle is a program for: what pickle.c and pickle_lists.c share. */
#ifndef NXR_PICKLE_MACHINE_H
#define NXR_PICKLE_MACHINE_H

#include "runtime/foreign/pickle_objects.h"

/* The stack may have marks: where a list of items begins. `memo` has what is named later by number. */
typedef struct nxr_pickle_machine {
  nxr_pickle *pickle;
  const char *path;
  const uint8_t *at, *end;
  nxr_object **stack, **memo;
  size_t n_stack, n_room, n_memo;
  bool ended;
  nxr_fault *fault;
} nxr_pickle_machine;

/* What stands behind an opcode: a number, or bytes. */
typedef struct nxr_pickle_argument {
  uint64_t number;
  const char *bytes, *second;
  size_t n_bytes, n_second;
} nxr_pickle_argument;

/* What an opcode does; false: the fault says why. */
typedef bool nxr_pickle_code(nxr_pickle_machine *m, const nxr_pickle_argument *a);

/* An object of no kind that the files have; it never leaves the stack. */
extern nxr_object nxr_pickle_mark;

bool nxr_pickle_damaged(nxr_pickle_machine *m, const char *why);
/* NULL is taken for no memory. */
bool nxr_pickle_push(nxr_pickle_machine *m, nxr_object *object);
/* NULL: there is none, or a mark; pop says so. */
nxr_object *nxr_pickle_top(const nxr_pickle_machine *m);
nxr_object *nxr_pickle_pop(nxr_pickle_machine *m);
/* Everything behind the last mark, from *first on; the mark goes. */
bool nxr_pickle_pop_marked(nxr_pickle_machine *m, size_t *first);
nxr_object *nxr_pickle_make(nxr_pickle_machine *m, nxr_object_kind kind);

/* pickle_lists.c */
nxr_pickle_code nxr_pickle_do_mark;
nxr_pickle_code nxr_pickle_do_empty_list;
nxr_pickle_code nxr_pickle_do_empty_dict;
nxr_pickle_code nxr_pickle_do_list;
nxr_pickle_code nxr_pickle_do_dict;
nxr_pickle_code nxr_pickle_do_tuple;
nxr_pickle_code nxr_pickle_do_appends;
nxr_pickle_code nxr_pickle_do_set_items;
nxr_pickle_code nxr_pickle_do_append;
nxr_pickle_code nxr_pickle_do_set_item;

#endif
