/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of comm_check, with operands that every rank can work out for every other. */
#ifndef NX_TESTS_COMM_BENCH_H
#define NX_TESTS_COMM_BENCH_H

#include "runtime/comm/comm_transport.h"

enum { N_CASES_MAX = 512, ARENA_BYTES = 200 << 20 };

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

void bench_add_case(bench *at, nx_op op, uint32_t group, nx_dtype x_dtype, nx_dtype y_dtype, uint64_t outer,
                    uint64_t axis, uint64_t inner, bool in_place);
void bench_add_all_to_all(bench *at, uint32_t group, nx_dtype dtype, uint64_t outer, uint64_t axis,
                          uint64_t inner, uint64_t y_run);
void bench_add_cases(bench *at);
void bench_add_large(bench *at);
void bench_fill_case(const bench *at, uint32_t c, uint32_t round);
void bench_run_cases(bench *at);
uint64_t bench_count_wrong(const bench *at, uint32_t c, uint32_t round);
void open_bench(bench *at, bool use_window, double deadline_s);
void close_bench(bench *at);

#endif
