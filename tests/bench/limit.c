/* SPDX-License-Identifier: Apache-2.0 */
/* limit PLAN [ROUNDS]: the time that one step's matrix products take, and nothing else: what nxrun is
 * measured against.
 *
 * Every product that the plan's first stage runs in a step is timed alone, with operands that lie in memory
 * as the plan has them (plain) and as oneDNN likes them best (packed; packing itself is not counted); the
 * faster counts. Experts count as products of equal shares of the rows. Attention counts as its six dense
 * products per head, forward and backward, each at half: the other half is masked. A round times every shape
 * once; medians over the rounds are added up. Prints the milliseconds of a step. */
#include "kernels/cpu/dnnl_compat.h"
#include "schema/plan.h"

#include <fcntl.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_PRODUCTS = 256, MAX_ROUNDS = 64, N_FORMS = 3 /* plain, right side packed, both packed */ };

typedef struct product {
  int64_t batch, m, n, k; /* batch 1: one matrix, else a stack */
  bool trans_a, trans_b, accumulate;
  nx_dtype type, c_type;
  double n_runs; /* per step */
} product;

typedef struct timed {
  dnnl_primitive_t primitive;
  dnnl_memory_t memory[4];
  double seconds[MAX_ROUNDS];
} timed;

typedef struct limit {
  product products[MAX_PRODUCTS];
  timed forms[MAX_PRODUCTS][N_FORMS];
  uint32_t n_products, n_rounds;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  void *blocks[4]; /* left, right, result, scratchpad: shared by all */
  size_t n_bytes[4];
} limit;

static void fail(const char *why) {
  fprintf(stderr, "limit: %s\n", why);
  exit(1);
}

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void product_add(limit *l, product p) {
  for (uint32_t i = 0; i < l->n_products; i++) {
    product *q = &l->products[i];
    if (q->batch != p.batch || q->m != p.m || q->n != p.n || q->k != p.k || q->trans_a != p.trans_a ||
        q->trans_b != p.trans_b || q->accumulate != p.accumulate || q->type != p.type ||
        q->c_type != p.c_type)
      continue;
    q->n_runs += p.n_runs;
    return;
  }
  if (l->n_products == MAX_PRODUCTS)
    fail("the plan has more shapes of products than this program has room for");
  l->products[l->n_products++] = p;
}

static const nx_value *operand(const nx_plan *plan, const nx_operator *op, uint32_t index) {
  return &plan->values[plan->arguments[op->first_argument + index]];
}

static int64_t columns_of(const nx_value *value) {
  return value->dims[value->n_dims - 1];
}

static int64_t rows_of(const nx_value *value) {
  int64_t n = 1;
  for (int dim = 0; dim + 1 < value->n_dims; dim++) n *= value->dims[dim];
  return n;
}

static void add_matmul(limit *l, const nx_plan *plan, const nx_operator *op) {
  const nx_attribute *attrs = &plan->attributes[op->first_attribute];
  const nx_value *a = operand(plan, op, 0), *b = operand(plan, op, 1), *c = operand(plan, op, op->n_in);
  product p = {.batch = 1, .m = rows_of(c), .n = columns_of(c), .n_runs = 1, .c_type = (nx_dtype)c->dtype};
  p.trans_a = attrs[NX_matmul_trans_a].integer;
  p.trans_b = attrs[NX_matmul_trans_b].integer;
  p.accumulate = attrs[NX_matmul_accumulate].integer;
  p.k = p.trans_a ? rows_of(a) : columns_of(a);
  p.type = a->dtype == NX_bf16 && b->dtype == NX_bf16 ? NX_bf16 : NX_f32;
  if (p.type == NX_f32) p.c_type = NX_f32;
  product_add(l, p);
}

/* One product for each expert of those rows that a balanced load gives it. */
static void add_grouped(limit *l, const nx_plan *plan, const nx_operator *op) {
  bool gradient = op->op == NX_OP_grouped_wgrad;
  const nx_attribute *attrs = &plan->attributes[op->first_attribute];
  const nx_value *left = operand(plan, op, 0), *right = operand(plan, op, gradient ? 1 : 2),
                 *result = operand(plan, op, op->n_in), *weights = gradient ? result : right;
  uint32_t rows_at = gradient ? NX_grouped_wgrad_rows : NX_grouped_matmul_rows;
  int64_t rows = attrs[rows_at].integer / weights->dims[0];
  product p = {.batch = weights->dims[0],
               .m = rows,
               .n = columns_of(result),
               .k = columns_of(left),
               .n_runs = 1,
               .c_type = (nx_dtype)result->dtype,
               .type = (nx_dtype)left->dtype};
  if (gradient) {
    p.m = columns_of(left);
    p.k = rows;
    p.trans_a = true;
    p.accumulate = attrs[NX_grouped_wgrad_accumulate].integer;
  } else p.trans_b = attrs[NX_grouped_matmul_trans_b].integer;
  if (rows > 0) product_add(l, p);
}

