/* SPDX-License-Identifier: Apache-2.0 */
/* Records of what is done: operators, programs, chunks of the model, and the schedules of the stages. */
#ifndef NX_PLAN_PROGRAM_H
#define NX_PLAN_PROGRAM_H

#include "schema/plan_memory.h"

enum { NX_WHEN_FIRST = 1, NX_WHEN_MIDDLE = 2, NX_WHEN_LAST = 4, NX_WHEN_ALWAYS = 7 };
/* Of a step's operators: the end of an evaluation's batch runs them, and nothing else of the step. */
enum { NX_WHEN_EVALUATED = 8 };
/* Of passes' operators: they run where a step has one micro-batch, of a plan whose other steps have more. */
enum { NX_WHEN_ONLY = 16 };
/* Of a step's operators and items: the phases once more, so many bits further, as steps with compressed
 * reductions (NX_SCHEDULE_COMPRESSED) have them. */
enum { NX_WHEN_COMPRESSED = 5, NX_WHEN_ANY = 255 };
/* Of a backward pass's operators: those that nothing but gradients of weights come from may be cut off, to
 * run later; nx_when_later says what their bits are then. An item runs either part, or both. */

typedef struct nx_operator {
  uint16_t op;
  uint8_t when;
  uint8_t n_in, n_out, n_attrs;
  uint16_t reserved;
  uint32_t first_argument; /* inputs, then outputs */
  uint32_t first_attribute;
  uint32_t group;  /* COMM operators but wait */
  uint32_t origin; /* string: what it came from, as "layers.3.attention" */
  uint64_t flops;
  uint64_t moved_bytes; /* read and written (COMPUTE), or received by this rank (COMM) */
} nx_operator;
_Static_assert(sizeof(nx_operator) == 40, "plan operator");

/* How the parts of a collective come to all members by messages (runtime/comm/comm_legs.h); what is summed is
 * summed in coordinate order whatever the way. Only all_gather and all_reduce have ways but the first. */
typedef enum nx_way {
  NX_WAY_DIRECT,   /* from each owner straight to every other member */
  NX_WAY_RING,     /* around, each member to the next alone */
  NX_WAY_DOUBLING, /* twice as many parts in each round; of an all_reduce all of every x, summed by each
                      member */
  NX_WAY_HOSTS,    /* to one member on every host, which the others there read from in the shared window */
  NX_N_WAYS
} nx_way;

/* The way of a collective whose group has members on several hosts, and what was thought of it: seconds on
 * the machine that nxcfg was told of, also of the next best way. Operators ascend; others go directly. */
typedef struct nx_route {
  uint32_t operator;
  uint8_t way, next; /* nx_way; `next` is `way` where there is no other */
  uint16_t reserved;
  float seconds, next_seconds;
} nx_route;
_Static_assert(sizeof(nx_route) == 16, "plan route");

typedef enum nx_attribute_kind {
  NX_ATTRIBUTE_INT = 0,
  NX_ATTRIBUTE_REAL,
  NX_ATTRIBUTE_CONSTANT
} nx_attribute_kind;

typedef struct nx_attribute {
  uint32_t kind;
  uint32_t constant; /* NX_ATTRIBUTE_CONSTANT */
  union {
    int64_t integer;
    double real;
  };
} nx_attribute;

typedef enum nx_program_kind {
  NX_PROGRAM_FORWARD = 1,
  NX_PROGRAM_BACKWARD,
  NX_PROGRAM_EVALUATE,
  NX_PROGRAM_STEP
} nx_program_kind;

typedef struct nx_program {
  uint32_t name;
  uint32_t kind;
  uint32_t first_operator, n_operators;
} nx_program;

