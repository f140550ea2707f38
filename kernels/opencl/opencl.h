/* SPDX-License-Identifier: Apache-2.0 */
/* The backend `opencl`: operators as programs in OpenCL C (programs/), compiled when they are bound.
 *
 * A device has one context, three queues that each run in order (queue.c), and a buffer for each arena. The
 * addresses that the runtime sees are pages without access, as many as the buffer has bytes: address - base
 * is the place in the buffer, and a host that reads there ends with a fault.
 *
 * An operator is a row of table.c: the file of its kernels, and which of them run, over what. program.c puts
 * a text before the file that says the operator's types, and so each operator and choice of types is a
 * program, kept on disk by device, driver and text. Shapes, places and attributes are values of a call
 * (struct call_values of prelude.cl), so that one program serves every shape, chunk and slot. `scratch` is
 * one buffer of the device. */
#ifndef OPENCL_OPENCL_H
#define OPENCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include "kernels/backend.h"
#include "schema/workspace.h"

#include <CL/cl.h>
#include <stdio.h>

enum { OCL_MAX_LAUNCHES = 12, OCL_MAX_DEVICES = 64, OCL_NAME = 256, OCL_RUN = 4 /* RUN of prelude.cl */ };

/* One kernel of an operator: a group for each ..., or an item for each ... */
typedef enum ocl_over {
  OCL_ONE,     /* one group */
  OCL_ITEMS,   /* element of an operand */
  OCL_RUNS,    /* OCL_RUN elements of an operand */
  OCL_GROUPS,  /* element, but a group */
  OCL_ROWS,    /* row of an operand, a group */
  OCL_COLUMNS, /* column of an operand */
  OCL_COUNTED, /* what `count` says, in groups */
  OCL_LIBRARY  /* no kernel of ours: product.h */
} ocl_over;

typedef struct ocl_launch {
  const char *kernel; /* NULL: no more */
  ocl_over over;
  int operand;      /* an input, or OCL_OUT(index) */
  uint32_t min_out; /* runs where the operator has so many outputs */
  uint64_t (*count)(const nxk_device *device, const nxk_operator *operator);
  bool repeated; /* with its neighbours that are, as often as `rounds` says */
} ocl_launch;

#define OCL_OUT(index) (-1 - (index))

typedef struct ocl_row {
  const char *file; /* NULL: the backend has no kernels for the operator */
  ocl_launch launches[OCL_MAX_LAUNCHES + 1];
  void (*define)(FILE *text, const nxk_device *device, const nxk_operator *operator); /* more of the text */
  uint32_t (*rounds)(const nxk_operator *operator);                                   /* NULL: one */
} ocl_row;

typedef struct ocl_program {
  struct ocl_program *next;
  char *text; /* what makes it: the operator's own lines, and the name of the file */
  cl_program program;
} ocl_program;

typedef struct ocl_arena {
  uint8_t *base; /* NULL: not open */
  uint64_t n_bytes;
  cl_mem buffer;
} ocl_arena;

/* Memory that operators share, as much as the greediest needs; nothing in it lives from one to the next. */
typedef struct ocl_room {
  uint64_t n_bytes;
  cl_mem buffer;
} ocl_room;

/* Who multiplies matrices. */
typedef enum ocl_products { OCL_UNKNOWN, OCL_BY_TILES, OCL_BY_LIBRARY } ocl_products;

/* Memory of the host that a driver keeps in place. */
typedef struct ocl_pinned {
  struct ocl_pinned *next;
  cl_mem buffer;
  void *host;
} ocl_pinned;

struct nxk_event {
  nxk_event *next;
  cl_event event; /* NULL: never recorded */
};

/* What is recorded: an operator, from the first of its kernels to the last, or a copy. */
typedef struct ocl_command {
  cl_event first, last; /* NULL: it had no kernels */
  nxk_span span;
} ocl_command;

typedef struct ocl_times {
  ocl_command *commands;
  uint64_t n, room;
  uint32_t label;
  double offset_s; /* added to the device's clock it is the host's */
} ocl_times;

struct nxk_device {
  cl_device_id id;
  cl_context context;
  cl_command_queue queues[NXK_N_QUEUES];
  char platform[OCL_NAME], name[OCL_NAME], driver[OCL_NAME];
  uint64_t memory_bytes, most_bytes, local_bytes, arena_bytes;
  bool fp64;                 /* else doubles of the programs are fp32 (prelude.cl) */
  uint32_t local, tile_side; /* items of a group; its root */
  uint32_t width, item_rows; /* of a product of matrices each item has so many columns and rows */
  ocl_arena arenas[NX_N_ARENAS];
  ocl_room scratch, product_room; /* of our kernels, of the library that multiplies */
  uint64_t workspace_limit;
  ocl_products products;
  cl_mem status;
  ocl_program *programs;
  bool broken; /* a program was not built; no other is tried */
  nxk_kernel *kernels;
  nxk_event *events;
  ocl_pinned *pinned;
  ocl_times times;
  const nxk_alarm *alarm; /* of the operator that was enqueued last */
  bool reports;           /* an operator may have said something in `status` */
  int64_t rows;           /* what such an operator has room for */
};

