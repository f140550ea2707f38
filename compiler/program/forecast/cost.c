/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/forecast/cost.h"

#include "compiler/program/forecast/operator_cost.h"

#include <assert.h>
#include <string.h>

const char *const nxc_cost_names[NXC_N_COSTS] = {"products", "memory_bound", "collectives", "transfers",
                                                 "optimizer"};

/* ---- collectives ---- */

static uint32_t ranks_per_host(const nx_plan *plan, const nxc_machine *machine) {
  uint32_t planned = plan->run->n_ranks / plan->run->n_hosts;
  return machine->ranks_per_host < planned ? machine->ranks_per_host : planned;
}

static double later(double a, double b) {
  return a > b ? a : b;
}

/* ---- programs ---- */

enum { N_VARIANTS = NX_WHEN_ANY + 1 /* masks of `when` */ };

typedef struct spent {
  double class_s[NXC_N_COSTS];
  double total_s;
  double busy_until, ends_s; /* where collectives go on beneath work: the links; the last collective */
  double moves_until;        /* between hosts, which a core has to do */
  bool known; /* of programs, which are added up when first met */
} spent;

typedef struct player {
  const nx_plan *plan;
  const nx_schedule *schedule; /* that is played */
  const nxc_machine *machine;
  nxc_group_place *places; /* [group] */
  nxc_operator_costs costs;
  spent *programs;     /* [program, mask] */
  spent *stages;       /* [stage] */
  double *ends;        /* [value]: of the collective that writes it, since the program began */
  uint32_t n_stages;
} player;

static void spend(spent *s, nxc_cost_class class, double seconds) {
  s->class_s[class] += seconds;
  s->total_s += seconds;
}

static void wait_until(spent *s, double end_s) {
  if (end_s > s->total_s) spend(s, NXC_COST_COLLECTIVES, end_s - s->total_s);
}

/* Whether a collective is moved along while the rank computes: between hosts by nxrun's own thread. */
static bool goes_on(const player *p, const nx_operator *op) {
  nxc_overlap told = p->machine->overlap;
  return told == NXC_OVERLAPS ||
         (told == NXC_OVERLAP_UNTOLD && p->machine->device == NULL && p->places[op->group].n_hosts > 1);
}

/* One after another takes the links; while its last bytes are on their way the next one's go. */
static double start_beneath(const player *p, const nx_operator *op, double seconds, spent *s) {
  double begin = later(s->busy_until, s->total_s);
  double latency_s = nxc_exchange_of(p->plan, p->machine, p->places, nxc_cost_index(p->plan, op)).latency_s;
  s->busy_until = begin + seconds - latency_s;
  if (p->places[op->group].n_hosts > 1) s->moves_until = s->busy_until;
  s->ends_s = later(s->ends_s, begin + seconds);
  return begin + seconds;
}

/* A core that also moves messages computes slower, as long as they move. */
static double beside_moving(const player *p, const spent *s, double seconds) {
  double moving = s->moves_until - s->total_s, speed = 1 - p->machine->between.taken;
  if (moving <= 0 || seconds <= 0 || speed >= 1) return seconds;
  return seconds <= moving * speed ? seconds / speed : seconds + moving * (1 - speed);
}

/* A collective takes its time where it is started; or it goes on beneath work, and a wait takes what is left.
 */
static void add_operator(player *p, const nx_program *program, const nx_operator *op, spent *s) {
  double seconds = nxc_operator_seconds(&p->costs, op);
  if (op->op == NX_OP_wait) {
    wait_until(s, p->ends[p->plan->arguments[op->first_argument]]);
  } else if (nxc_cost_is_collective(op)) {
    double *end = &p->ends[p->plan->arguments[op->first_argument + 1]];
    if (!goes_on(p, op)) spend(s, NXC_COST_COLLECTIVES, seconds);
    else *end = start_beneath(p, op, seconds, s);
  } else {
    nxc_cost_class class = nxc_cost_multiplies(op) ? NXC_COST_PRODUCTS : NXC_COST_MEMORY;
    if (program->kind == NX_PROGRAM_STEP) class = NXC_COST_OPTIMIZER;
    spend(s, class, beside_moving(p, s, seconds));
  }
}

static spent program_spent(player *p, const nx_program *program, uint8_t when) {
  const nx_operator *operators = &p->plan->operators[program->first_operator];
  spent s = {.known = true};
  memset(p->ends, 0, p->plan->n[NX_SECTION_VALUES] * sizeof *p->ends);
  nxc_costs_begin(&p->costs, program, when);
  for (uint32_t i = 0; i < program->n_operators; i++)
    if (operators[i].when & when) add_operator(p, program, &operators[i], &s);
  return s;
}

static const spent *spent_of(player *p, uint32_t program, uint8_t when) {
  spent *s = &p->programs[program * N_VARIANTS + when];
  if (!s->known) *s = program_spent(p, &p->plan->programs[program], when);
  return s;
}

/* ---- stages ---- */

