/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/e2e/comm_bench.h"

#include "schema/bf16.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SIZES = 6, N_LARGE = 1100003 };

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

void bench_add_case(bench *at, nx_op op, uint32_t group, nx_dtype x_dtype, nx_dtype y_dtype, uint64_t outer,
                    uint64_t axis, uint64_t inner, bool in_place) {
  add_spec(at,
           (nxr_collective_spec){.op = op, .group = group, .x_dtype = x_dtype,
                                 .y_dtype = y_dtype, .outer = outer, .axis = axis, .inner = inner,
                                 .operator = NX_NONE},
           in_place);
}

/* A member's part is outer x axis x inner; along the dimension that grows, y_run elements of it lie
 * together. */
void bench_add_all_to_all(bench *at, uint32_t group, nx_dtype dtype, uint64_t outer, uint64_t axis,
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
  bench_add_all_to_all(at, group, dtype, 3, few, 5, 3 * few * 5);
  bench_add_all_to_all(at, group, dtype, 2, 3, few * 4, few);
  bench_add_all_to_all(at, group, dtype, 1, n, 2, 2);
  bench_add_all_to_all(at, group, dtype, 1, n, 3, n * 3);
  bench_add_all_to_all(at, group, dtype, 4, few, 1, few);
  bench_add_case(at, NX_OP_shift, group, dtype, dtype, 1, n, 1, false);
}

/* What is moved in each way that it can be moved. */
static void add_ways(bench *at, uint32_t group, nx_dtype x_dtype, nx_dtype y_dtype, uint64_t n,
                     bool in_place) {
  for (nx_way way = 1; way < NX_N_WAYS; way++) {
    nxr_collective_spec spec = {.op = NX_OP_all_reduce,
                                .way = way,
                                .group = group,
                                .x_dtype = x_dtype,
                                .y_dtype = y_dtype,
                                .outer = 1,
                                .axis = n,
                                .inner = 1,
                                .operator= NX_NONE };
    add_spec(at, spec, in_place);
    spec.op = NX_OP_all_gather, spec.y_dtype = x_dtype, spec.inner = 3;
    add_spec(at, spec, false);
  }
}

void bench_add_cases(bench *at) {
  static const uint64_t sizes[N_SIZES] = {1, 5, 64, 333, 4096, 20011};
  static const nx_dtype types[][2] = {
      {NX_f32, NX_f32}, {NX_bf16, NX_bf16}, {NX_f32, NX_bf16}, {NX_f64, NX_f64}};
  const uint32_t groups[] = {0, 1, NX_NONE};
  for (size_t g = 0; g < 3; g++)
    for (size_t t = 0; t < 4; t++)
      for (size_t s = t; s < N_SIZES; s += 2) {
        uint64_t n = sizes[s];
        bench_add_case(at, NX_OP_all_reduce, groups[g], types[t][0], types[t][1], 1, n, 1,
                       s % 4 == 0 && t != 2);
        bench_add_case(at, NX_OP_reduce_scatter, groups[g], types[t][0], types[t][1], 1, n, 3, false);
        bench_add_case(at, NX_OP_reduce_scatter, groups[g], types[t][0], types[t][1], 5, n % 50 + 1, 2,
                       false);
        bench_add_case(at, NX_OP_all_gather, groups[g], types[t][0], types[t][0], 1, n, 1, false);
        bench_add_case(at, NX_OP_all_gather, groups[g], types[t][0], types[t][0], 3, n % 40 + 1, 7, false);
        if (t < 2) add_exchanges(at, groups[g], types[t][0], n);
        if (t != 1) add_ways(at, groups[g], types[t][0], types[t][1], n, s % 4 == 0 && t == 0);
      }
}

/* More than goes in one message. */
void bench_add_large(bench *at) {
  bench_add_case(at, NX_OP_all_reduce, NX_NONE, NX_f32, NX_f32, 1, N_LARGE, 1, true);
  bench_add_case(at, NX_OP_reduce_scatter, 0, NX_f32, NX_bf16, 1, N_LARGE, 1, false);
  bench_add_all_to_all(at, 0, NX_f32, 1, N_LARGE / 2, 2, 2);
}

void bench_fill_case(const bench *at, uint32_t c, uint32_t round) {
  const nxr_collective_spec *spec = &at->cases[c].spec;
  for (uint64_t i = 0; i < at->cases[c].n_x; i++)
    store(spec->x, spec->x_dtype, i, held(spec->x_dtype, at->world->rank, i, c, round));
}

/* Starts in order, in windows of different depth; waits in another. */
void bench_run_cases(bench *at) {
  for (uint32_t first = 0; first < at->n_cases;) {
    uint32_t depth = 1 + first % 6, end = first + depth < at->n_cases ? first + depth : at->n_cases;
    for (uint32_t c = first; c < end; c++) nxr_comm_start(at->comm, at->cases[c].collective);
    for (uint32_t c = end; c-- > first;)
      nxr_comm_wait(at->comm, at->cases[(at->world->rank % 2 ? c : first + end - 1 - c)].collective);
    first = end;
  }
}

uint64_t bench_count_wrong(const bench *at, uint32_t c, uint32_t round) {
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

void open_bench(bench *at, bool use_window, double deadline_s) {
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

void close_bench(bench *at) {
  nxr_comm_close(at->comm);
  nxr_arenas_close(&at->arenas);
  nxk_ref.close(at->device);
}
