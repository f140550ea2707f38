/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/calibrate/calibrate_bench.h"

#include "runtime/world/clock.h"

#include <stdlib.h>

enum {
  N_SAMPLES = 3, /* in a pass */
  MAX_REPEATS = 4096,
  WARM_BYTES = 16 << 20,   /* operands move through as much: what a step has lately touched */
  LARGEST_SUM = 192 << 20, /* bytes moved */
  LARGEST_EXCHANGE = 32 << 20,
  LARGEST_MESSAGE = 8 << 20,
  N_EXCHANGES = 4,
  MOST_PLACES = 64, /* of one exchange in the window */
  LEAST_EXCHANGES = 8,
  ALIGNMENT = 4096
};
static const double SAMPLE_S = 10e-3;
static const double MOST_TAKEN = 0.9;
static const double SLOW_SAMPLES = 10; /* of one product: the next is eight times as large */

static uint64_t round_up(uint64_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t nxr_bench_scratch_bytes(void) {
  return LARGEST_SUM;
}

uint64_t nxr_bench_still_bytes(void) {
  return NXR_BENCH_ZEROS + NXR_BENCH_ROOM;
}

uint64_t nxr_bench_comm_bytes(void) {
  return 4 * (uint64_t)LARGEST_EXCHANGE + 2 * ALIGNMENT;
}

/* ---- samples ---- */

/* NXRUN_SAMPLE_MS in the environment (for tests) makes samples shorter, and the numbers rougher. */
static double sample_s(void) {
  const char *text = getenv("NXRUN_SAMPLE_MS");
  double asked = text ? 1e-3 * strtod(text, NULL) : SAMPLE_S;
  return asked > 0 && asked < SAMPLE_S ? asked : SAMPLE_S;
}

bool nxr_bench_is_slow(double seconds) {
  return seconds >= SLOW_SAMPLES * sample_s();
}

/* Does the thing `repeats` times. */
typedef void work(nxr_bench *bench, void *what, uint32_t repeats);

static int compare_seconds(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : a > b;
}

/* The largest of all ranks; positive doubles order as their bits do. */
static double slowest(nxr_bench *bench, double seconds) {
  union {
    double number;
    uint64_t bits;
  } value = {.number = seconds};
  nxr_world_max(bench->world, &value.bits, 1);
  return value.number;
}

static double sample(nxr_bench *bench, work *run, void *what, uint32_t repeats) {
  nxr_world_barrier(bench->world);
  double start = nxr_clock_s();
  run(bench, what, repeats);
  nxk_synchronize(bench->backend, bench->device);
  return (nxr_clock_s() - start) / repeats;
}

/* Seconds of one: the median of samples of about sample_s() each, of the slowest rank; each of `least` ones
 * or more, where ranks that begin at different moments wait for each other. */
static double measure(nxr_bench *bench, work *run, void *what, uint32_t least) {
  double samples[N_SAMPLES];
  sample(bench, run, what, 1);
  double once = slowest(bench, sample(bench, run, what, 1));
  double wanted = sample_s() / (once > 1e-9 ? once : 1e-9);
  uint32_t repeats = wanted < least ? least : wanted > MAX_REPEATS ? MAX_REPEATS : (uint32_t)wanted;
  int n_samples = nxr_bench_is_slow(once) ? 1 : N_SAMPLES;
  for (int i = 0; i < n_samples; i++) samples[i] = sample(bench, run, what, repeats);
  qsort(samples, (size_t)n_samples, sizeof *samples, compare_seconds);
  return slowest(bench, samples[n_samples / 2]);
}

/* ---- kernels ---- */

typedef struct kernel_run {
  nxk_kernel *kernel;
  uint64_t footprint; /* bytes from the start of the arena that it touches */
} kernel_run;

static void run_kernel(nxr_bench *bench, void *what, uint32_t repeats) {
  const kernel_run *own = what;
  nxk_frame frame = bench->frame;
  uint64_t n_places = WARM_BYTES / own->footprint;
  for (uint32_t i = 0; i < repeats; i++) {
    uint64_t place = n_places > 1 ? i % n_places : 0;
    frame.base[NX_ARENA_scratch] = (char *)bench->frame.base[NX_ARENA_scratch] + place * own->footprint;
    bench->backend->enqueue(bench->device, own->kernel, &frame);
  }
}

uint64_t nxr_bench_bytes(const nxk_tensor *tensor) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < tensor->n_dims; i++) n *= (uint64_t)tensor->dims[i];
  return n * nx_dtype_bits(tensor->dtype) / 8;
}