/* Forward q k^T and p v; backward do v^T, p^T do, ds k, ds^T q. */
static void add_attention(limit *l, const nx_value *q, bool backward) {
  int64_t batch = q->dims[0] * q->dims[1], s = q->dims[2], d = q->dims[3];
  product wide = {.batch = batch,
                  .m = s,
                  .n = s,
                  .k = d,
                  .trans_b = true,
                  .type = (nx_dtype)q->dtype,
                  .c_type = (nx_dtype)q->dtype,
                  .n_runs = 0.5};
  product tall = wide;
  tall.n = d;
  tall.k = s;
  tall.trans_b = false;
  product_add(l, wide);
  product_add(l, tall);
  if (!backward) return;
  tall.trans_a = true;
  tall.n_runs = 1;
  product_add(l, tall);
}

static void add_program(limit *l, const nx_plan *plan, uint32_t program, uint8_t when) {
  if (program == NX_NONE) return;
  const nx_program *p = &plan->programs[program];
  for (uint32_t i = p->first_operator; i < p->first_operator + p->n_operators; i++) {
    const nx_operator *op = &plan->operators[i];
    if (!(op->when & when)) continue;
    if (op->op == NX_OP_matmul) add_matmul(l, plan, op);
    if (op->op == NX_OP_grouped_matmul || op->op == NX_OP_grouped_wgrad) add_grouped(l, plan, op);
    if (op->op == NX_OP_attention) add_attention(l, operand(plan, op, 0), false);
    if (op->op == NX_OP_attention_grad) add_attention(l, operand(plan, op, 1), true);
  }
}

static void collect(limit *l, const nx_plan *plan) {
  const nx_schedule *training = nx_plan_schedule(plan, NX_SCHEDULE_TRAIN);
  for (uint32_t i = 0; i < training->n_items; i++) {
    const nx_item *item = &plan->items[training->first_item + i];
    if (item->stage != 0 || item->chunk >= plan->n[NX_SECTION_CHUNKS]) continue;
    add_program(l, plan, nx_item_program(plan, item), item->when);
  }
}

static bool matrix(dnnx_md *md, int64_t batch, int64_t rows, int64_t columns, bool transposed, bool packed,
                   nx_dtype type) {
  dnnl_dims_t dims = {batch, rows, columns};
  dnnl_dims_t strides = {rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
  int skipped = batch == 1;
  dnnl_dim_t *from = dims + skipped, *strides_from = strides + skipped;
  return dnnx_md_make(md, 3 - skipped, from, type == NX_bf16 ? dnnl_bf16 : dnnl_f32,
                      packed ? NULL : strides_from) == dnnl_success;
}

static dnnl_primitive_attr_t attributes(bool accumulate) {
  dnnl_primitive_attr_t attr;
  dnnl_post_ops_t post_ops;
  if (dnnl_primitive_attr_create(&attr) || dnnl_post_ops_create(&post_ops)) fail("oneDNN has no attributes");
  dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  if (accumulate) dnnx_append_sum(post_ops);
  dnnl_primitive_attr_set_post_ops(attr, post_ops);
  dnnl_post_ops_destroy(post_ops);
  return attr;
}

/* Without a primitive where oneDNN does not know the form. */
static void form_make(limit *l, const product *p, int form, timed *t) {
  static const dnnl_query_t queries[4] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md,
                                          dnnl_query_scratchpad_md};
  dnnx_md a, b, c;
  dnnl_primitive_desc_t pd;
  dnnl_primitive_attr_t attr = attributes(p->accumulate);
  if (!matrix(&a, p->batch, p->m, p->k, p->trans_a, form == 2, p->type) ||
      !matrix(&b, p->batch, p->k, p->n, p->trans_b, form >= 1, p->type) ||
      !matrix(&c, p->batch, p->m, p->n, false, false, p->c_type))
    fail("oneDNN knows no such matrix");
  if (dnnx_matmul(&pd, l->engine, &a, &b, NULL, &c, attr) == dnnl_success) {
    if (dnnl_primitive_create(&t->primitive, pd) != dnnl_success) fail("oneDNN makes no primitive");
    for (int i = 0; i < 4; i++) {
      dnnx_const_md md = dnnl_primitive_desc_query_md(pd, queries[i], 0);
      size_t n_bytes = dnnl_memory_desc_get_size(md);
      if (n_bytes > l->n_bytes[i]) l->n_bytes[i] = n_bytes;
      if (dnnl_memory_create(&t->memory[i], md, l->engine, DNNL_MEMORY_NONE) != dnnl_success)
        fail("no memory");
    }
    dnnl_primitive_desc_destroy(pd);
  }
  dnnx_md_free(&a);
  dnnx_md_free(&b);
  dnnx_md_free(&c);
  dnnl_primitive_attr_destroy(attr);
}

