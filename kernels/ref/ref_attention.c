/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention over grouped heads, its gradient, and attention over some keys joined with that over
 * others.
 *
 * s_ij = scale q_i k_j (capped, less what ALiBi takes, and with what a table has for the distance) for the
 * keys j that query i reads, p_ij = exp(s_ij - lse_i), o_i = sum_j c_ij p_ij v_j, where c_ij is 0 or
 * 1 / (1 - dropout). Scores are divided by layer_number and multiplied back, which changes no number here but
 * keeps half-precision scores small elsewhere. Sums run over ascending keys; gradients of keys and values
 * over ascending heads, then queries. */
#include "kernels/alibi.h"
#include "kernels/blocks.h"
#include "kernels/ref/ref.h"
#include "kernels/relative.h"
#include "schema/philox.h"

#include <math.h>

typedef struct attention {
  int64_t batches, heads, kv_heads, tokens, keys;
  int64_t d, e; /* features of a key, of a value */
  double scale, layer, dropout, soft_cap;
  uint32_t tensor_id, threshold;
  int64_t head_start, window, alibi_heads;
  uint64_t seed;
  const int32_t *places, *key_places, *starts; /* NULL: a query reads the keys up to its own */
  ref_operand table;                           /* [buckets, heads of the model] of the distances' biases */
  bool relative;                               /* there is one */
  int64_t max_distance;
  double factor;
  double *dtable; /* [buckets, heads]; backward */
  nxk_blocks blocks;
} attention;

/* What only some forms have, which stands behind the samples. */
static void read_form(const ref_call *call, attention *p, uint32_t input) {
  nx_op op = call->operator->op;
  ref_operand operand = ref_in(call, input);
  if (op == NX_OP_attention_relative || op == NX_OP_attention_relative_grad) {
    p->relative = true;
    p->table = operand;
    p->max_distance = ref_int(call, NX_attention_relative_max_distance);
    p->factor = ref_real(call, NX_attention_relative_factor);
  } else {
    p->blocks = (nxk_blocks){.bits = operand.data,
                             .n_layouts = operand.dims[0],
                             .n_rows = operand.dims[1],
                             .n_words = operand.dims[2],
                             .block = ref_int(call, NX_attention_sparse_block)};
  }
}

/* `first` is the input behind the samples. */
static attention attention_shape(const ref_call *call, const ref_operand *q, const ref_operand *k,
                                 const ref_operand *v, uint32_t first) {
  double dropout = ref_real(call, NX_attention_dropout);
  nx_op op = call->operator->op;
  bool plain = op == NX_OP_attention || op == NX_OP_attention_grad;
  uint32_t form = first;
  if (!plain) first++;
  bool placed = call->operator->n_in > first;
  attention p = {
      .batches = q->dims[0],
      .heads = q->dims[1],
      .kv_heads = k->dims[1],
      .tokens = q->dims[2],
      .keys = k->dims[2],
      .d = q->dims[3],
      .e = v->dims[3],
      .scale = ref_real(call, NX_attention_scale),
      .layer = (double)ref_int(call, NX_attention_layer_number),
      .dropout = dropout,
      .tensor_id = (uint32_t)ref_int(call, NX_attention_tensor_id),
      .threshold = nx_philox_threshold(dropout),
      .head_start = ref_int(call, NX_attention_head_start),
      .window = ref_int(call, NX_attention_window),
      .soft_cap = ref_real(call, NX_attention_soft_cap),
      .alibi_heads = ref_int(call, NX_attention_alibi_heads),
      .seed = call->frame->seed,
      .places = placed ? ref_in(call, first).data : NULL,
      .key_places = placed ? ref_in(call, first + 1).data : NULL,
      .starts = placed ? ref_in(call, first + 2).data : NULL,
  };
  if (!plain) read_form(call, &p, form);
  return p;
}

/* Keys behind the last that a query may read. */
static int64_t keys_end(const attention *p, int64_t query) {
  return p->places ? p->keys : query + 1;
}

/* Places from the key to the query. */
static int64_t distance(const attention *p, int64_t query, int64_t key) {
  return p->places ? (int64_t)p->places[query] - p->key_places[key] : query - key;
}

/* The query and key of a score by number: of the head, of the query, of the key. */
typedef struct score_place {
  int64_t head, query, key;
} score_place;

static bool reads_block(const attention *p, score_place at) {
  int64_t query = p->places ? p->places[at.query] : at.query, block = p->blocks.block;
  int64_t key = p->places ? p->key_places[at.key] : at.key;
  return nxk_blocks_read(&p->blocks, p->head_start + at.head, query / block, key / block);
}

