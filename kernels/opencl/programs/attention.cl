/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention over grouped heads without the matrix of scores: an item has a query (in the gradient of
 * keys and values a key), and a group reads the others in blocks of BLOCK through local memory. HEAD_D and
 * HEAD_E are the features of a key and of a value. Sums run over ascending keys; those of keys and values
 * over ascending heads, then queries. */
#define logf(x) log((float)(x))
#include "kernels/alibi.h"
#include "kernels/relative.h"
#include "schema/philox.h"

/* The text before says which inputs are Q, K, V, SAMPLE, and, where there are, DO, O, LSE, TABLE, BLOCKS,
 * PLACE, KEY_PLACE and START. */
#ifdef DO
#define Q_DIM(d) XDIM(1, d)
#define K_DIM(d) XDIM(2, d)
#else
#define Q_DIM(d) XDIM(0, d)
#define K_DIM(d) XDIM(1, d)
#endif
#ifdef PLACE
enum { PLACED = 1 };
#else
enum { PLACED = 0 };
#define PLACE(i) (i)
#define KEY_PLACE(j) (j)
#define START(i) 0
#endif

/* What a table has for the distance, and whether blocks are read. */
#ifdef TABLE
#define ENTRY(away) \
  (nxk_relative_bucket(away, XDIM(EXTRA, 2), A_max_distance) * XDIM(EXTRA, 3) + A_head_start + head)
#define BIAS(away) ((float)A_factor * TABLE(ENTRY(away)))
#else
#define BIAS(away) 0
#endif
#ifdef BLOCKS
#define LAYOUT (XDIM(EXTRA, 1) > 1 ? A_head_start + head : 0)
#define IN_BLOCKS(place, key_place) \
  ((ulong)BLOCKS((LAYOUT * XDIM(EXTRA, 2) + (place) / A_block) * XDIM(EXTRA, 3) + \
                 (key_place) / A_block / 64) >> \
       ((key_place) / A_block % 64) & 1)
#else
#define IN_BLOCKS(place, key_place) true
#endif

typedef struct form {
  float scale, cap, slope; /* slope: of ALiBi, of this head */
  long window;
  ulong seed, sample;
  uint tensor_id, head, threshold;
  float kept; /* what a weight that is not dropped is multiplied by */
  bool drops;
} form;

#define FORM(of_head, batch) \
  {(float)A_scale, \
   (float)A_soft_cap, \
   A_alibi_heads > 0 ? (float)nxk_alibi_slope(A_alibi_heads, A_head_start + (of_head)) : 0, \
   A_window, \
   call.seed, \
   (ulong)SAMPLE(batch), \
   (uint)A_tensor_id, \
   (uint)(A_head_start + (of_head)), \
   nx_philox_threshold(A_dropout), \
   (float)(1 / (1 - A_dropout)), \
   A_dropout > 0}

static bool reads(const form *f, long place, long start, long key_place) {
  long away = place - key_place;
  return away >= 0 && (f->window == 0 || away < f->window) && (!PLACED || start <= key_place);
}

/* `bend`: of the score by the product of query and key, over the scale. */
static float score(const form *f, float product, long away, float *bend) {
  float s = product * f->scale, t = 0;
  if (f->cap > 0) t = tanh(s / f->cap), s = f->cap * t;
  *bend = 1 - t * t;
  return s - f->slope * (float)away;
}

static float keep_factor(const form *f, long place, long key_place) {
  if (!f->drops) return 1;
  nx_philox words = nx_philox_attention(f->seed, f->tensor_id, f->sample, f->head, (uint)place,
                                        (uint)(key_place >> 2));
  return nx_philox_keeps(words.word[key_place & 3], f->threshold) ? f->kept : 0;
}

/* The keys that the queries [first, end) of a sequence may read begin and end here; without places. */
static long keys_begin(const form *f, long first) {
  long begin = PLACED || f->window == 0 ? 0 : max(first - f->window + 1, 0L);
  return begin / BLOCK * BLOCK;
}
static long keys_end(long end, long n_keys) {
  return PLACED ? n_keys : min(end, n_keys);
}

