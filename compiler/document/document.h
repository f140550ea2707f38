/* SPDX-License-Identifier: Apache-2.0 */
/* The document: a configuration's text as a tree that remembers where everything stands.
 *
 * A node is a scalar, a list or a map. It keeps its place, its quoting, its text as written and, in a map,
 * its key with the key's place. Aliases and merge keys (<<) are expanded while reading: every use is a copy
 * of its own, whose place is that of the anchored text. Nodes live in the document's arena and are never
 * removed: a node that a later layer or --set replaces stays reachable through the winner's `replaced`.
 * After nxc_resolve (interpolate.h) `value` of a scalar is its resolved value, and a scalar that stands for a
 * list or a map of another place has `target` set: readers go through nxc_node_final. */
#ifndef NXC_CONFIG_DOCUMENT_H
#define NXC_CONFIG_DOCUMENT_H

#include "compiler/arena.h"
#include "compiler/diagnostics/diagnostics.h"
#include "compiler/diagnostics/source.h"
#include "compiler/value.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum nxc_node_kind { NXC_NODE_SCALAR, NXC_NODE_LIST, NXC_NODE_MAP } nxc_node_kind;
typedef enum nxc_style { NXC_STYLE_PLAIN, NXC_STYLE_SINGLE, NXC_STYLE_DOUBLE, NXC_STYLE_BLOCK } nxc_style;

typedef struct nxc_node nxc_node;
struct nxc_derivation; /* interpolate.h */

struct nxc_node {
  nxc_node_kind kind;
  nxc_style style; /* scalars */
  nxc_span at;     /* the value; of a list or map its first line; of an empty value the place after its key */
  nxc_span key_at; /* in a map: the key; elsewhere source is NULL */
  const char *key; /* in a map: the key's text, NUL-terminated; elsewhere NULL */
  nxc_value key_value; /* in a map: the typed key; usually a string */
  size_t index;        /* position among the parent's children */
  nxc_node *parent;    /* NULL at the root */
  nxc_node **children; /* lists and maps */
  size_t n_children;
  nxc_value value; /* scalars: never NXC_LIST or NXC_MAP */
  const char *raw; /* scalars: the text that YAML gives, before it is typed and before it is resolved */
  size_t raw_bytes;
  nxc_node *replaced; /* what an earlier layer said here, or NULL */
  nxc_node *copy_of;  /* the top of a copy made for an alias or merge key: the original; elsewhere NULL */
  bool environment;   /* a variable of the environment was filled in while reading */
  bool merged;        /* the copy is a pair that a merge key brought */
  struct nxc_names *names; /* maps with many keys: the children by key identity (nodes.h) */

  /* Written by nxc_resolve. */
  nxc_node *target; /* the list or map that a whole-value ${...} stands for */
  const struct nxc_derivation *derivation; /* of a scalar with an interpolation: where its value came from */
  const nxc_node *reader;                  /* the first node whose interpolation reads this one */
  bool failed;                             /* could not be resolved (reported); its value means nothing */
  bool sealed;         /* a resolver's plain list or map, which references cannot enter */
  unsigned char state; /* nxc_resolve's own */
};

typedef struct nxc_document {
  nxc_arena *arena;
  nxc_node *root; /* a map or a list; never NULL */
  bool complete;  /* false: an error was reported and what could not be read is missing from the tree */
  const struct nxc_program_row *program; /* what it starts; NULL: it trains a decoder, or is not known */
  const char *program_name; /* "pretrain_t5.py" */
  bool own_program; /* none of the system's: it may have options of its own */
  nxc_span program_at;
  const char *const *words; /* behind the program, those that are known */
  size_t n_words;
  const char *handed; /* the script that handed this to a program, and how; NULL: the file itself is judged */
  bool script;    /* it is a script, which may have arguments of its own */
  size_t n_asked; /* of those, that it reads and nobody told: $1 to this one */
  const char *example; /* of those, in a comment of it; NULL: none */
  bool idle; /* it starts no training, and has no options of one */
  bool part; /* it has options for a program that another text starts */
  nxc_span *launches;        /* of a script: where each program that it starts stands */
  size_t n_launches;
  const char *const *launches_differ; /* of each, its options that not all have; NULL where there is one */
  bool open;      /* it may have keys that nothing here tells */
  const struct nxc_variable *variables; /* of the environment, filled in while reading (interpolate.h) */
  size_t n_variables;
} nxc_document;