static bool reads(const attention *p, int64_t batch, score_place at) {
  int64_t away = distance(p, at.query, at.key);
  if (away < 0 || (p->window > 0 && away >= p->window)) return false;
  if (p->places && p->starts[batch * p->tokens + at.query] > p->key_places[at.key]) return false;
  return p->blocks.bits == NULL || reads_block(p, at);
}

/* c_ij of one query. */
static void keep_factors(const attention *p, uint64_t sample, int64_t head, int64_t query, double *factors) {
  nx_philox words = {{0}};
  int64_t drawn = INT64_MAX, query_place = p->places ? p->places[query] : query;
  for (int64_t key = 0; key < keys_end(p, query); key++) {
    int64_t place = p->places ? p->key_places[key] : key;
    if (p->dropout > 0 && place >> 2 != drawn)
      words = nx_philox_attention(p->seed, p->tensor_id, sample, (uint32_t)(p->head_start + head),
                                  (uint32_t)query_place, (uint32_t)(drawn = place >> 2));
    bool kept = p->dropout <= 0 || nx_philox_keeps(words.word[place & 3], p->threshold);
    factors[key] = kept ? 1 / (1 - p->dropout) : 0;
  }
}

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* Where the table has the bias of a score. */
static int64_t bias_entry(const attention *p, score_place at) {
  int64_t bucket =
      nxk_relative_bucket(distance(p, at.query, at.key), p->table.dims[0], p->max_distance);
  return bucket * p->table.dims[1] + p->head_start + at.head;
}

/* `slope`: of the score by the product of query and key, over the scale. */
static double score(const attention *p, const double *query, const double *key, score_place at,
                    double *slope) {
  double s = dot(query, key, p->d) * p->scale / p->layer * p->layer, t = 0;
  if (p->soft_cap > 0) t = tanh(s / p->soft_cap), s = p->soft_cap * t;
  if (p->alibi_heads > 0)
    s -= nxk_alibi_slope(p->alibi_heads, p->head_start + at.head) * (double)distance(p, at.query, at.key);
  if (p->relative) s += p->factor * ref_load(&p->table, bias_entry(p, at));
  *slope = 1 - t * t;
  return s;
}

/* Softmax over n keys in place, -infinity where one is not read; returns the logarithm of the sum of the
 * exponentials. */
static double softmax(double *scores, int64_t n) {
  double largest = -INFINITY, sum = 0;
  for (int64_t key = 0; key < n; key++) largest = scores[key] > largest ? scores[key] : largest;
  for (int64_t key = 0; key < n; key++)
    sum += scores[key] = largest > -INFINITY ? exp(scores[key] - largest) : 0;
  for (int64_t key = 0; key < n && sum > 0; key++) scores[key] /= sum;
  return largest + log(sum);
}

/* Keys and values of one kv head, scores and factors of one query, q and o of one query. */
int64_t ref_attention_work(const nxk_operator *operator) {
  int64_t keys = operator->args[1].dims[2], d = operator->args[1].dims[3], e = operator->args[2].dims[3];
  return keys * (d + e) + 2 * keys + d + e;
}

void ref_attention(const ref_call *call) {
  ref_operand q = ref_in(call, 0), k = ref_in(call, 1), v = ref_in(call, 2), samples = ref_in(call, 3);
  ref_operand o = ref_out(call, 0), lse = ref_out(call, 1);
  attention p = attention_shape(call, &q, &k, &v, 4);
  int64_t s = p.tokens, d = p.d, e = p.e;
  double *keys = call->work, *values = keys + p.keys * d, *scores = values + p.keys * e;
  double *factors = scores + p.keys, *query = factors + p.keys, *sum = query + d;
  for (int64_t batch = 0; batch < p.batches; batch++)
    for (int64_t head = 0; head < p.heads; head++) {
      int64_t kv = batch * p.kv_heads + head * p.kv_heads / p.heads;
      ref_load_row(&k, kv * p.keys * d, 1, p.keys * d, keys);
      ref_load_row(&v, kv * p.keys * e, 1, p.keys * e, values);
      for (int64_t i = 0; i < s; i++) {
        int64_t at = (batch * p.heads + head) * s + i, end = keys_end(&p, i);
        ref_load_row(&q, at * d, 1, d, query);
        for (int64_t j = 0; j < end; j++) {
          const score_place place = {head, i, j};
          scores[j] =
              reads(&p, batch, place) ? score(&p, query, keys + j * d, place, &(double){0}) : -INFINITY;
        }
        ref_store(&lse, at, softmax(scores, end));
        keep_factors(&p, (uint64_t)ref_index(&samples, batch), head, i, factors);
        for (int64_t f = 0; f < e; f++) sum[f] = 0;
        for (int64_t j = 0; j < end; j++)
          for (int64_t f = 0; f < e; f++) sum[f] += factors[j] * scores[j] * values[j * e + f];
        ref_store_row(&o, ((batch * s + i) * p.heads + head) * e, e, sum);
      }
    }
}

