/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/calibrate/calibrate.h"

#include "runtime/files/replace.h"
#include "runtime/world/clock.h"
#include "runtime/world/launch.h"
#include "schema/targets.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEGINNING "# nxrun --calibrate"
enum { GROUP_INSIDE, GROUP_BETWEEN, N_PASSES = 3, LONG_PASS_S = 8, DEADLINE_S = 60 };
static const nx_dtype product_types[NXR_CALIBRATE_TYPES] = {NX_f32, NX_bf16};
static const double MUCH_SWING = 1.5; /* between passes: the machine does something else, too */

/* A plan of nothing but what memory and collectives need: ranks of a host, hosts, three arenas. */
typedef struct bare_plan {
  nx_run run;
  nx_atom atoms[2];
  nx_group groups[2];
  nx_arena_record arenas[3];
  nx_chunk chunk;
  nx_plan plan;
} bare_plan;

typedef struct calibration {
  const nxr_calibrate_options *options;
  bare_plan bare;
  nxr_arenas arenas;
  nxr_bench bench;
  nxr_fault fault;
  nxr_measured passes[N_PASSES];
  int n_passes;
  nxr_replacing out; /* on rank 0 */
} calibration;

uint32_t nxr_calibrate_threads(const nxr_calibrate_options *options) {
  cpu_set_t cores;
  if (options->n_threads || sched_getaffinity(0, sizeof cores, &cores) != 0)
    return options->n_threads ? options->n_threads : 1;
  uint32_t n = (uint32_t)CPU_COUNT(&cores) / nxr_launch_local_ranks();
  return n ? n : 1;
}

/* ---- set up ---- */

static bool agree(calibration *c) {
  return nxr_world_agree(c->bench.world, &c->fault);
}

static void fill_plan(calibration *c) {
  static const char strings[] = "\0inside\0between";
  const nxr_world *world = c->bench.world;
  bare_plan *bare = &c->bare;
  uint32_t n_local = world->local_size;
  bare->run = (nx_run){.n_ranks = world->size, .n_hosts = world->n_hosts, .n_slots = 1};
  bare->run.n_threads = nxr_calibrate_threads(c->options);
  bare->atoms[0] = (nx_atom){.name = 1, .size = n_local, .stride = 1};
  bare->atoms[1] = (nx_atom){.name = 8, .size = world->n_hosts, .stride = n_local};
  bare->groups[GROUP_INSIDE] = (nx_group){.name = 1, .atoms = 1, .size = n_local};
  bare->groups[GROUP_BETWEEN] = (nx_group){.name = 8, .atoms = 2, .size = world->n_hosts};
  bare->arenas[0] = (nx_arena_record){.kind = NX_ARENA_scratch, .bytes = nxr_bench_scratch_bytes()};
  bare->arenas[1] =
      (nx_arena_record){.kind = NX_ARENA_comm, .flags = NX_ARENA_SHARED, .bytes = nxr_bench_comm_bytes()};
  bare->arenas[2] = (nx_arena_record){.kind = NX_ARENA_slot, .bytes = nxr_bench_still_bytes()};
  bare->chunk.n_slots = 1;
  bare->chunk.arena_bytes[NX_ARENA_slot] = bare->arenas[2].bytes;
  bare->chunk.arena_bytes[NX_ARENA_scratch] = bare->arenas[0].bytes;
  bare->chunk.arena_bytes[NX_ARENA_comm] = bare->arenas[1].bytes;
  bare->plan = (nx_plan){.strings = strings,
                         .run = &bare->run,
                         .atoms = bare->atoms,
                         .groups = bare->groups,
                         .arenas = bare->arenas,
                         .chunks = &bare->chunk};
  bare->plan.n[NX_SECTION_CHUNKS] = 1;
  bare->plan.n[NX_SECTION_ATOMS] = bare->plan.n[NX_SECTION_GROUPS] = 2;
  bare->plan.n[NX_SECTION_ARENAS] = 3;
}

/* Hosts must have equally many ranks, in order: else their number means nothing. */
static bool check_tiling(calibration *c) {
  const nxr_world *world = c->bench.world;
  if (world->local_size * world->n_hosts != world->size ||
      world->hosts[world->rank] != world->rank / world->local_size)
    nxr_fault_set(&c->fault,
                  "the ranks are not laid on the hosts in order and in equal numbers: give mpiexec -ppn");
  return agree(c);
}

/* ref runs what is made for any processor. */
static bool is_for(const nx_target_row *target, const nxk_backend *backend) {
  return backend == &nxk_ref ? !target->on_device : strcmp(target->backend, backend->name) == 0;
}

