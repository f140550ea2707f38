/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives on real ranks: mpiexec -n N comm_check [late window|late messages|stress SECONDS|tags N|meet
 * ...|device alive|device silent].
 *
 * Every operator, type, axis and a spread of sizes, over a tensor group, a data group and all ranks, through
 * the shared window and through messages, against sums made here in coordinate order; bit for bit, with
 * several under way at once, waited for in another order than they were started. Nothing may be allocated
 * after bind; in messages, nothing by nxrun itself (MPI fills its pools when they are first used).
 *
 * With `late` the last rank never comes, and the others must end by the deadline. With `stress` the ranks run
 * tiny collectives against each other without ever meeting in between, each with pauses of its own, and write
 * into the operands again as soon as a wait allows: a flag that comes early shows as a wrong number, one that
 * is lost as a deadline. With `tags N` MPI has none above N. With `device` a rank waits for a device that
 * works longer than the deadline, or stands still. */
#include "runtime/comm/comm_transport.h"
#include "tests/e2e/count_allocations.h"
#include "schema/bf16.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N_SIZES = 6, N_CASES_MAX = 512, ARENA_BYTES = 200 << 20, N_LARGE = 1100003, N_REPEATS = 3 };
enum { MOST_UNDER_WAY = 12 /* more than the window has posts of a group */, ROUNDS_PER_VOTE = 50 };

/* Between nxrun and MPI: no tag is sent above the most that MPI must have, or than `tags` says. */
static int most_tag = 32767;
static uint64_t n_sent;

int MPI_Comm_get_attr(MPI_Comm communicator, int key, void *value, int *is_known) {
  if (key != MPI_TAG_UB) return PMPI_Comm_get_attr(communicator, key, value, is_known);
  *(int **)value = &most_tag, *is_known = 1;
  return MPI_SUCCESS;
}

