/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/forecast/routes.h"

#include "compiler/arena.h"

enum { MESSAGES = 16 /* of runtime/comm/comm_mpi.c */ };

nxc_group_place *nxc_place_groups(const nx_plan *plan, uint32_t ranks_per_host, nxc_arena *arena) {
  nxc_group_place *places = nxc_arena_array(arena, plan->n[NX_SECTION_GROUPS], sizeof *places);
  for (uint32_t group = 0; group < plan->n[NX_SECTION_GROUPS]; group++)
    for (uint32_t i = 0, last = NX_NONE; i < plan->groups[group].size; i++) {
      uint32_t host = nx_group_member(plan, group, 0, i) / ranks_per_host;
      places[group].n_local += host == 0;
      places[group].n_hosts += host != last;
      last = host;
    }
  return places;
}

/* A collective as its ways see it. */
typedef struct crossing {
  const nxc_machine *machine;
  double size, n_local, n_hosts;
  double bytes; /* that each member receives when every part comes to it once */
} crossing;

static double moved_s(const nxc_link *link, double bytes, double share) {
  return bytes > 0 ? bytes / (share * nxc_rate_at(&link->bandwidth, bytes)) : 0;
}

static uint32_t doublings(double size) {
  uint32_t n = 0;
  while ((double)(UINT64_C(1) << n) < size) n++;
  return n;
}

static nxc_exchange near_and_far(const crossing *c, uint32_t near_steps, double near_bytes,
                                 uint32_t far_steps, double far_bytes) {
  const nxc_link *inside = &c->machine->inside, *between = &c->machine->between;
  double latency_s = near_steps * inside->latency_s + far_steps * between->latency_s, seconds = latency_s;
  if (near_bytes > 0) seconds += moved_s(inside, near_bytes, 1);
  if (far_bytes > 0) seconds += moved_s(between, far_bytes, 1);
  return (nxc_exchange){near_steps + far_steps, seconds, latency_s};
}

static uint32_t steps_to(double n_members) {
  return ((uint32_t)n_members + MESSAGES - 1) / MESSAGES;
}

static nxc_exchange direct(const crossing *c) {
  double part = c->bytes / (c->size - 1), near = c->n_local - 1, far = c->size - c->n_local;
  return near_and_far(c, near > 0, part * near, steps_to(far), part * far);
}

static nxc_exchange ring(const crossing *c) {
  const nxc_link *inside = &c->machine->inside, *between = &c->machine->between;
  uint32_t n_steps = (uint32_t)c->size - 1;
  double far = moved_s(between, c->bytes, c->n_local),
         near = c->n_local > 1 ? moved_s(inside, c->bytes, 1) : 0;
  double latency_s = n_steps * between->latency_s;
  return (nxc_exchange){n_steps, latency_s + (far > near ? far : near), latency_s};
}

static nxc_exchange doubling(const crossing *c) {
  double part = c->bytes / (c->size - 1), near = c->n_local - 1, far = c->size - c->n_local;
  return near_and_far(c, 0, part * near, doublings(c->size), part * far);
}

static nxc_exchange hosts(const crossing *c) {
  double part = c->bytes / (c->size - 1), far = c->n_hosts - 1, near = c->size - c->n_hosts;
  return near_and_far(c, 2, part * near, steps_to(far), part * far);
}

static nxc_exchange gather_by(const crossing *c, nx_way way) {
  static nxc_exchange (*const ways[NX_N_WAYS])(const crossing *) = {
      [NX_WAY_DIRECT] = direct, [NX_WAY_RING] = ring, [NX_WAY_DOUBLING] = doubling, [NX_WAY_HOSTS] = hosts};
  return ways[way](c);
}

