/* SPDX-License-Identifier: Apache-2.0 */
/* Ring and Ulysses attention against the plain operator: the heads divided, then each ring rank's part of a
 * sequence (a piece from its front and one from its back) against every rank's keys, joined; and the
 * gradients, from the o and lse of all keys. With and without dropout, whose masks must agree. argv[1]: the
 * backend. */
#include "tests/kernels/operation.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>

enum { HEADS = 4, KV_HEADS = 2, D = 32, MAX_RING = 4 };

typedef struct shape {
  nx_dtype type;
  int64_t tokens, ring, ulysses;
  double dropout, bound; /* of the difference, norm-wise */
  int64_t window;
  double soft_cap;
  bool alibi;
} shape;

static const nxk_backend *backend;

static tensor make(nx_dtype dtype, uint32_t n_dims, const int64_t *dims) {
  record_value value = {.dtype = dtype, .n_dims = n_dims, .dims = {1, 1, 1, 1}};
  memcpy(value.dims, dims, n_dims * sizeof *dims);
  return tensor_new(&value, VARIANT_F32);
}

static tensor heads_of(nx_dtype dtype, int64_t heads, int64_t tokens) {
  return make(dtype, 4, (int64_t[]){1, heads, tokens, D});
}

/* args: inputs, then outputs, which are written. */
static void run(nx_op op, uint32_t n_in, uint32_t n_out, tensor **args, const shape *s, int64_t first_head) {
  const nxk_attr attrs[NX_MAX_ATTRS] = {
      [NX_attention_scale] = {.kind = NXK_REAL, .real = 0.18},
      [NX_attention_layer_number] = {.kind = NXK_INT, .integer = 1},
      [NX_attention_dropout] = {.kind = NXK_REAL, .real = s->dropout},
      [NX_attention_tensor_id] = {.kind = NXK_INT, .integer = 9},
      [NX_attention_head_start] = {.kind = NXK_INT, .integer = first_head},
      [NX_attention_window] = {.kind = NXK_INT, .integer = s->window},
      [NX_attention_soft_cap] = {.kind = NXK_REAL, .real = s->soft_cap},
      [NX_attention_alibi_heads] = {.kind = NXK_INT, .integer = s->alibi ? HEADS : 0}};
  record_operator row = {.op = op, .n_in = n_in, .n_out = n_out, .n_attrs = nx_op_n_attrs(nx_op_find(op))};
  uint64_t n_bytes = 0;
  tensor results[3];
  memcpy(row.attrs, attrs, row.n_attrs * sizeof *attrs);
  for (uint32_t i = 0; i < n_in + n_out; i++) n_bytes += args[i]->n_bytes;
  for (uint32_t i = 0; i < n_out; i++) results[i] = *args[n_in + i];
  test_bench bench;
  test_operation operation;
  test_layout plain = {0};
  assert_true(bench_open(&bench, backend, n_bytes));
  assert_int_equal(operation_bind(&operation, &bench, &row, args, &plain), BIND_DONE);
  assert_true(operation_run(&operation, args, results, &plain));
  bench_close(&bench);
}

/* Place of token i of a ring rank's part. */
static int64_t place(const shape *s, int64_t rank, int64_t i) {
  int64_t piece = s->tokens / s->ring / 2;
  if (s->ring == 1) return i;
  return i < piece ? rank * piece + i : (2 * s->ring - 1 - rank) * piece + i - piece;
}

/* Heads from `first` on of x[1,h,S,D], and of them a ring rank's tokens. */
static tensor part_of(const shape *s, const tensor *x, int64_t heads, int64_t first, int64_t rank) {
  int64_t n = s->tokens / s->ring;
  tensor part = heads_of(x->dtype, heads, n);
  for (int64_t i = 0; i < part.n_elements; i++) {
    int64_t head = first + i / D / n, token = place(s, rank, i / D % n);
    tensor_set(&part, i, tensor_get(x, (head * s->tokens + token) * D + i % D));
  }
  return part;
}

