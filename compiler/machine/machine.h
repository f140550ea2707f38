/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a machine: what forecasts need to know of where a plan would run.
 *
 * It comes from a YAML file (man nx-machine.5), which people write or `nxrun --calibrate` measures.
 * Everything is of one rank while all ranks of its host are busy. A rate is a line through points: the rate
 * of a thing of some size is read between its two neighbours, on a logarithmic scale of sizes, and beyond the
 * ends it is that of the end. Invariant: rates are positive and their points ascend. */
#ifndef NXC_MACHINE_H
#define NXC_MACHINE_H

#include "compiler/diagnostics/diagnostics.h"
#include "schema/ops.h"

typedef struct nxc_rate_point {
  double size, rate;
} nxc_rate_point;

typedef struct nxc_rate {
  const nxc_rate_point *points;
  size_t n_points; /* 0: not told */
} nxc_rate;

typedef struct nxc_link {
  nxc_rate bandwidth; /* bytes a second that a rank receives, by the bytes of one collective */
  double latency_s;   /* of one step of a collective */
  double taken;       /* share of the time of moving beneath work by which that work takes longer */
  double start_s;     /* of a collective of accelerators, beside its steps */
} nxc_link;

/* An accelerator, for whose products there are shapes instead of curves. Peaks are of dense products; the
 * shares of them that kernels reach are of large ones. */
typedef struct nxc_device {
  double peak, peak_fp8, peak_fp4; /* FLOP/s in bf16 or fp16; 0: no fp8, no fp4 */
  double peak_f32;                 /* in fp32; 0: as in bf16 */
  double efficiency, efficiency_fp8, efficiency_fp4; /* share of the peak that a large product reaches */
  double attention_forward, attention_backward; /* the same of flash attention */
  double before_forward, before_backward; /* and of kernels for the generation before; 0: not told */
  double narrow_heads;    /* share of that speed which heads of few features keep */
  double attention_block; /* keys that it reads or skips together */
  double tile_rows, tile_columns, units;        /* tiles of a result, and how many are computed at a time */
  double depth;            /* length of a sum that reaches half of the efficiency */
  double memory_bandwidth; /* bytes/s that kernels reach */
  double scattered;        /* share of it that rows reach which are picked one by one */
  double launch_s;         /* of a kernel, on the host */
  double collective_units; /* that a collective beneath work takes from it */
  double host_bandwidth;   /* bytes/s to the host's memory, and of its processors' updates there */
  double domain;           /* ranks that `inside` links */
  double axes, closed;     /* of a torus, and from how many ranks on its rings are closed; 0: a switch */
  double rings;            /* 1: collectives go round a torus from rank to rank, not along axis after axis */
  double pairs;            /* devices of a host that are linked two by two, without a switch; 0: a switch */
  double compiled;         /* 1: one program is compiled of a whole step */
  double hidden_sums;      /* share of the sums of gradients over ranks that can go on beneath work */
  double allocator;        /* what its allocator holds, as a multiple of the tensors at their peak */
  uint64_t reserved_bytes; /* of the driver and communicators */
} nxc_device;

/* Whether collectives go on while the rank computes. */
typedef enum nxc_overlap { NXC_OVERLAP_UNTOLD, NXC_WAITS, NXC_OVERLAPS } nxc_overlap;

typedef struct nxc_machine {
  const char *name;
  const nxc_source *source;
  uint32_t ranks_per_host, threads; /* threads of a rank; 0: not told */
  uint64_t memory_bytes;            /* 0: not told */
  double operator_s;                /* what every operator takes beside its work */
  nxc_rate products[NX_DTYPE_END];  /* FLOP a second, by the FLOP of one product */
  nxc_rate bandwidth;               /* of memory: bytes a second, by the bytes of one operator */
  /* [operator], by type: bytes a second that it moves at most; of attention FLOP a second, by the FLOP of one
   * product of a head. NULL: not told of any. */
  const nxc_rate *operators[NX_DTYPE_END];
  nxc_link inside, between;         /* hosts */
  nxc_overlap overlap;
  const nxc_device *device;         /* NULL: a host whose processors compute */
} nxc_machine;

/* By a known name (names.h) or from a file. NULL, with findings, where that is no machine description. */
const nxc_machine *nxc_machine_read(nxc_arena *arena, const char *path, nxc_sink *sink);
/* `size` in the unit of the rate's points. */
double nxc_rate_at(const nxc_rate *rate, double size);
/* The highest of its points. */
double nxc_rate_peak(const nxc_rate *rate);

/* "80GiB", "512MB", "1000000": a number and B, kB, MB, GB, TB or KiB, MiB, GiB, TiB. False where it is
 * none. */
bool nxc_bytes_parse(const char *text, uint64_t *bytes);
/* "3.41 GiB". */
const char *nxc_bytes_show(nxc_arena *arena, uint64_t bytes);

#endif