/* In fp32 where oneDNN does not multiply bf16 on this machine. */
static void product_make(limit *l, uint32_t index) {
  product *p = &l->products[index];
  for (int form = 0; form < N_FORMS; form++) form_make(l, p, form, &l->forms[index][form]);
  if (l->forms[index][0].primitive || p->type == NX_f32) return;
  p->type = p->c_type = NX_f32;
  for (int form = 0; form < N_FORMS; form++) form_make(l, p, form, &l->forms[index][form]);
}

static void forms_make(limit *l) {
  for (uint32_t i = 0; i < l->n_products; i++) product_make(l, i);
  for (int i = 0; i < 4; i++) {
    l->blocks[i] = aligned_alloc(64, (l->n_bytes[i] + 4096) / 64 * 64);
    if (!l->blocks[i]) fail("out of memory");
    for (size_t j = 0; j + 4 <= l->n_bytes[i]; j += 4)
      *(uint32_t *)((char *)l->blocks[i] + j) = 0x3E003E00U + j % 97;
  }
}

static double form_run(const limit *l, const timed *t) {
  static const int numbers[4] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
  dnnl_exec_arg_t args[4];
  for (int i = 0; i < 4; i++) {
    dnnl_memory_set_data_handle(t->memory[i], l->blocks[i]);
    args[i] = (dnnl_exec_arg_t){numbers[i], t->memory[i]};
  }
  double start = now_s();
  if (dnnl_primitive_execute(t->primitive, l->stream, 4, args) != dnnl_success) fail("oneDNN failed");
  dnnl_stream_wait(l->stream);
  return now_s() - start;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(timed *t, uint32_t n) {
  qsort(t->seconds, n, sizeof *t->seconds, ascending);
  return t->seconds[n / 2];
}

static double total_s(limit *l) {
  double total = 0;
  for (uint32_t i = 0; i < l->n_products; i++) {
    const product *p = &l->products[i];
    double best = 0;
    for (int form = 0; form < N_FORMS; form++) {
      double seconds = l->forms[i][form].primitive ? median(&l->forms[i][form], l->n_rounds) : 0;
      if (seconds > 0 && (best == 0 || seconds < best)) best = seconds;
    }
    if (best == 0) fail("oneDNN multiplies none of the forms of a product");
    fprintf(stderr, "%6.1f x %3lld x [%lld, %lld] [%lld, %lld]%s %s %9.3f ms %7.1f GFLOP/s\n", p->n_runs,
            (long long)p->batch, (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n,
            p->accumulate ? " +=" : "", nx_dtype_name(p->type), best * 1e3,
            2e-9 * (double)(p->batch * p->m * p->n * p->k) / best);
    total += best * p->n_runs;
  }
  return total;
}

static nx_plan plan_open(const char *path) {
  struct stat info;
  nx_plan plan;
  nx_fault fault;
  int file = open(path, O_RDONLY);
  if (file < 0 || fstat(file, &info) != 0) fail("the plan can not be read");
  void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) fail("the plan can not be mapped");
  if (!nx_plan_check(bytes, (uint64_t)info.st_size, &plan, &fault)) fail(fault.text);
  return plan;
}

int main(int argc, char **argv) {
  static limit l = {.n_rounds = 5};
  if (argc < 2 || argc > 3) fail("usage: limit PLAN [ROUNDS]");
  if (argc == 3) l.n_rounds = (uint32_t)strtoul(argv[2], NULL, 10);
  if (l.n_rounds < 1 || l.n_rounds > MAX_ROUNDS) fail("ROUNDS is from 1 to 64");
  nx_plan plan = plan_open(argv[1]);
  omp_set_num_threads((int)plan.run->n_threads);
  if (dnnl_engine_create(&l.engine, dnnl_cpu, 0) ||
      dnnl_stream_create(&l.stream, l.engine, dnnl_stream_default_flags))
    fail("oneDNN has no CPU engine");
  collect(&l, &plan);
  forms_make(&l);
  for (uint32_t round = 0; round <= l.n_rounds; round++) /* round 0 warms up */
    for (uint32_t i = 0; i < l.n_products; i++)
      for (int form = 0; form < N_FORMS; form++)
        if (l.forms[i][form].primitive)
          l.forms[i][form].seconds[round ? round - 1 : 0] = form_run(&l, &l.forms[i][form]);
  printf("%.3f\n", total_s(&l) * 1e3);
  return 0;
}