/* The same of x[1,S,h D]. */
static tensor rows_of(const shape *s, const tensor *x, int64_t heads, int64_t first, int64_t rank) {
  int64_t n = s->tokens / s->ring, width = heads * D;
  tensor part = make(x->dtype, 3, (int64_t[]){1, n, width});
  for (int64_t i = 0; i < part.n_elements; i++)
    tensor_set(&part, i, tensor_get(x, place(s, rank, i / width) * HEADS * D + first * D + i % width));
  return part;
}

static double difference_of(const tensor *x, const tensor *expected) {
  double sum = 0, all = 0;
  for (int64_t i = 0; i < x->n_elements; i++) {
    sum += pow(tensor_get(x, i) - tensor_get(expected, i), 2);
    all += pow(tensor_get(expected, i), 2);
  }
  return sqrt(sum / all);
}

static void demand_same(const shape *s, const char *name, tensor *x, tensor expected) {
  double difference = difference_of(x, &expected);
  if (!(difference <= s->bound))
    fail_msg("%s, ring %d, ulysses %d, %d tokens: %g", name, (int)s->ring, (int)s->ulysses, (int)s->tokens,
             difference);
  free(expected.data);
}

static void add_to(tensor *sum, const tensor *x) {
  for (int64_t i = 0; i < x->n_elements; i++) tensor_set(sum, i, tensor_get(sum, i) + tensor_get(x, i));
}

static void clear(const tensor *x) {
  for (int64_t i = 0; i < x->n_elements; i++) tensor_set(x, i, 0);
}

/* Operands of all heads and tokens. */
typedef struct whole {
  tensor q, k, v, samples, dout, o, lse, dq, dk, dv;
} whole;

static void fill(const tensor *x, double seed) {
  for (int64_t i = 0; i < x->n_elements; i++)
    tensor_set(x, i, sin(seed * (double)(i + 1)) + 0.3 * cos((double)i));
}

static whole whole_of(const shape *s) {
  int64_t n = s->tokens;
  whole w = {.q = heads_of(s->type, HEADS, n), .k = heads_of(s->type, KV_HEADS, n)};
  w.v = heads_of(s->type, KV_HEADS, n);
  w.samples = make(NX_i64, 1, (int64_t[]){1});
  w.dout = make(s->type, 3, (int64_t[]){1, n, HEADS * D});
  w.o = make(s->type, 3, (int64_t[]){1, n, HEADS * D});
  w.lse = make(NX_f32, 3, (int64_t[]){1, HEADS, n});
  w.dq = heads_of(s->type, HEADS, n), w.dk = heads_of(s->type, KV_HEADS, n);
  w.dv = heads_of(s->type, KV_HEADS, n);
  fill(&w.q, 1.7), fill(&w.k, 2.3), fill(&w.v, 0.9), fill(&w.dout, 3.1);
  tensor_set(&w.samples, 0, 77);
  run(NX_OP_attention, 4, 2, (tensor *[]){&w.q, &w.k, &w.v, &w.samples, &w.o, &w.lse}, s, 0);
  run(NX_OP_attention_grad, 7, 3,
      (tensor *[]){&w.dout, &w.q, &w.k, &w.v, &w.o, &w.lse, &w.samples, &w.dq, &w.dk, &w.dv}, s, 0);
  return w;
}

/* What a ring rank has of some heads. */
typedef struct rank_part {
  tensor q, k, v, dout, o, lse, dk, dv, places, starts;
} rank_part;

