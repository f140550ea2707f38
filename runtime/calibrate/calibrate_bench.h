/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels under measurement. Operands in the scratch arena move through it from one enqueue to the next, as
 * those of a step do that were made a while ago; what the operator before has just made lies still. */
#ifndef NXR_CALIBRATE_BENCH_H
#define NXR_CALIBRATE_BENCH_H

#include "runtime/calibrate/calibrate.h"

/* The arena of what lies still: zeros, then room. */
static const nx_arena_kind NXR_BENCH_STILL = NX_ARENA_slot;
enum { NXR_BENCH_ZEROS = 1 << 16, NXR_BENCH_ROOM = 16 << 20 };

/* Of one kernel: what is larger is not asked for. */
bool nxr_bench_is_slow(double seconds);
uint64_t nxr_bench_bytes(const nxk_tensor *tensor);
/* With what aligns the next one. */
uint64_t nxr_bench_room(const nxk_tensor *tensor);
/* Seconds of one, 0 where the backend has no such kernel; `footprint` are the bytes of the scratch arena that
 * move along. */
bool nxr_measure_offered(nxr_bench *bench, const nxk_operator *operator, uint64_t footprint, double *seconds,
                         nxr_fault *fault);

#endif