int MPI_Isend_c(const void *bytes, MPI_Count n, MPI_Datatype type, int to, int tag, MPI_Comm communicator,
                MPI_Request *request) {
  n_sent++;
  if (tag > most_tag) {
    fprintf(stderr, "a message has tag %d, above %d\n", tag, most_tag);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return PMPI_Isend_c(bytes, n, type, to, tag, communicator, request);
}

typedef struct check_case {
  nxr_collective_spec spec;
  nxr_collective *collective;
  uint64_t n_x, n_y;
} check_case;

typedef struct bench {
  nxr_world *world;
  const nx_plan *plan;
  nxk_device *device;
  nxr_arenas arenas;
  nxr_comm *comm;
  check_case cases[N_CASES_MAX];
  uint32_t n_cases;
  uint64_t used;
} bench;

/* A number that every rank can work out for every other: x of `rank`, element i, in round r. */
static float number(uint32_t rank, uint64_t i, uint32_t which, uint32_t round) {
  uint32_t bits = (uint32_t)(i * 2654435761u) ^ (rank + 1) * 40503u ^ which * 977u ^ round * 7919u;
  bits ^= bits >> 15, bits *= 2246822519u, bits ^= bits >> 13;
  return (float)((int32_t)bits) / 2147483648.0f * (float)(1 + bits % 7);
}

static void store(void *to, nx_dtype dtype, uint64_t i, double value) {
  if (dtype == NX_f32) ((float *)to)[i] = (float)value;
  else if (dtype == NX_f64) ((double *)to)[i] = value;
  else ((uint16_t *)to)[i] = nx_bf16_from_float((float)value);
}

static double load(const void *from, nx_dtype dtype, uint64_t i) {
  if (dtype == NX_f32) return ((const float *)from)[i];
  if (dtype == NX_f64) return ((const double *)from)[i];
  return nx_bf16_to_float(((const uint16_t *)from)[i]);
}

/* What `rank` holds in x, after rounding to its type. */
static double held(nx_dtype dtype, uint32_t rank, uint64_t i, uint32_t which, uint32_t round) {
  float value = number(rank, i, which, round);
  return dtype == NX_bf16 ? nx_bf16_to_float(nx_bf16_from_float(value)) : value;
}

static uint32_t group_of(const bench *at, const nxr_collective_spec *spec, uint32_t *members) {
  if (spec->group == NX_NONE) {
    for (uint32_t i = 0; i < at->world->size; i++) members[i] = i;
    return at->world->size;
  }
  for (uint32_t i = 0; i < at->plan->groups[spec->group].size; i++)
    members[i] = nx_group_member(at->plan, spec->group, at->world->rank, i);
  return at->plan->groups[spec->group].size;
}

/* The sum in coordinate order, as the contract says: fp32 (fp64 for f64), one rounding. */
static double sum_at(nx_dtype x_dtype, const uint32_t *members, uint32_t size, uint64_t i, uint32_t which,
                     uint32_t round) {
  if (x_dtype == NX_f64) {
    double sum = held(x_dtype, members[0], i, which, round);
    for (uint32_t s = 1; s < size; s++) sum += held(x_dtype, members[s], i, which, round);
    return sum;
  }
  float sum = (float)held(x_dtype, members[0], i, which, round);
  for (uint32_t s = 1; s < size; s++) sum += (float)held(x_dtype, members[s], i, which, round);
  return sum;
}

/* Element i of y, from every member's x. */
static double expected(const bench *at, const check_case *tried, uint64_t i, uint32_t which, uint32_t round) {
  const nxr_collective_spec *spec = &tried->spec;
  uint32_t members[64], size = group_of(at, spec, members), own = 0;
  while (members[own] != at->world->rank) own++;
  if (spec->op == NX_OP_all_reduce) return sum_at(spec->x_dtype, members, size, i, which, round);
  if (spec->op == NX_OP_shift) return held(spec->x_dtype, members[(own + size - 1) % size], i, which, round);
  if (spec->op == NX_OP_all_to_all) {
    uint64_t x_run = spec->axis / size * spec->inner, y_run = spec->y_run;
    uint64_t part = i / (y_run * size) * y_run + i % y_run; /* element of what one member sends here */
    uint64_t x_at = (part / x_run * size + own) * x_run + part % x_run;
    return held(spec->x_dtype, members[i / y_run % size], x_at, which, round);
  }
  uint64_t run = spec->op == NX_OP_all_gather ? spec->axis * spec->inner : spec->axis / size * spec->inner;
  if (spec->op == NX_OP_reduce_scatter)
    return sum_at(spec->x_dtype, members, size, (i / run * size + own) * run + i % run, which, round);
  uint64_t outer = i / (run * size), member = i / run % size;
  return held(spec->x_dtype, members[member], outer * run + i % run, which, round);
}

static void add_spec(bench *at, nxr_collective_spec spec, bool in_place) {
  check_case *made = &at->cases[at->n_cases++];
  uint32_t members[64];
  uint32_t size = group_of(at, &spec, members);
  if (spec.op == NX_OP_reduce_scatter || spec.op == NX_OP_all_to_all) spec.axis *= size;
  made->n_x = spec.outer * spec.axis * spec.inner;
  made->n_y = spec.op == NX_OP_all_gather       ? made->n_x * size
              : spec.op == NX_OP_reduce_scatter ? made->n_x / size
                                                : made->n_x;
  uint8_t *memory = (uint8_t *)at->arenas.base[NX_ARENA_comm] + at->used;
  uint64_t x_bytes = (made->n_x * 8 + 63) / 64 * 64, y_bytes = (made->n_y * 8 + 63) / 64 * 64;
  spec.x = memory, spec.y = in_place ? memory : memory + x_bytes;
  at->used += x_bytes + y_bytes;
  if (at->used > ARENA_BYTES) abort();
  nxr_fault fault = {""};
  made->spec = spec;
  made->collective = nxr_comm_bind(at->comm, &spec, &fault);
  if (!made->collective) {
    fprintf(stderr, "bind: %s\n", fault.text);
    exit(1);
  }
}

static void add_case(bench *at, nx_op op, uint32_t group, nx_dtype x_dtype, nx_dtype y_dtype, uint64_t outer,
                     uint64_t axis, uint64_t inner, bool in_place) {
  add_spec(at,
           (nxr_collective_spec){.op = op, .group = group, .x_dtype = x_dtype,
                                 .y_dtype = y_dtype, .outer = outer, .axis = axis, .inner = inner,
                                 .operator = NX_NONE},
           in_place);
}

/* A member's part is outer x axis x inner; along the dimension that grows, y_run elements of it lie
 * together. */
static void add_all_to_all(bench *at, uint32_t group, nx_dtype dtype, uint64_t outer, uint64_t axis,
                           uint64_t inner, uint64_t y_run) {
  add_spec(at,
           (nxr_collective_spec){.op = NX_OP_all_to_all, .group = group, .x_dtype = dtype, .y_dtype = dtype,
                                 .outer = outer, .axis = axis, .inner = inner, .y_run = y_run,
                                 .operator = NX_NONE},
           false);
}

/* The dimension that grows before the one that is divided, behind it, and the same. */
static void add_exchanges(bench *at, uint32_t group, nx_dtype dtype, uint64_t n) {
  uint64_t few = n % 40 + 1;
  add_all_to_all(at, group, dtype, 3, few, 5, 3 * few * 5);
  add_all_to_all(at, group, dtype, 2, 3, few * 4, few);
  add_all_to_all(at, group, dtype, 1, n, 2, 2);
  add_all_to_all(at, group, dtype, 1, n, 3, n * 3);
  add_all_to_all(at, group, dtype, 4, few, 1, few);
  add_case(at, NX_OP_shift, group, dtype, dtype, 1, n, 1, false);
}

/* What is moved in each way that it can be moved. */
static void add_ways(bench *at, uint32_t group, nx_dtype x_dtype, nx_dtype y_dtype, uint64_t n,
                     bool in_place) {
  for (nx_way way = 1; way < NX_N_WAYS; way++) {
    nxr_collective_spec spec = {.op = NX_OP_all_reduce, .way = way, .group = group, .x_dtype = x_dtype,
                                .y_dtype = y_dtype, .outer = 1, .axis = n, .inner = 1, .operator = NX_NONE};
    add_spec(at, spec, in_place);
    spec.op = NX_OP_all_gather, spec.y_dtype = x_dtype, spec.inner = 3;
    add_spec(at, spec, false);
  }
}

static void add_cases(bench *at) {
  static const uint64_t sizes[N_SIZES] = {1, 5, 64, 333, 4096, 20011};
  static const nx_dtype types[][2] = {
      {NX_f32, NX_f32}, {NX_bf16, NX_bf16}, {NX_f32, NX_bf16}, {NX_f64, NX_f64}};
  const uint32_t groups[] = {0, 1, NX_NONE};
  for (size_t g = 0; g < 3; g++)
    for (size_t t = 0; t < 4; t++)
      for (size_t s = t; s < N_SIZES; s += 2) {
        uint64_t n = sizes[s];
        add_case(at, NX_OP_all_reduce, groups[g], types[t][0], types[t][1], 1, n, 1, s % 4 == 0 && t != 2);
        add_case(at, NX_OP_reduce_scatter, groups[g], types[t][0], types[t][1], 1, n, 3, false);
        add_case(at, NX_OP_reduce_scatter, groups[g], types[t][0], types[t][1], 5, n % 50 + 1, 2, false);
        add_case(at, NX_OP_all_gather, groups[g], types[t][0], types[t][0], 1, n, 1, false);
        add_case(at, NX_OP_all_gather, groups[g], types[t][0], types[t][0], 3, n % 40 + 1, 7, false);
        if (t < 2) add_exchanges(at, groups[g], types[t][0], n);
        if (t != 1) add_ways(at, groups[g], types[t][0], types[t][1], n, s % 4 == 0 && t == 0);
      }
}

/* More than goes in one message. */
static void add_large(bench *at) {
  add_case(at, NX_OP_all_reduce, NX_NONE, NX_f32, NX_f32, 1, N_LARGE, 1, true);
  add_case(at, NX_OP_reduce_scatter, 0, NX_f32, NX_bf16, 1, N_LARGE, 1, false);
  add_all_to_all(at, 0, NX_f32, 1, N_LARGE / 2, 2, 2);
}

static void fill_case(const bench *at, uint32_t c, uint32_t round) {
  const nxr_collective_spec *spec = &at->cases[c].spec;
  for (uint64_t i = 0; i < at->cases[c].n_x; i++)
    store(spec->x, spec->x_dtype, i, held(spec->x_dtype, at->world->rank, i, c, round));
}

/* Starts in order, in windows of different depth; waits in another. */
static void run_cases(bench *at) {
  for (uint32_t first = 0; first < at->n_cases;) {
    uint32_t depth = 1 + first % 6, end = first + depth < at->n_cases ? first + depth : at->n_cases;
    for (uint32_t c = first; c < end; c++) nxr_comm_start(at->comm, at->cases[c].collective);
    for (uint32_t c = end; c-- > first;)
      nxr_comm_wait(at->comm, at->cases[(at->world->rank % 2 ? c : first + end - 1 - c)].collective);
    first = end;
  }
}

static uint64_t count_wrong(const bench *at, uint32_t c, uint32_t round) {
  const check_case *tried = &at->cases[c];
  uint64_t n_wrong = 0;
  for (uint64_t i = 0; i < tried->n_y; i++) {
    double want[1], got = load(tried->spec.y, tried->spec.y_dtype, i);
    store(want, tried->spec.y_dtype, 0, expected(at, tried, i, c, round));
    if (got == load(want, tried->spec.y_dtype, 0)) continue;
    if (n_wrong++ == 0)
      fprintf(stderr, "rank %u round %u case %u op %s group %u element %llu: %.9g, should be %.9g\n",
              at->world->rank, round, c, nx_op_find(tried->spec.op)->name, tried->spec.group,
              (unsigned long long)i, got, load(want, tried->spec.y_dtype, 0));
  }
  return n_wrong;
}

static void open_bench(bench *at, bool use_window, double deadline_s) {
  const nxk_device_options options = {
      .n_threads = 1, .target = NX_TARGET_CPU_AVX2, .workspace_bytes = 1 << 20};
  nxr_fault fault = {""};
  nxk_fault why = {""};
  bool well = nxk_ref.open(&options, &at->device, &why) &&
              nxr_arenas_open(at->world, at->plan, &nxk_ref, at->device, nxr_comm_control_bytes(at->plan),
                              use_window, &at->arenas, &fault);
  nxr_world_barrier(at->world);
  well = well &&
         nxr_comm_open(at->world, at->plan, &nxk_ref, at->device, &at->arenas, deadline_s, &at->comm, &fault);
  if (well) return;
  fprintf(stderr, "open: %s%s\n", fault.text, why.text);
  exit(1);
}

static void close_bench(bench *at) {
  nxr_comm_close(at->comm);
  nxr_arenas_close(&at->arenas);
  nxk_ref.close(at->device);
}

/* A vote takes log2 of the ranks messages of each, whoever they are. */
static bool votes_take_few(bench *at, bool use_window) {
  uint64_t before = n_sent, wanted = 0;
  while (!(use_window && at->world->n_hosts == 1) && UINT64_C(1) << wanted < at->world->size) wanted++;
  nxr_comm_vote(at->comm, false);
  if (n_sent - before == wanted) return true;
  fprintf(stderr, "a vote took %llu messages, not %llu\n", (unsigned long long)(n_sent - before),
          (unsigned long long)wanted);
  return false;
}

/* The first rank starts more than a group has posts before any other starts one, and goes on all the same. */
static uint64_t start_ahead(bench *at, uint32_t round) {
  uint32_t started[MOST_UNDER_WAY], n = 0;
  uint64_t n_wrong = 0;
  for (uint32_t c = 0; c < at->n_cases && n < MOST_UNDER_WAY; c++)
    if (at->cases[c].spec.group == NX_NONE) fill_case(at, started[n++] = c, round);
  for (uint32_t i = 0; at->world->rank == 0 && i < n; i++)
    nxr_comm_start(at->comm, at->cases[started[i]].collective);
  nxr_world_barrier(at->world);
  for (uint32_t i = 0; at->world->rank > 0 && i < n; i++)
    nxr_comm_start(at->comm, at->cases[started[i]].collective);
  for (uint32_t i = 0; i < n; i++) {
    nxr_comm_wait(at->comm, at->cases[started[i]].collective);
    n_wrong += count_wrong(at, started[i], round);
  }
  return n_wrong;
}

static bool check_transport(nxr_world *world, const nx_plan *plan, bool use_window) {
  static bench at;
  at = (bench){.world = world, .plan = plan};
  open_bench(&at, use_window, 60);
  add_cases(&at);
  const uint32_t n_small = at.n_cases;
  add_large(&at);
  const uint32_t n_all = at.n_cases;
  uint64_t n_wrong = 0, n_allocated = 0;
  for (uint32_t round = 0; round < N_REPEATS; round++) {
    at.n_cases = round + 1 < N_REPEATS ? n_small : n_all;
    for (uint32_t c = 0; c < at.n_cases; c++) fill_case(&at, c, round);
    nxr_comm_vote(at.comm, false);
    uint64_t before = count_allocations(use_window && world->n_hosts == 1);
    run_cases(&at);
    bool voted = nxr_comm_vote(at.comm, world->rank == round % world->size);
    bool quiet = !nxr_comm_vote(at.comm, false);
    n_allocated += count_allocations(use_window && world->n_hosts == 1) - before;
    n_wrong += (uint64_t)!voted + !quiet + !votes_take_few(&at, use_window);
    for (uint32_t c = 0; c < at.n_cases; c++) n_wrong += count_wrong(&at, c, round);
    nxr_world_barrier(world);
  }
  n_wrong += start_ahead(&at, N_REPEATS);
  uint64_t totals[2] = {n_wrong, n_allocated};
  nxr_world_max(world, totals, 2);
  if (world->rank == 0)
    printf("%s: %u collectives on %u ranks: %llu wrong, %llu allocations\n",
           use_window ? "window" : "messages", at.n_cases, world->size, (unsigned long long)totals[0],
           (unsigned long long)totals[1]);
  close_bench(&at);
  return totals[0] == 0 && totals[1] == 0;
}

/* ---- stress ---- */

static uint32_t draw(uint32_t *state, uint32_t bound) {
  *state ^= *state << 13, *state ^= *state >> 17, *state ^= *state << 5;
  return *state % bound;
}

/* Those of a group side by side, so that more of them are under way than it has posts. */
static void add_tiny_cases(bench *at) {
  static const uint64_t sizes[] = {1, 7, 33, 100};
  const uint32_t groups[] = {0, 1, NX_NONE};
  for (size_t g = 0; g < 3; g++)
    for (size_t s = 0; s < 4; s++) {
      add_case(at, NX_OP_all_reduce, groups[g], NX_f32, NX_f32, 1, sizes[s], 1, s % 2);
      add_case(at, NX_OP_reduce_scatter, groups[g], NX_f32, NX_f32, 1, sizes[s], 1, false);
      add_case(at, NX_OP_all_gather, groups[g], NX_f32, NX_f32, 1, sizes[s], 1, false);
      add_all_to_all(at, groups[g], NX_f32, 2, 3, sizes[s], sizes[s]);
      add_case(at, NX_OP_shift, groups[g], NX_f32, NX_f32, 1, sizes[s], 1, false);
    }
}

/* Now and then a rank goes to sleep, or gives its core away, where the others do not expect it. */
static void pause_at_times(uint32_t *own) {
  uint32_t what = draw(own, 64);
  if (what == 0) usleep(draw(own, 300));
  if (what < 8) sched_yield();
}

/* A run of neighbouring cases, the same on all ranks; waited for in an order of this rank's own. */
static uint64_t run_round(bench *at, uint32_t round, uint32_t *common, uint32_t *own) {
  uint32_t first = draw(common, at->n_cases), n = 1 + draw(common, MOST_UNDER_WAY), turn = draw(own, n);
  uint64_t n_wrong = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t c = (first + i) % at->n_cases;
    fill_case(at, c, round);
    pause_at_times(own);
    nxr_comm_start(at->comm, at->cases[c].collective);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t c = (first + (turn + i) % n) % at->n_cases;
    pause_at_times(own);
    nxr_comm_wait(at->comm, at->cases[c].collective);
    n_wrong += count_wrong(at, c, round);
  }
  return n_wrong;
}