static nxc_exchange exchange_by(const nx_plan *plan, const nxc_machine *machine,
                                const nxc_group_place *places, const nx_operator *op, nx_way way) {
  const nxc_group_place *place = &places[op->group];
  crossing c = {machine, plan->groups[op->group].size, place->n_local, place->n_hosts,
                (double)op->moved_bytes};
  if (c.size < 2 || c.bytes <= 0) return (nxc_exchange){0, 0, 0};
  if (op->op == NX_OP_shift) { /* from one neighbour, and the slowest delays all */
    const nxc_link *link = c.n_hosts > 1 ? &machine->between : &machine->inside;
    return (nxc_exchange){1, link->latency_s + moved_s(link, c.bytes, 1), link->latency_s};
  }
  if (op->op != NX_OP_all_reduce) return gather_by(&c, way);
  if (way == NX_WAY_DOUBLING) { /* moved_bytes are 2 (n - 1) / n of x */
    c.bytes = c.bytes / 2 * c.size;
    return doubling(&c);
  }
  c.bytes /= 2;
  nxc_exchange sum = direct(&c), gather = gather_by(&c, way);
  return (nxc_exchange){sum.n_steps + gather.n_steps, sum.seconds + gather.seconds,
                        sum.latency_s + gather.latency_s};
}

static bool can_go(const nx_operator *op, const nxc_group_place *place, uint32_t size, nx_way way) {
  bool grid = place->n_local > 1 && place->n_local * place->n_hosts == size;
  return nx_op_has_way((nx_op)op->op, way) && (way != NX_WAY_HOSTS || grid);
}

/* The best way, and the one that is next; within a hundredth the simpler one, which comes first. */
static nx_route choose(const nx_plan *plan, const nxc_machine *machine, const nxc_group_place *places,
                       uint32_t operator) {
  const nx_operator *op = &plan->operators[operator];
  nx_route best = {.operator = operator, .seconds = -1, .next_seconds = -1};
  for (nx_way way = 0; way < NX_N_WAYS; way++) {
    if (!can_go(op, &places[op->group], plan->groups[op->group].size, way)) continue;
    float seconds = (float)exchange_by(plan, machine, places, op, way).seconds;
    if (best.seconds < 0 || seconds < 0.99f * best.seconds) {
      best.next = best.seconds < 0 ? (uint8_t)way : best.way;
      best.next_seconds = best.seconds < 0 ? seconds : best.seconds;
      best.way = (uint8_t)way, best.seconds = seconds;
    } else if (best.next == best.way || seconds < best.next_seconds) {
      best.next = (uint8_t)way, best.next_seconds = seconds;
    }
  }
  return best;
}

static nx_way way_of(const nx_plan *plan, const nxc_machine *machine, const nxc_group_place *places,
                     uint32_t operator) {
  const nx_operator *op = &plan->operators[operator];
  const nx_route *route = nx_plan_route(plan, operator);
  if (route) return can_go(op, &places[op->group], plan->groups[op->group].size, route->way) ? route->way : 0;
  return places[op->group].n_hosts > 1 ? (nx_way)choose(plan, machine, places, operator).way : NX_WAY_DIRECT;
}

nxc_exchange nxc_exchange_of(const nx_plan *plan, const nxc_machine *machine, const nxc_group_place *places,
                             uint32_t operator) {
  return exchange_by(plan, machine, places, &plan->operators[operator],
                     way_of(plan, machine, places, operator));
}

/* Hosts of some years ago, on Ethernet of 10 Gbit/s. */
static const nxc_machine *usual(void) {
  static const nxc_rate_point memory = {1, 8e9}, cable = {1, 1.1e9};
  static const nxc_machine machine = {.name = "hosts on 10 Gbit/s", .inside = {{&memory, 1}, 2e-6},
                                      .between = {{&cable, 1}, 3e-5}};
  return &machine;
}

const nx_route *nxc_routes_choose(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena,
                                  uint32_t *n_routes) {
  nx_route *routes = nxc_arena_array(arena, plan->n[NX_SECTION_OPERATORS], sizeof *routes);
  bool told = machine && machine->between.bandwidth.n_points > 0 && machine->inside.bandwidth.n_points > 0;
  const nxc_machine *figures = told ? machine : usual();
  const nxc_group_place *places = nxc_place_groups(plan, plan->run->n_ranks / plan->run->n_hosts, arena);
  *n_routes = 0;
  for (uint32_t i = 0; plan->run->n_hosts > 1 && i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    bool chosen = op->group != NX_NONE && places[op->group].n_hosts > 1 &&
                  nx_op_has_way((nx_op)op->op, NX_WAY_RING);
    if (chosen) routes[(*n_routes)++] = choose(plan, figures, places, i);
  }
  return routes;
}