/* The rank of a stage whose other coordinates are 0. */
static uint32_t rank_of_stage(const nx_plan *plan, uint32_t stage) {
  uint32_t atom = nx_plan_pipeline_atom(plan);
  return atom == NX_NONE ? 0 : stage * plan->atoms[atom].stride;
}

/* The link that what a chunk receives comes over; NULL where both chunks are on one stage. */
static const nxc_link *link_of(const player *p, const nx_item *item) {
  const nx_plan *plan = p->plan;
  uint32_t per_host = ranks_per_host(plan, p->machine);
  uint32_t peer = plan->chunks[nx_port_peer(item->chunk, (nx_port)item->port)].stage;
  if (peer == item->stage) return NULL;
  bool near = rank_of_stage(plan, peer) / per_host == rank_of_stage(plan, item->stage) / per_host;
  return near ? &p->machine->inside : &p->machine->between;
}

/* Whether the item waits for something to arrive. */
static bool receives(const nx_item *item) {
  return item->kind == NX_ITEM_WAIT && (item->port == NX_PORT_INPUT || item->port == NX_PORT_OUTPUT_GRADIENT);
}

static double transfer_seconds(const player *p, const nx_item *item) {
  const nxc_link *link = link_of(p, item);
  double bytes = (double)p->plan->values[p->plan->chunks[item->chunk].ports[item->port]].bytes;
  return link == NULL ? 0 : link->latency_s + bytes / nxc_rate_at(&link->bandwidth, bytes);
}

/* What the item takes by itself; it counts for its stage. Reductions that the last backward passes have
 * started go on beneath whatever comes before the step, which waits for them. */
static double item_seconds(player *p, const nx_item *item) {
  uint32_t program = nx_item_program(p->plan, item);
  spent *stage = &p->stages[item->stage];
  double since = stage->total_s;
  if (program == NX_NONE) {
    double seconds = receives(item) ? transfer_seconds(p, item) : 0;
    spend(stage, NXC_COST_TRANSFERS, seconds);
    return seconds;
  }
  const spent *s = spent_of(p, program, item->when);
  if (item->kind == NX_ITEM_STEP) wait_until(stage, stage->ends_s);
  stage->ends_s = later(stage->ends_s, stage->total_s + s->ends_s);
  for (int class = 0; class < NXC_N_COSTS; class++) spend(stage, (nxc_cost_class)class, s->class_s[class]);
  return stage->total_s - since;
}

/* Seconds until the last item of all stages has ended. */
static double play(player *p, nxc_arena *arena) {
  uint32_t n = p->plan->n[NX_SECTION_ITEMS], first = p->schedule->first_item,
           past = first + p->schedule->n_items;
  double *seconds = nxc_arena_array(arena, n, sizeof *seconds), *end = nxc_arena_array(arena, n, sizeof *end);
  double last = 0;
  nx_fault fault;
  for (uint32_t i = first; i < past; i++) seconds[i] = item_seconds(p, &p->plan->items[i]);
  bool ends = nx_schedule_walk(p->plan, p->schedule, seconds, NULL, end, &fault);
  assert(ends); /* the plan is proved */
  for (uint32_t i = first; i < past; i++)
    if (end[i] > last) last = end[i];
  return last;
}

/* ---- all ---- */

static void add_collective(const player *p, nxc_forecast *f, const nx_operator *op, uint64_t n_runs) {
  nxc_exchange e = nxc_exchange_of(p->plan, p->machine, p->places, nxc_cost_index(p->plan, op));
  nxc_group_cost *cost = &f->groups[op->group];
  cost->n_hosts = p->places[op->group].n_hosts;
  cost->n_collectives += n_runs;
  cost->bytes += n_runs * op->moved_bytes;
  cost->n_steps += n_runs * e.n_steps;
  cost->seconds += (double)n_runs * e.seconds;
}

/* Of the stage that works longest. */
static void add_groups(const player *p, nxc_forecast *f, nxc_arena *arena) {
  const nx_plan *plan = p->plan;
  size_t n = (size_t)plan->n[NX_SECTION_PROGRAMS] * N_VARIANTS;
  uint64_t *n_runs = nxc_arena_array(arena, n, sizeof *n_runs);
  f->groups = nxc_arena_array(arena, plan->n[NX_SECTION_GROUPS], sizeof *f->groups);
  f->n_groups = plan->n[NX_SECTION_GROUPS];
  for (uint32_t i = 0; i < f->n_groups; i++) f->groups[i].group = i;
  for (uint32_t i = 0; i < p->schedule->n_items; i++) {
    const nx_item *item = &plan->items[p->schedule->first_item + i];
    uint32_t program = nx_item_program(plan, item);
    if (item->stage == f->stage && program != NX_NONE) n_runs[program * N_VARIANTS + item->when]++;
  }
  for (size_t run = 0; run < n; run++) {
    const nx_program *program = &plan->programs[run / N_VARIANTS];
    const nx_operator *operators = &plan->operators[program->first_operator];
    for (uint32_t i = 0; n_runs[run] && i < program->n_operators; i++)
      if (nxc_cost_is_collective(&operators[i]) && operators[i].when & run % N_VARIANTS)
        add_collective(p, f, &operators[i], n_runs[run]);
  }
}