static bool stress(nxr_world *world, const nx_plan *plan, bool use_window, double seconds) {
  static bench at;
  uint32_t common = 1, own = 977 * (world->rank + 1), round = 0;
  uint64_t n_wrong = 0;
  time_t end = time(NULL) + (time_t)seconds;
  at = (bench){.world = world, .plan = plan};
  open_bench(&at, use_window, 10);
  add_tiny_cases(&at);
  do {
    n_wrong += run_round(&at, round++, &common, &own);
  } while (round % ROUNDS_PER_VOTE != 0 || !nxr_comm_vote(at.comm, n_wrong > 0 || time(NULL) >= end));
  nxr_world_max(world, &n_wrong, 1);
  if (world->rank == 0)
    printf("%s: %u rounds, %llu wrong\n", use_window ? "window" : "messages", round,
           (unsigned long long)n_wrong);
  close_bench(&at);
  return n_wrong == 0;
}

/* The last rank stays away from one collective. */
static void be_late(nxr_world *world, const nx_plan *plan, bool use_window) {
  static bench at;
  at = (bench){.world = world, .plan = plan};
  open_bench(&at, use_window, 0.5);
  add_case(&at, NX_OP_all_reduce, NX_NONE, NX_f32, NX_f32, 1, 1000, 1, false);
  nxr_comm_beat(at.comm, 7, NX_NONE);
  if (world->rank + 1 == world->size) sleep(30);
  nxr_comm_start(at.comm, at.cases[0].collective);
  nxr_comm_wait(at.comm, at.cases[0].collective);
}