static rank_part rank_part_of(const shape *s, const whole *w, int64_t heads, int64_t first, int64_t rank) {
  int64_t n = s->tokens / s->ring, kv = heads * KV_HEADS / HEADS, first_kv = first * KV_HEADS / HEADS;
  rank_part r = {.q = part_of(s, &w->q, heads, first, rank),
                 .k = part_of(s, &w->k, kv, first_kv, rank),
                 .v = part_of(s, &w->v, kv, first_kv, rank),
                 .dout = rows_of(s, &w->dout, heads, first, rank),
                 .o = make(s->type, 3, (int64_t[]){1, n, heads * D}),
                 .lse = make(NX_f32, 3, (int64_t[]){1, heads, n}),
                 .dk = heads_of(NX_f32, kv, n),
                 .dv = heads_of(NX_f32, kv, n),
                 .places = make(NX_i32, 1, (int64_t[]){n}),
                 .starts = make(NX_i32, 2, (int64_t[]){1, n})};
  for (int64_t i = 0; i < n; i++) tensor_set(&r.places, i, (double)place(s, rank, i));
  clear(&r.starts), clear(&r.dk), clear(&r.dv);
  return r;
}

static void rank_part_free(rank_part *r) {
  tensor *all[] = {&r->q, &r->k, &r->v, &r->dout, &r->o, &r->lse, &r->dk, &r->dv, &r->places, &r->starts};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->data);
}

/* Blocks in the order in which the keys come by, each joined with those before. */
static void forward(const shape *s, const whole *w, rank_part *parts, int64_t rank, int64_t first) {
  rank_part *own = &parts[rank];
  tensor samples = w->samples, o[2], lse[2];
  tensor joined = make(NX_f32, 3, own->o.dims), joined_lse = tensor_copy(&own->lse);
  for (int i = 0; i < 2; i++) o[i] = make(NX_f32, 3, own->o.dims), lse[i] = tensor_copy(&own->lse);
  for (int64_t round = 0; round < s->ring; round++) {
    rank_part *from = &parts[(rank + s->ring - round) % s->ring];
    int to = round > 0;
    run(NX_OP_attention, 7, 2,
        (tensor *[]){&own->q, &from->k, &from->v, &samples, &own->places, &from->places, &own->starts, &o[to],
                     &lse[to]},
        s, first);
    if (round == 0) continue;
    run(NX_OP_attention_merge, 4, 2, (tensor *[]){&o[0], &lse[0], &o[1], &lse[1], &joined, &joined_lse}, s,
        first);
    memcpy(o[0].data, joined.data, joined.n_bytes);
    memcpy(lse[0].data, joined_lse.data, joined_lse.n_bytes);
  }
  for (int64_t i = 0; i < own->o.n_elements; i++) tensor_set(&own->o, i, tensor_get(&o[0], i));
  memcpy(own->lse.data, lse[0].data, lse[0].n_bytes);
  for (int i = 0; i < 2; i++) free(o[i].data), free(lse[i].data);
  free(joined.data), free(joined_lse.data);
}

/* The gradient of the queries; those of keys and values are added to their rank's. */
static tensor backward(const shape *s, const whole *w, rank_part *parts, int64_t rank, int64_t first) {
  rank_part *own = &parts[rank];
  tensor samples = w->samples, sum = make(NX_f32, 4, own->q.dims), dq = tensor_copy(&sum);
  tensor dk = tensor_copy(&own->dk), dv = tensor_copy(&own->dv);
  clear(&sum);
  for (int64_t round = 0; round < s->ring; round++) {
    rank_part *from = &parts[(rank + s->ring - round) % s->ring];
    run(NX_OP_attention_grad, 10, 3,
        (tensor *[]){&own->dout, &own->q, &from->k, &from->v, &own->o, &own->lse, &samples, &own->places,
                     &from->places, &own->starts, &dq, &dk, &dv},
        s, first);
    add_to(&sum, &dq), add_to(&from->dk, &dk), add_to(&from->dv, &dv);
  }
  free(dq.data), free(dk.data), free(dv.data);
  return sum;
}

