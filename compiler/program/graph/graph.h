/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: what one rank runs, as operators over values, by index, before it is laid out in memory.
 *
 * Shapes are local to a rank. Every value has a placement per mesh atom: replicated, split on one of its
 * dimensions, or partial (the ranks' values are summands of the true one). An operator's rule (rules.h)
 * infers shape and placement of its outputs, so that what must be summed follows from the graph and is listed
 * nowhere. Values and operators are never removed, only left unused; a program is a list of operator indices.
 * Index 0 of values is unused and means "none". The graph and all it names live in its arena. Invariant,
 * checked after every pass (nxc_graph_check): each operator's outputs are what its rule infers from its
 * inputs.
 *
 * A graph is a chunk of a pipeline (pipeline.h), or several of equal shape. Placements say nothing about the
 * pipeline atom, but of numbers that all stages sum. */
#ifndef NXC_GRAPH_H
#define NXC_GRAPH_H

#include "compiler/program/graph/nodes.h"
#include "compiler/program/records/precision.h"
#include "compiler/program/records/sparsity.h"

/* What all graphs of a plan name by index. */
typedef struct nxc_tables {
  nxc_rank_number *constants;
  size_t n_constants;
  nxc_id *constant_slots; /* which constant may be meant, by hash; NX_NONE: none */
  size_t n_constant_slots;
  nxc_group_node *groups;
  size_t n_groups;
  nxc_parameter_group *parameter_groups;
  size_t n_parameter_groups;
} nxc_tables;

/* The evaluation's is made of the forward program when that is complete, and has its values. */
typedef enum nxc_program_index {
  NXC_FORWARD,
  NXC_BACKWARD,
  NXC_WEIGHTS, /* what is cut off the backward program: in the plan they are one */
  NXC_STEP,
  NXC_EVALUATE,
  NXC_N_PROGRAMS
} nxc_program_index;

typedef struct nxc_program_list {
  nxc_id *operators;
  size_t n;
} nxc_program_list;

typedef struct nxc_pipeline nxc_pipeline;

/* Which steps run what is appended to the step program, where there are two kinds of them. */
typedef enum nxc_steps { NXC_STEPS_ALL, NXC_STEPS_PLAIN, NXC_STEPS_COMPRESSED } nxc_steps;

typedef struct nxc_graph {
  nxc_arena *arena;
  nxc_mesh mesh;
  nxc_precision types;
  nxc_value_node *values;
  size_t n_values;
  nxc_operator_node *operators;
  size_t n_operators;
  nxc_program_list programs[NXC_N_PROGRAMS];
  nxc_program_index program; /* that operators are appended to */
  nxc_tables *tables;
  nxc_piece_node *pieces;
  size_t n_pieces;
  nxc_group_numbers *group_numbers; /* of each parameter group, once there is a step */
  nxc_range_node *ranges;
  size_t n_ranges;
  nxc_id *parameters; /* values, in the order of their declaration */
  size_t n_parameters;
  bool compresses;    /* later steps reduce what bits stand for, in the place of gradients */
  nxc_steps steps;
  const char *origin; /* given to appended operators */
  int32_t layer;
  const char *weights_origin; /* as origin and layer, of whoever has the weights of this layer */
  int32_t weights_layer;
  uint32_t n_micro_batches;
  nxc_id tokens, labels, positions, samples, step, loss, loss_total, grad_norm, lr; /* as in nx_run */
  nxc_id places, starts, weights, loss_scale, later_labels, later_weights; /* as in nx_run; 0: none */
  nxc_id updates, reductions; /* the same */
  nxc_id parameter_squares, zeros, router_losses; /* sums that are logged; 0: they are not */
  nxc_id router_layers; /* as router_losses, two numbers for each layer of the model */
  nxc_id reference, rewards, sequence_sums;   /* as in nx_run; 0: none */
  nxc_id metrics, metrics_total; /* [NX_N_ANSWER_METRICS], as loss and loss_total; 0: none */
  nxc_id seen, gradient_factor;  /* the same; a factor that is the loss scale alone is that value */
  nxc_id *place_rows;    /* views of places, one per ring rank */
  nxc_id frequencies;     /* of rotated pairs, where they are given; 0: none */
  nxc_id blocks[NXC_N_SPARSE_KINDS]; /* that attention of each kind reads; 0: none does */
  nxc_id relative;        /* the table of biases, once a layer of the graph has read it; else 0 */
  nxc_fixed_value *fixed; /* the same in all graphs of a plan */
  size_t n_fixed;
  nxc_id mixture_counts; /* of all layers' experts, where their load-balancing losses share them; else 0 */
  nxc_id *mixture_loads; /* of each layer: the load in its loss; NULL or 0: its router's own counts */
  nxc_quantiles *quantiles;
  size_t n_quantiles;
  nxc_id tied;         /* a parameter of this graph that is both embedding and output matrix; 0: none */
  nxc_id tied_gradient; /* its gradient as the output matrix, until both are added */
  nxc_fp8_product *fp8_products;
  size_t n_fp8_products;
  nxc_id squares;      /* sums of squared gradients, one entry per parameter of the model */
  nxc_pipeline *pipeline;
  uint32_t chunk;        /* the first of those that this is */
  bool is_first, is_last; /* has the embedding; has the loss */
  uint32_t shard_axis;    /* atoms over which ZeRO may divide */
  bool
      divides_gradients; /* a backward pass adds to shards of the gradients that are summed over shard_axis */
  bool in_pairs; /* passes hand gradients to sums in pairs */
  bool votes;    /* or votes */
  bool counts_voters; /* of which micro-batches without labels have none */
  int32_t first_layer, n_layers;
  nxc_id ports[NX_N_PORTS]; /* 0: none */
  nxc_id output;            /* what the next chunk begins with; 0: there is none */
  nxc_id output_gradient, input; /* in the ports that are received */
  const nxc_shape *port_counts;  /* of the experts' counts that go beside it; NULL: none do */
  uint64_t arena_bytes[NX_N_ARENAS]; /* of arena slot: of one slot */
  bool arena_shared[NX_N_ARENAS];
  const char *fault; /* the first inconsistency met; NULL: none */
} nxc_graph;

nxc_graph *nxc_graph_new(nxc_arena *arena, const nxc_mesh *mesh, const nxc_precision *types);

nxc_id nxc_value_new(nxc_graph *graph, const char *name, nxc_role role, const nxc_shape *shape);
/* An input that holds these numbers, 8 bytes each, throughout the run. */
nxc_id nxc_fixed_value_new(nxc_graph *graph, const char *name, const nxc_shape *shape, const int64_t *bits);
/* A value over the same bytes from `offset` on. */
nxc_id nxc_view_new(nxc_graph *graph, const char *name, nxc_id base, uint64_t offset, const nxc_shape *shape);
nxc_id nxc_value_root(const nxc_graph *graph, nxc_id value);

/* What to append: inputs end at the first 0; outputs that are 0 are made, with the name origin.name. */
typedef struct nxc_op_request {
  nx_op op;
  const char *name;
  nxc_id of[4]; /* an output that is the gradient of this value is named after it */
  nxc_id in[NX_MAX_ARGS];
  nxc_id out[NX_MAX_ARGS];
  uint32_t n_out; /* 0: the least that the operator has */
  nx_attribute attrs[NX_MAX_ATTRS];
  nx_dtype dtype; /* of the first output; 0: what the rule prefers */
  uint32_t group_atoms;
  const nxc_stages *stages;
  uint8_t when; /* 0: always */
} nxc_op_request;

/* Appends to the current program and returns the first output (0 where there is none). */
nxc_id nxc_append(nxc_graph *graph, const nxc_op_request *request);
/* Before all else in the first micro-batch: the value is 0. */
void nxc_clear_first(nxc_graph *graph, nxc_id value);
void nxc_program_push(nxc_graph *graph, nxc_program_list *list, nxc_id op);
/* Marks the values that the host fills. */
void nxc_graph_mark_inputs(const nxc_graph *graph, bool *is_input);
/* Parameters that are not frozen. */
int64_t nxc_n_trained(const nxc_graph *graph);
/* The operator that wrote the value first, or NULL. Not kept over appends. */
const nxc_operator_node *nxc_producer(const nxc_graph *graph, nxc_id value);
nxc_id nxc_last_output(const nxc_graph *graph, uint32_t index);

/* Records the first inconsistency. */
void nxc_graph_fault(nxc_graph *graph, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Re-infers everything, and demands that no partial value meets what must be whole, and that all is written
 * before it is read. The text of the first fault, or NULL. */
const char *nxc_graph_check(nxc_graph *graph);

nx_attribute nxc_integer(int64_t integer);
nx_attribute nxc_real(double real);
/* An immediate where the number is the same on all ranks. */
nx_attribute nxc_attribute(nxc_graph *graph, const nxc_rank_number *number);
nxc_rank_number nxc_rank_number_of(int64_t base);
/* Adds stride x the coordinate on a set of atoms. */
void nxc_rank_number_stride(nxc_rank_number *number, uint32_t atoms, int64_t stride);
/* Adds (or multiplies by) table[coordinate]. */
void nxc_rank_number_table(nxc_graph *graph, nxc_rank_number *number, uint32_t atoms, const int64_t *table,
                           bool multiply);
/* Adds table[chunk]; the table is kept, not copied. */
void nxc_rank_number_chunk(const nxc_graph *graph, nxc_rank_number *number, const int64_t *table);
/* base + factor x the number of the layer; `layer` is its number in the graph's first chunk. */
nxc_rank_number nxc_rank_number_layer(nxc_graph *graph, int64_t base, int64_t factor, int32_t layer);
/* unit x the coordinate on the tensor axis. */
nxc_rank_number nxc_rank_number_tensor(const nxc_graph *graph, int64_t base, int64_t unit);
/* 1 where every coordinate on the atoms is 0, else 0. */
nxc_rank_number nxc_rank_number_first(uint32_t atoms);
nxc_id nxc_constant(nxc_graph *graph, const nxc_rank_number *number);
/* Index of the group over these atoms, of which there is one at least, and of these stages (NULL: all). */
nxc_id nxc_group(nxc_graph *graph, uint32_t atoms, const nxc_stages *stages);
/* Its members. */
uint32_t nxc_group_size(const nxc_graph *graph, uint32_t atoms, const nxc_stages *stages);

#endif