/* A meeting to which one rank comes five deadlines late, with signs of life or without. */
static void meet_late(nxr_world *world, bool first, bool alive) {
  enum { N_SIGNS = 100 };
  world->phase = "for a test";
  world->deadline_s = 1;
  nxr_world_barrier(world);
  bool late = world->rank == (first ? 0 : world->size - 1);
  for (int i = 0; late && i < N_SIGNS; i++) {
    usleep((useconds_t)(5e6 * world->deadline_s / N_SIGNS));
    if (alive) nxr_world_beat();
  }
  nxr_world_barrier(world);
}

/* ---- a device ---- */

enum { MARK_NS = 100000000, N_HANDED = 1 << 14 };
static uint64_t n_recorded, n_looks;
static bool stands_still;
static nxk_event *const some_event = (nxk_event *)&n_recorded;

static nxk_event *no_event_open(nxk_device *device, nxk_fault *fault) {
  (void)device, (void)fault;
  return some_event;
}

static void count_record(nxk_device *device, nxk_queue queue, nxk_event *event) {
  (void)device, (void)queue, (void)event;
  n_recorded++;
}

/* Whatever is asked for comes after a while, so that eight of them take longer than the deadline. */
static bool come_late(nxk_device *device, nxk_event *event) {
  (void)device, (void)event;
  const struct timespec span = {.tv_nsec = n_looks++ < 8 || stands_still ? MARK_NS : 0};
  nanosleep(&span, NULL);
  return !stands_still;
}

