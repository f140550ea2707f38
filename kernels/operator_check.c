/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/operator_check.h"

#include <stdio.h>
#include <string.h>

/* Classes: f float (f32, bf16, f64), d f64, i i32, l i64, any of these: a. Digits are sizes. `?`: may be absent. */
static const char *const signatures[NX_OP_END] = {
  [NX_OP_bias_grad] = "f:MN > f:N",
  [NX_OP_bias_add] = "f:MN f:N > f:MN",
  [NX_OP_embedding] = "i:BS f:VH > f:BSH",
  [NX_OP_embedding_grad] = "i:BS f:BSH > f:VH",
  [NX_OP_position_add] = "f:BSH f:PH i:BA > f:BSH",
  [NX_OP_position_grad] = "f:BSH i:BA > f:PH",
  [NX_OP_rms_norm] = "f:TH f:H > f:TH f:T",
  [NX_OP_rms_norm_grad] = "f:TH f:TH f:H f:T > f:TH f:H",
  [NX_OP_layer_norm] = "f:TH f:H f:H? > f:TH f:T f:T",
  [NX_OP_layer_norm_grad] = "f:TH f:TH f:H f:T f:T > f:TH f:H f:H?",
  [NX_OP_add] = "f:N f:N > f:N",
  [NX_OP_split_qkv] = "f:BSW i:BS > f:BnSd f:BmSd f:BmSd",
  [NX_OP_merge_qkv] = "f:BnSd f:BmSd f:BmSd i:BS > f:BSW",
  [NX_OP_split_heads] = "f:BSW i:BS > f:BnSd",
  [NX_OP_merge_heads] = "f:BnSd i:BS > f:BSW",
  [NX_OP_attention] = "f:BnSd f:BmSd f:BmSd l:B > f:BSW f:BnS",
  [NX_OP_attention_grad] = "f:BSW f:BnSd f:BmSd f:BmSd f:BSW f:BnS l:B > f:BnSd f:BmSd f:BmSd",
  [NX_OP_swiglu] = "f:TW > f:TF",
  [NX_OP_swiglu_grad] = "f:TF f:TW > f:TW",
  [NX_OP_gelu] = "f:N > f:N",
  [NX_OP_gelu_grad] = "f:N f:N > f:N",
  [NX_OP_dropout] = "f:BSF l:B > f:BSF",
  [NX_OP_ce_stats] = "f:TV i:T > f:1T3",
  [NX_OP_ce_loss] = "f:PT3 > f:T d:1",
  [NX_OP_ce_grad] = "f:TV i:T f:T > f:TV",
  [NX_OP_fill] = "> a:N",
  [NX_OP_cast] = "a:N > a:N",
  [NX_OP_norm_sq] = "f:N > d:1",
  [NX_OP_clip_scale] = "d:1 > d:1 d:1",
  [NX_OP_lr_schedule] = "l:1 > d:1",
  [NX_OP_adamw] = "f:N f:N f:N f:N d:1 d:1 l:1 > f:N f:N f:N f:N?",
  [NX_OP_sgd] = "f:N f:N d:1 d:1 > f:N f:N?",
};

/* By trans_a and trans_b. */
static const char *const matmul_signatures[2][2] = {
  {"f:MK f:KN f:N? > f:MN", "f:MK f:NK f:N? > f:MN"},
  {"f:KM f:KN f:N? > f:MN", "f:KM f:NK f:N? > f:MN"},
};

typedef struct class_row {
  char name;
  uint32_t dtypes; /* bit n: type number n */
  const char *meaning;
} class_row;

enum { FLOATS = 1 << NX_f32 | 1 << NX_bf16 | 1 << NX_f64, INTEGERS = 1 << NX_i32 | 1 << NX_i64 };
static const class_row classes[] = {
  {'f', FLOATS, "f32, bf16 or f64"},
  {'d', 1 << NX_f64, "f64"},
  {'i', 1 << NX_i32, "i32"},
  {'l', 1 << NX_i64, "i64"},
  {'a', FLOATS | INTEGERS, "f32, bf16, f64, i32 or i64"},
};

typedef struct check {
  const nxk_operator *operator;
  const char *name;
  int64_t sizes[128]; /* by letter; -1: not met yet */
  nxk_fault *fault;
} check;

static bool check_types(check *c, uint32_t index, char class_name) {
  const class_row *row = classes;
  while (row->name != class_name) row++;
  uint32_t dtype = c->operator->args[index].dtype;
  if (dtype < 32 && (row->dtypes >> dtype & 1)) return true;
  snprintf(c->fault->text, sizeof c->fault->text, "%s: operand %u is %s, it must be %s", c->name, index,
           nx_dtype_name(dtype), row->meaning);
  return false;
}

static bool check_size(check *c, uint32_t index, char letter, int64_t size) {
  int64_t *known = &c->sizes[(unsigned char)letter];
  if (*known < 0) *known = size;
  if (*known == size) return true;
  snprintf(c->fault->text, sizeof c->fault->text, "%s: operand %u has %lld where %c is %lld", c->name, index,
           (long long)size, letter, (long long)*known);
  return false;
}

