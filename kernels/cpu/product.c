/* SPDX-License-Identifier: Apache-2.0 */
/* A thread has a rectangle of c to itself and packs what it reads (product_pack.h), then takes the next one;
 * so nobody waits but for the end. What is summed over several blocks of k to a narrow c lies in scratch
 * until the last. Compiled for each loop: vectors, and AMX's tiles. */
#include "kernels/cpu/product.h"

#include <omp.h>

#ifdef CPU_AMX
#include "kernels/cpu/product_tiles.h"
#else
#include "kernels/cpu/product_vectors.h"
#endif

enum {
  STREAMED = 1 << 20, /* bytes of c, half of a second cache */
  PASS_M = 1024       /* rows whose sums are kept */
};

static int64_t n_words_of(const cpu_gemm_form *form, int64_t n_k) {
  int64_t each = words_of(form)->n_elements;
  return (n_k + each - 1) / each;
}

/* Of k that is no two blocks. */
static int64_t most_words(const cpu_gemm_form *form) {
  return 3 * words_of(form)->n_block / 2;
}

/* Of one block of several: of three that share two blocks and a word. */
static int64_t least_words(const cpu_gemm_form *form) {
  return 2 * words_of(form)->n_block / 3;
}

/* Blocks of k, as even as whole squares of words allow. */
static int64_t block_words(const cpu_gemm_form *form) {
  int64_t n_words = n_words_of(form, form->k), each = words_of(form)->n_block,
          n_blocks = n_words <= most_words(form) ? 1 : (n_words + each - 1) / each;
  return ((n_words + n_blocks - 1) / n_blocks + LANES - 1) / LANES * LANES;
}

static bool in_blocks(const cpu_gemm_form *form) {
  return block_words(form) < n_words_of(form, form->k);
}

static bool keeps_sums(const cpu_gemm_form *form) {
  return form->c_type != NX_f32 && in_blocks(form);
}

static int64_t block_columns(const cpu_gemm_form *form) {
  return reads_rows(form) ? BLOCK_N : at_most(BLOCK_N_PACKED, PANEL_WORDS / block_words(form) * WIDTH);
}

/* Blocks of columns as even as they can be, so that none is larger than it must. */
static int64_t even_columns(int64_t most, int64_t n) {
  int64_t n_blocks = (n + most - 1) / most, each = n_blocks ? (n + n_blocks - 1) / n_blocks : most;
  return (each + WIDTH - 1) / WIDTH * WIDTH;
}

static void pass_run(const product_thread *t, cpu_span rows, int64_t j, int64_t n_columns, float *sums) {
  const cpu_gemm_form *form = t->form;
  int64_t step = block_words(form) * words_of(form)->n_elements;
  const place kept = {keeps_sums(form) ? (char *)sums : NULL, WIDTH, PASS_M * WIDTH, false};
  for (int64_t k = 0; k < form->k; k += step) {
    int64_t n_k = at_most(form->k - k, step), n_words = n_words_of(form, n_k);
    block_run(&(block){.thread = t,
                       .i = rows.begin,
                       .j = j,
                       .k = k,
                       .n_k = n_k,
                       .n_words = n_words,
                       .n_rows = rows.end - rows.begin,
                       .n_columns = n_columns,
                       .first = k == 0,
                       .last = k + n_k == form->k,
                       .c = place_at(t->c, rows.begin, j),
                       .bias = place_at(t->bias, 0, j),
                       .kept = kept});
  }
}

/* Parts of c that threads take as they come to them: one for each, and more where they stay large. */
typedef struct grid {
  int64_t rows, columns;
} grid;

/* Where only columns are packed, one costs more than a row. */
static grid grid_of(const cpu_gemm_form *form, int64_t n_threads) {
  int64_t unit = reads_rows(form) ? UNIT : UNIT_PACKED, weight = reads_rows(form) ? 8 : 1;
  int64_t each = form->m * form->n / (n_threads * unit), n = n_threads * (each > 1 ? each : 1), best = 1;
  for (int64_t rows = 1; rows <= n; rows++) /* the parts read least */
    if (n % rows == 0 &&
        form->m / rows + weight * form->n * rows / n < form->m / best + weight * form->n * best / n)
      best = rows;
  return (grid){best, n / best};
}

static cpu_product_room room_of(const cpu_gemm_form *form, int64_t n_columns) {
  int64_t n_words = (n_words_of(form, form->k) + LANES - 1) / LANES * LANES,
          words = at_most(n_words, most_words(form)), n_kept = words_of(form)->n_kept,
          columns =
              at_most((n_columns + WIDTH - 1) / WIDTH * WIDTH, reads_rows(form) ? BLOCK_N : BLOCK_N_PACKED),
          summed = at_most(columns, PANEL_WORDS / least_words(form) * WIDTH);
  return (cpu_product_room){4 * (uint64_t)((reads_rows(form) ? LANES : A_ROWS) * words * n_kept),
                            cpu_align(4 * (uint64_t)(at_most(columns * words, WIDTH * PANEL_WORDS) * n_kept)),
                            keeps_sums(form) ? 4 * (uint64_t)(summed * PASS_M) : 0, 4 * (uint64_t)TILE_SUMS};
}

