/* SPDX-License-Identifier: Apache-2.0 */
/* An operator of a plan against its row in ops.def: its operands against the signature, its attributes
 * against their bounds on every rank and chunk, the relations between both, and which of its operands
 * share bytes. */
#include "schema/op_check.h"
#include "schema/plan_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool why_not(char why[NX_OP_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool why_not(char why[NX_OP_WHY], const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, NX_OP_WHY, format, args);
  va_end(args);
  return false;
}

/* ---- attributes ---- */

static int64_t greatest_of(const nx_attr_row *row) {
  int64_t n = 0;
  if (row->values == NULL) return row->greatest;
  for (const char *at = row->values; *at; at++) n += *at == ' ';
  return n;
}

static bool check_attribute(const nx_plan *plan, nx_op_facts *facts, uint32_t index,
                            const nx_attribute *attribute, char why[NX_OP_WHY]) {
  const nx_attr_row *row = &facts->row->attrs[index];
  if (row->type == NX_REAL) {
    if (attribute->kind != NX_ATTRIBUTE_REAL || !isfinite(attribute->real))
      return why_not(why, "attribute %s is no finite number", row->name);
    if (attribute->real >= row->lowest && attribute->real <= row->highest) return true;
    return why_not(why, "attribute %s is %g, and %g to %g is allowed", row->name, attribute->real,
                   row->lowest, row->highest);
  }
  int64_t *least = &facts->least[index], *greatest = &facts->greatest[index];
  if (attribute->kind == NX_ATTRIBUTE_CONSTANT && row->may_vary) {
    if (attribute->constant >= plan->n[NX_SECTION_CONSTANTS])
      return why_not(why, "attribute %s names no constant", row->name);
    nx_constant_range(plan, attribute->constant, least, greatest);
  } else if (attribute->kind == NX_ATTRIBUTE_INT) {
    *least = *greatest = attribute->integer;
  } else {
    return why_not(why, "attribute %s must be %s", row->name,
                   row->may_vary ? "an integer" : "one number for all ranks");
  }
  if (*least >= row->least && *greatest <= greatest_of(row)) return true;
  return why_not(why, "attribute %s is %lld, and %lld to %lld is allowed", row->name,
                 (long long)(*least < row->least ? *least : *greatest), (long long)row->least,
                 (long long)greatest_of(row));
}

static bool check_attributes(const nx_plan *plan, const nx_operator *op, nx_op_facts *facts,
                             char why[NX_OP_WHY]) {
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (!check_attribute(plan, facts, i, &plan->attributes[op->first_attribute + i], why)) return false;
  return true;
}

/* ---- shapes ---- */

static bool type_matches(nx_op_facts *facts, char letter, uint16_t dtype) {
  switch (letter) {
    case 'a': return nx_dtype_is_real(dtype);
    case 'f': return dtype == NX_f32;
    case 'd': return dtype == NX_f64;
    case 'i': return dtype == NX_i32;
    case 'l': return dtype == NX_i64;
    case 'u': return dtype == NX_u8;
    case 's':
      if (facts->same_type == 0) facts->same_type = dtype;
      return facts->same_type == dtype;
    default: return true;
  }
}

static bool size_matches(nx_op_facts *facts, char letter, int64_t size) {
  if (letter >= '0' && letter <= '9') return size == letter - '0';
  int64_t *at = &facts->of[(unsigned char)letter & 127];
  if (*at == 0) *at = size;
  return *at == size;
}

/* @(axis*#): `like` with some dimensions multiplied or divided. */
static bool scaled_shape_matches(const nx_op_facts *facts, const char *text, const nx_value *like,
                                 const nx_value *value) {
  int64_t dims[NX_MAX_DIMS];
  memcpy(dims, like->dims, sizeof dims);
  while (*text == '(' || *text == ',') {
    int64_t axis, factor;
    if (!nx_op_number(facts, text + 1, &text, &axis) || axis < 0 || axis >= like->n_dims) return false;
    char sign = *text++;
    if (!nx_op_number(facts, text, &text, &factor) || factor < 1) return false;
    if (sign == '/' && dims[axis] % factor != 0) return false;
    if (sign == '/') dims[axis] /= factor;
    else if (__builtin_mul_overflow(dims[axis], factor, &dims[axis])) return false;
  }
  return value->n_dims == like->n_dims && memcmp(dims, value->dims, sizeof dims) == 0;
}

static bool operand_matches(nx_op_facts *facts, const nx_operand_row *row, const nx_value *first,
                            const nx_value *value) {
  if (!type_matches(facts, row->type, value->dtype)) return false;
  if (row->dims[0] == '@') return scaled_shape_matches(facts, row->dims + 1, first, value);
  const char *dims = row->dims;
  uint32_t n_named = row->n_chars, at = 0;
  if (*dims == '*') {
    int64_t leading = 1;
    n_named -= 2; /* the star and its letter */
    if (value->n_dims < n_named) return false;
    for (; at < value->n_dims - n_named; at++) leading *= value->dims[at];
    if (!size_matches(facts, dims[1], leading)) return false;
    dims += 2;
  } else if (value->n_dims != n_named) {
    return false;
  }
  for (uint32_t i = 0; i < n_named; i++)
    if (!size_matches(facts, dims[i], value->dims[at + i])) return false;
  return true;
}