static bool check_shape(check *c, uint32_t index, const char *letters, uint32_t n_letters) {
  const nxk_tensor *tensor = &c->operator->args[index];
  if (tensor->n_dims < n_letters || tensor->n_dims > NX_MAX_DIMS) {
    snprintf(c->fault->text, sizeof c->fault->text, "%s: operand %u has %u dimensions, it must have %u", c->name,
             index, tensor->n_dims, n_letters);
    return false;
  }
  uint32_t n_folded = tensor->n_dims - n_letters;
  for (uint32_t letter = 0; letter < n_letters; letter++) {
    int64_t size = tensor->dims[n_folded + letter];
    for (uint32_t dim = 0; letter == 0 && dim < n_folded; dim++) size *= tensor->dims[dim];
    if (!check_size(c, index, letters[letter], size)) return false;
  }
  for (uint32_t dim = tensor->n_dims; dim < NX_MAX_DIMS; dim++)
    if (tensor->dims[dim] != 1) return check_size(c, index, '1', tensor->dims[dim]);
  return true;
}

/* One side of the signature; check_counts has seen that what is missing may be absent. */
static bool check_side(check *c, const char *text, uint32_t first, uint32_t n_args) {
  uint32_t n_met = 0;
  while (n_met < n_args && *text && *text != '>') {
    size_t n_chars = strcspn(text, " ");
    uint32_t n_letters = (uint32_t)n_chars - 2 - (text[n_chars - 1] == '?' ? 1 : 0);
    if (!check_types(c, first + n_met, text[0])) return false;
    if (!check_shape(c, first + n_met, text + 2, n_letters)) return false;
    n_met++;
    text += n_chars;
    text += strspn(text, " ");
  }
  return true;
}

/* What letters alone can not say. */
static bool check_products(check *c) {
  const int64_t *s = c->sizes;
  bool good = true;
  switch (c->operator->op) {
  case NX_OP_split_qkv:
  case NX_OP_merge_qkv:
    good = s['W'] == (s['n'] + 2 * s['m']) * s['d'];
    break;
  case NX_OP_split_heads:
  case NX_OP_merge_heads:
    good = s['W'] == s['n'] * s['d'];
    break;
  case NX_OP_attention:
  case NX_OP_attention_grad:
    good = s['W'] == s['n'] * s['d'] && s['m'] > 0 && s['n'] % s['m'] == 0;
    break;
  case NX_OP_swiglu:
  case NX_OP_swiglu_grad:
    good = s['W'] == 2 * s['F'];
    break;
  default:
    break;
  }
  if (!good) snprintf(c->fault->text, sizeof c->fault->text, "%s: widths do not fit together", c->name);
  return good;
}

/* The first operands of the optimizers are updated where they stand. */
static bool check_in_place(check *c) {
  const nxk_operator *operator = c->operator;
  uint32_t n_in_place = operator->op == NX_OP_adamw ? 3 : operator->op == NX_OP_sgd ? 1 : 0;
  for (uint32_t index = 0; index < n_in_place; index++) {
    const nxk_tensor *in = &operator->args[index], *out = &operator->args[operator->n_in + index];
    if (in->arena == out->arena && in->offset == out->offset && in->shift_constant == out->shift_constant) continue;
    snprintf(c->fault->text, sizeof c->fault->text, "%s: output %u must be input %u", c->name, index, index);
    return false;
  }
  return true;
}

static bool check_counts(check *c, const nx_op_row *row) {
  const nxk_operator *operator = c->operator;
  if (operator->n_in < row->min_in || operator->n_in > row->max_in || operator->n_out < row->min_out ||
      operator->n_out > row->max_out || operator->n_attrs != nx_op_n_attrs(row)) {
    snprintf(c->fault->text, sizeof c->fault->text, "%s: %u inputs, %u outputs, %u attributes", c->name,
             operator->n_in, operator->n_out, operator->n_attrs);
    return false;
  }
  for (uint32_t index = 0; index < operator->n_attrs; index++) {
    if ((row->attrs[index].type == NX_REAL) == (operator->attrs[index].kind == NXK_REAL)) continue;
    snprintf(c->fault->text, sizeof c->fault->text, "%s: attribute %s has the wrong type", c->name,
             row->attrs[index].name);
    return false;
  }
  return true;
}

static const char *signature_of(const nxk_operator *operator) {
  if (operator->op != NX_OP_matmul) return signatures[operator->op];
  return matmul_signatures[operator->attrs[NX_matmul_trans_a].integer != 0]
                          [operator->attrs[NX_matmul_trans_b].integer != 0];
}

bool nxk_operator_check(const nxk_operator *operator, nxk_fault *fault) {
  const nx_op_row *row = nx_op_find(operator->op);
  if (!row || row->kind != NX_COMPUTE) {
    snprintf(fault->text, sizeof fault->text, "operator %u has no kernel", (unsigned)operator->op);
    return false;
  }
  check c = {.operator = operator, .name = row->name, .fault = fault};
  for (int letter = 0; letter < 128; letter++) c.sizes[letter] = -1;
  for (char digit = '0'; digit <= '9'; digit++) c.sizes[(unsigned char)digit] = digit - '0';
  if (!check_counts(&c, row)) return false;
  const char *signature = signature_of(operator), *outputs = strchr(signature, '>');
  return check_side(&c, signature, 0, operator->n_in) && check_side(&c, outputs + 2, operator->n_in, operator->n_out) &&
         check_products(&c) && check_in_place(&c);
}
