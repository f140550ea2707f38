/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/cost.h"

#include <assert.h>

const char *const nxc_cost_names[NXC_N_COSTS] = {"products", "memory_bound", "collectives", "optimizer"};

/* ---- operators ---- */

static const nx_value *operand(const nx_plan *plan, const nx_operator *op, uint32_t index) {
  return &plan->values[plan->arguments[op->first_argument + index]];
}

/* How an operator that multiplies is cut into products: its first factor, and products per head. */
static const struct {
  uint32_t factor, n_products;
  bool by_head;
} product_rows[NX_OP_END] = {
    [NX_OP_matmul] = {0, 1, false},
    [NX_OP_attention] = {0, 2, true},
    [NX_OP_attention_grad] = {1, 5, true},
};

static bool multiplies(const nx_operator *op) {
  return product_rows[op->op].n_products > 0;
}

static nx_dtype product_type(const nx_plan *plan, const nx_operator *op) {
  return (nx_dtype)operand(plan, op, product_rows[op->op].factor)->dtype;
}

static double memory_seconds(const nxc_machine *machine, double bytes) {
  return bytes > 0 ? bytes / nxc_rate_at(&machine->bandwidth, bytes) : 0;
}

/* Attention multiplies head by head, and each of its products has a pass over the scores: 4 bytes read, 4 written.
 * Half of the scores are dead, in flops too: n_products x 2 x d FLOP make one. */
static double attention_seconds(const nx_plan *plan, const nxc_machine *machine, const nx_operator *op) {
  const nx_value *q = operand(plan, op, product_rows[op->op].factor);
  double n_products = product_rows[op->op].n_products, n_heads = (double)(q->dims[0] * q->dims[1]);
  double one = (double)op->flops / n_heads / n_products;
  double score_bytes = 8 * one / (2 * (double)q->dims[3]);
  return n_heads * n_products *
         (one / nxc_rate_at(&machine->products[q->dtype], one) + memory_seconds(machine, score_bytes) / 2);
}

static double product_seconds(const nx_plan *plan, const nxc_machine *machine, const nx_operator *op) {
  double flops = (double)op->flops;
  if (product_rows[op->op].by_head) return attention_seconds(plan, machine, op);
  double work = flops > 0 ? flops / nxc_rate_at(&machine->products[product_type(plan, op)], flops) : 0;
  double moved = memory_seconds(machine, (double)op->moved_bytes);
  return work > moved ? work : moved;
}

/* ---- collectives ---- */

/* Where the members of rank 0's group stand. */
typedef struct group_place {
  uint32_t n_local; /* on rank 0's host */
  uint32_t n_hosts;
} group_place;

static uint32_t ranks_per_host(const nx_plan *plan, const nxc_machine *machine) {
  uint32_t planned = plan->run->n_ranks / plan->run->n_hosts;
  return machine->ranks_per_host < planned ? machine->ranks_per_host : planned;
}

static group_place *place_groups(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena) {
  group_place *places = nxc_arena_array(arena, plan->n[NX_SECTION_GROUPS], sizeof *places);
  uint32_t per_host = ranks_per_host(plan, machine);
  for (uint32_t group = 0; group < plan->n[NX_SECTION_GROUPS]; group++)
    for (uint32_t i = 0, last = NX_NONE; i < plan->groups[group].size; i++) {
      uint32_t host = nx_group_member(plan, group, 0, i) / per_host;
      places[group].n_local += host == 0;
      places[group].n_hosts += host != last;
      last = host;
    }
  return places;
}

typedef struct exchange {
  uint32_t n_steps;
  double seconds;
} exchange;

static exchange exchange_of(const nx_plan *plan, const nxc_machine *machine, const group_place *places,
                            const nx_operator *op) {
  exchange e = {0, 0};
  uint32_t size = plan->groups[op->group].size, n_local = places[op->group].n_local, n_far = size - n_local;
  uint32_t phases = op->op == NX_OP_all_reduce ? 2 : 1;
  if (size < 2) return e;
  double bytes = (double)op->moved_bytes, near = bytes * (n_local - 1) / (size - 1);
  if (n_local > 1) {
    e.n_steps += phases;
    e.seconds += phases * machine->inside.latency_s + near / nxc_rate_at(&machine->inside.bandwidth, bytes);
  }
  if (n_far > 0) {
    e.n_steps += phases * n_far;
    e.seconds += phases * n_far * machine->between.latency_s;
    e.seconds += (bytes - near) / nxc_rate_at(&machine->between.bandwidth, bytes);
  }
  return e;
}