/* The best target that this device has: the last one. */
static bool open_device(calibration *c) {
  const char *name = c->options->backend;
  nxr_bench *bench = &c->bench;
  nxk_fault why = {""};
  bench->backend = nxk_backend_find(name ? name : "cpu");
  if (!bench->backend && !name) bench->backend = &nxk_ref;
  if (!bench->backend) return nxr_fault_set(&c->fault, "this nxrun has no backend %s", name);
  for (size_t i = sizeof nx_targets / sizeof *nx_targets; i-- > 0 && !bench->device;) {
    const nx_target_row *target = &nx_targets[i];
    const nxk_device_options options = {.n_threads = c->bare.run.n_threads, .target = target->target,
                                        .device = c->options->device,
                                        .local_rank = bench->world->local_rank,
                                        .local_size = bench->world->local_size};
    if (!is_for(target, bench->backend)) continue;
    c->bare.run.target = target->target;
    if (!bench->backend->open(&options, &bench->device, &why)) bench->device = NULL;
  }
  return bench->device || nxr_fault_set(&c->fault, "backend %s: %s", bench->backend->name, why.text);
}

static bool open_bench(calibration *c) {
  nxr_bench *bench = &c->bench;
  const nx_plan *plan = &c->bare.plan;
  nxr_world_pin(bench->world, plan);
  open_device(c);
  if (!agree(c)) return false;
  bool window = bench->world->local_size > 1 && bench->backend->host_addressable && !c->options->force_p2p;
  nxr_arenas_open(bench->world, plan, bench->backend, bench->device, nxr_comm_control_bytes(plan), window,
                  &c->arenas, &c->fault);
  if (!agree(c)) return false;
  nxr_comm_open(bench->world, plan, bench->backend, bench->device, &c->arenas, DEADLINE_S, &bench->comm,
                &c->fault);
  nxr_arenas_frame(&c->arenas, plan, 0, 0, bench->frame.base);
  return agree(c);
}

static void close_bench(calibration *c) {
  nxr_comm_close(c->bench.comm);
  nxr_arenas_close(&c->arenas);
  if (c->bench.device) c->bench.backend->close(c->bench.device);
}

/* ---- measuring ---- */

static bool measure_pass(calibration *c, nxr_measured *m) {
  nxr_bench *bench = &c->bench;
  uint32_t n_local = c->bare.groups[GROUP_INSIDE].size, n_hosts = c->bare.groups[GROUP_BETWEEN].size;
  for (int type = 0; type < NXR_CALIBRATE_TYPES; type++)
    if (!nxr_measure_products(bench, product_types[type], &m->products[type], &c->fault)) return false;
  for (int type = 0; type < NXR_CALIBRATE_TYPES; type++)
    if (!nxr_measure_rates(bench, product_types[type], &m->operators[type], &c->fault)) return false;
  if (!nxr_measure_operator(bench, &m->operator_s, &c->fault)) return false;
  if (!nxr_measure_memory(bench, &m->memory, &c->fault)) return false;
  if (n_local > 1 && !nxr_measure_link(bench, GROUP_INSIDE, n_local, true, &m->inside, &c->fault))
    return false;
  m->inside.taken = -1; /* a host's ranks copy for themselves, and wait for it */
  return n_hosts == 1 || (nxr_measure_link(bench, GROUP_BETWEEN, n_hosts, false, &m->between, &c->fault) &&
                          nxr_measure_taken(bench, GROUP_BETWEEN, n_hosts, &m->between.taken, &c->fault));
}

/* Of a backend that is slow one pass says enough. */
static bool measure_all(calibration *c) {
  double start = nxr_clock_s();
  for (int n_passes = 1; c->n_passes < n_passes; c->n_passes++) {
    if (!measure_pass(c, &c->passes[c->n_passes])) return false;
    uint64_t elapsed_s = (uint64_t)(nxr_clock_s() - start);
    nxr_world_max(c->bench.world, &elapsed_s, 1);
    if (c->n_passes == 0 && elapsed_s < LONG_PASS_S) n_passes = N_PASSES;
  }
  return true;
}

/* ---- writing ---- */