uint64_t nxr_bench_room(const nxk_tensor *tensor) {
  return round_up(nxr_bench_bytes(tensor));
}

static nxk_tensor tensor_at(nx_dtype type, int64_t rows, int64_t columns, uint64_t *at) {
  nxk_tensor tensor = {.dtype = type,
                       .n_dims = 2,
                       .dims = {rows, columns, 1, 1},
                       .arena = NX_ARENA_scratch,
                       .offset = *at,
                       .shift_constant = UINT32_MAX};
  *at += nxr_bench_room(&tensor);
  return tensor;
}

bool nxr_measure_offered(nxr_bench *bench, const nxk_operator *operator, uint64_t footprint, double *seconds,
                         nxr_fault *fault) {
  nxk_fault why = {""};
  kernel_run own = {.footprint = footprint};
  bool bound = bench->backend->bind(bench->device, operator, &own.kernel, &why);
  if (!bound && why.text[0])
    nxr_fault_set(fault, "no kernel for %s: %s", nx_op_find(operator->op)->name, why.text);
  if (!nxr_world_agree(bench->world, fault)) return false;
  *seconds = bound ? measure(bench, run_kernel, &own, 1) : 0;
  return true;
}

static bool measure_kernel(nxr_bench *bench, const nxk_operator *operator, uint64_t footprint, double *seconds,
                        nxr_fault *fault) {
  if (!nxr_measure_offered(bench, operator, footprint, seconds, fault)) return false;
  return *seconds > 0 ||
         nxr_fault_set(fault, "no kernel for %s: declined", nx_op_find(operator->op)->name);
}

/* ---- products ---- */

