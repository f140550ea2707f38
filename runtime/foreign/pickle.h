/* SPDX-License-Identifier: Apache-2.0 */
/* What a Python pickle says, as data: nothing of it is called.
 *
 * A pickle is a program for a stack machine. Its opcodes build lists, dictionaries and texts, name classes
 * and functions, and ask for these to be called. Here a call stays what it is written as: the name of what
 * would be called, and its arguments. Whoever reads the objects knows the few names that matter, and takes
 * everything else for something unknown. Objects may contain themselves: follow them to a bounded depth. */
#ifndef NXR_PICKLE_H
#define NXR_PICKLE_H

#include "runtime/files/fault.h"

#include <stddef.h>
#include <stdint.h>

typedef enum nxr_object_kind {
  NXR_OBJECT_NONE,
  NXR_OBJECT_BOOL,
  NXR_OBJECT_INT, /* beyond 64 bits: INT64_MAX */
  NXR_OBJECT_FLOAT,
  NXR_OBJECT_TEXT,   /* str or bytes; 0 stands behind it */
  NXR_OBJECT_LIST,   /* list, tuple or set */
  NXR_OBJECT_DICT,   /* items are keys and values in turn; OrderedDict and its like too */
  NXR_OBJECT_GLOBAL, /* text is "module name" */
  NXR_OBJECT_CALL,  /* of `callee` with the list `arguments`; items are what was put into it as into a dict */
  NXR_OBJECT_STORED /* what stands outside of the pickle; `arguments` says what */
} nxr_object_kind;

typedef struct nxr_object nxr_object;
struct nxr_object {
  nxr_object_kind kind;
  int64_t integer;
  double number;
  const char *text;
  nxr_object **items;
  size_t n_items;
  const nxr_object *callee, *arguments;
  const nxr_object *state; /* what a call's object was given behind it (__setstate__, __dict__); or NULL */
};

typedef struct nxr_pickle {
  const nxr_object *root;
  struct nxr_pickle_block *blocks; /* owns the objects */
} nxr_pickle;

/* `path` is for messages. A failure leaves nothing to close. */
bool nxr_pickle_read(const char *path, const uint8_t *bytes, uint64_t n_bytes, nxr_pickle *pickle,
                     nxr_fault *fault);
void nxr_pickle_close(nxr_pickle *pickle);

/* The value of a key of a dictionary, or of what a call's object was given; NULL: there is none. */
const nxr_object *nxr_object_get(const nxr_object *object, const char *key);
/* Item of a list; NULL: it is none, or shorter. */
const nxr_object *nxr_object_at(const nxr_object *object, size_t index);
/* Whether it is the class or function, or a call of it. */
bool nxr_object_names(const nxr_object *object, const char *global);
/* A whole number of 0 or more. */
bool nxr_object_size(const nxr_object *object, uint64_t *size);

#endif