typedef struct nxc_reading {
  bool text;      /* scalars are texts as they are written */
  bool omegaconf; /* --compat omegaconf: surprising scalars are read without a finding */
  bool pyyaml;    /* scalars are PyYAML's, not OmegaConf's: 3e-4 is text, ??? is itself */
} nxc_reading;

enum { NXC_DOCUMENT_BYTES_MAX = 16 * 1024 * 1024, NXC_DOCUMENT_DEPTH_MAX = 256, NXC_ALIAS_NODES_MAX = 10000 };

/* Reads one YAML document. Always gives a document; what is wrong goes to the sink, and `complete` says
 * whether anything was. A source that cannot be a tree at all gives an empty map. */
nxc_document *nxc_document_read(nxc_arena *arena, const nxc_source *source, const nxc_reading *reading,
                                nxc_sink *sink);
/* Lays `over` on top of `base` (OmegaConf.merge: maps merge key by key, everything else replaces). `over`
 * must not be used afterwards. False (reported) where a list would replace a map. */
bool nxc_document_layer(nxc_document *base, nxc_document *over, nxc_sink *sink);
/* Applies KEY=VALUE: KEY is a dotted path (`a.b`, `a[b]`, list items by index), missing maps on it are made,
 * VALUE is YAML. The text must outlive the document; its source is named `origin`, as in "--set". */
bool nxc_document_set(nxc_document *document, const char *assignment, const char *origin,
                      const nxc_reading *reading, nxc_sink *sink);

/* Puts a node at the dotted key that stands at these bytes of a source; maps merge, missing ones are made. */
bool nxc_document_put(nxc_document *document, const nxc_source *source, size_t key_at, size_t n_key_bytes,
                      nxc_node *value, nxc_sink *sink);

/* The child of a map with this string key, or NULL. Does not go through references. */
nxc_node *nxc_node_child(const nxc_node *map, const char *key);
nxc_node *nxc_node_child_n(const nxc_node *map, const char *key, size_t n_bytes);
/* By dotted path from a node, through resolved references: `trainer.devices`, `layers.0`. NULL: absent. */
nxc_node *nxc_node_lookup(const nxc_node *from, const char *path);
/* The node this one stands for after resolution: itself, unless it is a whole-value reference. */
nxc_node *nxc_node_final(const nxc_node *node);
/* The dotted path from the root: `model.layers[0].h`. */
const char *nxc_node_path(nxc_arena *arena, const nxc_node *node);
/* The place to point at for a finding about this setting: the key in a map, else the value. */
nxc_span nxc_node_span(const nxc_node *node);
/* The place of `n_bytes` at byte `offset` of a scalar's raw text, as near as quoting allows. */
nxc_span nxc_node_span_inside(const nxc_node *node, size_t offset, size_t n_bytes);
/* Deep copy of a scalar, list or map as a value (after resolution: through references). NULL when it would
 * have more than NXC_VALUE_NODES_MAX items, which only doubling references reach. */
enum { NXC_VALUE_NODES_MAX = 300000 }; /* a document itself has fewer */
const nxc_value *nxc_node_value(nxc_arena *arena, const nxc_node *node);
/* The same with every interpolation as its text, whether it is resolved or not. */
const nxc_value *nxc_node_raw_value(nxc_arena *arena, const nxc_node *node);
/* Whether an interpolation reads this node, something around it, or something inside it. */
bool nxc_node_is_read(const nxc_node *node);

#endif
