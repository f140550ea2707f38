/* SPDX-License-Identifier: Apache-2.0 */
/* What a Python pickle says, as data: nothing of it is called.
 *
 * A pickle is a program for a stack machine. Its opcodes build lists, dictionaries and texts, name classes
 * and functions, and ask for these to be called. Here a call stays what it is written as: the name of what
 * would be called, and its arguments. Whoever reads the objects knows the few names that matter, and takes
 * everything else for something unknown. Objects may contain themselves: follow them to a bounded depth. */
#ifndef NX_PICKLE_H
#define NX_PICKLE_H

#include "schema/plan.h"

#include <stddef.h>
#include <stdint.h>

typedef enum nx_object_kind {
  NX_OBJECT_NONE,
  NX_OBJECT_BOOL,
  NX_OBJECT_INT, /* beyond 64 bits: INT64_MAX */
  NX_OBJECT_FLOAT,
  NX_OBJECT_TEXT,   /* str or bytes; 0 stands behind it */
  NX_OBJECT_LIST,   /* list, tuple or set */
  NX_OBJECT_DICT,   /* items are keys and values in turn; OrderedDict and its like too */
  NX_OBJECT_GLOBAL, /* text is "module name" */
  NX_OBJECT_CALL,   /* of `callee` with the list `arguments`; items are what was put into it as into a dict */
  NX_OBJECT_STORED  /* what stands outside of the pickle; `arguments` says what */
} nx_object_kind;

typedef struct nx_object nx_object;
struct nx_object {
  nx_object_kind kind;
  int64_t integer;
  double number;
  const char *text;
  nx_object **items;
  size_t n_items;
  const nx_object *callee, *arguments;
  const nx_object *state; /* what a call's object was given behind it (__setstate__, __dict__); or NULL */
};

typedef struct nx_pickle {
  const nx_object *root;
  struct nx_pickle_block *blocks; /* owns the objects */
} nx_pickle;

/* `path` is for messages. A failure leaves nothing to close. */
bool nx_pickle_read(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_pickle *pickle,
                    nx_fault *fault);
void nx_pickle_close(nx_pickle *pickle);

/* The value of a key of a dictionary, or of what a call's object was given; NULL: there is none. */
const nx_object *nx_object_get(const nx_object *object, const char *key);
/* Item of a list; NULL: it is none, or shorter. */
const nx_object *nx_object_at(const nx_object *object, size_t index);
/* Whether it is the class or function, or a call of it. */
bool nx_object_names(const nx_object *object, const char *global);
/* A whole number of 0 or more. */
bool nx_object_size(const nx_object *object, uint64_t *size);

#endif