/* What each of the threads needs. */
static cpu_product_room thread_room(const nxk_device *device, const cpu_gemm_form *form) {
  return room_of(form, form->n / grid_of(form, device->n_threads).columns + WIDTH);
}

static bool type_fits(nx_dtype type) {
  return type == NX_f32 || type == NX_bf16;
}

/* Where k lies along rows, words begin at even elements. */
static bool side_fits(const cpu_gemm_form *form, int64_t stride, bool along) {
  return form->type == NX_f32 || !along || stride % 2 == 0;
}

static bool knows(const cpu_gemm_form *form) {
  return (form->type == NX_bf16 || (WIDE && form->type == NX_f32)) && type_fits(form->c_type) &&
         (!form->bias_type || type_fits(form->bias_type)) &&
         side_fits(form, form->a_stride, !form->trans_a) && side_fits(form, form->b_stride, form->trans_b);
}

static bool takes(const cpu_gemm_form *form) {
  const cpu_product_least *least = form->type == NX_bf16 ? &LEAST_NARROW : &LEAST_WIDE;
  return knows(form) && form->m >= least->m && form->n >= least->n && form->k >= least->k;
}

static uint64_t scratch_bytes(const nxk_device *device, const cpu_gemm_form *form) {
  cpu_product_room one = thread_room(device, form);
  return device->n_threads * cpu_product_room_bytes(&one);
}

/* What is written once, and is more than stays in the caches, need not be read before: lines on their way
 * from memory keep the buffers that tiles are loaded through (GPT-2's products are 1.1 to 1.7 times as fast).
 */
static bool streams(const cpu_gemm_form *form, const void *c) {
  int64_t size = form->c_type == NX_bf16 ? 2 : 4;
  return !form->accumulate && (keeps_sums(form) || !in_blocks(form)) && form->m * form->n * size > STREAMED &&
         form->c_stride * size % 64 == 0 && (uintptr_t)c % 64 == 0;
}

static void part_run(const cpu_gemm_form *form, const cpu_product_operands *operands, cpu_span rows,
                     cpu_span columns, const cpu_product_room *room, char *at) {
  bool narrow = form->type == NX_bf16;
  char *sums = at + room->a_bytes + room->b_bytes;
  const product_thread t = {
      .form = form,
      .a = {operands->a, form->a_stride, narrow, !form->trans_a},
      .b = {operands->b, form->b_stride, narrow, form->trans_b},
      .c = {operands->c, form->c_stride, WIDTH, form->c_type == NX_bf16},
      .bias = {form->bias_type ? (char *)operands->bias : NULL, 0, WIDTH, form->bias_type == NX_bf16},
      .a_panels = (uint32_t *)(void *)at,
      .b_panels = (uint32_t *)(void *)(at + room->a_bytes),
      .tiles = (float *)(void *)(sums + room->sum_bytes),
      .streams = streams(form, operands->c),
      .end = columns.end};
  int64_t n_rows = keeps_sums(form) ? PASS_M : LONGEST_PASS,
          n_columns = even_columns(block_columns(form), columns.end - columns.begin);
  for (int64_t i = rows.begin; i < rows.end; i += n_rows)
    for (int64_t j = columns.begin; j < columns.end; j += n_columns)
      pass_run(&t, (cpu_span){i, at_most(rows.end, i + n_rows)}, j, at_most(columns.end - j, n_columns),
               (float *)(void *)sums);
}

static void run(const nxk_device *device, const cpu_gemm_form *form, const cpu_product_operands *operands,
                char *scratch) {
  const grid parts = grid_of(form, device->n_threads);
  const cpu_product_room room = thread_room(device, form);
  int64_t next = 0;
#pragma omp parallel num_threads(device->n_threads)
  {
    char *own = scratch + (uint64_t)omp_get_thread_num() * cpu_product_room_bytes(&room);
    for (int64_t part; (part = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < parts.rows * parts.columns;)
      part_run(form, operands, cpu_share(form->m, LANES, part % parts.rows, parts.rows),
               cpu_share(form->n, WIDTH, part / parts.rows, parts.columns), &room, own);
  }
}

const cpu_products CPU_NAME(cpu_products) = {
    .width = WIDTH,
    .knows = knows,
    .takes = takes,
    .scratch_bytes = scratch_bytes,
    .run = run,
    .room_of = room_of,
    .part_run = part_run,
};