static const struct {
  int64_t m, n, k;
} product_shapes[NXR_CALIBRATE_POINTS] = {
    {64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {256, 1024, 512}, {1024, 2048, 1024}};

/* Behind the zeros. */
static nxk_tensor still(nxk_tensor tensor, uint64_t *moving, uint64_t *at) {
  *moving = tensor.offset;
  tensor.arena = NXR_BENCH_STILL, tensor.offset = *at;
  *at += nxr_bench_room(&tensor);
  return tensor;
}

/* The three products of a layer: y = x W', dx = dy W, dW += dy' x. All have the same FLOP. What x and dy are
 * was made just before, and y and dx go where other values were; weights, their gradients, and in the third
 * the x of the forward pass come from farther. */
static nxk_operator product_of(nx_dtype type, int form, int64_t m, int64_t n, int64_t k,
                               uint64_t *footprint) {
  bool trans_a = form == 2, trans_b = form == 0;
  nxk_operator op = {.op = NX_OP_matmul, .n_in = 2, .n_out = 1, .n_attrs = 3};
  uint64_t at = NXR_BENCH_ZEROS;
  *footprint = 0;
  op.args[0] =
      still(trans_a ? tensor_at(type, k, m, footprint) : tensor_at(type, m, k, footprint), footprint, &at);
  op.args[1] = trans_b ? tensor_at(type, n, k, footprint) : tensor_at(type, k, n, footprint);
  op.args[2] = tensor_at(trans_a ? NX_f32 : type, m, n, footprint);
  if (!trans_a) op.args[2] = still(op.args[2], footprint, &at);
  op.attrs[NX_matmul_trans_a].integer = trans_a;
  op.attrs[NX_matmul_trans_b].integer = trans_b;
  op.attrs[NX_matmul_accumulate].integer = trans_a;
  return op;
}

bool nxr_measure_products(nxr_bench *bench, nx_dtype type, nxr_curve *curve, nxr_fault *fault) {
  double slowest_s = 0;
  for (int i = 0; i < NXR_CALIBRATE_POINTS && !nxr_bench_is_slow(slowest_s); i++) {
    int64_t m = product_shapes[i].m, n = product_shapes[i].n, k = product_shapes[i].k;
    double sum_s = 0, flops = 2.0 * (double)(m * n * k);
    for (int form = 0; form < 3; form++) {
      uint64_t footprint;
      double seconds;
      nxk_operator op = product_of(type, form, m, n, k, &footprint);
      if (!measure_kernel(bench, &op, footprint, &seconds, fault)) return false;
      sum_s += seconds;
      if (seconds > slowest_s) slowest_s = seconds;
    }
    curve->size[i] = flops, curve->rate[i] = 3 * flops / sum_s;
    curve->n = i + 1;
  }
  return true;
}

/* ---- memory ---- */

static nxk_operator sum_of(int64_t n, bool in_place, uint64_t *footprint) {
  nxk_operator op = {.op = NX_OP_add, .n_in = 2, .n_out = 1};
  *footprint = 0;
  op.args[0] = tensor_at(NX_f32, 1, n, footprint);
  op.args[1] = tensor_at(NX_f32, 1, n, footprint);
  op.args[2] = in_place ? op.args[0] : tensor_at(NX_f32, 1, n, footprint);
  return op;
}

bool nxr_measure_operator(nxr_bench *bench, double *seconds, nxr_fault *fault) {
  uint64_t footprint;
  nxk_operator op = sum_of(16, false, &footprint);
  return measure_kernel(bench, &op, footprint, seconds, fault);
}

/* y = a + b, and a += b. */
bool nxr_measure_memory(nxr_bench *bench, nxr_curve *curve, nxr_fault *fault) {
  double bytes = LARGEST_SUM;
  curve->n = NXR_CALIBRATE_POINTS;
  for (int i = curve->n; i-- > 0; bytes /= 8) {
    double sum_s = 0;
    for (int in_place = 0; in_place < 2; in_place++) {
      uint64_t footprint;
      double seconds;
      nxk_operator op = sum_of((int64_t)(bytes / 12), in_place, &footprint);
      if (!measure_kernel(bench, &op, footprint, &seconds, fault)) return false;
      sum_s += seconds;
    }
    curve->size[i] = bytes, curve->rate[i] = 2 * bytes / sum_s;
  }
  return true;
}

/* ---- links ---- */

/* One collective in several places, which take turns. */
typedef struct exchange {
  nxr_collective *of[MOST_PLACES];
  uint32_t n_places, next;
} exchange;

static void run_exchange(nxr_bench *bench, void *what, uint32_t repeats) {
  exchange *e = what;
  for (uint32_t i = 0; i < repeats; i++, e->next++) {
    nxr_collective *collective = e->of[e->next % e->n_places];
    nxr_comm_start(bench->comm, collective);
    nxr_comm_wait(bench->comm, collective);
  }
}

/* With which a rank receives so many bytes. x and y take twice as many at most, and do not overlap, but that
 * what is gathered stands in its place, as weights do. */
static nxr_collective *bind_exchange(nxr_bench *bench, nx_op op, uint32_t group, uint32_t size, double bytes,
                                     uint64_t place, nxr_fault *fault) {
  const nxr_world *world = bench->world;
  uint32_t position = size == world->local_size ? world->local_rank : world->hosts[world->rank];
  uint64_t part = (uint64_t)(bytes / (op == NX_OP_all_reduce ? 8 : 4) / (size - 1));
  if (part == 0) part = 1;
  char *memory = (char *)bench->frame.base[NX_ARENA_comm] + place;
  nxr_collective_spec spec = {.op = op,
                              .group = group,
                              .x_dtype = NX_f32,
                              .y_dtype = NX_f32,
                              .x = memory,
                              .y = memory + nxr_bench_comm_bytes() / 2 / ALIGNMENT * ALIGNMENT,
                              .outer = 1,
                              .axis = op == NX_OP_all_gather ? part : part * size,
                              .inner = 1,
                              .operator = UINT32_MAX};
  if (op == NX_OP_all_gather) spec.x = (char *)spec.y + position * part * sizeof(float);
  nxr_collective *collective = nxr_comm_bind(bench->comm, &spec, fault);
  return nxr_world_agree(bench->world, fault) ? collective : NULL;
}

/* Gradients and weights come from where a step has left them: from one place to the next within a host. */
static bool measure_exchange(nxr_bench *bench, nx_op op, uint32_t group, uint32_t size, double bytes,
                             uint32_t most_places, double *seconds, nxr_fault *fault) {
  exchange e = {.n_places = 0};
  uint64_t stride = round_up(2 * (uint64_t)bytes), room = 2 * (uint64_t)LARGEST_EXCHANGE;
  while (e.n_places < most_places && (e.n_places + 1) * stride <= room) {
    nxr_collective *collective =
        bind_exchange(bench, op, group, size, bytes, e.n_places * stride, fault);
    if (!collective) return false;
    e.of[e.n_places++] = collective;
  }
  *seconds = measure(bench, run_exchange, &e, LEAST_EXCHANGES);
  return true;
}

bool nxr_measure_link(nxr_bench *bench, uint32_t group, uint32_t size, bool inside, nxr_measured_link *link,
                      nxr_fault *fault) {
  static const nx_op ops[] = {NX_OP_all_reduce, NX_OP_all_gather, NX_OP_reduce_scatter};
  double seconds, bytes = inside ? LARGEST_EXCHANGE : LARGEST_MESSAGE;
  uint32_t most_places = inside ? MOST_PLACES : 1;
  if (!measure_exchange(bench, NX_OP_all_gather, group, size, 4, 1, &seconds, fault)) return false;
  link->latency_s = seconds;
  link->bandwidth.n = N_EXCHANGES;
  for (int i = N_EXCHANGES; i-- > 0; bytes /= 8) {
    double sum_s = 0;
    for (int op = 0; op < 3; op++) {
      if (!measure_exchange(bench, ops[op], group, size, bytes, most_places, &seconds, fault)) return false;
      double latency_s = (op == 0 ? 2 : 1) * link->latency_s;
      sum_s += seconds > 2 * latency_s ? seconds - latency_s : seconds / 2;
    }
    link->bandwidth.size[i] = bytes, link->bandwidth.rate[i] = 3 * bytes / sum_s;
  }
  return true;
}

/* ---- kernels beside a collective ---- */

typedef struct pair {
  nxr_collective *collective; /* NULL: the kernels alone */
  kernel_run kernel;
  uint32_t n_kernels;
} pair;

static void run_pair(nxr_bench *bench, void *what, uint32_t repeats) {
  pair *own = what;
  for (uint32_t i = 0; i < repeats; i++) {
    if (own->collective) nxr_comm_start(bench->comm, own->collective);
    for (uint32_t k = 0; k < own->n_kernels; k++) {
      run_kernel(bench, &own->kernel, 1);
      nxr_comm_progress(bench->comm);
    }
    nxk_synchronize(bench->backend, bench->device);
    if (own->collective) nxr_comm_wait(bench->comm, own->collective);
  }
}

/* Kernels of half as much time again as the collective takes alone, so that what is longer is theirs. */
bool nxr_measure_taken(nxr_bench *bench, uint32_t group, uint32_t size, double *taken, nxr_fault *fault) {
  pair own = {.n_kernels = 1};
  nxk_fault why = {""};
  nxk_operator op = product_of(NX_f32, 0, 256, 1024, 512, &own.kernel.footprint);
  if (bench->backend->bind(bench->device, &op, &own.kernel.kernel, &why) == false)
    nxr_fault_set(fault, "no kernel for products: %s", why.text[0] ? why.text : "declined");
  nxr_collective *collective =
      bind_exchange(bench, NX_OP_all_gather, group, size, LARGEST_MESSAGE, 0, fault);
  if (!collective) return false;
  exchange alone = {.of = {collective}, .n_places = 1};
  double exchange_s = measure(bench, run_exchange, &alone, LEAST_EXCHANGES);
  double kernel_s = measure(bench, run_pair, &own, 1), kernels = 1.5 * exchange_s / kernel_s;
  own.n_kernels = kernels < 1 ? 1 : kernels > MAX_REPEATS ? MAX_REPEATS : (uint32_t)kernels;
  double alone_s = measure(bench, run_pair, &own, 1);
  own.collective = collective;
  double beside_s = measure(bench, run_pair, &own, 1);
  *taken = beside_s > alone_s ? (beside_s - alone_s) / exchange_s : 0;
  if (*taken > MOST_TAKEN) *taken = MOST_TAKEN;
  return true;
}
