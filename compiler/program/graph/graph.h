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

#include "compiler/arena.h"
#include "compiler/program/mesh/mesh.h"
#include "compiler/program/records/optimizer.h"
#include "compiler/program/records/precision.h"
#include "compiler/program/records/sparsity.h"
#include "schema/plan.h"

typedef uint32_t nxc_id;

enum { NXC_REPLICATED = 0, NXC_PARTIAL = 1, NXC_SPLIT = 2 /* + dimension */ };

typedef struct nxc_placement {
  uint8_t at[NXC_N_ATOMS];
} nxc_placement;

typedef struct nxc_shape {
  nx_dtype dtype;
  uint32_t n_dims;
  int64_t dims[NX_MAX_DIMS]; /* unused: 1 */
  nxc_placement placement;
} nxc_shape;

/* What a value is for; decides the arena that it lives in. */
typedef enum nxc_role {
  NXC_ROLE_ACTIVATION,
  NXC_ROLE_INPUT,
  NXC_ROLE_SCALAR,
  NXC_ROLE_PARAMETER,
  NXC_ROLE_MASTER,
  NXC_ROLE_GRADIENT,
  NXC_ROLE_STATE
} nxc_role;

/* Some stages of the pipeline: those that hold a parameter, or take part in a collective. */
typedef struct nxc_stages {
  uint32_t n;
  uint32_t *at; /* ascending */
  bool in_chunks; /* the first and the last chunk of one stage hold it */
} nxc_stages;

typedef struct nxc_value_node {
  const char *name;
  nxc_shape shape;
  nxc_role role;
  bool unplaced;        /* a parameter's gradient before its first writer: the placement is not known yet */
  nxc_id view_of;       /* value whose bytes it shares, never itself a view; 0: none */
  uint64_t view_offset; /* bytes */
  nxc_id shift;         /* constant in bytes added to the offset, or NX_NONE */
  nxc_id producer;      /* the operator that wrote it first, or NX_NONE */
  nxc_id gradient;      /* of a parameter: where its gradient is summed */
  bool frozen;          /* a parameter that is not trained: it has no gradient */
  bool memory;          /* frozen, and no weight: what the training remembers, whole on every rank */
  bool elsewhere;       /* another chunk of the stage writes it first: the plan's proof says that it does */
  const nxc_stages
      *shared;          /* of a parameter: the stages that hold copies of it; NULL: it is one stage's alone */
  nxc_id range;         /* of a parameter, once there are ranges */
  uint64_t range_start; /* elements before it in the range */
  nx_arena_kind arena;  /* memory.c decides it for activations */
  uint64_t offset;
} nxc_value_node;

typedef struct nxc_operator_node {
  nx_op op;
  uint8_t when; /* NX_WHEN_* */
  uint32_t n_in, n_out, n_attrs;
  nxc_id args[NX_MAX_ARGS]; /* inputs, then outputs */
  nx_attribute attrs[NX_MAX_ATTRS];
  uint32_t group_atoms; /* of collectives */
  const nxc_stages *stages; /* of one over the pipeline; NULL: all */
  int32_t layer;        /* -1: before or after the layers */
  const char *origin;
} nxc_operator_node;

/* A number that may differ between ranks: base, then terms in order, as in the plan. */
typedef struct nxc_term {
  uint32_t atoms;       /* whose coordinate it takes; NX_NONE: the chunk */
  int64_t stride;       /* where there is no table */
  const int64_t *table; /* one entry per coordinate, or NULL; a chunk's may be filled in later */
  bool first;           /* the table that is 1 at coordinate 0 and 0 elsewhere */
  bool multiply;        /* by the table's entry, else it is added */
} nxc_term;

enum { NXC_MAX_TERMS = 8 };

typedef struct nxc_rank_number {
  int64_t base;
  uint32_t n_terms;
  nxc_term terms[NXC_MAX_TERMS];
} nxc_rank_number;

typedef struct nxc_group_node {
  uint32_t atoms;
  const nxc_stages *stages;
  const char *name;
} nxc_group_node;

/* Parameters that are updated alike. */
typedef struct nxc_parameter_group {
  const char *name; /* what made it so */
  nxc_update update;
  bool uncounted;   /* its gradients are no part of their norm */
  bool own_rate;    /* it has another learning rate than most */
  double lr_factor; /* the greatest of that, of the others' */
  nxc_learning_rate rate, weight_decay;
} nxc_parameter_group;

/* What the updates of a group read, as the step makes it. */
typedef struct nxc_group_numbers {
  nxc_id lr, decay;
} nxc_group_numbers;

/* An input whose 8-byte numbers, as bits, are those of the plan. */
typedef struct nxc_fixed_value {
  nxc_id value;
  const int64_t *bits;
} nxc_fixed_value;

