/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/workspace.h"

#include "schema/optimizers.h"
#include "schema/soap_room.h"

#include <string.h>

enum { ALIGNMENT = 64, SIDE = 64, TOGETHER = 4, SQUARE = SIDE * SIDE /* of attention's tiles */ };

typedef struct sized {
  const nx_sized_operator *op;
  uint64_t n_threads;
} sized;

static uint64_t dim(const sized *s, uint32_t argument, uint32_t index) {
  return (uint64_t)s->op->args[argument].dims[index];
}

static uint64_t elements(const sized *s, uint32_t argument) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < NX_MAX_DIMS; i++) n *= dim(s, argument, i);
  return n;
}

static uint64_t last_dim(const sized *s, uint32_t argument) {
  return dim(s, argument, s->op->args[argument].n_dims ? s->op->args[argument].n_dims - 1 : 0);
}

static uint64_t aligned(uint64_t n_bytes) {
  return (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t floats(uint64_t n) {
  return aligned(n * sizeof(float));
}

static nx_workspace exactly(uint64_t n_bytes) {
  return (nx_workspace){n_bytes, n_bytes};
}

/* ---- updates of whole tensors ---- */

static uint32_t n_states(const sized *s) {
  return nx_optimizer_n_states(nx_optimizer_of(s->op->op));
}

/* A rank that has a box of a tensor has all of it behind the other inputs. */
static bool is_parted(const sized *s) {
  return s->op->n_in > 1 + n_states(s) + NX_UPDATE_END;
}

static uint32_t whole(const sized *s) {
  return is_parted(s) ? 1 + n_states(s) + NX_UPDATE_END : 0;
}

static uint64_t both_sides(const sized *s) {
  return dim(s, whole(s), 0) + dim(s, whole(s), 1);
}

static uint64_t parts_of(const sized *s) {
  return (uint64_t)s->op->attrs[NX_muon_column_parts];
}

/* Of a part of what Muon works on. */
static uint64_t least_square(const sized *s) {
  uint64_t rows = dim(s, whole(s), 0), width = dim(s, whole(s), 1) / parts_of(s);
  uint64_t least = rows < width ? rows : width;
  return least * least;
}

static bool is_muon(const sized *s) {
  return s->op->op == NX_OP_muon || s->op->op == NX_OP_adaptive_muon;
}

static uint64_t copied(const sized *s, uint32_t input) {
  return s->op->args[input].dtype == NX_f32 ? 0 : floats(elements(s, input));
}

static uint64_t soap_room_bytes(const sized *s) {
  return floats((uint64_t)soap_room(s->op->args[0].dims[0], s->op->args[0].dims[1]));
}

/* What lies in fp32 is worked on where it lies, but for the gradient. */
static nx_workspace cpu_soap(const sized *s) {
  uint64_t n_bytes = soap_room_bytes(s) + floats(elements(s, 0));
  for (uint32_t i = 0; i <= n_states(s); i++) n_bytes += copied(s, i);
  return exactly(n_bytes);
}

static nx_workspace cpu_tensor(const sized *s) {
  uint64_t n = elements(s, whole(s)), columns = dim(s, whole(s), 1);
  if (s->op->op == NX_OP_soap) return cpu_soap(s);
  if (is_muon(s))
    return exactly(2 * floats(n) + floats(n + 2 * both_sides(s)) + 2 * floats(least_square(s)));
  return exactly((2 + n_states(s)) * floats(n) + aligned(both_sides(s) * sizeof(double)) +
                 s->n_threads * columns * sizeof(float));
}

static nx_workspace device_tensor(const sized *s) {
  uint64_t n = elements(s, whole(s)), sides = both_sides(s), step = ALIGNMENT;
  if (s->op->op != NX_OP_soap)
    return exactly(step + (n + sides + (is_muon(s) ? n + 2 * parts_of(s) * least_square(s) + sides : 0)) *
                              sizeof(float));
  uint64_t kept = 4 * n + elements(s, 3) + elements(s, 4);
  return exactly(step + kept * sizeof(float) + soap_room_bytes(s));
}

/* ---- attention ---- */

typedef struct heads {
  bool backward;
  uint64_t keys, d, e, distances, table;
} heads;

static uint64_t vectors(uint64_t n) {
  return (n + 15) / 16 * 16;
}

static uint64_t more(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static heads heads_of(const sized *s) {
  nx_op op = (nx_op)s->op->op;
  bool relative = op == NX_OP_attention_relative || op == NX_OP_attention_relative_grad;
  bool backward = op == NX_OP_attention_grad || op == NX_OP_attention_relative_grad ||
                  op == NX_OP_attention_sparse_grad;
  uint32_t k = backward ? 2 : 1, table = backward ? 7 : 4;
  heads h = {backward, dim(s, k, 2), dim(s, k, 3), dim(s, k + 1, 3), 0, 0};
  if (!relative) return h;
  h.distances = (uint64_t)s->op->attrs[NX_attention_relative_max_distance] + 1;
  h.table = elements(s, table);
  return h;
}

/* A thread's, where products are in fp32. */
static uint64_t wide_space(const heads *h) {
  uint64_t d = vectors(h->d), e = vectors(h->e), rows = TOGETHER * SIDE;
  uint64_t n_bytes = floats(h->keys * d) + floats(h->keys * e) + floats(rows * more(d, e)) +
                     floats(rows * e) + floats(rows * d) + 2 * floats(SQUARE) + floats(h->distances);
  if (!h->backward) return n_bytes;
  return n_bytes + floats(2 * h->distances) + floats(2 * h->table) + floats(h->keys * d) +
         floats(h->keys * e) + floats(rows * d) + floats(rows * e) + floats(SQUARE);
}

/* And where they are in bf16. */
static uint64_t narrow_space(const heads *h) {
  uint64_t tiles = (h->keys + SIDE - 1) / SIDE, rows = SIDE * h->d / 2, values = SIDE * h->e / 2;
  uint64_t n_bytes = floats(tiles * (h->backward ? rows : values)) + 2 * floats(rows) +
                     2 * floats(more(rows, values)) + 2 * floats(SQUARE) + floats(SQUARE / 2) +
                     floats((h->backward ? h->d : h->e) * SIDE) + floats(h->distances);
  if (!h->backward) return n_bytes;
  return n_bytes + 3 * floats(values) + floats(rows) + floats(SQUARE) + 2 * floats(SQUARE / 2) +
         floats(tiles * SIDE * h->d) + floats(tiles * SIDE * h->e);
}

static nx_workspace cpu_attention(const sized *s) {
  heads h = heads_of(s);
  uint64_t wide = s->n_threads * wide_space(&h), narrow = s->n_threads * narrow_space(&h);
  bool may_be_narrow = h.d % 32 == 0 && h.e % 32 == 0 && s->op->args[1].dtype == NX_bf16;
  if (!may_be_narrow) return exactly(wide);
  return (nx_workspace){wide < narrow ? wide : narrow, more(wide, narrow)};
}

static nx_workspace device_delta(const sized *s) {
  return exactly(elements(s, 5) * sizeof(float));
}

/* ---- heads ---- */

/* Where an operator has its positions, and, as one of a row's attributes, how much of a head turns. */
static uint64_t turned(const sized *s) {
  uint32_t attribute = nx_op_find_attr(nx_op_find((nx_op)s->op->op), "rotary_dims", strlen("rotary_dims"));
  uint32_t positions = s->op->op == NX_OP_merge_qkv                                         ? 3
                       : s->op->op == NX_OP_split_latent || s->op->op == NX_OP_merge_latent ? 2
                                                                                            : 1;
  return elements(s, positions) * (uint64_t)(s->op->attrs[attribute] / 2) * 2 * sizeof(float);
}

/* Tables of sines that stay; those of all heads are one. */
static nx_workspace cpu_heads(const sized *s) {
  return (nx_workspace){0, turned(s) + ALIGNMENT * ALIGNMENT};
}

static nx_workspace device_heads(const sized *s) {
  uint64_t sums = s->op->op == NX_OP_merge_latent ? elements(s, s->op->n_in + 1) : 0;
  return exactly(turned(s) + sums * sizeof(float));
}

/* ---- mixtures ---- */

static nx_workspace cpu_route(const sized *s) {
  uint64_t n = dim(s, 1, 0) * dim(s, 1, 1), e = dim(s, 1, 2), k = (uint64_t)s->op->attrs[NX_moe_route_top_k];
  uint64_t all = s->op->attrs[NX_moe_route_sinkhorn] ? aligned(n * e * 8) + aligned(16 * e) : 0;
  uint64_t claims = aligned((uint64_t)s->op->attrs[NX_moe_route_capacity] * 12);
  return exactly(all + aligned(8 * e) + 2 * floats(n * k) + claims + aligned(s->n_threads * (3 * e + k) * 8) +
                 aligned(s->n_threads * 16));
}

static nx_workspace cpu_route_grad(const sized *s) {
  return exactly(s->n_threads * (4 * dim(s, 1, 2) + 2 * dim(s, 2, 2)) * sizeof(double));
}

static nx_workspace device_route(const sized *s) {
  uint64_t n = dim(s, 1, 0) * dim(s, 1, 1), e = dim(s, 1, 2), k = last_dim(s, s->op->n_in);
  uint64_t all = s->op->attrs[NX_moe_route_sinkhorn] ? n * e : 0;
  return exactly((all + 2 * e + 2 * n) * sizeof(double) + n * k * 3 * sizeof(int32_t));
}

static nx_workspace device_quantile(const sized *s) {
  return exactly(dim(s, 0, 0) * dim(s, 0, 1) * sizeof(float));
}

/* A sum that is rounded once, and rows of two operands that fill a piece. */
static nx_workspace cpu_grouped_wgrad(const sized *s) {
  uint32_t dw = s->op->n_in;
  uint64_t sum = s->op->args[dw].dtype == NX_f32 ? 0 : floats(dim(s, dw, 1) * dim(s, dw, 2));
  return (nx_workspace){0, sum + 512 * (floats(last_dim(s, 0)) + floats(last_dim(s, 1)))};
}

static nx_workspace cpu_grouped(const sized *s) {
  return (nx_workspace){0, 256 * (floats(last_dim(s, 0)) + floats(last_dim(s, s->op->n_in)))};
}

/* ---- sums ---- */

static nx_workspace cpu_norm_grad(const sized *s) {
  return exactly(2 * vectors(last_dim(s, 1)) * s->n_threads * sizeof(float));
}

/* Pairs of a row and a place, twice. */
static nx_workspace cpu_table_grad(const sized *s) {
  uint32_t rows = s->op->op == NX_OP_embedding_grad ? 1 : 0;
  uint64_t n = last_dim(s, rows);
  return exactly(n ? 2 * elements(s, rows) / n * 8 : 0);
}

static nx_workspace cpu_squares(const sized *s) {
  return exactly((elements(s, 0) + NX_CPU_BLOCK - 1) / NX_CPU_BLOCK * sizeof(double));
}

static nx_workspace device_squares(const sized *s) {
  return exactly((elements(s, 0) + NX_DEVICE_BLOCK - 1) / NX_DEVICE_BLOCK * sizeof(double));
}

static nx_workspace device_bits(const sized *s) {
  return exactly((elements(s, s->op->n_in) + NX_DEVICE_BLOCK - 1) / NX_DEVICE_BLOCK * sizeof(double));
}

static nx_workspace device_columns(const sized *s) {
  uint64_t n = last_dim(s, 0), rows = n ? elements(s, 0) / n : 0;
  return exactly((rows + NX_DEVICE_ROWS - 1) / NX_DEVICE_ROWS * n * 2 * sizeof(float));
}

static nx_workspace device_tokens(const sized *s) {
  return exactly(elements(s, s->op->n_in) * sizeof(double));
}

static nx_workspace device_rows(const sized *s) {
  return exactly(elements(s, 3) * sizeof(float));
}

/* A number of each attribute and of a step. */
static nx_workspace device_update(const sized *s) {
  (void)s;
  return exactly((3 * NX_MAX_ATTRS + 16) * sizeof(double));
}

/* ---- the rows ---- */

typedef nx_workspace rule(const sized *s);

typedef struct row {
  nx_op op;
  rule *cpu, *device; /* NULL: nothing */
} row;

/* All but the updates. */
static const row rows[] = {
    {NX_OP_attention, cpu_attention, NULL},
    {NX_OP_attention_relative, cpu_attention, NULL},
    {NX_OP_attention_sparse, cpu_attention, NULL},
    {NX_OP_attention_grad, cpu_attention, device_delta},
    {NX_OP_attention_relative_grad, cpu_attention, device_delta},
    {NX_OP_attention_sparse_grad, cpu_attention, device_delta},
    {NX_OP_split_qkv, cpu_heads, device_heads},
    {NX_OP_merge_qkv, cpu_heads, device_heads},
    {NX_OP_split_heads, cpu_heads, device_heads},
    {NX_OP_merge_heads, cpu_heads, device_heads},
    {NX_OP_rotate, cpu_heads, device_heads},
    {NX_OP_split_latent, cpu_heads, device_heads},
    {NX_OP_merge_latent, cpu_heads, device_heads},
    {NX_OP_moe_route, cpu_route, device_route},
    {NX_OP_moe_route_grad, cpu_route_grad, NULL},
    {NX_OP_moe_quantile, NULL, device_quantile},
    {NX_OP_grouped_matmul, cpu_grouped, NULL},
    {NX_OP_grouped_wgrad, cpu_grouped_wgrad, NULL},
    {NX_OP_rms_norm_grad, cpu_norm_grad, device_columns},
    {NX_OP_layer_norm_grad, cpu_norm_grad, device_columns},
    {NX_OP_scale_norm_grad, cpu_norm_grad, device_rows},
    {NX_OP_bias_grad, NULL, device_columns},
    {NX_OP_embedding_grad, cpu_table_grad, NULL},
    {NX_OP_position_grad, cpu_table_grad, NULL},
    {NX_OP_ce_loss, NULL, device_tokens},
    {NX_OP_norm_sq, cpu_squares, device_squares},
    {NX_OP_count_zeros, NULL, device_squares},
    {NX_OP_fp8_amax, NULL, device_squares},
    {NX_OP_onebit_pack, NULL, device_bits},
    {NX_OP_onebit_sum, NULL, device_bits},
};

static const row *row_of(uint32_t op) {
  static const row element = {0, NULL, device_update}, tensor = {0, cpu_tensor, device_tensor}, none = {0};
  const nx_optimizer_row *update = nx_optimizer_of(op);
  if (update) return update->kind == NX_ELEMENT ? &element : &tensor;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].op == op) return &rows[i];
  return &none;
}

nx_workspace nx_workspace_of(const nx_sized_operator *op, nx_target target, uint32_t n_threads) {
  const nx_target_row *found = nx_target_find(target);
  const row *is = row_of(op->op);
  sized s = {op, n_threads ? n_threads : 1};
  rule *of = found && found->on_device ? is->device : is->cpu;
  return of ? of(&s) : (nx_workspace){0, 0};
}
