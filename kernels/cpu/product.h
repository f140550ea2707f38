/* SPDX-License-Identifier: Apache-2.0 */
/* Our own loop for products, c[m,n] (+)= op(a) op(b) (+ bias): operands packed to panels that lie in the
 * caches, tiles of sums in registers. On AMD's cores with AVX-512 it reaches more of what they can than
 * oneDNN 2.6 does; elsewhere, and for small products, oneDNN's are used.
 *
 * An element's sum runs over k in the same blocks whatever m, n and the number of threads are. */
#ifndef CPU_PRODUCT_H
#define CPU_PRODUCT_H

#include "kernels/cpu/gemm.h"

enum { CPU_PRODUCT_WIDTH = 48 /* columns of a tile */ };

typedef struct cpu_product_operands {
  const void *a, *b, *bias;
  void *c;
} cpu_product_operands;

/* Of a thread: packed rows, packed columns, sums. */
typedef struct cpu_product_room {
  uint64_t a_bytes, b_bytes, sum_bytes;
} cpu_product_room;

static inline uint64_t cpu_product_room_bytes(const cpu_product_room *room) {
  return room->a_bytes + room->b_bytes + room->sum_bytes;
}

/* Whether it can be computed, and whether it is better than with oneDNN. */
bool cpu_product_knows(const nxk_device *device, const cpu_gemm_form *form);
bool cpu_product_takes(const nxk_device *device, const cpu_gemm_form *form);
uint64_t cpu_product_scratch_bytes(const nxk_device *device, const cpu_gemm_form *form);
void cpu_product_run(const nxk_device *device, const cpu_gemm_form *form,
                     const cpu_product_operands *operands, char *scratch);

/* A part of c by one thread, its columns from a multiple of the width on; `at` has the room that parts of so
 * many columns need. A form with less of k fits there too if a is transposed. */
cpu_product_room cpu_product_room_of(const cpu_gemm_form *form, int64_t n_columns);
void cpu_product_part(const cpu_gemm_form *form, const cpu_product_operands *operands, cpu_span rows,
                      cpu_span columns, const cpu_product_room *room, char *at);

#endif
