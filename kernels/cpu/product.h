/* SPDX-License-Identifier: Apache-2.0 */
/* Our own loops for products, c[m,n] (+)= op(a) op(b) (+ bias): operands packed to panels that lie in the
 * caches, sums in registers or tiles. Vectors on AMD's cores with AVX-512, and AMX's tiles, for fp32 too,
 * reach more of what a core can than oneDNN 2.6 does; elsewhere, and for small products, oneDNN's are used.
 *
 * An element's sum runs over k in the same blocks whatever m, n and the number of threads are. */
#ifndef CPU_PRODUCT_H
#define CPU_PRODUCT_H

#include "kernels/cpu/gemm.h"

typedef struct cpu_product_operands {
  const void *a, *b, *bias;
  void *c;
} cpu_product_operands;

/* Of a thread: packed rows, packed columns, sums over blocks of k, sums of tiles. */
typedef struct cpu_product_room {
  uint64_t a_bytes, b_bytes, sum_bytes, tile_bytes;
} cpu_product_room;

/* The least extents of a product. */
typedef struct cpu_product_least {
  int64_t m, n, k;
} cpu_product_least;

struct cpu_products {
  int64_t width; /* columns of a tile */
  /* Whether it can be computed, and whether it is better than with oneDNN. */
  bool (*knows)(const cpu_gemm_form *form);
  bool (*takes)(const cpu_gemm_form *form);
  uint64_t (*scratch_bytes)(const nxk_device *device, const cpu_gemm_form *form);
  void (*run)(const nxk_device *device, const cpu_gemm_form *form, const cpu_product_operands *operands,
              char *scratch);
  /* A part of c by one thread, its columns from a multiple of the width on; `at` has the room that parts of
   * so many columns need. A form with less of k fits there too if a is transposed. */
  cpu_product_room (*room_of)(const cpu_gemm_form *form, int64_t n_columns);
  void (*part_run)(const cpu_gemm_form *form, const cpu_product_operands *operands, cpu_span rows,
                   cpu_span columns, const cpu_product_room *room, char *at);
};

extern const cpu_products cpu_products_bf16, cpu_products_amx;

static inline uint64_t cpu_product_room_bytes(const cpu_product_room *room) {
  return room->a_bytes + room->b_bytes + room->sum_bytes + room->tile_bytes;
}

static inline bool cpu_product_knows(const nxk_device *device, const cpu_gemm_form *form) {
  return device->products && device->products->knows(form);
}

static inline bool cpu_product_takes(const nxk_device *device, const cpu_gemm_form *form) {
  return device->products && device->products->takes(form);
}

#endif
