/* SPDX-License-Identifier: Apache-2.0 */
/* mpiexec -n N comm_speed [window|messages] [ROUNDS] [WAY]. Collectives of nxrun over all ranks beside MPI's
 * own of the same bytes, in fp32, in turns; prints the operator, the bytes of its larger side, the slowest
 * rank's microseconds in the round that a tenth of the rounds are below (others may load the machine), and
 * how many times faster nxrun is. Gathers are in place, as in plans. WAY is one of nx_way's for messages;
 * without it, the one that was fastest once;
 * `beneath` measures instead how much is hidden beneath work. */
#include "runtime/comm/comm.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARENA_BYTES = 256 << 20, LARGEST = 16 << 20 /* elements */, MAX_ROUNDS = 101, FEW = 1 << 17 };

typedef struct bench {
  nxr_world *world;
  nxr_arenas arenas;
  nxr_comm *comm;
  const nxk_backend *backend;
  nxk_device *device;
  float *x, *y;
  int way; /* -1: the fastest */
} bench;

static void fail(const char *why) {
  fprintf(stderr, "comm_speed: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void open_bench(bench *at, const nx_plan *plan, bool use_window) {
  const nxk_device_options options = {
      .n_threads = 1, .target = NX_TARGET_CPU_AVX2, .workspace_bytes = 1 << 20};
  nxr_fault fault = {""};
  nxk_fault why = {""};
  at->backend = nxk_backend_find("cpu");
  if (!at->backend) at->backend = &nxk_ref;
  if (!at->backend->open(&options, &at->device, &why)) fail(why.text);
  if (!nxr_arenas_open(at->world, plan, at->backend, at->device, nxr_comm_control_bytes(plan), use_window,
                       &at->arenas, &fault))
    fail(fault.text);
  nxr_world_barrier(at->world);
  if (!nxr_comm_open(at->world, plan, at->backend, at->device, &at->arenas, 60, &at->comm, &fault))
    fail(fault.text);
  at->x = at->arenas.base[NX_ARENA_comm], at->y = at->x + LARGEST;
  for (size_t i = 0; i < LARGEST; i++) at->x[i] = (float)(i % 1000);
}

/* `n` elements of the larger side. */
static nxr_collective *bind(bench *at, nx_op op, uint64_t n, nx_way way) {
  bool gathers = op == NX_OP_all_gather;
  uint64_t axis = gathers ? n / at->world->size : n;
  const nxr_collective_spec spec = {.op = op,
                                    .way = way,
                                    .group = NX_NONE,
                                    .x_dtype = NX_f32,
                                    .y_dtype = NX_f32,
                                    .x = gathers ? at->y + at->world->rank * axis : at->x,
                                    .y = at->y,
                                    .outer = 1,
                                    .axis = axis,
                                    .inner = 1,
                                    .operator= NX_NONE };
  nxr_fault fault = {""};
  nxr_collective *collective = nxr_comm_bind(at->comm, &spec, &fault);
  if (!collective) fail(fault.text);
  return collective;
}

static double slowest_us(double start) {
  double own = 1e6 * (MPI_Wtime() - start), most;
  MPI_Allreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static double run_own(bench *at, nxr_collective *collective) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  nxr_comm_start(at->comm, collective);
  nxr_comm_wait(at->comm, collective);
  return slowest_us(start);
}

static double run_mpi(const bench *at, nx_op op, uint64_t n) {
  int part = (int)(n / at->world->size);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  if (op == NX_OP_all_reduce) MPI_Allreduce(at->x, at->y, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (op == NX_OP_all_gather)
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, at->y, part, MPI_FLOAT, MPI_COMM_WORLD);
  else MPI_Reduce_scatter_block(at->x, at->y, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return slowest_us(start);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* What a tenth of the rounds are below. */
static double lower_decile(double *us, int n) {
  qsort(us, (size_t)n, sizeof *us, compare);
  return us[n / 10];
}

/* The same on all ranks. In turns, and so often that MPI's own buffers have been written before. */
static nx_way fastest(bench *at, nx_op op, uint64_t n, int rounds) {
  nxr_collective *ways[NX_N_WAYS] = {NULL};
  double least[NX_N_WAYS];
  nx_way best = NX_WAY_DIRECT;
  for (nx_way way = 0; way < NX_N_WAYS; way++)
    if (nx_op_has_way(op, way)) ways[way] = bind(at, op, n, way);
  for (int round = 0, n_rounds = n > FEW ? 4 : 2 * rounds; round < n_rounds; round++)
    for (nx_way way = 0; way < NX_N_WAYS; way++) {
      double us = ways[way] ? run_own(at, ways[way]) : 0;
      if (round == 0 || us < least[way]) least[way] = us;
    }
  for (nx_way way = 0; way < NX_N_WAYS; way++)
    if (ways[way] && least[way] < least[best]) best = way;
  return best;
}

static void measure(bench *at, nx_op op, uint64_t n, int n_rounds) {
  double own[MAX_ROUNDS], mpi[MAX_ROUNDS];
  if (at->arenas.segments) at->way = NX_WAY_DIRECT; /* none is used */
  nx_way way = at->way < 0                          ? fastest(at, op, n, n_rounds)
               : nx_op_has_way(op, (nx_way)at->way) ? (nx_way)at->way
                                                    : 0;
  nxr_collective *collective = bind(at, op, n, way);
  for (int round = -2; round < n_rounds; round++) { /* two that warm up */
    double mine = run_own(at, collective), other = run_mpi(at, op, n);
    if (round >= 0) own[round] = mine, mpi[round] = other;
  }
  double mine = lower_decile(own, n_rounds), other = lower_decile(mpi, n_rounds);
  if (at->world->rank > 0) return;
  printf("%-15s %9llu bytes  %-8s %11.1f us  MPI %11.1f us  %6.2fx\n", nx_op_find(op)->name,
         (unsigned long long)(4 * n), at->arenas.segments ? "window" : nx_way_name(way), mine, other,
         other / mine);
  fflush(stdout);
}

/* How much of a collective is hidden beneath work that takes as long and needs no core, as an accelerator's:
 * what is left of the wait behind it. In eight pieces, between which the rank looks at its collectives, as
 * between operators. */
static void measure_beneath(bench *at, nx_op op, uint64_t n, int n_rounds) {
  double alone[MAX_ROUNDS], beneath[MAX_ROUNDS];
  nxr_collective *collective = bind(at, op, n, NX_WAY_DIRECT);
  for (int round = 0; round < n_rounds; round++) alone[round] = run_own(at, collective);
  double work = lower_decile(alone, n_rounds);
  MPI_Bcast(&work, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int round = 0; round < n_rounds; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    nxr_comm_start(at->comm, collective);
    double start = MPI_Wtime();
    for (int piece = 0; piece < 8; piece++) {
      nxr_comm_progress(at->comm);
      usleep((useconds_t)(work / 8));
    }
    double worked = 1e6 * (MPI_Wtime() - start);
    nxr_comm_wait(at->comm, collective);
    beneath[round] = slowest_us(begin) - worked;
  }
  double left = lower_decile(beneath, n_rounds);
  if (at->world->rank == 0)
    printf("%-15s %9llu bytes  alone %9.1f us, behind as much work %9.1f us: %3.0f %% hidden\n",
           nx_op_find(op)->name, (unsigned long long)(4 * n), work, left, 100 * (1 - left / work));
}

int main(int argc, char **argv) {
  nxr_world world;
  nxr_fault fault = {""};
  bool use_window = argc < 2 || strcmp(argv[1], "messages") != 0;
  int n_rounds = argc > 2 ? atoi(argv[2]) : 31;
  if (n_rounds < 1 || n_rounds > MAX_ROUNDS) n_rounds = MAX_ROUNDS;
  if (!nxr_world_open(&world, 60, &fault)) return 1;
  const nx_atom atoms[] = {{0, world.size, 1, 0}};
  const nx_arena_record arenas[] = {{NX_ARENA_comm, NX_ARENA_SHARED, ARENA_BYTES, 0}};
  const nx_run run = {.n_ranks = world.size, .n_hosts = 1, .n_threads = 1, .n_slots = 1,
                      .target = NX_TARGET_CPU_AVX2};
  const nx_chunk chunk = {.n_slots = 1, .arena_bytes = {[NX_ARENA_comm] = ARENA_BYTES}};
  nx_plan plan = {.strings = "", .chunks = &chunk, .atoms = atoms, .arenas = arenas, .run = &run};
  plan.n[NX_SECTION_ATOMS] = plan.n[NX_SECTION_ARENAS] = plan.n[NX_SECTION_CHUNKS] = 1;
  static bench at;
  at.world = &world;
  at.way = -1;
  for (nx_way way = 0; argc > 3 && way < NX_N_WAYS; way++)
    if (strcmp(argv[3], nx_way_name(way)) == 0) at.way = (int)way;
  open_bench(&at, &plan, use_window);
  static const nx_op ops[] = {NX_OP_all_reduce, NX_OP_reduce_scatter, NX_OP_all_gather};
  static const uint64_t sizes[] = {64, 4096, 65536, 1 << 20, 1 << 23};
  for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      if (argc > 3 && strcmp(argv[3], "beneath") == 0) measure_beneath(&at, ops[op], sizes[i], n_rounds);
      else measure(&at, ops[op], sizes[i], n_rounds);
  nxr_comm_close(at.comm);
  nxr_arenas_close(&at.arenas);
  at.backend->close(at.device);
  nxr_world_close(&world);
  return 0;
}