static bool is_collective(const nx_operator *op) {
  return nx_op_find(op->op)->kind == NX_COMM && op->group != NX_NONE && op->op != NX_OP_wait;
}

/* ---- programs ---- */

enum { N_VARIANTS = 4 /* which of first and last a micro-batch is */ };

static uint8_t when_of_variant(uint32_t variant) {
  uint8_t when = (variant & 1 ? NX_WHEN_FIRST : 0) | (variant & 2 ? NX_WHEN_LAST : 0);
  return when ? when : NX_WHEN_MIDDLE;
}

typedef struct spent {
  double class_s[NXC_N_COSTS];
  double total_s;
} spent;

typedef struct player {
  const nx_plan *plan;
  const nxc_machine *machine;
  group_place *places; /* [group] */
  spent *programs;    /* [program, variant] */
  uint64_t *n_runs;   /* [stage, program, variant] */
  uint32_t n_stages;
  uint32_t *first;    /* [n_stages + 1]: items of each stage */
  double *forward_s, *backward_s; /* [chunk, micro-batch]: when done; negative: not yet */
} player;

static void spend(spent *s, nxc_cost_class class, double seconds) {
  s->class_s[class] += seconds;
  s->total_s += seconds;
}

static double operator_seconds(const player *p, const nx_operator *op) {
  if (is_collective(op)) return p->machine->operator_s + exchange_of(p->plan, p->machine, p->places, op).seconds;
  if (nx_op_find(op->op)->kind == NX_COMM) return 0;
  double work = multiplies(op) ? product_seconds(p->plan, p->machine, op)
                               : memory_seconds(p->machine, (double)op->moved_bytes);
  return p->machine->operator_s + work;
}

/* Collectives over what the operators between start and wait take: where the machine overlaps them they end when
 * they end, one after another; else they run when they are waited for. */
static void add_operator(const player *p, const nx_program *program, uint32_t index, double *busy_until, spent *s) {
  const nx_operator *op = &p->plan->operators[index];
  double seconds = operator_seconds(p, op);
  if (op->op == NX_OP_wait) {
    if (*busy_until > s->total_s) spend(s, NXC_COST_COLLECTIVES, *busy_until - s->total_s);
  } else if (is_collective(op)) {
    if (!p->machine->overlap) spend(s, NXC_COST_COLLECTIVES, seconds);
    else *busy_until = (*busy_until > s->total_s ? *busy_until : s->total_s) + seconds;
  } else if (program->kind == NX_PROGRAM_STEP) {
    spend(s, NXC_COST_OPTIMIZER, seconds);
  } else {
    spend(s, multiplies(op) ? NXC_COST_PRODUCTS : NXC_COST_MEMORY, seconds);
  }
}

static spent program_spent(const player *p, const nx_program *program, uint8_t when) {
  spent s = {{0}, 0};
  double busy_until = 0;
  for (uint32_t i = 0; i < program->n_operators; i++)
    if (p->plan->operators[program->first_operator + i].when & when)
      add_operator(p, program, program->first_operator + i, &busy_until, &s);
  return s;
}

static void cost_programs(player *p, nxc_arena *arena) {
  uint32_t n = p->plan->n[NX_SECTION_PROGRAMS];
  p->programs = nxc_arena_array(arena, (size_t)n * N_VARIANTS, sizeof *p->programs);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t variant = 0; variant < N_VARIANTS; variant++)
      p->programs[i * N_VARIANTS + variant] = program_spent(p, &p->plan->programs[i], when_of_variant(variant));
}

/* ---- stages ---- */

static void find_stages(player *p, nxc_arena *arena) {
  uint32_t n_items = p->plan->n[NX_SECTION_ITEMS];
  for (uint32_t i = 0; i < n_items; i++)
    p->n_stages += i == 0 || p->plan->items[i].stage != p->plan->items[i - 1].stage;
  p->first = nxc_arena_array(arena, p->n_stages + 1, sizeof *p->first);
  for (uint32_t i = 0, stage = 0; i < n_items; i++)
    if (i == 0 || p->plan->items[i].stage != p->plan->items[i - 1].stage) p->first[stage++] = i;
  p->first[p->n_stages] = n_items;
  p->n_runs = nxc_arena_array(arena, (size_t)p->n_stages * p->plan->n[NX_SECTION_PROGRAMS] * N_VARIANTS,
                              sizeof *p->n_runs);
}