/* What all graphs of a plan name by index. */
typedef struct nxc_tables {
  nxc_rank_number *constants;
  size_t n_constants;
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

/* Which of the two matrices of an adapter a piece is of. */
enum { NXC_ALL_EXPERTS = -1 /* that have a matrix in common */ };

typedef enum nxc_adapter_side {
  NXC_NO_ADAPTER,
  NXC_ADAPTER_A,
  NXC_ADAPTER_B,
  NXC_ADAPTED_BIAS
} nxc_adapter_side;

typedef struct nxc_piece_node {
  nxc_id value;
  bool transposed;
  int64_t logical_rows, logical_columns, rows, columns, row;
  nxc_rank_number row_start, column_start, owner;
  nx_init init;
  double init_std;
  uint32_t part; /* nxc_part (parameters.h) */
  bool bias;
  nxc_adapter_side adapter;
  bool alias; /* another name of what an earlier piece is */
  const char *memory; /* what it remembers; NULL: it is a weight */
  bool of_range;      /* of the range of that name, not of a module */
  nxc_id factors[NX_MAX_STATES]; /* of the matrix that begins here: states that are memory; 0: none */
  nx_form form;
  int32_t layer;
  int32_t expert; /* of parts that each expert has, or NXC_ALL_EXPERTS */
  uint32_t n_dims;
  uint32_t slices; /* as in nx_piece */
} nxc_piece_node;

enum { NXC_UNIT_INPUT = -1, NXC_UNIT_OUTPUT = -2, NXC_UNIT_ANY = -3 };

/* Where the parameters of a range are between steps, and who brings them together. */
typedef enum nxc_storage {
  NXC_WHOLE,    /* on every rank; where the update is divided the step gathers them */
  NXC_GATHERED, /* on every rank, but gathered by the first forward pass of a step, ahead of their readers */
  NXC_DIVIDED   /* in shards: gathered by every pass, for as long as it needs them */
} nxc_storage;

enum { NXC_SQUARES_BLOCK = 1024 /* elements, as operator block_squares has it */ };

/* Parameters that are reduced together over the same ranks and updated alike. What the optimizer
 * keeps is divided over shard_atoms; its part of a whole value begins at shard_start. */
typedef struct nxc_range_node {
  const char *name;
  uint32_t class;       /* ranges of one class differ only in which parameters they hold */
  uint32_t group_atoms; /* gradients are summed over it */
  uint32_t shard_atoms; /* of the group; 0: nothing is divided */
  uint32_t copy_atoms;  /* atoms outside the group over which the parameters are replicated */
  bool frozen;          /* no gradient, no group, nothing that an optimizer keeps */
  bool memory;          /* as of its values */
  uint32_t parameter_group; /* NX_NONE: frozen */
  bool kept;            /* between the passes, though parameters are divided */
  nx_dtype type;        /* of the parameters */
  const nxc_stages
      *shared;          /* stages that hold copies, whose gradients are summed before all else; NULL: none */
  int32_t unit;         /* the layer that its parameters are of, or NXC_UNIT_* */
  uint64_t n_elements, n_shard;
  nxc_rank_number shard_start;
  nxc_storage storage;
  bool divided_gradients; /* grad is a shard, added to by every pass; else whole, and reduced once a step */
  nxc_id param;           /* what outlives the step: [n_elements], or [n_shard] where passes gather it */
  nxc_id whole;           /* [n_elements], in the same bytes; 0 where storage is NXC_DIVIDED */
  nxc_id param_shard;     /* what the optimizer writes */
  nxc_id master;                /* [n_shard]; 0: none */
  nxc_id worker_error, server_error; /* of compressed reductions, [n_elements] and a part; 0: none */
  nxc_id states[NX_MAX_STATES]; /* [n_shard], of the optimizer; 0: none */
  nxc_id grad;            /* what outlives a pass: [n_elements], or [n_shard] where gradients are divided */
  nxc_id pass_grad;       /* [n_elements]: what a backward pass writes */
  nxc_id handed;          /* the same, or the votes of it: what is summed over passes and ranks */
  nxc_id levels, n_summed; /* what passes are summed in, and how many have been; 0: they add to grad */
  nxc_id stage_sum;       /* [n_elements]: pass_grad summed over the stages that share it; 0: none do */
  nxc_id grad_shard;      /* [n_shard]: summed over shard_atoms; 0: nothing is divided */
  nxc_id summed;          /* [n_shard]: summed over the whole group, what the optimizer reads */
} nxc_range_node;

/* A product whose operands are rounded to fp8 (fp8.h). */
typedef enum nxc_fp8_operand {
  NXC_FP8_X,
  NXC_FP8_WEIGHT,
  NXC_FP8_GRADIENT,
  NXC_N_FP8_OPERANDS
} nxc_fp8_operand;
/* Corrections of a router's logits, and what the passes of a step note for the next ones. */
typedef struct nxc_quantiles {
  nxc_id correction, sums;
} nxc_quantiles;

typedef struct nxc_fp8_product {
  nxc_id y, x, weight;                /* before they are rounded */
  nxc_id history[NXC_N_FP8_OPERANDS]; /* maxima that are remembered of each; 0: none are */
  nxc_id maxima[NXC_N_FP8_OPERANDS];  /* that of this step; 0: none is */
} nxc_fp8_product;

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
nxc_shape nxc_shape_of(nx_dtype dtype, uint32_t n_dims, const int64_t *dims);
int64_t nxc_shape_elements(const nxc_shape *shape);
uint64_t nxc_shape_bytes(const nxc_shape *shape);
/* Product of all dimensions but the last. */
int64_t nxc_shape_rows(const nxc_shape *shape);
int64_t nxc_shape_last(const nxc_shape *shape);
nxc_id nxc_value_root(const nxc_graph *graph, nxc_id value);

/* Sets the placement on every atom of the set. */
void nxc_place_atoms(nxc_placement *placement, uint32_t atoms, uint8_t how);
/* The atoms on which the placement is `how`; of NXC_REPLICATED, those beyond the mesh too. */
uint32_t nxc_atoms_placed(const nxc_placement *placement, uint8_t how);
bool nxc_placement_equal(const nxc_placement *a, const nxc_placement *b);

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