static uint32_t operand(const nx_plan *plan, const nx_operator *op, uint32_t index) {
  return plan->arguments[op->first_argument + index];
}

static const nx_operand_row *operand_row(const nx_signature *signature, const nx_operator *op,
                                         uint32_t index) {
  return index < op->n_in ? &signature->operands[index] : nx_signature_output(signature, index - op->n_in);
}

static bool check_shapes(const nx_plan *plan, const nx_operator *op, const nx_signature *signature,
                         nx_op_facts *facts, char why[NX_OP_WHY]) {
  for (uint32_t i = 0; i < (uint32_t)op->n_in + op->n_out; i++) {
    const nx_operand_row *row = operand_row(signature, op, i);
    const nx_value *values = plan->values;
    if (!operand_matches(facts, row, &values[operand(plan, op, 0)], &values[operand(plan, op, i)]))
      return why_not(why, "operand %u has another shape or type than %c%.*s", i, row->type, (int)row->n_chars,
                     row->dims);
  }
  return true;
}

/* ---- bytes ---- */

typedef struct extent {
  uint64_t first, end;
} extent;

/* Of its arena, on all ranks. */
static extent extent_of(const nx_plan *plan, const nx_value *value) {
  int64_t least = 0, greatest = 0;
  if (value->offset_shift != NX_NONE) nx_constant_range(plan, value->offset_shift, &least, &greatest);
  return (extent){value->offset + (uint64_t)least, value->offset + (uint64_t)greatest + value->bytes};
}

static bool may_overlap(const nx_plan *plan, const nx_value *a, const nx_value *b) {
  if (a->arena != b->arena) return false;
  extent x = extent_of(plan, a), y = extent_of(plan, b);
  return x.first < y.end && y.first < x.end;
}

static bool is_same_place(const nx_value *a, const nx_value *b) {
  return a->arena == b->arena && a->offset == b->offset && a->offset_shift == b->offset_shift &&
         a->bytes == b->bytes && a->dtype == b->dtype;
}

/* Kernels read an element before they write it only where the row says that both may be one. */
static bool check_output(const nx_plan *plan, const nx_operator *op, const nx_operand_row *row,
                         uint32_t index, char why[NX_OP_WHY]) {
  const nx_value *output = &plan->values[operand(plan, op, index)];
  for (uint32_t i = 0; i < index; i++) {
    const nx_value *other = &plan->values[operand(plan, op, i)];
    bool shares = i < op->n_in && row->shares & 1u << i, same = is_same_place(output, other);
    if (shares && row->in_place && !same) return why_not(why, "operand %u is not updated in place", i);
    if (may_overlap(plan, output, other) && !(shares && same))
      return why_not(why, "operands %u and %u share bytes", i, index);
  }
  return true;
}

bool nx_op_check(const nx_plan *plan, const nx_operator *op, char why[NX_OP_WHY]) {
  const nx_op_row *row = nx_op_find(op->op);
  nx_signature signature = nx_op_signature(row);
  nx_op_facts facts = {.row = row, .n_in = op->n_in, .group_size = 1};
  const char *broken;
  uint32_t n_chars;
  if (op->group != NX_NONE) facts.group_size = plan->groups[op->group].size;
  if (!nx_signature_admits(&signature, op->n_in, op->n_out))
    return why_not(why, "it has the wrong number of operands");
  if (!check_attributes(plan, op, &facts, why) || !check_shapes(plan, op, &signature, &facts, why))
    return false;
  for (uint32_t i = op->n_in; i < (uint32_t)op->n_in + op->n_out && !nx_op_is_collective(row); i++)
    if (!check_output(plan, op, operand_row(&signature, op, i), i, why)) return false;
  return nx_op_relations_hold(&facts, signature.relations, &broken, &n_chars) ||
         why_not(why, "%.*s does not hold", (int)n_chars, broken);
}

int64_t nx_op_size(const nx_plan *plan, const nx_operator *op, char letter) {
  nx_signature signature = nx_op_signature(nx_op_find(op->op));
  for (uint32_t i = 0; i < (uint32_t)op->n_in + op->n_out; i++) {
    const nx_operand_row *row = operand_row(&signature, op, i);
    const char *at = row->dims[0] == '@' ? NULL : memchr(row->dims, letter, row->n_chars);
    const nx_value *value = &plan->values[operand(plan, op, i)];
    size_t behind = at ? row->n_chars - (size_t)(at - row->dims) : 0;
    if (at && (at == row->dims || at[-1] != '*')) return value->dims[value->n_dims - behind];
  }
  return 0;
}
