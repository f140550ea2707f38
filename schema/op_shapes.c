/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check.h"

#include <stdio.h>
#include <string.h>

/* A signature per operator. Operands are separated by blanks, outputs follow '>'. An operand is a type letter
 *   a f32 or bf16    f f32    d f64    i i32    l i64    x any
 * and its dimensions: a letter is a size that must be the same wherever the letter stands, a digit is that
 * size, and *T is the product of all leading dimensions. Operands that a plan leaves out stand last among
 * inputs or outputs. */
static const char *const signatures[NX_OP_END] = {
    [NX_OP_bias_grad] = "a*MN > a*N",
    [NX_OP_bias_add] = "a*MN a*N > a*MN",
    [NX_OP_embedding] = "iBS aVH > aBSH",
    [NX_OP_embedding_grad] = "iBS aBSH > aVH",
    [NX_OP_position_add] = "aBSH aPH iBQ > aBSH",
    [NX_OP_position_grad] = "aBSH iBQ > aPH",
    [NX_OP_rms_norm] = "a*TH a*H > a*TH f*T",
    [NX_OP_rms_norm_grad] = "a*TH a*TH a*H f*T > a*TH a*H",
    [NX_OP_layer_norm] = "a*TH a*H a*H > a*TH f*T f*T",
    [NX_OP_layer_norm_grad] = "a*TH a*TH a*H f*T f*T > a*TH a*H a*H",
    [NX_OP_add] = "a*N a*N > a*N",
    [NX_OP_split_qkv] = "aBSC iBS > aBnSd aBmSd aBmSd",
    [NX_OP_merge_qkv] = "aBnSd aBmSd aBmSd iBS > aBSC",
    [NX_OP_split_heads] = "aBSC iBS > aBnSd",
    [NX_OP_merge_heads] = "aBnSd iBS > aBSC",
    [NX_OP_attention] = "aBnSd aBmKd aBmKd lB iS iK iBS > aBSC fBnS",
    [NX_OP_attention_grad] = "aBSC aBnSd aBmKd aBmKd aBSC fBnS lB iS iK iBS > aBnSd aBmKd aBmKd",
    [NX_OP_attention_merge] = "aBSC fBnS aBSC fBnS > aBSC fBnS",
    [NX_OP_swiglu] = "a*TG > a*TF",
    [NX_OP_swiglu_grad] = "a*TF a*TG > a*TG",
    [NX_OP_gelu] = "a*N > a*N",
    [NX_OP_gelu_grad] = "a*N a*N > a*N",
    [NX_OP_dropout] = "aBSF lB iQ > aBSF",
    [NX_OP_ce_stats] = "a*TV i*T > f1T3",
    [NX_OP_ce_loss] = "fpT3 f*T > f*T d1",
    [NX_OP_ce_grad] = "a*TV i*T f*T f*T > a*TV",
    [NX_OP_fill] = "> x*N",
    [NX_OP_cast] = "x*N > x*N",
    [NX_OP_all_reduce] = "x*N > x*N",
    [NX_OP_shift] = "x*N > x*N",
    [NX_OP_wait] = "x*N >",
    [NX_OP_norm_sq] = "a*N > d1",
    [NX_OP_clip_scale] = "d*N > d1 d1",
    [NX_OP_lr_schedule] = "l1 > d1",
    [NX_OP_adamw] = "a*N a*N a*N a*N d1 d1 l1 > a*N a*N a*N a*N",
    [NX_OP_sgd] = "a*N a*N d1 d1 > a*N a*N",
    [NX_OP_moe_route] = "fBsE fBSE > iBsk fBsk fnE d2",
    [NX_OP_moe_route_grad] = "fBsk fBsE iBsk fnE > aBsE",
    [NX_OP_moe_index] = "iBsk > iBsk iD1L",
    [NX_OP_moe_permute] = "aBsH iBsk > aDRH",
    [NX_OP_moe_combine] = "aDRH iBsk fBsk > aBsH",
    [NX_OP_moe_combine_grad] = "aBsH aDRH iBsk fBsk > aDRH fBsk",
    [NX_OP_grouped_matmul] = "apqK ipgL aLVW > apqN",
    [NX_OP_grouped_wgrad] = "apqN apqK ipgL > aLNK",
};

