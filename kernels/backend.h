/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend is: memory, kernels and queues behind one table of functions.
 *
 * The runtime opens one device per rank, asks it for arenas, binds every operator of the plan once (all
 * choices, primitives and workspace are made there), and then only enqueues. Operands are named by arena and
 * offset; a *frame* gives, per enqueue, where each arena begins for the chunk and slot at hand, and the
 * values of the plan's constants for this rank and chunk. So one bound kernel serves every slot, chunk and
 * micro-batch.
 *
 * Where `host_addressable` says so, addresses are host pointers: a kernel has run when enqueue returns,
 * collectives read and write arenas directly, and `ref` may take operators that the backend declines.
 * Elsewhere arenas are device memory and frame addresses are device addresses. The device then works through
 * three queues, each in the order of its commands: kernels, copies to the host and copies from it. Between
 * queues there is no order but that of events. Collectives run on pinned memory of the host, to which and
 * from which they copy beside the kernels.
 *
 * Invariant: after the last bind, nothing here allocates. */
#ifndef NXK_BACKEND_H
#define NXK_BACKEND_H

#include "schema/ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxk_device nxk_device;
typedef struct nxk_kernel nxk_kernel;
typedef struct nxk_event nxk_event;

/* An operand: a dense row-major box of an arena. */
typedef struct nxk_tensor {
  nx_dtype dtype;
  uint32_t n_dims;
  int64_t dims[NX_MAX_DIMS]; /* unused: 1 */
  nx_arena_kind arena;
  uint64_t offset;         /* bytes */
  uint32_t shift_constant; /* frame constant added to offset (bytes), or UINT32_MAX */
} nxk_tensor;

typedef enum nxk_attr_kind { NXK_INT, NXK_REAL, NXK_CONSTANT } nxk_attr_kind;

typedef struct nxk_attr {
  nxk_attr_kind kind;
  uint32_t constant; /* NXK_CONSTANT: index into frame->constants */
  union {
    int64_t integer;
    double real;
  };
} nxk_attr;

/* One operator as the plan has it; the kernel copies what it keeps. */
typedef struct nxk_operator {
  nx_op op;
  uint32_t n_in, n_out, n_attrs;
  nxk_tensor args[NX_MAX_ARGS]; /* inputs, then outputs */
  nxk_attr attrs[NX_MAX_ATTRS];
} nxk_operator;

/* Who is told what ends the run: data that the plan has no room for. */
typedef struct nxk_alarm {
  void (*raise)(void *context, const char *text); /* does not return */
  void *context;
} nxk_alarm;

typedef enum nxk_queue { NXK_KERNELS, NXK_COPIES_OUT, NXK_COPIES_IN, NXK_N_QUEUES } nxk_queue;

/* When a device ran something, on the clock of the host (CLOCK_MONOTONIC). */
typedef struct nxk_span {
  double begin_s, end_s;
  nxk_queue queue;
  uint32_t label; /* of `record`; of a copy its own */
  uint64_t n_bytes; /* of a copy */
} nxk_span;

typedef struct nxk_frame {
  void *base[NX_N_ARENAS]; /* where each arena begins for this chunk and slot, in the backend's memory */
  const int64_t *constants;
  uint64_t seed;
  bool stochastic;        /* updates round stochastically to bf16 (schema/stochastic.h) */
  const nxk_alarm *alarm; /* NULL: the process aborts */
} nxk_frame;

typedef struct nxk_device_options {
  uint32_t n_threads;
  uint32_t target; /* nx_target */
  uint64_t workspace_bytes; /* ceiling for everything that the kernels allocate at bind; 0: none */
  const char *device; /* of those that `devices` says, a number or a part of a name; NULL: by local_rank */
  uint32_t local_rank, local_size; /* of this host's ranks */
} nxk_device_options;

typedef struct nxk_description {
  char text[320];
} nxk_description;

typedef struct nxk_fault {
  char text[512];
} nxk_fault;