/* Doubles of the gradient: keys, values and their gradients of one kv head, and rows of one query. */
typedef struct rows {
  double *keys, *dkeys, *values, *dvalues;   /* [K,d], [K,e] */
  double *factors;                           /* [K] */
  double *query, *dquery, *doutput, *output; /* [d], [e] */
} rows;

int64_t ref_attention_grad_work(const nxk_operator *operator) {
  int64_t keys = operator->args[2].dims[2], d = operator->args[2].dims[3], e = operator->args[3].dims[3];
  return 2 * keys * (d + e) + keys + 2 * (d + e);
}

/* And the sums of the table's gradient. */
int64_t ref_attention_relative_grad_work(const nxk_operator *operator) {
  return ref_attention_grad_work(operator) + operator->args[7].dims[0] * operator->args[7].dims[1];
}

static rows rows_of(double *work, const attention *p) {
  int64_t keys = p->keys, d = p->d, e = p->e;
  double *values = work + 2 * keys * d, *factors = values + 2 * keys * e, *query = factors + keys;
  return (rows){work,  work + keys * d, values,        values + keys * e, factors,
                query, query + d,       query + 2 * d, query + 2 * d + e};
}

/* With D = do . o: ds_ij = p_ij (c_ij do_i . v_j - D_i), dq_i = scale sum_j ds_ij k_j,
 * dk_j = scale sum_i ds_ij q_i, dv_j = sum_i c_ij p_ij do_i. */
static void query_grad(const attention *p, const rows *r, int64_t batch, int64_t head, int64_t i,
                       double lse) {
  int64_t d = p->d, e = p->e;
  double delta = dot(r->doutput, r->output, e);
  for (int64_t f = 0; f < d; f++) r->dquery[f] = 0;
  for (int64_t j = 0; j < keys_end(p, i); j++) {
    const score_place place = {head, i, j};
    if (!reads(p, batch, place)) continue;
    double slope, weight = exp(score(p, r->query, r->keys + j * d, place, &slope) - lse);
    double dweight = r->factors[j] * dot(r->doutput, r->values + j * e, e);
    if (p->relative) p->dtable[bias_entry(p, place)] += weight * (dweight - delta) * p->factor;
    double dscore = weight * (dweight - delta) * p->scale * slope;
    for (int64_t f = 0; f < d; f++) {
      r->dquery[f] += dscore * r->keys[j * d + f];
      r->dkeys[j * d + f] += dscore * r->query[f];
    }
    for (int64_t f = 0; f < e; f++) r->dvalues[j * e + f] += r->factors[j] * weight * r->doutput[f];
  }
}

typedef struct grad_operands {
  ref_operand doutput, q, k, v, o, lse, samples, dq, dk, dv;
} grad_operands;

static void head_grad(const attention *p, const grad_operands *x, const rows *r, int64_t batch,
                      int64_t head) {
  int64_t s = p->tokens, d = p->d, e = p->e;
  for (int64_t i = 0; i < s; i++) {
    int64_t at = (batch * p->heads + head) * s + i, at_o = ((batch * s + i) * p->heads + head) * e;
    ref_load_row(&x->q, at * d, 1, d, r->query);
    ref_load_row(&x->doutput, at_o, 1, e, r->doutput);
    ref_load_row(&x->o, at_o, 1, e, r->output);
    keep_factors(p, (uint64_t)ref_index(&x->samples, batch), head, i, r->factors);
    query_grad(p, r, batch, head, i, ref_load(&x->lse, at));
    ref_store_row(&x->dq, at * d, d, r->dquery);
  }
}

void ref_attention_grad(const ref_call *call) {
  grad_operands x = {ref_in(call, 0), ref_in(call, 1), ref_in(call, 2),  ref_in(call, 3),  ref_in(call, 4),
                     ref_in(call, 5), ref_in(call, 6), ref_out(call, 0), ref_out(call, 1), ref_out(call, 2)};
  attention p = attention_shape(call, &x.q, &x.k, &x.v, 7);
  int64_t n = p.keys * p.d, n_values = p.keys * p.e, group = p.heads / p.kv_heads;
  rows r = rows_of(call->work, &p);
  p.dtable = r.output + p.e;
  for (int64_t i = 0; p.relative && i < p.table.n_elements; i++) p.dtable[i] = 0;
  for (int64_t batch = 0; batch < p.batches; batch++)
    for (int64_t kv_head = 0; kv_head < p.kv_heads; kv_head++) {
      int64_t at = batch * p.kv_heads + kv_head;
      ref_load_row(&x.k, at * n, 1, n, r.keys);
      ref_load_row(&x.v, at * n_values, 1, n_values, r.values);
      for (int64_t i = 0; i < n; i++) r.dkeys[i] = 0;
      for (int64_t i = 0; i < n_values; i++) r.dvalues[i] = 0;
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++)
        head_grad(&p, &x, &r, batch, head);
      ref_store_row(&x.dk, at * n, n, r.dkeys);
      ref_store_row(&x.dv, at * n_values, n_values, r.dvalues);
    }
  if (!p.relative) return;
  ref_operand dtable = ref_out(call, 3);
  ref_store_row(&dtable, 0, p.table.n_elements, p.dtable);
}

