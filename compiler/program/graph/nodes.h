/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph consists of: values, operators, numbers that differ between ranks, groups of them, pieces of
 * tensors, and ranges of parameters. They name each other by index. */
#ifndef NXC_NODES_H
#define NXC_NODES_H

#include "compiler/program/graph/shape.h"
#include "compiler/program/records/optimizer.h"
#include "schema/plan.h"

typedef uint32_t nxc_id;

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
  uint32_t *at;   /* ascending */
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
  uint32_t group_atoms;     /* of collectives */
  const nxc_stages *stages; /* of one over the pipeline; NULL: all */
  int32_t layer;            /* -1: before or after the layers */
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

/* An input whose 8-byte numbers, as bits, are those of the plan. */
typedef struct nxc_fixed_value {
  nxc_id value;
  const int64_t *bits;
} nxc_fixed_value;

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
  bool alias;                    /* another name of what an earlier piece is */
  const char *memory;            /* what it remembers; NULL: it is a weight */
  bool of_range;                 /* of the range of that name, not of a module */
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
  uint32_t class;           /* ranges of one class differ only in which parameters they hold */
  uint32_t group_atoms;     /* gradients are summed over it */
  uint32_t shard_atoms;     /* of the group; 0: nothing is divided */
  uint32_t copy_atoms;      /* atoms outside the group over which the parameters are replicated */
  bool frozen;              /* no gradient, no group, nothing that an optimizer keeps */
  bool memory;              /* as of its values */
  uint32_t parameter_group; /* NX_NONE: frozen */
  bool kept;                /* between the passes, though parameters are divided */
  nx_dtype type;            /* of the parameters */
  const nxc_stages
      *shared;  /* stages that hold copies, whose gradients are summed before all else; NULL: none */
  int32_t unit; /* the layer that its parameters are of, or NXC_UNIT_* */
  uint64_t n_elements, n_shard;
  nxc_rank_number shard_start;
  nxc_storage storage;
  bool divided_gradients; /* grad is a shard, added to by every pass; else whole, and reduced once a step */
  nxc_id param;           /* what outlives the step: [n_elements], or [n_shard] where passes gather it */
  nxc_id whole;           /* [n_elements], in the same bytes; 0 where storage is NXC_DIVIDED */
  nxc_id param_shard;     /* what the optimizer writes */
  nxc_id master;          /* [n_shard]; 0: none */
  nxc_id worker_error, server_error; /* of compressed reductions, [n_elements] and a part; 0: none */
  nxc_id states[NX_MAX_STATES];      /* [n_shard], of the optimizer; 0: none */
  nxc_id grad;             /* what outlives a pass: [n_elements], or [n_shard] where gradients are divided */
  nxc_id pass_grad;        /* [n_elements]: what a backward pass writes */
  nxc_id handed;           /* the same, or the votes of it: what is summed over passes and ranks */
  nxc_id levels, n_summed; /* what passes are summed in, and how many have been; 0: they add to grad */
  nxc_id stage_sum;        /* [n_elements]: pass_grad summed over the stages that share it; 0: none do */
  nxc_id grad_shard;       /* [n_shard]: summed over shard_atoms; 0: nothing is divided */
  nxc_id summed;           /* [n_shard]: summed over the whole group, what the optimizer reads */
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
  nxc_id maxima[NXC_N_FP8_OPERANDS];  /* that of this pass, or of this step; 0: none is */
  nxc_id followed;                    /* the maximum that x's scale follows in this pass */
} nxc_fp8_product;

/* What the updates of a group read, as the step makes it. */
typedef struct nxc_group_numbers {
  nxc_id lr, decay;
} nxc_group_numbers;

#endif