typedef struct sizes {
  int64_t of[128]; /* by letter; 0: not met yet */
} sizes;

static bool type_matches(char letter, uint16_t dtype) {
  switch (letter) {
    case 'a': return dtype == NX_f32 || dtype == NX_bf16;
    case 'f': return dtype == NX_f32;
    case 'd': return dtype == NX_f64;
    case 'i': return dtype == NX_i32;
    case 'l': return dtype == NX_i64;
    default: return true;
  }
}

static bool size_matches(sizes *known, char letter, int64_t size) {
  if (letter >= '0' && letter <= '9') return size == letter - '0';
  int64_t *at = &known->of[(unsigned char)letter & 127];
  if (*at == 0) *at = size;
  return *at == size;
}

static bool operand_matches(sizes *known, const char *pattern, size_t length, const nx_value *value) {
  if (!type_matches(pattern[0], value->dtype)) return false;
  const char *dims = pattern + 1;
  size_t n_named = length - 1;
  int64_t leading = 1;
  uint32_t first = 0;
  if (*dims == '*') {
    n_named -= 2; /* the star and its letter */
    if (value->n_dims < n_named) return false;
    for (; first < value->n_dims - n_named; first++) leading *= value->dims[first];
    if (!size_matches(known, dims[1], leading)) return false;
    dims += 2;
  } else if (value->n_dims != n_named) {
    return false;
  }
  for (size_t i = 0; i < n_named; i++)
    if (!size_matches(known, dims[i], value->dims[first + i])) return false;
  return true;
}

static const nx_value *operand(const nx_plan *plan, const nx_operator *op, uint32_t index) {
  return &plan->values[plan->arguments[op->first_argument + index]];
}

/* Walks the inputs or the outputs; returns where the pattern goes on after them, NULL where one does not
 * match. */
static const char *match_side(const nx_plan *plan, const nx_operator *op, uint32_t first, uint32_t n,
                              const char *pattern, sizes *known, char why[128]) {
  uint32_t index = 0;
  while (*pattern == ' ') pattern++;
  while (*pattern != '\0' && *pattern != '>') {
    size_t length = strcspn(pattern, " >");
    if (index < n && !operand_matches(known, pattern, length, operand(plan, op, first + index))) {
      snprintf(why, 128, "operand %u has another shape or type than %.*s", first + index, (int)length,
               pattern);
      return NULL;
    }
    index++;
    pattern += length;
    while (*pattern == ' ') pattern++;
  }
  return pattern;
}

static int64_t attribute(const nx_plan *plan, const nx_operator *op, uint32_t index) {
  return plan->attributes[op->first_attribute + index].integer;
}

static bool check_matmul(const nx_plan *plan, const nx_operator *op) {
  const nx_value *v[4] = {operand(plan, op, 0), operand(plan, op, 1), operand(plan, op, op->n_in),
                          op->n_in == 3 ? operand(plan, op, 2) : NULL};
  int64_t rows[3], columns[3];
  for (int i = 0; i < 3; i++) {
    if (v[i]->n_dims < 1 || !type_matches('a', v[i]->dtype)) return false;
    columns[i] = v[i]->dims[v[i]->n_dims - 1];
    rows[i] = 1;
    for (int dim = 0; dim + 1 < v[i]->n_dims; dim++) rows[i] *= v[i]->dims[dim];
  }
  bool trans_a = attribute(plan, op, NX_matmul_trans_a), trans_b = attribute(plan, op, NX_matmul_trans_b);
  int64_t m = trans_a ? columns[0] : rows[0], k = trans_a ? rows[0] : columns[0];
  int64_t n = trans_b ? rows[1] : columns[1], k_b = trans_b ? columns[1] : rows[1];
  bool bias = v[3] == NULL || (v[3]->n_dims == 1 && v[3]->dims[0] == n && type_matches('a', v[3]->dtype));
  return k == k_b && m == rows[2] && n == columns[2] && bias;
}