typedef struct nxk_backend {
  const char *name;
  bool host_addressable;
  /* How many devices there are, the first n of them told of. NULL: the host itself is the only one. */
  uint32_t (*devices)(nxk_description *room, uint32_t n);
  /* A device for this rank; sets threads, FTZ and DAZ in every one of them. */
  bool (*open)(const nxk_device_options *options, nxk_device **device, nxk_fault *fault);
  void (*close)(nxk_device *device);
  /* An arena of n_bytes, zeroed and touched. `shared` is host memory of a window shared with other ranks that
   * the backend must use instead of its own (only where host_addressable), or NULL. */
  bool (*arena_open)(nxk_device *device, nx_arena_kind kind, uint64_t n_bytes, void *shared, void **base,
                     nxk_fault *fault);
  /* Behind the kernels that were enqueued; complete when they return. */
  void (*copy_in)(nxk_device *device, void *destination, const void *host, uint64_t n_bytes);
  void (*copy_out)(nxk_device *device, void *host, const void *source, uint64_t n_bytes);
  /* Makes the kernel for one operator. False with an empty fault: declined, another backend may take it.
   * False with a fault: it can not be made within the workspace. */
  bool (*bind)(nxk_device *device, const nxk_operator *operator, nxk_kernel **kernel, nxk_fault *fault);
  void (*enqueue)(nxk_device *device, nxk_kernel *kernel, const nxk_frame *frame);
  /* Bytes of workspace that the bound kernels hold. */
  uint64_t (*workspace_bytes)(const nxk_device *device);

  /* ---- where host_addressable; elsewhere NULL ---- */
  /* y[i] = sum over s of x[s][i], s ascending, accumulated in fp32 (fp64 for f64), rounded once to y_dtype.
   * y may be one of x. n_sources >= 1. Used by every collective that sums. */
  void (*sum)(nxk_device *device, void *y, nx_dtype y_dtype, const void *const *x, uint32_t n_sources,
              nx_dtype x_dtype, uint64_t n_elements);

  /* ---- where not host_addressable; elsewhere NULL ---- */
  /* Waits for all queues. */
  void (*synchronize)(nxk_device *device);
  /* Memory of the host for copies that are only started, zeroed, pinned where the driver does that; and
   * events. Both are the device's, until it closes. */
  void *(*host_open)(nxk_device *device, uint64_t n_bytes, nxk_fault *fault);
  nxk_event *(*event_open)(nxk_device *device, nxk_fault *fault);
  /* Enqueued on NXK_COPIES_IN and NXK_COPIES_OUT; `host` is of host_open. */
  void (*start_copy_in)(nxk_device *device, void *destination, const void *host, uint64_t n_bytes,
                        uint32_t label);
  void (*start_copy_out)(nxk_device *device, void *host, const void *source, uint64_t n_bytes,
                         uint32_t label);
  /* The event comes when all that is in the queue has run; what is enqueued after a wait runs behind it. One
   * that was never recorded has come. */
  void (*event_record)(nxk_device *device, nxk_queue queue, nxk_event *event);
  void (*event_wait)(nxk_device *device, nxk_queue queue, nxk_event *event);
  bool (*event_done)(nxk_device *device, nxk_event *event);
  /* Of the device. */
  uint64_t (*memory_bytes)(const nxk_device *device);
  const char *(*device_name)(const nxk_device *device);
  /* Room for the times of n kernels and copies; until then, and under NXK_UNRECORDED, none are kept. */
  bool (*record_open)(nxk_device *device, uint64_t n, nxk_fault *fault);
  void (*record)(nxk_device *device, uint32_t label);
  /* Waits, and gives what was recorded since it was last asked; `spans` has the room of record_open. */
  uint64_t (*recorded)(nxk_device *device, nxk_span *spans);
} nxk_backend;

#define NXK_UNRECORDED UINT32_MAX

extern const nxk_backend nxk_ref;
extern const nxk_backend nxk_cpu;
extern const nxk_backend nxk_opencl;
extern const nxk_backend nxk_far; /* of tests alone: kernels/far/far.c */

/* NULL where this build has no backend of that name, or not so many. */
const nxk_backend *nxk_backend_find(const char *name);
const nxk_backend *nxk_backend_at(uint32_t index);

/* Raises the alarm of the frame. */
_Noreturn void nxk_fail(const nxk_frame *frame, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void nxk_synchronize(const nxk_backend *backend, nxk_device *device) {
  if (backend->synchronize) backend->synchronize(device);
}

static inline int64_t nxk_attr_int(const nxk_attr *attr, const nxk_frame *frame) {
  return attr->kind == NXK_CONSTANT ? frame->constants[attr->constant] : attr->integer;
}

static inline void *nxk_address(const nxk_tensor *tensor, const nxk_frame *frame) {
  uint64_t shift =
      tensor->shift_constant == UINT32_MAX ? 0 : (uint64_t)frame->constants[tensor->shift_constant];
  return (char *)frame->base[tensor->arena] + tensor->offset + shift;
}

static inline int64_t nxk_n_elements(const nxk_tensor *tensor) {
  int64_t n_elements = 1;
  for (uint32_t dim = 0; dim < NX_MAX_DIMS; dim++) n_elements *= tensor->dims[dim];
  return n_elements;
}

#endif
