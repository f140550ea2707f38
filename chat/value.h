/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a template: Python's, as far as templates can tell. None changes once it is made, but namespaces.
 *
 * Texts are UTF-8; their items and lengths are counted in code points. */
#ifndef NXJ_VALUE_H
#define NXJ_VALUE_H

#include "chat/pool.h"

#include <jansson.h>
#include <stdbool.h>

typedef enum nxj_kind {
  NXJ_ABSENT, /* an argument that was not given; never seen by a template */
  NXJ_UNDEFINED,
  NXJ_NONE,
  NXJ_BOOL,
  NXJ_INT,
  NXJ_FLOAT,
  NXJ_STRING,
  NXJ_LIST,
  NXJ_TUPLE,
  NXJ_ITERATOR, /* what map, select and their like give: a list without a length */
  NXJ_DICT,
  NXJ_NAMESPACE,
  NXJ_LOOP,
  NXJ_CALLABLE
} nxj_kind;

typedef struct nxj_list nxj_list;
typedef struct nxj_dict nxj_dict;
typedef struct nxj_loop nxj_loop;
typedef struct nxj_callable nxj_callable;

typedef struct nxj_value {
  nxj_kind kind;
  bool is_safe;   /* of a text: the filter safe made it */
  size_t n_bytes; /* of the text */
  union {
    bool truth;
    int64_t integer;
    double number;
    const char *text; /* of an undefined value what it was called, or NULL; NUL behind it */
    const nxj_list *list;
    nxj_dict *dict; /* of a namespace too */
    nxj_loop *loop;
    const nxj_callable *callable;
  };
} nxj_value;

struct nxj_list {
  nxj_value *items;
  size_t n;
};

typedef struct nxj_pair {
  nxj_value key, value;
} nxj_pair;

struct nxj_dict {
  nxj_pair *pairs; /* in order of their making */
  size_t n;
};

nxj_value nxj_undefined(const char *name);
nxj_value nxj_none(void);
nxj_value nxj_bool(bool truth);
nxj_value nxj_int(int64_t integer);
nxj_value nxj_float(double number);
nxj_value nxj_string(const char *text, size_t n_bytes);
nxj_value nxj_string_of(const char *text);
nxj_value nxj_list_of(nxj_pool *pool, nxj_kind kind, nxj_value *items, size_t n);
nxj_value nxj_from_json(nxj_pool *pool, const json_t *json);

void nxj_list_add(nxj_pool *pool, nxj_list *list, nxj_value item);
void nxj_dict_set(nxj_pool *pool, nxj_dict *dict, nxj_value key, nxj_value value);
/* NULL where the dict has no such key. */
const nxj_value *nxj_dict_get(nxj_pool *pool, const nxj_dict *dict, nxj_value key);

/* Python's names: "str", "list", ... */
const char *nxj_kind_name(nxj_kind kind);
bool nxj_is_number(nxj_value value); /* a bool is one too */
bool nxj_is_true(nxj_value value);
double nxj_number(nxj_value value); /* of a number */
int64_t nxj_integer(nxj_pool *pool, nxj_value value, const char *what); /* of an int or bool, else it fails */
bool nxj_equal(nxj_pool *pool, nxj_value one, nxj_value other);
/* < 0, 0 or > 0; values without an order fail. */
int nxj_compare(nxj_pool *pool, nxj_value one, nxj_value other);
bool nxj_contains(nxj_pool *pool, nxj_value container, nxj_value item);
/* The items of whatever a for loop may walk. */
nxj_list nxj_items(nxj_pool *pool, nxj_value value);
size_t nxj_length(nxj_pool *pool, nxj_value value);

#endif
