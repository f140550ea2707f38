/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun --calibrate: measures this machine and describes it for `nxcfg plan --machine` (man nx-machine.5).
 *
 * All ranks of the run measure at the same time, as they would train: products of a few shapes in each type,
 * operators that have a speed of their own, sums of vectors of several sizes for the memory, and, where there
 * are several ranks, collectives within a host and between hosts. Kernels and collectives are those of a
 * training. Of each thing the median of some samples counts, and of the ranks the slowest; everything is
 * measured in three passes, of which each number's median is told, so that what disturbs the machine for a
 * while disturbs one of them. Nothing of a plan is measured: a forecast is made from these numbers alone.
 */
#ifndef NXR_CALIBRATE_H
#define NXR_CALIBRATE_H

#include "kernels/backend.h"
#include "runtime/comm/comm.h"

typedef struct nxr_calibrate_options {
  const char *backend; /* NULL: cpu where this build has it, else ref */
  const char *device;  /* as nxr_options */
  const char *path;    /* where to write; NULL: standard output */
  uint32_t n_threads;  /* of a rank; 0: the cores, divided over the ranks of the host */
  bool force_p2p;
} nxr_calibrate_options;

/* The exit status; the same on every rank. */
int nxr_calibrate(nxr_world *world, const nxr_calibrate_options *options);
/* How many threads it would give a rank; for nxr_launch_prepare. */
uint32_t nxr_calibrate_threads(const nxr_calibrate_options *options);

/* ---- what is measured: calibrate_measure.c, calibrate_kernels.c, calibrate_passes.c ---- */

enum { NXR_CALIBRATE_POINTS = 5, NXR_CALIBRATE_TYPES = 2, NXR_CALIBRATE_RATES = 16 };

/* Rates by size, ascending. */
typedef struct nxr_curve {
  double size[NXR_CALIBRATE_POINTS], rate[NXR_CALIBRATE_POINTS];
  int n;
} nxr_curve;

typedef struct nxr_measured_link {
  double latency_s;
  /* share of the time of moving by which kernels beside it take longer; below 0: not measured */
  double taken;
  nxr_curve bandwidth;
} nxr_measured_link;

/* Of an operator that has a speed of its own: bytes a second; of attention FLOP a second, by the FLOP of one
 * product of a head. */
typedef struct nxr_operator_rate {
  nx_op op;
  bool is_slow; /* or another backend's: what is larger is not measured */
  nxr_curve curve; /* without points where the backend leaves it to another, whose speed is not its own */
} nxr_operator_rate;

typedef struct nxr_rates {
  nxr_operator_rate of[NXR_CALIBRATE_RATES];
  int n;
} nxr_rates;

typedef struct nxr_measured {
  double operator_s;
  nxr_curve products[NXR_CALIBRATE_TYPES], memory;
  nxr_rates operators[NXR_CALIBRATE_TYPES];
  nxr_measured_link inside, between;
} nxr_measured;

/* Each number's median over the passes, of the points that all of them have; these have the same sizes. Rates
 * of products ascend. */
nxr_measured nxr_measured_median(const nxr_measured *passes, int n);
/* The rate of a product in its fastest pass over that in its slowest: of the product where that is most. */
double nxr_measured_swing(const nxr_measured *passes, int n);

/* What the measurements need, opened. Operands lie in the arenas scratch and slot (calibrate_bench.h), and
 * what collectives touch in comm. */
typedef struct nxr_bench {
  nxr_world *world;
  const nxk_backend *backend;
  nxk_device *device;
  nxr_comm *comm;
  nxk_frame frame;
} nxr_bench;

/* Bytes that the measurements use of the arenas. */
uint64_t nxr_bench_scratch_bytes(void);
uint64_t nxr_bench_still_bytes(void);
uint64_t nxr_bench_comm_bytes(void);

bool nxr_measure_operator(nxr_bench *bench, double *seconds, nxr_fault *fault);
/* A backend that is slow is not asked for the largest. */
bool nxr_measure_products(nxr_bench *bench, nx_dtype type, nxr_curve *curve, nxr_fault *fault);
bool nxr_measure_memory(nxr_bench *bench, nxr_curve *curve, nxr_fault *fault);
/* The same operators in every pass. */
bool nxr_measure_rates(nxr_bench *bench, nx_dtype type, nxr_rates *rates, nxr_fault *fault);
/* Over a group of the bench's plan, of `size` members. */
bool nxr_measure_link(nxr_bench *bench, uint32_t group, uint32_t size, bool inside, nxr_measured_link *link,
                      nxr_fault *fault);
/* What of kernels' time a collective of such a group takes that goes on beside them. */
bool nxr_measure_taken(nxr_bench *bench, uint32_t group, uint32_t size, double *taken, nxr_fault *fault);

#endif
