/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that runs formulas: an explicit stack of frames, so that no chain is too long.
 *
 * A frame either runs the formula of one scalar or completes a list or map (resolves everything inside it).
 * An operation that needs another node resolved pushes a frame for it, gives NXC_STEP_AGAIN, and is run again
 * when that frame is done; operations therefore change nothing before they give NXC_STEP_DONE. A node that is
 * needed while its own frame is on the stack is a cycle. */
#ifndef NXC_CONFIG_INTERPOLATE_MACHINE_H
#define NXC_CONFIG_INTERPOLATE_MACHINE_H

#include "compiler/document/names.h"
#include "compiler/config/interpolation/interpolate_parse.h"

typedef enum nxc_step { NXC_STEP_DONE, NXC_STEP_AGAIN, NXC_STEP_FAILED } nxc_step;
enum nxc_node_state { NXC_STATE_NEW, NXC_STATE_ACTIVE, NXC_STATE_DONE, NXC_STATE_FAILED };

/* A value under way; a list or map of the document is its node, and `value` is then unused. */
typedef struct nxc_item {
  nxc_value value;
  nxc_node *node;
} nxc_item;

/* What a scalar with an interpolation carries; the derivation comes first, so a node's pointer leads here. */
typedef struct nxc_resolved {
  nxc_derivation derivation;
  nxc_formula formula;
  nxc_reference *references;
} nxc_resolved;

typedef struct nxc_frame {
  nxc_node *node;
  bool completing; /* a list or map; else a formula */
  bool decoded;    /* a formula met at run time (oc.decode): its result goes to the frame below */
  const nxc_formula *formula;
  size_t position;    /* operation, or child */
  size_t base;        /* first own item */
  nxc_node *walk;     /* how far a reference has been followed; NULL: not begun */
  size_t walk_offset; /* and how much of its key is used */
  bool walk_started;
  const nxc_item *decoded_item; /* what a decoded formula gave to the operation under way */
  bool broken;                  /* something inside failed */
} nxc_frame;

typedef struct nxc_evaluator {
  nxc_arena *arena;
  nxc_document *document;
  const nxc_resolving *options;
  nxc_sink *sink;
  nxc_frame *frames;
  size_t n_frames, frames_capacity;
  nxc_item *items;
  size_t n_items, items_capacity;
  nxc_variable *variables;
  size_t n_variables;
  nxc_names *variable_names;
  size_t n_warnings;
  size_t n_text_left; /* bytes of text that joining may still make */
  size_t n_flat_left; /* values that copying lists and maps may still make */
  bool ok;
} nxc_evaluator;

enum { NXC_TEXT_BYTES_MAX = 16 * 1024 * 1024 };

/* Resolves everything in a list or map, or a scalar and what it stands for. */
bool nxc_machine_complete(nxc_evaluator *machine, nxc_node *node);
/* Resolves one scalar alone. */
bool nxc_machine_resolve(nxc_evaluator *machine, nxc_node *node);
/* Runs until no frame is left. */
void nxc_machine_run(nxc_evaluator *machine);
/* Follows a key from the root; *item has neither node nor value where `lenient` finds nothing (*absent). */
bool nxc_machine_select(nxc_evaluator *machine, const char *key, nxc_item *item, bool *absent);

/* For operations and resolvers, about the frame on top. */
nxc_frame *nxc_machine_top(const nxc_evaluator *machine);
nxc_step nxc_machine_need(nxc_evaluator *machine, nxc_node *node);          /* a scalar resolved */
nxc_step nxc_machine_need_complete(nxc_evaluator *machine, nxc_node *node); /* everything in it resolved */
/* The item as a value alone: its node completed and copied. */
nxc_step nxc_machine_flatten(nxc_evaluator *machine, nxc_item *item);
void nxc_machine_decode(nxc_evaluator *machine, const nxc_formula *formula);
nxc_step nxc_machine_join(nxc_evaluator *machine, const nxc_item *items, size_t n, nxc_item *result);
/* Counts values that are about to be made; fails when they are too many in all. */
nxc_step nxc_machine_spend(nxc_evaluator *machine, size_t n_values);
/* A list or map of the document for a plain value, standing where the frame's scalar stands. */
nxc_node *nxc_machine_plant(nxc_evaluator *machine, const nxc_value *value, bool sealed);

/* Follows a key from the frame's scalar. `lenient` (oc.select): what is absent is no error, *absent tells. */
nxc_step nxc_machine_walk(nxc_evaluator *machine, const char *key, size_t n_bytes, bool lenient,
                          nxc_item *item, bool *absent);
void nxc_machine_note(nxc_evaluator *machine, const nxc_node *read, const char *variable);
void nxc_machine_variable(nxc_evaluator *machine, const char *name, const char *value, bool default_taken);

/* A text for people without values of the environment and of secrets. */
const char *nxc_machine_public(nxc_evaluator *m, const char *text);
/* A value for a message, unless it is a secret of the node (NULL: of what is resolved now). */
const char *nxc_machine_show(const nxc_evaluator *machine, const nxc_node *node, const nxc_value *value);
/* The operation under way of the scalar's own formula. */
const nxc_op *nxc_machine_operation(const nxc_evaluator *machine);
/* The place of the interpolation under way. */
nxc_span nxc_machine_place(const nxc_evaluator *machine);
/* Findings at the operation under way, with the chain of references that led to it. */
nxc_step nxc_machine_fail(nxc_evaluator *machine, const char *id, const char *fix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The key with this path is absent (NX1202). */
nxc_step nxc_machine_miss(nxc_evaluator *machine, const char *path, const char *fix, nxc_repair repair,
                          const char *message);
void nxc_machine_warn(nxc_evaluator *machine, const char *id, const char *fix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
nxc_step nxc_machine_cycle(nxc_evaluator *machine, const nxc_node *node);

#endif