/* What a chunk passes to its neighbours: activations to the next chunk, their gradients to the one before. */
typedef enum nx_port {
  NX_PORT_INPUT,           /* received from the chunk before */
  NX_PORT_OUTPUT,          /* sent to the next chunk, which receives it as its input */
  NX_PORT_OUTPUT_GRADIENT, /* received from the next chunk */
  NX_PORT_INPUT_GRADIENT,  /* sent to the chunk before, which receives it as its output's gradient */
  NX_N_PORTS
} nx_port;

/* The part of the model that a stage runs at a time; chunk 0 is the first. Chunks of equal shape share
 * programs. */
typedef struct nx_chunk {
  uint32_t stage;
  uint32_t first_layer, n_layers;
  uint32_t forward, backward, evaluate, step; /* programs, or NX_NONE */
  uint32_t n_slots;                           /* micro-batches of this chunk in flight */
  uint32_t ports[NX_N_PORTS];                 /* values in arena slot, or NX_NONE */
  uint64_t arena_base[NX_N_ARENAS];           /* added to the offset of the chunk's values */
  uint64_t arena_bytes[NX_N_ARENAS];          /* that the chunk uses from there; arena slot: of one slot */
} nx_chunk;
_Static_assert(sizeof(nx_chunk) == 48 + 16 * NX_N_ARENAS, "plan chunk");

typedef enum nx_item_kind {
  NX_ITEM_FORWARD = 1,
  NX_ITEM_BACKWARD,
  NX_ITEM_EVALUATE,
  NX_ITEM_SEND, /* starts; complete after its wait, which may come when the receive has been started */
  NX_ITEM_RECV, /* starts */
  NX_ITEM_WAIT, /* for the send or receive of the port, chunk and slot */
  NX_ITEM_STEP
} nx_item_kind;

/* Transfers of one port of one chunk that may be under way at once. */
enum { NX_MAX_TRANSFERS = 8 };

/* One thing that a stage does. The items of a stage stand together in their schedule, in order. Of a step
 * `when` says which phases run; a stage of several chunks first reduces the gradients of each (first),
 * then makes what all share, once (middle), then updates each (last). Of a pass it follows from the
 * micro-batch. */
typedef struct nx_item {
  uint32_t stage;
  uint8_t kind; /* nx_item_kind */
  uint8_t port; /* nx_port of a send, recv or wait; else 0 */
  uint8_t when; /* of an item that runs a program: its operators with one of these bits run; else 0 */
  uint8_t reserved;
  uint32_t slot;
  uint32_t chunk;
  uint32_t micro_batch; /* 0 of a step */
} nx_item;
_Static_assert(sizeof(nx_item) == 20, "plan item");

typedef enum nx_schedule_kind {
  NX_SCHEDULE_TRAIN = 1, /* every micro-batch forward and back, then the step */
  NX_SCHEDULE_EVALUATE   /* every micro-batch through the evaluation programs, then the sum of their losses */
} nx_schedule_kind;

enum { NX_SCHEDULE_COMPRESSED = 1 /* its steps run the operators of compressed reductions */ };

/* What all stages do for one batch. The schedules' items stand one after another, the training's first: that
 * of run.n_micro_batches, then those of fewer, which steps have while the batch grows; behind each, where
 * there is one, the same with compressed reductions. There is one for an evaluation at most, of
 * as many or fewer. */
typedef struct nx_schedule {
  uint32_t name; /* string */
  uint32_t kind; /* nx_schedule_kind */
  uint32_t first_item, n_items;
  uint32_t n_micro_batches;
  uint32_t flags; /* NX_SCHEDULE_* */
} nx_schedule;

/* From a step on the training has this schedule and batches of this size, until the next phase begins. */
typedef struct nx_phase {
  uint64_t first_step;   /* 0 of the first phase */
  uint64_t first_sample; /* sequences before that step */
  uint32_t global_batch; /* sequences */
  uint32_t schedule;     /* index into NX_SECTION_SCHEDULES */
} nx_phase;
_Static_assert(sizeof(nx_phase) == 24, "plan phase");

#endif