/* The type in which most FLOP are. */
static nx_dtype main_type(const nx_plan *plan) {
  double flops[NX_DTYPE_END] = {0};
  nx_dtype best = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++)
    if (nxc_cost_multiplies(&plan->operators[i]))
      flops[nxc_cost_type(plan, &plan->operators[i])] += (double)plan->operators[i].flops;
  for (uint32_t type = 0; type < NX_DTYPE_END; type++)
    if (flops[type] > flops[best]) best = (nx_dtype)type;
  return best;
}

const char *nxc_forecast_lacks(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena) {
  bool near = false, far = false;
  const player p = {.plan = plan,
                    .machine = machine,
                    .places = nxc_place_groups(plan, ranks_per_host(plan, machine), arena)};
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    if (nxc_cost_multiplies(op) && machine->products[nxc_cost_type(plan, op)].n_points == 0)
      return nxc_arena_printf(arena, "products.%s", nx_dtype_name(nxc_cost_type(plan, op)));
    if (!nxc_cost_is_collective(op) || plan->groups[op->group].size < 2) continue;
    near = near || p.places[op->group].n_local > 1;
    far = far || p.places[op->group].n_local < plan->groups[op->group].size;
  }
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ITEMS]; i++) {
    const nxc_link *link = receives(&plan->items[i]) ? link_of(&p, &plan->items[i]) : NULL;
    near = near || link == &machine->inside;
    far = far || link == &machine->between;
  }
  if (near && machine->inside.bandwidth.n_points == 0) return "inside (links within a host)";
  if (far && machine->between.bandwidth.n_points == 0) return "between (links between hosts)";
  return NULL;
}

static player new_player(const nx_plan *plan, const nx_schedule *schedule, const nxc_machine *machine,
                         nxc_arena *arena) {
  player p = {.plan = plan,
              .schedule = schedule,
              .machine = machine,
              .places = nxc_place_groups(plan, ranks_per_host(plan, machine), arena)};
  size_t n_programs = plan->n[NX_SECTION_PROGRAMS];
  p.n_stages = nx_plan_n_stages(plan);
  p.programs = nxc_arena_array(arena, n_programs * N_VARIANTS, sizeof *p.programs);
  p.stages = nxc_arena_array(arena, p.n_stages, sizeof *p.stages);
  p.ends = nxc_arena_array(arena, plan->n[NX_SECTION_VALUES], sizeof *p.ends);
  p.costs = (nxc_operator_costs){plan, machine, p.places,
                                 nxc_arena_array(arena, plan->n[NX_SECTION_VALUES], sizeof(bool))};
  return p;
}

static double evaluation_seconds(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena) {
  const nx_schedule *schedule = nx_plan_schedule(plan, NX_SCHEDULE_EVALUATE);
  if (schedule == NULL || plan->n[NX_SECTION_EVALUATIONS] == 0) return 0;
  player p = new_player(plan, schedule, machine, arena);
  return play(&p, arena);
}

static double training_seconds(const nx_plan *plan, const nxc_machine *machine, double step_s,
                               nxc_arena *arena) {
  uint32_t n = plan->n[NX_SECTION_PHASES];
  double sum = n == 0 ? step_s * (double)plan->run->n_steps : 0;
  for (uint32_t i = 0; i < n; i++) {
    const nx_phase *phase = &plan->phases[i];
    uint64_t end = i + 1 < n ? phase[1].first_step : plan->run->n_steps;
    player p = new_player(plan, &plan->schedules[phase->schedule], machine, arena);
    sum += play(&p, arena) * (double)(end - phase->first_step);
  }
  return sum;
}

nxc_forecast nxc_forecast_step(const nx_plan *plan, const nxc_machine *machine, nxc_arena *arena) {
  player p = new_player(plan, nx_plan_schedule(plan, NX_SCHEDULE_TRAIN), machine, arena);
  nxc_forecast f = {.ranks_per_host = ranks_per_host(plan, machine), .type = main_type(plan)};
  f.step_s = play(&p, arena);
  for (uint32_t stage = 1; stage < p.n_stages; stage++)
    if (p.stages[stage].total_s > p.stages[f.stage].total_s) f.stage = stage;
  const spent *busiest = &p.stages[f.stage];
  for (int class = 0; class < NXC_N_COSTS; class++) f.class_s[class] = busiest->class_s[class];
  double idle_s = f.step_s - busiest->total_s;
  f.bubble_s = idle_s > 1e-9 * f.step_s ? idle_s : 0; /* sums in two orders */
  f.tokens_per_s = (double)plan->run->tokens_per_step / f.step_s;
  f.peak_flops = f.type ? nxc_rate_peak(&machine->products[f.type]) : 0;
  if (f.peak_flops > 0)
    f.utilisation = plan->run->flops_per_step / plan->run->n_ranks / f.step_s / f.peak_flops;
  add_groups(&p, &f, arena);
  f.evaluation_s = evaluation_seconds(plan, machine, arena);
  f.training_s = training_seconds(plan, machine, f.step_s, arena);
  return f;
}