struct nxk_kernel {
  nxk_kernel *next;
  nxk_operator operator;
  uint32_t n_launches, first_repeated, n_repeated, n_rounds;
  cl_kernel kernels[OCL_MAX_LAUNCHES];
  size_t groups[OCL_MAX_LAUNCHES];
  uint32_t n_words, first_at, first_int;
  int64_t *words; /* struct call_values */
};

/* table_forms.c: more of an operator's text; the input of positions; whether attention is a gradient, and
 * whether fp32 does not serve */
void ocl_heads_define(FILE *text, const nxk_device *device, const nxk_operator *operator);
void ocl_sinusoid_define(FILE *text, const nxk_device *device, const nxk_operator *operator);
void ocl_attention_define(FILE *text, const nxk_device *device, const nxk_operator *operator);
int ocl_positions_of(const nxk_operator *operator);
bool ocl_is_backward(const nxk_operator *operator);
bool ocl_needs_fp64(const nxk_operator *operator);

/* table.c, table_update.c; NULL: there are no kernels */
const ocl_row *ocl_row_of(const nxk_operator *operator);
const ocl_row *ocl_update_row(nx_op op);
static inline const nxk_tensor *ocl_operand(const nxk_operator *operator, int operand) {
  return &operator->args[operand >= 0 ? (uint32_t)operand : operator->n_in +(uint32_t)(-1 - operand)];
}
static inline int64_t ocl_last_dim(const nxk_tensor *tensor) {
  return tensor->n_dims ? tensor->dims[tensor->n_dims - 1] : 1;
}
static inline int64_t ocl_elements(const nxk_operator *operator, int operand) {
  return nxk_n_elements(ocl_operand(operator, operand));
}
static inline uint64_t ocl_ceil(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit;
}
/* Groups for the tiles of a matrix (programs/tile.cl). */
static inline uint64_t ocl_tiles(const nxk_device *device, int64_t rows, int64_t columns) {
  return ocl_ceil((uint64_t)rows, device->item_rows * device->tile_side) *
         ocl_ceil((uint64_t)columns, device->width * device->tile_side);
}

/* device.c */
bool ocl_device_open(const nxk_device_options *options, nxk_device **device, nxk_fault *fault);
void ocl_device_close(nxk_device *device);
uint32_t ocl_devices(nxk_description *room, uint32_t n);
/* "what: NAME (number)" into the fault; false. */
bool ocl_fault(nxk_fault *fault, const char *what, cl_int error);
/* Ends the run where a call fails that the plan leaves no reason for. */
void ocl_check(const nxk_device *device, cl_int error, const char *what);

/* memory.c */
bool ocl_arena_open(nxk_device *device, nx_arena_kind kind, uint64_t n_bytes, void *shared, void **base,
                    nxk_fault *fault);
void ocl_arenas_close(nxk_device *device);
bool ocl_room_reserve(nxk_device *device, ocl_room *room, uint64_t n_bytes, nxk_fault *fault);
void *ocl_host_open(nxk_device *device, uint64_t n_bytes, nxk_fault *fault);
void ocl_copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes);
void ocl_copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes);
void ocl_start_copy_in(nxk_device *device, void *destination, const void *host, uint64_t n_bytes,
                       uint32_t label);
void ocl_start_copy_out(nxk_device *device, void *host, const void *source, uint64_t n_bytes, uint32_t label);

/* queue.c */
bool ocl_queues_open(nxk_device *device, nxk_fault *fault);
void ocl_queues_close(nxk_device *device);
void ocl_synchronize(nxk_device *device);
nxk_event *ocl_event_open(nxk_device *device, nxk_fault *fault);
void ocl_event_record(nxk_device *device, nxk_queue queue, nxk_event *event);
void ocl_event_wait(nxk_device *device, nxk_queue queue, nxk_event *event);
bool ocl_event_done(nxk_device *device, nxk_event *event);
bool ocl_record_open(nxk_device *device, uint64_t n, nxk_fault *fault);
void ocl_record(nxk_device *device, uint32_t label);
uint64_t ocl_recorded(nxk_device *device, nxk_span *spans);
/* Of what is enqueued next; NULL: it is not recorded. Then an event of each of its commands, taken over. */
ocl_command *ocl_command_begin(nxk_device *device, nxk_queue queue, uint32_t label, uint64_t n_bytes);
void ocl_command_add(ocl_command *command, cl_event event);

/* program.c */
/* NULL after saying why. The device owns it. */
cl_program ocl_program_of(nxk_device *device, const ocl_row *row, const nxk_operator *operator,
                          nxk_fault * fault);
void ocl_programs_close(nxk_device *device);
/* programs/, as the build embedded them; NULL for an unknown file. */
const char *ocl_source(const char *file);

/* kernel.c */
bool ocl_bind(nxk_device *device, const nxk_operator *operator, nxk_kernel ** kernel, nxk_fault *fault);
void ocl_enqueue(nxk_device *device, nxk_kernel *kernel, const nxk_frame *frame);
/* Ends the run with what kernels had to say about data that the plan has no room for. */
void ocl_read_status(nxk_device *device);
void ocl_kernels_close(nxk_device *device);

#endif