static uint32_t program_of(const nx_plan *plan, const nx_item *item) {
  const nx_chunk *chunk = &plan->chunks[item->chunk];
  const uint32_t programs[] = {[NX_ITEM_FORWARD] = chunk->forward,   [NX_ITEM_BACKWARD] = chunk->backward,
                               [NX_ITEM_EVALUATE] = chunk->evaluate, [NX_ITEM_SEND] = NX_NONE,
                               [NX_ITEM_RECV] = NX_NONE,             [NX_ITEM_WAIT] = NX_NONE,
                               [NX_ITEM_STEP] = chunk->step};
  return item->kind < sizeof programs / sizeof *programs ? programs[item->kind] : NX_NONE;
}

static uint32_t variant_of(const nx_plan *plan, const nx_item *item) {
  if (item->kind == NX_ITEM_STEP) return 3;
  return (item->micro_batch == 0) | (uint32_t)(item->micro_batch + 1 == plan->run->n_micro_batches) << 1;
}

static double *done_at(const player *p, const nx_item *item, uint32_t chunk) {
  double *times = item->kind == NX_ITEM_FORWARD ? p->forward_s : p->backward_s;
  return &times[(size_t)chunk * p->plan->run->n_micro_batches + item->micro_batch];
}

/* When what the item reads is there; negative: nobody knows yet. A forward pass reads that of the chunk before it,
 * a backward pass that of the chunk behind it. */
static double ready_at(const player *p, const nx_item *item) {
  if (item->kind == NX_ITEM_FORWARD && item->chunk > 0) return *done_at(p, item, item->chunk - 1);
  if (item->kind == NX_ITEM_BACKWARD && item->chunk + 1 < p->plan->n[NX_SECTION_CHUNKS])
    return *done_at(p, item, item->chunk + 1);
  return 0;
}

/* Plays one stage as far as it comes. */
static bool advance(player *p, uint32_t stage, uint32_t *next, double *now) {
  bool moved = false;
  for (; *next < p->first[stage + 1]; ++*next, moved = true) {
    const nx_item *item = &p->plan->items[*next];
    uint32_t program = program_of(p->plan, item);
    if (program == NX_NONE) continue;
    double ready = ready_at(p, item);
    if (ready < 0) return moved;
    uint32_t run = program * N_VARIANTS + variant_of(p->plan, item);
    *now = (ready > *now ? ready : *now) + p->programs[run].total_s;
    if (item->kind == NX_ITEM_FORWARD || item->kind == NX_ITEM_BACKWARD) *done_at(p, item, item->chunk) = *now;
    p->n_runs[(size_t)stage * p->plan->n[NX_SECTION_PROGRAMS] * N_VARIANTS + run]++;
  }
  return moved;
}

/* Seconds until the last stage has ended. */
static double play(player *p, nxc_arena *arena) {
  size_t n = (size_t)p->plan->n[NX_SECTION_CHUNKS] * p->plan->run->n_micro_batches;
  uint32_t *next = nxc_arena_array(arena, p->n_stages, sizeof *next);
  double *now = nxc_arena_array(arena, p->n_stages, sizeof *now), end = 0;
  p->forward_s = nxc_arena_array(arena, n, sizeof *p->forward_s);
  p->backward_s = nxc_arena_array(arena, n, sizeof *p->backward_s);
  for (size_t i = 0; i < n; i++) p->forward_s[i] = p->backward_s[i] = -1;
  for (uint32_t stage = 0; stage < p->n_stages; stage++) next[stage] = p->first[stage];
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t stage = 0; stage < p->n_stages; stage++) moved = advance(p, stage, &next[stage], &now[stage]) || moved;
  }
  for (uint32_t stage = 0; stage < p->n_stages; stage++) {
    assert(next[stage] == p->first[stage + 1]); /* the plan is proved: its schedule ends */
    if (now[stage] > end) end = now[stage];
  }
  return end;
}