static bool check_scaled_axis(const nx_plan *plan, const nx_operator *op, const nx_value *small,
                              const nx_value *large, int64_t axis) {
  if (axis < 0 || axis >= small->n_dims || small->n_dims != large->n_dims || small->dtype != large->dtype)
    return false;
  for (int64_t dim = 0; dim < small->n_dims; dim++)
    if (large->dims[dim] != small->dims[dim] * (dim == axis ? plan->groups[op->group].size : 1)) return false;
  return true;
}

static bool check_all_gather(const nx_plan *plan, const nx_operator *op) {
  return check_scaled_axis(plan, op, operand(plan, op, 0), operand(plan, op, 1),
                           attribute(plan, op, NX_all_gather_axis));
}

static bool check_reduce_scatter(const nx_plan *plan, const nx_operator *op) {
  const nx_value *large = operand(plan, op, 0), *small = operand(plan, op, 1);
  int64_t axis = attribute(plan, op, NX_reduce_scatter_axis);
  if (axis < 0 || axis >= small->n_dims || small->n_dims != large->n_dims) return false;
  for (int64_t dim = 0; dim < small->n_dims; dim++)
    if (large->dims[dim] != small->dims[dim] * (dim == axis ? plan->groups[op->group].size : 1)) return false;
  return true;
}

static bool check_all_to_all(const nx_plan *plan, const nx_operator *op) {
  const nx_value *x = operand(plan, op, 0), *y = operand(plan, op, 1);
  int64_t split = attribute(plan, op, NX_all_to_all_split_axis),
          concat = attribute(plan, op, NX_all_to_all_concat_axis), size = plan->groups[op->group].size;
  if (split < 0 || split >= x->n_dims || concat < 0 || concat >= x->n_dims) return false;
  if (x->n_dims != y->n_dims || x->dtype != y->dtype || x->dims[split] % size != 0) return false;
  for (int64_t dim = 0; dim < x->n_dims; dim++) {
    int64_t of_member = x->dims[dim] / (dim == split ? size : 1);
    if (y->dims[dim] != of_member * (dim == concat ? size : 1)) return false;
  }
  return true;
}

static bool check_slice(const nx_plan *plan, const nx_operator *op) {
  const nx_value *x = operand(plan, op, 0), *y = operand(plan, op, 1);
  int64_t axis = attribute(plan, op, NX_slice_axis), parts = attribute(plan, op, NX_slice_parts);
  if (axis < 0 || axis >= x->n_dims || parts < 1 || x->n_dims != y->n_dims || x->dtype != y->dtype) return false;
  for (int64_t dim = 0; dim < x->n_dims; dim++)
    if (x->dims[dim] % (dim == axis ? parts : 1) != 0 || y->dims[dim] != x->dims[dim] / (dim == axis ? parts : 1))
      return false;
  return true;
}

/* The members' operands must be of one type. */
static bool check_shift(const nx_plan *plan, const nx_operator *op) {
  return operand(plan, op, 0)->dtype == operand(plan, op, 1)->dtype;
}

/* Places come all or none; without them there are as many keys as queries. */
static bool check_attention(const sizes *known, int n_places) {
  const int64_t *of = known->of;
  return of['C'] == of['n'] * of['d'] && of['n'] % of['m'] == 0 &&
         (n_places == 3 || (n_places == 0 && of['K'] == of['S']));
}