static void compare_heads(const shape *s, const whole *w, int64_t heads, int64_t first) {
  int64_t kv = heads * KV_HEADS / HEADS, first_kv = first * KV_HEADS / HEADS;
  rank_part parts[MAX_RING];
  for (int64_t rank = 0; rank < s->ring; rank++) parts[rank] = rank_part_of(s, w, heads, first, rank);
  for (int64_t rank = 0; rank < s->ring; rank++) {
    forward(s, w, parts, rank, first);
    demand_same(s, "o", &parts[rank].o, rows_of(s, &w->o, heads, first, rank));
  }
  for (int64_t rank = 0; rank < s->ring; rank++) {
    tensor dq = backward(s, w, parts, rank, first);
    demand_same(s, "dq", &dq, part_of(s, &w->dq, heads, first, rank));
    free(dq.data);
  }
  for (int64_t rank = 0; rank < s->ring; rank++) {
    demand_same(s, "dk", &parts[rank].dk, part_of(s, &w->dk, kv, first_kv, rank));
    demand_same(s, "dv", &parts[rank].dv, part_of(s, &w->dv, kv, first_kv, rank));
    rank_part_free(&parts[rank]);
  }
}

static void compare(const shape *s) {
  whole w = whole_of(s);
  for (int64_t ulysses = 0; ulysses < s->ulysses; ulysses++)
    compare_heads(s, &w, HEADS / s->ulysses, ulysses * HEADS / s->ulysses);
  tensor *all[] = {&w.q, &w.k, &w.v, &w.samples, &w.dout, &w.o, &w.lse, &w.dq, &w.dk, &w.dv};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->data);
}

static void divided_attention_is_the_plain_one(void **state) {
  (void)state;
  for (int64_t ring = 1; ring <= MAX_RING; ring++) {
    compare(&(shape){NX_f32, 24 * ring, ring, 1, 0, 4e-6});
    compare(&(shape){NX_f32, 24 * ring, ring, 2, 0.3, 4e-6});
  }
  compare(&(shape){NX_bf16, 24 * 2, 2, 2, 0.3, 1e-2});
}

/* More than a tile of queries, pieces that no tile and no four of a counter divide. */
static void divided_attention_of_many_tiles(void **state) {
  (void)state;
  compare(&(shape){NX_f32, 2 * 150, 2, 1, 0.1, 4e-6});
  compare(&(shape){NX_bf16, 2 * 150, 2, 1, 0.1, 1e-2});
  compare(&(shape){NX_bf16, 3 * 128, 3, 2, 0, 1e-2});
}

/* Windows shorter than a piece, as long as a tile, and reaching over pieces: some blocks have nothing to
 * read. */
static void divided_attention_in_windows(void **state) {
  (void)state;
  static const int64_t windows[] = {2, 5, 64, 130};
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    compare(&(shape){NX_f32, 3 * 96, 3, 1, 0, 4e-6, .window = windows[i]});
    compare(&(shape){NX_bf16, 2 * 150, 2, 2, 0.1, 1e-2, .window = windows[i]});
  }
}

/* Tanh errs by more ulps than the rest. */
static void divided_attention_with_bent_scores(void **state) {
  (void)state;
  compare(&(shape){NX_f32, 2 * 150, 2, 2, 0, 6e-6, .soft_cap = 3});
  compare(&(shape){NX_f32, 2 * 150, 2, 2, 0.1, 4e-6, .alibi = true});
  compare(&(shape){NX_bf16, 3 * 128, 3, 2, 0, 1e-2, .soft_cap = 3, .window = 70});
  compare(&(shape){NX_bf16, 3 * 128, 3, 2, 0, 1e-2, .alibi = true});
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(divided_attention_is_the_plain_one),
      cmocka_unit_test(divided_attention_of_many_tiles),
      cmocka_unit_test(divided_attention_in_windows),
      cmocka_unit_test(divided_attention_with_bent_scores),
  };
  backend = argc > 1 ? nxk_backend_find(argv[1]) : NULL;
  if (backend == NULL) return 2;
  return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
}