static spent stage_spent(const player *p, uint32_t stage) {
  size_t n = (size_t)p->plan->n[NX_SECTION_PROGRAMS] * N_VARIANTS;
  spent sum = {{0}, 0};
  for (size_t i = 0; i < n; i++)
    for (int class = 0; class < NXC_N_COSTS; class++)
      spend(&sum, (nxc_cost_class)class, (double)p->n_runs[stage * n + i] * p->programs[i].class_s[class]);
  return sum;
}

/* ---- all ---- */

static void add_groups(const player *p, nxc_forecast *f, nxc_arena *arena) {
  const nx_plan *plan = p->plan;
  size_t n = (size_t)plan->n[NX_SECTION_PROGRAMS] * N_VARIANTS;
  f->groups = nxc_arena_array(arena, plan->n[NX_SECTION_GROUPS], sizeof *f->groups);
  f->n_groups = plan->n[NX_SECTION_GROUPS];
  for (uint32_t i = 0; i < f->n_groups; i++) f->groups[i].group = i;
  for (size_t run = 0; run < n; run++) {
    const nx_program *program = &plan->programs[run / N_VARIANTS];
    uint64_t n_runs = p->n_runs[f->stage * n + run];
    for (uint32_t i = 0; n_runs && i < program->n_operators; i++) {
      const nx_operator *op = &plan->operators[program->first_operator + i];
      if (!is_collective(op) || !(op->when & when_of_variant(run % N_VARIANTS))) continue;
      exchange e = exchange_of(plan, p->machine, p->places, op);
      nxc_group_cost *cost = &f->groups[op->group];
      cost->n_hosts = p->places[op->group].n_hosts;
      cost->n_collectives += n_runs;
      cost->bytes += n_runs * op->moved_bytes;
      cost->n_steps += n_runs * e.n_steps;
      cost->seconds += (double)n_runs * e.seconds;
    }
  }
}

/* The type in which most FLOP are. */
static nx_dtype main_type(const nx_plan *plan) {
  double flops[NX_DTYPE_END] = {0};
  nx_dtype best = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++)
    if (multiplies(&plan->operators[i]))
      flops[product_type(plan, &plan->operators[i])] += (double)plan->operators[i].flops;
  for (uint32_t type = 0; type < NX_DTYPE_END; type++)
    if (flops[type] > flops[best]) best = (nx_dtype)type;
  return best;
}

const char *nxc_forecast_lacks(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena) {
  bool near = false, far = false;
  const group_place *places = place_groups(plan, machine, arena);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    if (multiplies(op) && machine->products[product_type(plan, op)].n_points == 0)
      return nxc_arena_printf(arena, "products.%s", nx_dtype_name(product_type(plan, op)));
    if (!is_collective(op) || plan->groups[op->group].size < 2) continue;
    near = near || places[op->group].n_local > 1;
    far = far || places[op->group].n_local < plan->groups[op->group].size;
  }
  if (near && machine->inside.bandwidth.n_points == 0) return "inside (collectives within a host)";
  if (far && machine->between.bandwidth.n_points == 0) return "between (collectives between hosts)";
  return NULL;
}

nxc_forecast nxc_forecast_step(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena) {
  player p = {.plan = plan, .machine = machine, .places = place_groups(plan, machine, arena)};
  nxc_forecast f = {.ranks_per_host = ranks_per_host(plan, machine), .type = main_type(plan)};
  cost_programs(&p, arena);
  find_stages(&p, arena);
  f.step_s = play(&p, arena);
  double longest = -1;
  for (uint32_t stage = 0; stage < p.n_stages; stage++) {
    spent s = stage_spent(&p, stage);
    if (s.total_s <= longest) continue;
    longest = s.total_s;
    f.stage = stage;
    for (int class = 0; class < NXC_N_COSTS; class++) f.class_s[class] = s.class_s[class];
  }
  f.bubble_s = f.step_s - longest > 1e-9 * f.step_s ? f.step_s - longest : 0; /* sums in two orders */
  f.tokens_per_s = (double)plan->run->tokens_per_step / f.step_s;
  double peak = f.type ? nxc_rate_peak(&machine->products[f.type]) : 0;
  if (peak > 0) f.utilisation = plan->run->flops_per_step / plan->run->n_ranks / f.step_s / peak;
  add_groups(&p, &f, arena);
  return f;
}