/* The device's, or what /proc/cpuinfo calls the processor; without what would end a quoted text. */
static void print_name(const nxr_bench *bench, FILE *out) {
  char line[256];
  const char *name = bench->backend->device_name ? bench->backend->device_name(bench->device) : NULL;
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && !name && fgets(line, sizeof line, file))
    if (strncmp(line, "model name", 10) == 0 && (name = strchr(line, ':'))) name += 1 + strspn(name + 1, " ");
  if (file) fclose(file);
  fputs("name: \"", out);
  for (const char *at = name ? name : "this machine"; *at && *at != '\n'; at++)
    if (*at != '"' && *at != '\\' && *at >= ' ') fputc(*at, out);
  fputs("\"\n", out);
}

static void print_curve(const char *key, const nxr_curve *curve, FILE *out) {
  fprintf(out, "%s: [", key);
  for (int i = 0; i < curve->n; i++)
    fprintf(out, "%s[%.3g, %.4g]", i ? ", " : "", curve->size[i], curve->rate[i]);
  fputs("]\n", out);
}

static void print_rates(nx_dtype type, const nxr_rates *rates, FILE *out) {
  bool any = false;
  for (int i = 0; i < rates->n; i++) any = any || rates->of[i].curve.n > 0;
  fprintf(out, "  %s:%s\n", nx_dtype_name(type), any ? "" : " {}");
  for (int i = 0; i < rates->n; i++) {
    if (rates->of[i].curve.n == 0) continue;
    fprintf(out, "    %s", nx_op_find(rates->of[i].op)->name);
    print_curve("", &rates->of[i].curve, out);
  }
}

static void print_link(const char *key, const nxr_measured_link *link, uint32_t size, FILE *out) {
  if (size == 1) return;
  fprintf(out, "%s:\n  latency: %.3g\n", key, link->latency_s);
  print_curve("  bandwidth", &link->bandwidth, out);
  if (link->taken >= 0) fprintf(out, "  taken: %.2g\n", link->taken);
}

static void tell_swing(const char *beginning, double swing, FILE *out) {
  fprintf(
      out,
      "%s products took up to %.1f times as long in one pass of measurements as in another: something else "
      "runs on this machine, and forecasts will be rough; measure again when it is quiet\n",
      beginning, swing);
}

static void print_machine(const calibration *c, FILE *out) {
  const nxr_measured m = nxr_measured_median(c->passes, c->n_passes);
  double swing = nxr_measured_swing(c->passes, c->n_passes);
  const nx_run *run = &c->bare.run;
  uint32_t n_local = c->bare.groups[GROUP_INSIDE].size;
  uint64_t n_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / n_local;
  if (c->bench.backend->memory_bytes) n_bytes = c->bench.backend->memory_bytes(c->bench.device);
  fprintf(out, BEGINNING ": %u rank%s of %u thread%s on %u host%s, backend %s, run.target %s\n",
          run->n_ranks, run->n_ranks == 1 ? "" : "s", run->n_threads, run->n_threads == 1 ? "" : "s",
          run->n_hosts, run->n_hosts == 1 ? "" : "s", c->bench.backend->name,
          nx_target_find(run->target)->name);
  if (swing >= MUCH_SWING) {
    tell_swing("#", swing, out);
    tell_swing("nxrun:", swing, stderr);
  }
  print_name(&c->bench, out);
  fprintf(out, "ranks_per_host: %u\nthreads: %u\nmemory: %llu\noperator: %.3g\nproducts:\n", n_local,
          run->n_threads, (unsigned long long)n_bytes, m.operator_s);
  for (int type = 0; type < NXR_CALIBRATE_TYPES; type++) {
    fprintf(out, "  %s", nx_dtype_name(product_types[type]));
    print_curve("", &m.products[type], out);
  }
  fputs("operators:\n", out);
  for (int type = 0; type < NXR_CALIBRATE_TYPES; type++)
    print_rates(product_types[type], &m.operators[type], out);
  print_curve("memory_bandwidth", &m.memory, out);
  print_link("inside", &m.inside, n_local, out);
  print_link("between", &m.between, c->bare.groups[GROUP_BETWEEN].size, out);
}

int nxr_calibrate(nxr_world *world, const nxr_calibrate_options *options) {
  calibration c = {.options = options, .bench.world = world};
  fill_plan(&c);
  /* Before anything is measured, so that a place where nothing can be written is found at once. */
  if (world->rank == 0) nxr_replace_open(&c.out, options->path, BEGINNING, &c.fault);
  bool well = agree(&c) && check_tiling(&c) && open_bench(&c) && measure_all(&c);
  if (well && world->rank == 0) {
    print_machine(&c, c.out.file);
    nxr_replace_finish(&c.out, &c.fault);
  }
  well = well && agree(&c);
  nxr_replace_close(&c.out);
  close_bench(&c);
  return well ? 0 : 1;
}