static bool check_route(const nx_plan *plan, const nx_operator *op, const sizes *known) {
  const int64_t *of = known->of;
  int64_t zigzag = attribute(plan, op, NX_moe_route_zigzag), capacity = attribute(plan, op, NX_moe_route_capacity);
  return attribute(plan, op, NX_moe_route_top_k) == of['k'] && of['k'] <= of['E'] && of['s'] <= of['S'] &&
         (of['n'] == 1 || of['n'] == of['B']) && zigzag >= 0 && (zigzag == 0 || of['S'] % (2 * zigzag) == 0) &&
         capacity >= 0 && capacity <= of['B'] * of['S'] && attribute(plan, op, NX_moe_route_sinkhorn) >= 0;
}

static bool check_grouped(const nx_plan *plan, const nx_operator *op, const sizes *known) {
  const int64_t *of = known->of;
  bool trans_b = attribute(plan, op, NX_grouped_matmul_trans_b);
  return of[trans_b ? 'V' : 'W'] == of['N'] && of[trans_b ? 'W' : 'V'] == of['K'] && of['q'] % of['g'] == 0;
}

/* What a signature can not say: sizes that are sums or products of others, and attributes that repeat
 * sizes. */
static bool check_rest(const nx_plan *plan, const nx_operator *op, const sizes *known) {
  const int64_t *of = known->of;
  switch (op->op) {
    case NX_OP_matmul: return check_matmul(plan, op);
    case NX_OP_all_gather: return check_all_gather(plan, op);
    case NX_OP_reduce_scatter: return check_reduce_scatter(plan, op);
    case NX_OP_all_to_all: return check_all_to_all(plan, op);
    case NX_OP_shift: return check_shift(plan, op);
    case NX_OP_slice: return check_slice(plan, op);
    case NX_OP_split_qkv:
    case NX_OP_merge_qkv:
      return of['C'] == (of['n'] + 2 * of['m']) * of['d'] &&
             attribute(plan, op, NX_split_qkv_heads) == of['n'] &&
             attribute(plan, op, NX_split_qkv_kv_heads) == of['m'] &&
             attribute(plan, op, NX_split_qkv_rotary_dims) <= of['d'];
    case NX_OP_split_heads:
    case NX_OP_merge_heads:
      return of['C'] == of['n'] * of['d'] && attribute(plan, op, NX_split_heads_heads) == of['n'] &&
             attribute(plan, op, NX_split_heads_rotary_dims) <= of['d'];
    case NX_OP_attention: return check_attention(known, op->n_in - 4);
    case NX_OP_attention_grad: return check_attention(known, op->n_in - 7);
    case NX_OP_attention_merge: return of['C'] % of['n'] == 0;
    case NX_OP_swiglu:
    case NX_OP_swiglu_grad: return of['G'] == 2 * of['F'];
    case NX_OP_moe_route: return check_route(plan, op, known);
    case NX_OP_moe_route_grad: return of['n'] == 1 || of['n'] == of['B'];
    case NX_OP_moe_index:
      return attribute(plan, op, NX_moe_index_destinations) == of['D'] &&
             attribute(plan, op, NX_moe_index_experts) == of['L'] && attribute(plan, op, NX_moe_index_rows) > 0;
    case NX_OP_moe_permute:
      return attribute(plan, op, NX_moe_permute_destinations) == of['D'] &&
             attribute(plan, op, NX_moe_permute_rows) == of['R'];
    case NX_OP_grouped_matmul: return check_grouped(plan, op, known);
    case NX_OP_grouped_wgrad: return of['q'] % of['g'] == 0;
    default: return true;
  }
}

bool nx_op_check_shapes(const nx_plan *plan, const nx_operator *op, char why[128]) {
  sizes known = {{0}};
  const char *pattern = signatures[op->op];
  if (pattern) {
    pattern = match_side(plan, op, 0, op->n_in, pattern, &known, why);
    if (pattern == NULL || match_side(plan, op, op->n_in, op->n_out, pattern + 1, &known, why) == NULL)
      return false;
  }
  if (check_rest(plan, op, &known)) return true;
  snprintf(why, 128, "its operands or attributes do not fit together");
  return false;
}