/* n vectors of HEAD_D and n of HEAD_E to local memory; element `at` of each is an expression of it. All items
 * of the group come here. */
#define READ_BLOCK(ds, element_d, es, element_e, n) \
  barrier(CLK_LOCAL_MEM_FENCE); \
  for (long at = get_local_id(0); at < (n) * HEAD_D; at += LOCAL) ds[at] = element_d; \
  for (long at = get_local_id(0); at < (n) * HEAD_E; at += LOCAL) es[at] = element_e; \
  barrier(CLK_LOCAL_MEM_FENCE);

#ifndef DO
kernel void attention(OPERANDS) {
  local float keys[BLOCK * HEAD_D], values[BLOCK * HEAD_E];
  long n_heads = Q_DIM(1), n_kv = K_DIM(1), n_tokens = Q_DIM(2), n_keys = K_DIM(2);
  long n_blocks = (n_tokens + LOCAL - 1) / LOCAL, first = get_group_id(0) % n_blocks * LOCAL;
  long head = get_group_id(0) / n_blocks % n_heads, batch = get_group_id(0) / n_blocks / n_heads;
  long i = first + get_local_id(0), row = (batch * n_heads + head) * n_tokens + i;
  long kv = (batch * n_kv + head * n_kv / n_heads) * n_keys;
  bool present = i < n_tokens;
  const form f = FORM(head, batch);
  long place = present ? PLACE(i) : -1, start = present ? START(batch * n_tokens + i) : 0;
  float query[HEAD_D], sum[HEAD_E], largest = -INFINITY, weights = 0, bend;
  for (int d = 0; d < HEAD_D; d++) query[d] = present ? Q(row * HEAD_D + d) : 0;
  for (int e = 0; e < HEAD_E; e++) sum[e] = 0;
  long end = keys_end(min(first + LOCAL, n_tokens), n_keys);
  for (long block = keys_begin(&f, first); block < end; block += BLOCK) {
    long n = min(end - block, (long)BLOCK);
    READ_BLOCK(keys, K((kv + block) * HEAD_D + at), values, V((kv + block) * HEAD_E + at), n)
    for (long j = 0; present && j < n; j++) {
      long key_place = KEY_PLACE(block + j);
      if (!reads(&f, place, start, key_place) || !IN_BLOCKS(place, key_place)) continue;
      float product = 0;
      for (int d = 0; d < HEAD_D; d++) product += query[d] * keys[j * HEAD_D + d];
      float s = score(&f, product, place - key_place, &bend) + BIAS(place - key_place);
      if (s > largest) {
        float less = exp(largest - s);
        weights *= less;
        for (int e = 0; e < HEAD_E; e++) sum[e] *= less;
        largest = s;
      }
      float weight = exp(s - largest), kept = keep_factor(&f, place, key_place) * weight;
      weights += weight;
      for (int e = 0; e < HEAD_E; e++) sum[e] += kept * values[j * HEAD_E + e];
    }
  }
  if (!present) return;
  SET_Y1(row, largest + log(weights));
  for (int e = 0; e < HEAD_E; e++)
    SET_Y0(((batch * n_tokens + i) * n_heads + head) * HEAD_E + e, weights > 0 ? sum[e] / weights : 0);
}
#endif

#ifdef DO
/* With D = do . o: ds_ij = p_ij (c_ij do_i . v_j - D_i), dq_i = scale sum_j ds_ij k_j,
 * dk_j = scale sum_i ds_ij q_i, dv_j = sum_i c_ij p_ij do_i. scratch: D of each query. */
kernel void attention_delta(OPERANDS) {
  long row = get_global_id(0), n_heads = Q_DIM(1), n_tokens = Q_DIM(2);
  if (row >= XN(5)) return;
  long batch = row / n_tokens / n_heads, head = row / n_tokens % n_heads;
  long first = ((batch * n_tokens + row % n_tokens) * n_heads + head) * HEAD_E;
  float sum = 0;
  for (int e = 0; e < HEAD_E; e++) sum += DO(first + e) * O(first + e);
  ((global float *)scratch)[row] = sum;
}

