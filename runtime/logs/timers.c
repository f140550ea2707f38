/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/timers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOWEST_OPERATORS = 6, RANKS_AT_ONCE = 256, OTHERS = 0, SLOWEST = NX_OP_END };
static const char *const names_of[NXR_N_TIMERS] = {"data", "passes", "update", "wait", "save"};

bool nxr_timers_open(nxr_timers *timers, const nx_run_names *names, uint32_t n_ranks, nxr_fault *fault) {
  *timers =
      (nxr_timers){.used = names->timers > 0 || names->stragglers > 0,
                   .by_operator = names->timers > 1 || names->stragglers > 0};
  if (timers->used) timers->of_ranks = calloc(n_ranks, sizeof *timers->of_ranks);
  return !timers->used || timers->of_ranks || nxr_fault_set(fault, "out of memory");
}

void nxr_timers_close(nxr_timers *timers) {
  free(timers->of_ranks);
  timers->of_ranks = NULL;
}

/* One number of each rank, for all ranks. */
static void gather(nxr_world *world, double own, double *all) {
  memset(all, 0, world->size * sizeof *all);
  all[world->rank] = own;
  for (uint32_t first = 0; first < world->size; first += RANKS_AT_ONCE) {
    uint32_t n = world->size - first < RANKS_AT_ONCE ? world->size - first : RANKS_AT_ONCE;
    nxr_world_sum(world, all + first, n);
  }
}

static void find_ends(const double *all, uint32_t n, double *least, double *most) {
  *least = *most = all[0];
  for (uint32_t i = 1; i < n; i++) {
    if (all[i] < *least) *least = all[i];
    if (all[i] > *most) *most = all[i];
  }
}

static void print_over(const char *name, const double *all, uint32_t n, uint8_t over) {
  double least, most;
  find_ends(all, n, &least, &most);
  printf("  %s", name);
  if (over == NX_TIMERS_MAX) printf(" %.2f", 1e3 * most);
  if (over == NX_TIMERS_MINMAX) printf(" %.2f..%.2f", 1e3 * least, 1e3 * most);
  for (uint32_t i = 0; over == NX_TIMERS_ALL && i < n; i++) printf(i ? ",%.2f" : " %.2f", 1e3 * all[i]);
}

static void report_phases(const nxr_timers *timers, nxr_world *world, const nx_run_names *names, double *all,
                          nxr_events_file *events) {
  if (world->rank == 0) printf("  ms a step:");
  for (int timer = 0; timer < NXR_N_TIMERS; timer++) {
    double least, most;
    gather(world, timers->spent_s[timer] / (double)timers->n_steps, all);
    if (world->rank != 0) continue;
    print_over(names_of[timer], all, world->size, names->timers_over);
    find_ends(all, world->size, &least, &most);
    if (events && names->tensorboard_shows & NX_SHOWS_TIMERS)
      nxr_points_add(&events->points, "timers", names_of[timer], 1e3 * most);
  }
  if (world->rank == 0) putchar('\n');
}

/* Of rank 0, the kinds that take longest. */
static void report_operators(const nxr_timers *timers) {
  bool said[NX_OP_END] = {false};
  printf("  ms a step of rank 0:");
  for (int i = 0; i < SLOWEST_OPERATORS; i++) {
    int longest = 0;
    for (int op = 1; op < NX_OP_END; op++)
      if (!said[op] && timers->operators_s[op] > (said[longest] ? 0 : timers->operators_s[longest]))
        longest = op;
    if (said[longest] || timers->operators_s[longest] <= 0) break;
    said[longest] = true;
    printf("  %s %.2f", nx_op_find((nx_op)longest)->name,
           1e3 * timers->operators_s[longest] / (double)timers->n_steps);
  }
  putchar('\n');
}

typedef struct pace {
  double seconds;
  uint32_t rank;
} pace;

static int by_pace(const void *left, const void *right) {
  const pace *a = left, *b = right;
  if (a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void print_ranks(const nxr_world *world, const char *what, const pace *first, uint32_t n) {
  printf("  %s:", what);
  for (uint32_t i = 0; i < n; i++)
    printf("  rank %u (%s) %.2f ms", first[i].rank, nxr_world_host(world, first[i].rank),
           1e3 * first[i].seconds);
  putchar('\n');
}

static void print_paces(const nxr_world *world, uint32_t n_named, const double *all) {
  pace *paces = calloc(world->size, sizeof *paces);
  if (paces == NULL) return;
  for (uint32_t i = 0; i < world->size; i++) paces[i] = (pace){all[i], i};
  qsort(paces, world->size, sizeof *paces, by_pace);
  uint32_t n = n_named < world->size ? n_named : world->size;
  print_ranks(world, "fastest", paces, n);
  print_ranks(world, "slowest", paces + world->size - n, n);
  free(paces);
}

/* The kind of operator that the slowest rank is behind the others' mean with most. */
static void report_slow_operator(const nxr_timers *timers, nxr_world *world, uint32_t slowest) {
  double spent[2 * NX_OP_END] = {0};
  bool own = world->rank == slowest;
  memcpy(spent + (own ? SLOWEST : OTHERS), timers->operators_s, sizeof timers->operators_s);
  nxr_world_sum(world, spent + OTHERS, NX_OP_END);
  nxr_world_sum(world, spent + SLOWEST, NX_OP_END);
  if (world->rank != 0 || world->size == 1) return;
  int worst = 0;
  double most = 0, n_others = world->size - 1, n_steps = (double)timers->n_steps;
  for (int op = 1; op < NX_OP_END; op++) {
    double behind = spent[SLOWEST + op] - spent[OTHERS + op] / n_others;
    if (behind > most) most = behind, worst = op;
  }
  if (worst == 0) return;
  printf("  rank %u is slow at %s: %.2f ms a step, the others %.2f\n", slowest,
         nx_op_find((nx_op)worst)->name, 1e3 * spent[SLOWEST + worst] / n_steps,
         1e3 * spent[OTHERS + worst] / n_others / n_steps);
}

/* By what a rank computes: who is waited for waits least. */
static void report_stragglers(const nxr_timers *timers, nxr_world *world, uint32_t n_named, double *all) {
  const double *spent = timers->spent_s;
  gather(
      world,
      (spent[NXR_TIMER_DATA] + spent[NXR_TIMER_PASSES] + spent[NXR_TIMER_UPDATE]) / (double)timers->n_steps,
      all);
  uint32_t slowest = 0;
  for (uint32_t i = 1; i < world->size; i++)
    if (all[i] >= all[slowest]) slowest = i;
  if (world->rank == 0) print_paces(world, n_named, all);
  report_slow_operator(timers, world, slowest);
}

void nxr_timers_report(nxr_timers *timers, nxr_world *world, const nx_run_names *names, uint64_t step,
                       nxr_events_file *events) {
  double *all = timers->of_ranks;
  if (all == NULL || timers->n_steps == 0) return;
  if (names->timers > 0) report_phases(timers, world, names, all, events);
  if (names->timers > 1 && world->rank == 0) report_operators(timers);
  if (names->stragglers > 0) report_stragglers(timers, world, names->stragglers, all);
  if (world->rank == 0) {
    fflush(stdout);
    if (events && names->tensorboard_shows & NX_SHOWS_TIMERS) nxr_events_write(events, step);
  }
  memset(timers->spent_s, 0, sizeof timers->spent_s);
  memset(timers->operators_s, 0, sizeof timers->operators_s);
  timers->n_steps = 0;
}
