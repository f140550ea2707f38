/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives on real ranks: mpiexec -n N comm_check [late window|late messages|stress SECONDS|tags N|meet
 * ...|aside|device alive|device silent].
 *
 * Every operator, type, axis and a spread of sizes, over a tensor group, a data group and all ranks, through
 * the shared window and through messages, against sums made here in coordinate order; bit for bit, with
 * several under way at once, waited for in another order than they were started. Nothing may be allocated
 * after bind; in messages, nothing by nxrun itself (MPI fills its pools when they are first used).
 *
 * With `late` the last rank never comes, and the others must end by the deadline. With `stress` the ranks run
 * tiny collectives against each other without ever meeting in between, each with pauses of its own, and write
 * into the operands again as soon as a wait allows: a flag that comes early shows as a wrong number, one that
 * is lost as a deadline. With `tags N` MPI has none above N. With `aside` the last
 * rank comes late, and what MPI keeps for it until then is no more than was said. With `device` a rank waits
 * for a device that works longer than the deadline, or stands still. */
#include "tests/e2e/comm_bench.h"
#include "tests/e2e/count_allocations.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N_REPEATS = 3 };
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
    if (at->cases[c].spec.group == NX_NONE) bench_fill_case(at, started[n++] = c, round);
  for (uint32_t i = 0; at->world->rank == 0 && i < n; i++)
    nxr_comm_start(at->comm, at->cases[started[i]].collective);
  nxr_world_barrier(at->world);
  for (uint32_t i = 0; at->world->rank > 0 && i < n; i++)
    nxr_comm_start(at->comm, at->cases[started[i]].collective);
  for (uint32_t i = 0; i < n; i++) {
    nxr_comm_wait(at->comm, at->cases[started[i]].collective);
    n_wrong += bench_count_wrong(at, started[i], round);
  }
  return n_wrong;
}

static bool check_transport(nxr_world *world, const nx_plan *plan, bool use_window) {
  static bench at;
  at = (bench){.world = world, .plan = plan};
  open_bench(&at, use_window, 60);
  bench_add_cases(&at);
  const uint32_t n_small = at.n_cases;
  bench_add_large(&at);
  const uint32_t n_all = at.n_cases;
  uint64_t n_wrong = 0, n_allocated = 0;
  for (uint32_t round = 0; round < N_REPEATS; round++) {
    at.n_cases = round + 1 < N_REPEATS ? n_small : n_all;
    for (uint32_t c = 0; c < at.n_cases; c++) bench_fill_case(&at, c, round);
    nxr_comm_vote(at.comm, false);
    uint64_t before = count_allocations(use_window && world->n_hosts == 1);
    bench_run_cases(&at);
    bool voted = nxr_comm_vote(at.comm, world->rank == round % world->size);
    bool quiet = !nxr_comm_vote(at.comm, false);
    n_allocated += count_allocations(use_window && world->n_hosts == 1) - before;
    n_wrong += (uint64_t)!voted + !quiet + !votes_take_few(&at, use_window);
    for (uint32_t c = 0; c < at.n_cases; c++) n_wrong += bench_count_wrong(&at, c, round);
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
      bench_add_case(at, NX_OP_all_reduce, groups[g], NX_f32, NX_f32, 1, sizes[s], 1, s % 2);
      bench_add_case(at, NX_OP_reduce_scatter, groups[g], NX_f32, NX_f32, 1, sizes[s], 1, false);
      bench_add_case(at, NX_OP_all_gather, groups[g], NX_f32, NX_f32, 1, sizes[s], 1, false);
      bench_add_all_to_all(at, groups[g], NX_f32, 2, 3, sizes[s], sizes[s]);
      bench_add_case(at, NX_OP_shift, groups[g], NX_f32, NX_f32, 1, sizes[s], 1, false);
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
    bench_fill_case(at, c, round);
    pause_at_times(own);
    nxr_comm_start(at->comm, at->cases[c].collective);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t c = (first + (turn + i) % n) % at->n_cases;
    pause_at_times(own);
    nxr_comm_wait(at->comm, at->cases[c].collective);
    n_wrong += bench_count_wrong(at, c, round);
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
  bench_add_case(&at, NX_OP_all_reduce, NX_NONE, NX_f32, NX_f32, 1, 1000, 1, false);
  nxr_comm_beat(at.comm, 7, NX_NONE);
  if (world->rank + 1 == world->size) sleep(30);
  nxr_comm_start(at.comm, at.cases[0].collective);
  nxr_comm_wait(at.comm, at.cases[0].collective);
}

static uint64_t anonymous_bytes(void) {
  char line[256];
  unsigned long long kibibytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "RssAnon: %llu", &kibibytes) == 1) break;
  if (file) fclose(file);
  return kibibytes << 10;
}

/* The last rank looks at its messages, and wants none of them for a while. */
static bool keep_aside(nxr_world *world, const nx_plan *plan) {
  enum { N_GATHERED = 3 << 17 /* fp32: less than is announced */, N_LOOKS = 3000, POOLS = 2 << 20 };
  static bench at;
  at = (bench){.world = world, .plan = plan};
  open_bench(&at, true, 60);
  for (uint32_t c = 0; c < MOST_UNDER_WAY; c++) {
    bench_add_case(&at, NX_OP_all_gather, NX_NONE, NX_f32, NX_f32, 1, N_GATHERED, 1, false);
    bench_fill_case(&at, c, 0);
    memset(at.cases[c].spec.y, 1, at.cases[c].n_y * sizeof(float));
  }
  nxr_comm_vote(at.comm, false);
  uint64_t said = nxr_comm_measure(at.comm).unwanted_bytes, before = anonymous_bytes(), n_wrong = 0;
  bool late = world->rank + 1 == world->size;
  for (uint32_t c = 0; !late && c < MOST_UNDER_WAY; c++) nxr_comm_start(at.comm, at.cases[c].collective);
  for (int i = 0; late && i < N_LOOKS; i++) {
    int is_there;
    MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    usleep(500);
  }
  uint64_t kept = anonymous_bytes() - before;
  for (uint32_t c = 0; late && c < MOST_UNDER_WAY; c++) nxr_comm_start(at.comm, at.cases[c].collective);
  for (uint32_t c = 0; c < MOST_UNDER_WAY; c++) {
    nxr_comm_wait(at.comm, at.cases[c].collective);
    n_wrong += bench_count_wrong(&at, c, 0);
  }
  bool well = !late || (kept <= said + said / 8 + POOLS && kept > said / 2);
  if (late)
    printf("aside: %llu bytes kept of %llu said, %llu wrong\n", (unsigned long long)kept,
           (unsigned long long)said, (unsigned long long)n_wrong);
  close_bench(&at);
  return well && n_wrong == 0;
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
  if (argc == 2 && strcmp(argv[1], "aside") == 0) return keep_aside(world, plan);
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