static void ignore(nxk_device *device) {
  (void)device;
}

static bool wait_for_device(nxr_world *world, const nx_plan *plan, bool alive) {
  nxk_backend slow = nxk_ref;
  bench at = {.world = world, .plan = plan};
  open_bench(&at, false, 0.5);
  slow.host_addressable = false;
  slow.event_open = no_event_open, slow.event_record = count_record, slow.event_done = come_late;
  slow.synchronize = ignore;
  stands_still = !alive;
  nxr_fault fault = {""};
  at.comm->backend = &slow;
  if (!nxr_lead_open(at.comm, &fault)) return false;
  uint64_t beats = at.comm->pulse->beats;
  for (int i = 0; i < N_HANDED; i++) nxr_comm_enqueued(at.comm);
  bool throttled = n_recorded - at.comm->lead.n_reached <= NXR_LEAD_MARKS && at.comm->lead.n_reached > 0;
  nxr_comm_finish(at.comm);
  bool all = at.comm->lead.n_reached == n_recorded && at.comm->pulse->beats - beats == n_recorded;
  at.comm->backend = &nxk_ref;
  close_bench(&at);
  return throttled && all;
}

static bool run_checks(nxr_world *world, const nx_plan *plan, int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "late") == 0) {
    be_late(world, plan, strcmp(argv[2], "window") == 0);
    return false;
  }
  if (argc == 3 && strcmp(argv[1], "tags") == 0) {
    most_tag = atoi(argv[2]);
    return check_transport(world, plan, false);
  }
  if (argc == 4 && strcmp(argv[1], "meet") == 0) {
    meet_late(world, strcmp(argv[2], "first") == 0, strcmp(argv[3], "alive") == 0);
    return true;
  }
  if (argc == 3 && strcmp(argv[1], "device") == 0)
    return wait_for_device(world, plan, strcmp(argv[2], "alive") == 0);
  if (argc == 3 && strcmp(argv[1], "stress") == 0) {
    double seconds = strtod(argv[2], NULL);
    bool well = stress(world, plan, true, seconds);
    return stress(world, plan, false, seconds / 4) && well;
  }
  bool well = check_transport(world, plan, true);
  return check_transport(world, plan, false) && well;
}

