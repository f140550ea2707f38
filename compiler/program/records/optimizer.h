/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules and their numbers, and what of it is divided over the ranks, and when that is
 * exchanged. */
#ifndef NXC_RECORDS_OPTIMIZER_H
#define NXC_RECORDS_OPTIMIZER_H

#include "compiler/program/records/learning_rate.h"
#include "compiler/settings/settings.h"
#include "schema/optimizers.h"

typedef struct nxc_update {
  const nx_optimizer_row *rule; /* NULL: there is no such operator */
  double numbers[NX_MAX_ATTRS]; /* of its attributes */
} nxc_update;

/* What optimizer.groups says of tensors whose names match: the first pattern that matches counts. */
typedef struct nxc_group_pattern {
  const char *pattern;
  double lr_factor;    /* of the learning rate; 1: as all others */
  double weight_decay; /* < 0: as all others */
} nxc_group_pattern;

typedef struct nxc_optimizer {
  nxc_update update;
  nxc_update others;    /* of all but the matrices of layers, where that is a rule for matrices */
  double matrix_factor; /* their learning rate then, of the others' */
  bool norm_weight_decay, qk_norm_weight_decay;
  bool blockwise; /* a rule for matrices works on the part of a matrix that a tensor-parallel rank has */
  bool matrix_routers;  /* it updates routers and positions too */
  bool stacked_scale;   /* an expert's matrix has the scale of its form in a stack of experts */
  int64_t matrix_parts; /* each matrix is updated in so many parts, one below the other; experts' are not */
  int64_t expert_parts; /* but each of theirs in so many beside one another */
  const nxc_value *joined; /* parts that are one matrix (passes/matrices.h) */
  size_t n_joined;
  nxc_learning_rate weight_decay; /* by step; what a group that is not decayed does not read */
  bool decoupled;                 /* embedding and output have a learning rate of their own */
  nxc_learning_rate decoupled_rate;
  double decoupled_factor; /* its peak, of the others' */
  const nxc_group_pattern *patterns;
  size_t n_patterns;
  int64_t compresses_from; /* steps before those that reduce what bits stand for; 0: none does */
  bool maximizes;   /* the loss rises */
  bool goes_on;     /* gradients that are no numbers update, too */
  double clip_norm; /* DBL_MAX: gradients are not clipped */
  bool begins_anew; /* where a training goes on from another's checkpoint */
} nxc_optimizer;

/* ZeRO, and the reductions and gathers of ranges. */
typedef struct nxc_sharding {
  uint32_t stage;
  uint32_t axis; /* atoms that may be divided over, once there is a mesh */
  bool reshard_after_forward, overlap_reduce, overlap_gather, reduce_once;
  bool in_pairs; /* sums over micro-batches and ranks are the same whoever has which (passes/pairs.c) */
  uint64_t bucket_elements; /* 0: not given */
  uint64_t keep_below;
} nxc_sharding;

/* The rule of optimizer.name, which must be known, or the variant that other settings choose. */
const char *nxc_update_name(const nxc_settings *settings);
nxc_optimizer nxc_optimizer_read(const nxc_settings *settings);
nxc_sharding nxc_sharding_read(const nxc_settings *settings);

/* One entry of optimizer.groups, "PATTERN lr_factor=0.1 weight_decay=0"; what is wrong with it, or NULL. The
 * pattern is copied into the arena. */
const char *nxc_group_pattern_read(nxc_arena *arena, const char *text, nxc_group_pattern *pattern);

#endif
