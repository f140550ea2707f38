/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/forecast/operator_cost.h"

#include "compiler/program/graph/rules.h"

#include <string.h>

/* ---- products ---- */

static const nx_value *operand(const nx_plan *plan, const nx_operator *op, uint32_t index) {
  return &plan->values[plan->arguments[op->first_argument + index]];
}

bool nxc_cost_multiplies(const nx_operator *op) {
  nx_op_class class = nx_op_find(op->op)->class;
  return class == NX_PRODUCT || class == NX_ATTENTION;
}

nx_dtype nxc_cost_type(const nx_plan *plan, const nx_operator *op) {
  nx_dtype type = (nx_dtype)operand(plan, op, 0)->dtype;
  return type == NX_f16 ? NX_f32 : type; /* in which kernels multiply it */
}

static double later(double a, double b) {
  return a > b ? a : b;
}

static double memory_seconds(const nxc_machine *machine, double bytes) {
  return bytes > 0 ? bytes / nxc_rate_at(&machine->bandwidth, bytes) : 0;
}

/* NULL: it has no speed of its own. */
static const nxc_rate *own_rate(const nx_plan *plan, const nxc_machine *machine, const nx_operator *op) {
  const nxc_rate *rates = machine->operators[nxc_cost_type(plan, op)];
  return rates && rates[op->op].n_points > 0 ? &rates[op->op] : NULL;
}

/* Attention multiplies head by head, at its own rate; where none is told each of its products has a pass over
 * the scores: 4 bytes read, 4 written. Half of the scores are dead, in flops too: n_products x 2 x d FLOP
 * make one. */
static double attention_seconds(const nx_plan *plan, const nxc_machine *machine, const nx_operator *op) {
  double n_heads = (double)(nx_op_size(plan, op, 'B') * nx_op_size(plan, op, 'n'));
  double n_products = nxc_rule_of(op->op)->n_products, one = (double)op->flops / n_heads / n_products;
  const nxc_rate *own = own_rate(plan, machine, op);
  if (own) return (double)op->flops / nxc_rate_at(own, one);
  double score_bytes = 8 * one / (2 * (double)nx_op_size(plan, op, 'd'));
  return n_heads * n_products *
         (one / nxc_rate_at(&machine->products[nxc_cost_type(plan, op)], one) +
          memory_seconds(machine, score_bytes) / 2);
}

/* A grouped product is one for each of L experts. */
static double n_parts(const nx_plan *plan, const nx_operator *op) {
  int64_t n_experts = nx_op_size(plan, op, 'L');
  return n_experts > 0 ? (double)n_experts : 1;
}

static double product_seconds(const nx_plan *plan, const nxc_machine *machine, const nx_operator *op) {
  double flops = (double)op->flops;
  if (nx_op_find(op->op)->class == NX_ATTENTION) return attention_seconds(plan, machine, op);
  double one = flops / n_parts(plan, op); /* experts get equal shares, where routing is balanced */
  double work = flops > 0 ? flops / nxc_rate_at(&machine->products[nxc_cost_type(plan, op)], one) : 0;
  double moved = memory_seconds(machine, (double)op->moved_bytes);
  return work > moved ? work : moved;
}

/* ---- what lies far away ----
 * What another program has left, weights, gradients, states and activations, lies where all that this program
 * moves drives it, once: the first time that it is touched. */

static uint32_t root_of(const nx_plan *plan, uint32_t value) {
  while (plan->values[value].view_of != NX_NONE) value = plan->values[value].view_of;
  return value;
}

static bool is_kept(const nx_value *value) {
  return value->arena == NX_ARENA_param || value->arena == NX_ARENA_master || value->arena == NX_ARENA_grad ||
         value->arena == NX_ARENA_state || value->arena == NX_ARENA_slot;
}

/* Of the bytes of an operator those that lie far away. What a program writes for a later one it finds far
 * away too, but activations, whose room is any. */
static double touch(nxc_operator_costs *p, const nx_operator *op) {
  double far = 0, all = 0;
  for (uint32_t i = 0; i < (uint32_t)(op->n_in + op->n_out); i++) {
    uint32_t value = p->plan->arguments[op->first_argument + i], root = root_of(p->plan, value);
    const nx_value *v = &p->plan->values[value];
    bool made = v->arena == NX_ARENA_slot && (p->program->kind != NX_PROGRAM_BACKWARD || i >= op->n_in);
    all += (double)v->bytes;
    if (is_kept(v) && !made && !p->touched[root]) far += (double)v->bytes;
  }
  for (uint32_t i = 0; i < (uint32_t)(op->n_in + op->n_out); i++)
    p->touched[root_of(p->plan, p->plan->arguments[op->first_argument + i])] = true;
  return all > 0 ? far / all : 0;
}

/* At the speed of memory, and at most at its own. */
static double moving_seconds(const nxc_operator_costs *p, const nx_operator *op, double far_share) {
  double bytes = (double)op->moved_bytes, far = far_share * bytes;
  const nxc_rate *bandwidth = &p->machine->bandwidth, *own = own_rate(p->plan, p->machine, op);
  if (bytes <= 0) return 0;
  double moved = (bytes - far) / nxc_rate_at(bandwidth, bytes) +
                 far / nxc_rate_at(bandwidth, later(bytes, p->program_bytes));
  return own ? later(moved, bytes / nxc_rate_at(own, bytes)) : moved;
}

/* What a rank copies of its own where it is gathered in another place. */
static double own_part_seconds(const nxc_operator_costs *p, const nx_operator *op) {
  const nx_value *x = operand(p->plan, op, 0), *y = operand(p->plan, op, 1);
  bool in_place = x->arena == y->arena && x->offset >= y->offset && x->offset < y->offset + y->bytes;
  if (op->op != NX_OP_all_gather || in_place || p->plan->groups[op->group].size < 2) return 0;
  return 2 * (double)x->bytes /
         nxc_rate_at(&p->machine->bandwidth, later(2 * (double)x->bytes, p->program_bytes));
}

/* ---- all ---- */

bool nxc_cost_is_collective(const nx_operator *op) {
  return nx_op_is_collective(nx_op_find(op->op)) && op->group != NX_NONE && op->op != NX_OP_wait;
}

uint32_t nxc_cost_index(const nx_plan *plan, const nx_operator *op) {
  return (uint32_t)(op - plan->operators);
}

void nxc_costs_begin(nxc_operator_costs *costs, const nx_program *program, uint8_t when) {
  const nx_operator *operators = &costs->plan->operators[program->first_operator];
  costs->program = program;
  costs->program_bytes = 0;
  memset(costs->touched, 0, costs->plan->n[NX_SECTION_VALUES] * sizeof *costs->touched);
  for (uint32_t i = 0; i < program->n_operators; i++)
    if (operators[i].when & when) costs->program_bytes += (double)operators[i].moved_bytes;
}

double nxc_operator_seconds(nxc_operator_costs *p, const nx_operator *op) {
  const nxc_machine *machine = p->machine;
  double far_share = touch(p, op);
  if (nxc_cost_is_collective(op))
    return machine->operator_s + own_part_seconds(p, op) +
           nxc_exchange_of(p->plan, machine, p->places, nxc_cost_index(p->plan, op)).seconds;
  if (nx_op_is_collective(nx_op_find(op->op))) return 0;
  return machine->operator_s +
         (nxc_cost_multiplies(op) ? product_seconds(p->plan, machine, op) : moving_seconds(p, op, far_share));
}
