/* SPDX-License-Identifier: Apache-2.0 */
/* Interpolation: ${...} and our own $<...> in scalars, resolved in place.
 *
 * The language is OmegaConf's: references (absolute, relative, through lists), resolvers with typed
 * arguments, nesting, escapes. Each scalar that holds an interpolation is parsed once into a small postfix
 * program; programs run on one explicit stack with every result kept, so long chains cost no recursion and
 * doubling chains stay linear. Every such scalar then carries its derivation: the references it made, in
 * order, with the place of each. */
#ifndef NXC_CONFIG_INTERPOLATE_H
#define NXC_CONFIG_INTERPOLATE_H

#include "compiler/document/document.h"

/* One thing that an interpolation read: a node, or an environment variable. */
typedef struct nxc_reference {
  uint32_t offset, length; /* of the ${...} in the scalar's text: nxc_node_span_inside */
  const nxc_node *node; /* NULL: an environment variable */
  const char *variable;
} nxc_reference;

typedef struct nxc_derivation {
  const nxc_reference *references;
  size_t n_references;
  bool from_environment; /* directly or through what it reads */
  bool from_secret;      /* reads a node whose key names a secret, directly or not */
  bool angle;            /* written with $<...> */
} nxc_derivation;

typedef struct nxc_variable {
  const char *name;
  const char *value;  /* NULL: not set */
  bool default_taken; /* not set, and the file's default stood in */
  nxc_span at;        /* the first ${oc.env:...} that reads it */
} nxc_variable;

typedef struct nxc_resolving {
  bool omegaconf; /* $< stays text, and hazards are reproduced silently */
  bool angles_only; /* ${ stays text: the dialect's loader knows no references */
  bool open;      /* a variable that is not set here may be where the file is used: unknown, and a warning */
  bool probes;    /* the resolvers args, id and fail, which show how arguments are read */
} nxc_resolving;

typedef struct nxc_resolution {
  bool ok; /* everything asked for was resolved */
  const nxc_variable *variables;
  size_t n_variables;
  const nxc_node *first_angle; /* the first scalar that uses $<...>, or NULL */
} nxc_resolution;

/* Resolves the whole tree. All problems go to the sink; nodes that failed have `failed` set. */
nxc_resolution nxc_resolve(nxc_document *document, const nxc_resolving *resolving, nxc_sink *sink);

/* One step at a time, for callers that want only a part: syntax is checked everywhere, values are computed
 * only for the node at `steps` (keys, or indices in lists) and what it needs. *found receives the node, NULL
 * when it is absent (reported). */
nxc_resolution nxc_resolve_at(nxc_document *document, const char *const *steps, size_t n_steps,
                              const nxc_resolving *resolving, nxc_sink *sink, nxc_node **found);

/* OmegaConf.select: by dotted path; *found is NULL where the path leads nowhere or to ???. */
nxc_resolution nxc_resolve_select(nxc_document *document, const char *key, const nxc_resolving *resolving,
                                  nxc_sink *sink, nxc_node **found);
/* Reports every ??? at or below the node; gives their number. */
size_t nxc_report_missing(nxc_arena *arena, const nxc_node *node, nxc_sink *sink);

/* Whether a value must not be shown: its key names a secret, or the environment had a part in it. */
bool nxc_node_is_secret(const nxc_node *node);
/* nxc_node_value with every secret inside redacted. */
const nxc_value *nxc_node_public_value(nxc_arena *arena, const nxc_node *node);

#endif