kernel void attention_grad_query(OPERANDS) {
  local float keys[BLOCK * HEAD_D], values[BLOCK * HEAD_E];
  long n_heads = Q_DIM(1), n_kv = K_DIM(1), n_tokens = Q_DIM(2), n_keys = K_DIM(2);
  long n_blocks = (n_tokens + LOCAL - 1) / LOCAL, first = get_group_id(0) % n_blocks * LOCAL;
  long head = get_group_id(0) / n_blocks % n_heads, batch = get_group_id(0) / n_blocks / n_heads;
  long i = first + get_local_id(0), row = (batch * n_heads + head) * n_tokens + i;
  long kv = (batch * n_kv + head * n_kv / n_heads) * n_keys;
  bool present = i < n_tokens;
  const form f = FORM(head, batch);
  long place = present ? PLACE(i) : -1, start = present ? START(batch * n_tokens + i) : 0;
  float query[HEAD_D], back[HEAD_E], sum[HEAD_D], bend;
  float lse = present ? LSE(row) : 0, delta = present ? ((global const float *)scratch)[row] : 0;
  for (int d = 0; d < HEAD_D; d++) query[d] = present ? Q(row * HEAD_D + d) : 0, sum[d] = 0;
  for (int e = 0; e < HEAD_E; e++)
    back[e] = present ? DO(((batch * n_tokens + i) * n_heads + head) * HEAD_E + e) : 0;
  long end = keys_end(min(first + LOCAL, n_tokens), n_keys);
  for (long block = keys_begin(&f, first); block < end; block += BLOCK) {
    long n = min(end - block, (long)BLOCK);
    READ_BLOCK(keys, K((kv + block) * HEAD_D + at), values, V((kv + block) * HEAD_E + at), n)
    for (long j = 0; present && j < n; j++) {
      long key_place = KEY_PLACE(block + j);
      if (!reads(&f, place, start, key_place) || !IN_BLOCKS(place, key_place)) continue;
      float product = 0, inner = 0;
      for (int d = 0; d < HEAD_D; d++) product += query[d] * keys[j * HEAD_D + d];
      for (int e = 0; e < HEAD_E; e++) inner += back[e] * values[j * HEAD_E + e];
      float s = score(&f, product, place - key_place, &bend) + BIAS(place - key_place), weight = exp(s - lse);
      float slope = weight * (keep_factor(&f, place, key_place) * inner - delta) * f.scale * bend;
      for (int d = 0; d < HEAD_D; d++) sum[d] += slope * keys[j * HEAD_D + d];
    }
  }
  for (int d = 0; present && d < HEAD_D; d++) SET_Y0(row * HEAD_D + d, sum[d]);
}

