/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed template. */
#ifndef NXJ_NODE_H
#define NXJ_NODE_H

#include "chat/value.h"

typedef enum nxj_node_kind {
  /* expressions; a, b, c are its operands */
  NXJ_NODE_CONSTANT,
  NXJ_NODE_NAME,
  NXJ_NODE_LIST,
  NXJ_NODE_TUPLE,
  NXJ_NODE_DICT,      /* keys and values in turn */
  NXJ_NODE_ATTRIBUTE, /* a.name */
  NXJ_NODE_ITEM,      /* a[b] */
  NXJ_NODE_SLICE,     /* a[...]: start, stop, step as its items, constants none where they are left out */
  NXJ_NODE_CALL,      /* a(items) */
  NXJ_NODE_FILTER,    /* a | name(items); a is NULL where a block is filtered */
  NXJ_NODE_TEST,      /* a is name(items) */
  NXJ_NODE_NOT,
  NXJ_NODE_NEGATIVE,
  NXJ_NODE_POSITIVE,
  NXJ_NODE_ARITHMETIC, /* a name b */
  NXJ_NODE_CONCAT,
  NXJ_NODE_COMPARE, /* a, then its items, each with its sign as a name */
  NXJ_NODE_AND,
  NXJ_NODE_OR,
  NXJ_NODE_CHOICE, /* a if b else c (or NULL) */
  /* statements; `items` is the body, `otherwise` another */
  NXJ_NODE_TEXT,
  NXJ_NODE_OUTPUT, /* a */
  NXJ_NODE_IF,     /* a */
  NXJ_NODE_FOR,    /* for a in b if c */
  NXJ_NODE_SET,    /* a = b */
  NXJ_NODE_SET_BLOCK, /* a; b its filter or NULL */
  NXJ_NODE_WITH,      /* `otherwise` is its assignments */
  NXJ_NODE_MACRO,     /* name; `otherwise` its parameters: names, each with its default as a */
  NXJ_NODE_FILTER_BLOCK, /* b */
  NXJ_NODE_GENERATION,
  NXJ_NODE_BREAK,
  NXJ_NODE_CONTINUE,
  NXJ_N_NODES
} nxj_node_kind;

typedef struct nxj_node nxj_node;

typedef struct nxj_nodes {
  nxj_node *first, *last;
  size_t n;
} nxj_nodes;

/* A filter, test, method or function: what it is called, its parameters, and what it does (calls.h). */
typedef struct nxj_row nxj_row;

struct nxj_node {
  nxj_node_kind kind;
  uint32_t line, column;
  bool negated;         /* of a test */
  const char *name;     /* of an argument its name, or NULL */
  const nxj_row *row;   /* of a filter or test */
  nxj_value value;      /* of a constant or text */
  nxj_node *a, *b, *c;
  nxj_nodes items, otherwise;
  nxj_node *next; /* in the list that it belongs to */
};

/* The template's statements; it fails where it is wrong or not covered. */
nxj_nodes nxj_parse(nxj_pool *pool, const char *text, size_t n_bytes, bool *has_generation);

#endif
