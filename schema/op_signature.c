/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the signatures of ops.def. They are the program's own text, so what is malformed is a bug. */
#include "schema/ops.h"

#include <assert.h>
#include <string.h>

static bool is_dim(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '*';
}

/* Returns where the text goes on behind the operand. */
static const char *read_operand(const char *at, nx_operand_row *operand) {
  *operand = (nx_operand_row){.type = *at, .dims = at + 1};
  at++;
  if (*at == '@' && at[1] == '(') at = strchr(at, ')') + 1;
  else if (*at == '@') at++;
  while (is_dim(*at)) at++;
  operand->n_chars = (uint32_t)(at - operand->dims);
  for (; *at == '+'; at++) operand->added++;
  operand->in_place = at[0] == '=' && at[1] == '=';
  while (*at == '=') at++;
  for (; *at >= '0' && *at <= '9'; at++) operand->shares |= 1u << (*at - '0');
  return at;
}

nx_signature nx_op_signature(const nx_op_row *row) {
  nx_signature s = {0};
  uint32_t n = 0;
  bool outputs = false, begins_group = false, grouped = false;
  const char *at = row->signature;
  while (*at != '\0' && *at != ':') {
    bool special = strchr(" >[]", *at) != NULL;
    if (*at == '>') outputs = true;
    if (*at == '[') grouped = begins_group = true;
    if (*at == ']') grouped = false;
    if (special) {
      at++;
      continue;
    }
    assert(n < NX_MAX_ARGS);
    nx_operand_row *operand = &s.operands[n++];
    at = read_operand(at, operand);
    operand->may_end = begins_group;
    begins_group = false;
    *(outputs ? &s.n_out : &s.n_in) += 1;
    if (!grouped) *(outputs ? &s.min_out : &s.min_in) += 1;
  }
  s.relations = *at == ':' ? at + 1 : at;
  return s;
}

static bool admits(const nx_operand_row *operands, uint32_t n_all, uint32_t n) {
  return n == n_all || (n < n_all && operands[n].may_end);
}

bool nx_signature_admits(const nx_signature *signature, uint32_t n_in, uint32_t n_out) {
  return admits(signature->operands, signature->n_in, n_in) &&
         admits(signature->operands + signature->n_in, signature->n_out, n_out);
}