int main(int argc, char **argv) {
  nxr_world world;
  nxr_fault fault = {""};
  if (!nxr_world_open(&world, 60, &fault)) return 1;
  uint32_t tensor = world.size % 2 == 0 ? 2 : 1;
  static const char strings[] = "\0tensor\0data";
  const nx_atom atoms[] = {{1, tensor, 1, 0}, {8, world.size / tensor, tensor, 0}};
  const nx_group groups[] = {{1, 1, tensor, 0}, {8, 2, world.size / tensor, 0}};
  const nx_arena_record arenas[] = {{NX_ARENA_comm, NX_ARENA_SHARED, ARENA_BYTES, 0}};
  const nx_run run = {.n_ranks = world.size, .n_hosts = 1, .n_threads = 1, .n_slots = 1};
  const nx_chunk chunk = {.n_slots = 1, .arena_bytes = {[NX_ARENA_comm] = ARENA_BYTES}};
  nx_plan plan = {
      .strings = strings, .chunks = &chunk, .atoms = atoms, .groups = groups, .arenas = arenas, .run = &run};
  plan.n[NX_SECTION_ATOMS] = plan.n[NX_SECTION_GROUPS] = 2;
  plan.n[NX_SECTION_ARENAS] = plan.n[NX_SECTION_CHUNKS] = 1;
  bool well = run_checks(&world, &plan, argc, argv);
  nxr_world_close(&world);
  return well ? 0 : 1;
}