kernel void attention_grad_key(OPERANDS) {
  local float queries[BLOCK * HEAD_D], backs[BLOCK * HEAD_E];
  long n_heads = Q_DIM(1), n_kv = K_DIM(1), n_tokens = Q_DIM(2), n_keys = K_DIM(2), group = n_heads / n_kv;
  long n_blocks = (n_keys + LOCAL - 1) / LOCAL, first = get_group_id(0) % n_blocks * LOCAL;
  long kv_head = get_group_id(0) / n_blocks % n_kv, batch = get_group_id(0) / n_blocks / n_kv;
  long j = first + get_local_id(0), row = (batch * n_kv + kv_head) * n_keys + j;
  bool present = j < n_keys;
  long key_place = present ? KEY_PLACE(j) : 0;
  float key[HEAD_D], value[HEAD_E], dkey[HEAD_D], dvalue[HEAD_E], bend;
  for (int d = 0; d < HEAD_D; d++) key[d] = present ? K(row * HEAD_D + d) : 0, dkey[d] = 0;
  for (int e = 0; e < HEAD_E; e++) value[e] = present ? V(row * HEAD_E + e) : 0, dvalue[e] = 0;
  for (long head = kv_head * group; head < (kv_head + 1) * group; head++) {
    const form f = FORM(head, batch);
    long rows = (batch * n_heads + head) * n_tokens, begin = PLACED ? 0 : first / BLOCK * BLOCK;
    long end = PLACED || f.window == 0 ? n_tokens : min(n_tokens, first + LOCAL + f.window);
    for (long block = begin; block < end; block += BLOCK) {
      long n = min(end - block, (long)BLOCK);
      READ_BLOCK(queries, Q((rows + block) * HEAD_D + at), backs,
                 DO(((batch * n_tokens + block + at / HEAD_E) * n_heads + head) * HEAD_E + at % HEAD_E), n)
      for (long q = 0; present && q < n; q++) {
        long i = block + q, place = PLACE(i);
        if (!reads(&f, place, START(batch * n_tokens + i), key_place) || !IN_BLOCKS(place, key_place))
          continue;
        float product = 0, inner = 0;
        for (int d = 0; d < HEAD_D; d++) product += queries[q * HEAD_D + d] * key[d];
        for (int e = 0; e < HEAD_E; e++) inner += backs[q * HEAD_E + e] * value[e];
        float s = score(&f, product, place - key_place, &bend) + BIAS(place - key_place);
        float weight = exp(s - LSE(rows + i));
        float kept = keep_factor(&f, place, key_place);
        float slope =
            weight * (kept * inner - ((global const float *)scratch)[rows + i]) * f.scale * bend;
        for (int d = 0; d < HEAD_D; d++) dkey[d] += slope * queries[q * HEAD_D + d];
        for (int e = 0; e < HEAD_E; e++) dvalue[e] += kept * weight * backs[q * HEAD_E + e];
      }
    }
  }
  for (int d = 0; present && d < HEAD_D; d++) SET_Y1(row * HEAD_D + d, dkey[d]);
  for (int e = 0; present && e < HEAD_E; e++) SET_Y2(row * HEAD_E + e, dvalue[e]);
}

#ifdef TABLE
/* A group for each entry: its items go through the queries, and compute the scores of that distance alone. */
kernel void attention_grad_table(OPERANDS) {
  local float room[LOCAL];
  long entry = get_group_id(0), n_heads = Q_DIM(1), n_tokens = Q_DIM(2), n_keys = K_DIM(2), n_kv = K_DIM(1);
  long head = entry % XDIM(EXTRA, 3) - A_head_start, n_queries = Q_DIM(0) * n_tokens;
  float sum = 0, bend;
  for (long at = get_local_id(0); head >= 0 && head < n_heads && at < n_queries; at += LOCAL) {
    long batch = at / n_tokens, i = at % n_tokens, row = (batch * n_heads + head) * n_tokens + i;
    long place = PLACE(i), start = START(at), kv = (batch * n_kv + head * n_kv / n_heads) * n_keys;
    const form f = FORM(head, batch);
    for (long j = 0; j < keys_end(i + 1, n_keys); j++) {
      long key_place = KEY_PLACE(j), away = place - key_place;
      if (!reads(&f, place, start, key_place) || ENTRY(away) != entry) continue;
      float product = 0, inner = 0;
      for (int d = 0; d < HEAD_D; d++) product += Q(row * HEAD_D + d) * K((kv + j) * HEAD_D + d);
      for (int e = 0; e < HEAD_E; e++)
        inner += DO((at * n_heads + head) * HEAD_E + e) * V((kv + j) * HEAD_E + e);
      float weight = exp(score(&f, product, away, &bend) + BIAS(away) - LSE(row));
      sum += weight * (keep_factor(&f, place, key_place) * inner - ((global const float *)scratch)[row]);
    }
  }
  sum = group_sum(sum, room);
  if (get_local_id(0) == 0) SET_Y3(entry, (float)A_factor * sum);
}
#endif
#endif