void ref_attention_relative(const ref_call *call) {
  ref_attention(call);
}

void ref_attention_relative_grad(const ref_call *call) {
  ref_attention_grad(call);
}

void ref_attention_sparse(const ref_call *call) {
  ref_attention(call);
}

void ref_attention_sparse_grad(const ref_call *call) {
  ref_attention_grad(call);
}

/* The weights of the two sides are exp(lse - lse of both). */
void ref_attention_merge(const ref_call *call) {
  ref_operand a = ref_in(call, 0), lse_a = ref_in(call, 1), b = ref_in(call, 2), lse_b = ref_in(call, 3);
  ref_operand o = ref_out(call, 0), lse = ref_out(call, 1);
  int64_t heads = lse.dims[1], s = lse.dims[2], d = ref_last_dim(&o) / heads;
  for (int64_t row = 0; row < lse.n_elements; row++) {
    int64_t batch = row / s / heads, head = row / s % heads;
    int64_t first = ((batch * s + row % s) * heads + head) * d;
    double left = ref_load(&lse_a, row), right = ref_load(&lse_b, row);
    double largest = left > right ? left : right;
    bool empty = isinf(largest);
    double x = empty ? 0 : exp(left - largest), y = empty ? 0 : exp(right - largest), sum = x + y;
    for (int64_t f = first; f < first + d; f++)
      ref_store(&o, f, empty ? 0 : (x * ref_load(&a, f) + y * ref_load(&b, f)) / sum);
    ref_store(&lse, row, largest + log(sum));
  }
}

/* What is read weighs as much as the sum of its exponentials against the sink's. */
void ref_attention_sink(const ref_call *call) {
  ref_operand o = ref_in(call, 0), lse = ref_in(call, 1), sinks = ref_in(call, 2);
  ref_operand y = ref_out(call, 0), y_lse = ref_out(call, 1);
  int64_t heads = lse.dims[1], s = lse.dims[2], d = ref_last_dim(&o) / heads;
  int64_t first_head = ref_int(call, NX_attention_sink_first);
  for (int64_t row = 0; row < lse.n_elements; row++) {
    int64_t batch = row / s / heads, head = row / s % heads;
    int64_t first = ((batch * s + row % s) * heads + head) * d;
    double read = ref_load(&lse, row), sink = ref_load(&sinks, first_head + head);
    double largest = read > sink ? read : sink,
           all = largest + log(exp(read - largest) + exp(sink - largest));
    for (int64_t f = first; f < first + d; f++) ref_store(&y, f, ref_load(&o, f) * exp(read - all));
    ref_store(&y_lse, row, all);
  }
}

/* A query's weight of the sink, times what less of it would have added. */
void ref_attention_sink_grad(const ref_call *call) {
  ref_operand d_o = ref_in(call, 0), o = ref_in(call, 1), lse = ref_in(call, 2), sinks = ref_in(call, 3);
  ref_operand dsinks = ref_out(call, 0);
  int64_t heads = lse.dims[1], s = lse.dims[2], d = ref_last_dim(&o) / heads;
  int64_t first_head = ref_int(call, NX_attention_sink_grad_first);
  bool adds = ref_int(call, NX_attention_sink_grad_accumulate);
  for (int64_t at = 0; at < sinks.n_elements; at++) {
    int64_t head = at - first_head;
    double sum = 0, sink = ref_load(&sinks, at);
    for (int64_t token = 0; head >= 0 && head < heads && token < lse.n_elements / heads; token++) {
      int64_t first = (token * heads + head) * d, row = (token / s * heads + head) * s + token % s;
      double inner = 0;
      for (int64_t f = first; f < first + d; f++) inner += ref_load(&d_o, f) * ref_load(&o, f);
      sum -= exp(sink - ref_load(&lse, row)) * inner;
    }
    ref_store_sum(&dsinks, at, sum, adds);
  }
}
