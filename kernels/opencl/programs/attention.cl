/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention over grouped heads without the matrix of scores: an item has a query (in the gradient of
 * keys and values a key), and a group reads the others in blocks of BLOCK through local memory, where they
 * stand as rows, or turned: feature by feature. An item takes WIDTH of a block at once. HEAD_D and HEAD_E are
 * the features of a key and of a value. Scores are four sums of every fourth feature, the weights of WIDTH
 * keys are added up first; all else runs over ascending keys, in gradients of keys and values over ascending
 * heads, then queries. */
#include "kernels/opencl/programs/attention_form.cl"

#ifndef DO
kernel void attention(OPERANDS) {
  local float turned[BLOCK * PADDED(HEAD_D)], values[BLOCK * PADDED(HEAD_E)];
  local int key_places[BLOCK];
  long n_heads = Q_DIM(1), n_kv = K_DIM(1), n_tokens = Q_DIM(2), n_keys = K_DIM(2);
  long n_blocks = (n_tokens + LOCAL - 1) / LOCAL, first = get_group_id(0) % n_blocks * LOCAL;
  long head = get_group_id(0) / n_blocks % n_heads, batch = get_group_id(0) / n_blocks / n_heads;
  long i = first + get_local_id(0), row = (batch * n_heads + head) * n_tokens + i;
  long kv = (batch * n_kv + head * n_kv / n_heads) * n_keys;
  bool present = i < n_tokens;
  const form f = FORM(head, batch);
  int place = present ? PLACE(i) : -1, start = present ? START(batch * n_tokens + i) : 0;
  float query[PADDED(HEAD_D)], largest = -INFINITY, weights = 0;
  wide sum[PADDED(HEAD_E) / WIDTH];
  READ_OWN(query, Q, row * HEAD_D, HEAD_D)
  CLEAR(sum, HEAD_E)
  long end = keys_end(min(first + LOCAL, n_tokens), n_keys);
  for (long block = keys_begin(&f, first); block < end; block += BLOCK) {
    int n = min(end - block, (long)BLOCK);
    barrier(CLK_LOCAL_MEM_FENCE);
    READ_VECTORS(NULL, turned, K, KEY_AT, HEAD_D, n)
    READ_VECTORS(values, NULL, V, VALUE_AT, HEAD_E, n)
    READ_PLACES(key_places, KEY_PLACE, block, n, INT_MAX)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; present && j < n; j += WIDTH) {
      KEY_SCORES
      float top = widest(there ? s : (wide)-INFINITY);
      if (top > largest) {
        float less = exp(largest - top);
        weights *= less;
        for (int e = 0; e < PADDED(HEAD_E) / WIDTH; e++) sum[e] *= less;
        largest = top;
      }
      wide weight = SELECT(exp(s - largest), there);
      weights += total(weight);
      wide kept = keys_kept(&f, place, key_places + j);
      add_rows(sum, kept * weight, there, values + j * PADDED(HEAD_E), PADDED(HEAD_E));
    }
  }
  if (!present) return;
  SET_Y1(row, largest + log(weights));
  float out[PADDED(HEAD_E)];
  spread(sum, PADDED(HEAD_E), out);
  for (int e = 0; e < HEAD_E; e++)
    SET_Y0(((batch * n_tokens + i) * n_heads + head) * HEAD_E + e, weights > 0 ? out[e] / weights : 0);
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
  local float keys[BLOCK * PADDED(HEAD_D)], turned[BLOCK * PADDED(HEAD_D)], values[BLOCK * PADDED(HEAD_E)];
  local int key_places[BLOCK];
  long n_heads = Q_DIM(1), n_kv = K_DIM(1), n_tokens = Q_DIM(2), n_keys = K_DIM(2);
  long n_blocks = (n_tokens + LOCAL - 1) / LOCAL, first = get_group_id(0) % n_blocks * LOCAL;
  long head = get_group_id(0) / n_blocks % n_heads, batch = get_group_id(0) / n_blocks / n_heads;
  long i = first + get_local_id(0), row = (batch * n_heads + head) * n_tokens + i;
  long kv = (batch * n_kv + head * n_kv / n_heads) * n_keys;
  bool present = i < n_tokens;
  const form f = FORM(head, batch);
  int place = present ? PLACE(i) : -1, start = present ? START(batch * n_tokens + i) : 0;
  float query[PADDED(HEAD_D)], back[PADDED(HEAD_E)];
  wide sum[PADDED(HEAD_D) / WIDTH];
  float lse = present ? LSE(row) : 0, delta = present ? ((global const float *)scratch)[row] : 0;
  READ_OWN(query, Q, row * HEAD_D, HEAD_D)
  READ_OWN(back, DO, ((batch * n_tokens + i) * n_heads + head) * HEAD_E, HEAD_E)
  CLEAR(sum, HEAD_D)
  long end = keys_end(min(first + LOCAL, n_tokens), n_keys);
  for (long block = keys_begin(&f, first); block < end; block += BLOCK) {
    int n = min(end - block, (long)BLOCK);
    barrier(CLK_LOCAL_MEM_FENCE);
    READ_VECTORS(keys, turned, K, KEY_AT, HEAD_D, n)
    READ_VECTORS(NULL, values, V, VALUE_AT, HEAD_E, n)
    READ_PLACES(key_places, KEY_PLACE, block, n, INT_MAX)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; present && j < n; j += WIDTH) {
      KEY_SCORES
      wide inner = products(back, values + j, PADDED(HEAD_E)), kept = keys_kept(&f, place, key_places + j);
      wide slope = exp(s - lse) * (kept * inner - delta) * f.scale * bend;
      add_rows(sum, slope, there, keys + j * PADDED(HEAD_D), PADDED(HEAD_D));
    }
  }
  float out[PADDED(HEAD_D)];
  spread(sum, PADDED(HEAD_D), out);
  for (int d = 0; present && d < HEAD_D; d++) SET_Y0(row * HEAD_D + d, out[d]);
}

/* What a group knows of its queries beside their features. */
typedef struct query_block {
  int places[BLOCK], starts[BLOCK];
  float lses[BLOCK], deltas[BLOCK];
} query_block;

kernel void attention_grad_key(OPERANDS) {
  local float queries[BLOCK * PADDED(HEAD_D)], turned[BLOCK * PADDED(HEAD_D)];
  local float backs[BLOCK * PADDED(HEAD_E)], turned_backs[BLOCK * PADDED(HEAD_E)];
  local query_block of;
  long n_heads = Q_DIM(1), n_kv = K_DIM(1), n_tokens = Q_DIM(2), n_keys = K_DIM(2), group = n_heads / n_kv;
  long n_blocks = (n_keys + LOCAL - 1) / LOCAL, first = get_group_id(0) % n_blocks * LOCAL;
  long kv_head = get_group_id(0) / n_blocks % n_kv, batch = get_group_id(0) / n_blocks / n_kv;
  long own = first + get_local_id(0), row = (batch * n_kv + kv_head) * n_keys + own;
  bool present = own < n_keys;
  int key_place = present ? KEY_PLACE(own) : 0;
  local const int *places = of.places;
  float key[PADDED(HEAD_D)], value[PADDED(HEAD_E)];
  wide dkey[PADDED(HEAD_D) / WIDTH], dvalue[PADDED(HEAD_E) / WIDTH];
  READ_OWN(key, K, row * HEAD_D, HEAD_D)
  READ_OWN(value, V, row * HEAD_E, HEAD_E)
  CLEAR(dkey, HEAD_D)
  CLEAR(dvalue, HEAD_E)
  for (long head = kv_head * group; head < (kv_head + 1) * group; head++) {
    const form f = FORM(head, batch);
    long rows = (batch * n_heads + head) * n_tokens, begin = PLACED ? 0 : first / BLOCK * BLOCK;
    long end = PLACED ? n_tokens : min(n_tokens, first + LOCAL + f.window);
    for (long block = begin; block < end; block += BLOCK) {
      int n = min(end - block, (long)BLOCK);
      barrier(CLK_LOCAL_MEM_FENCE);
      READ_VECTORS(queries, turned, Q, ROW_AT, HEAD_D, n)
      READ_VECTORS(backs, turned_backs, DO, BACK_AT, HEAD_E, n)
      READ_PLACES(of.places, PLACE, block, n, -1)
      for (int at = get_local_id(0); at < BLOCK; at += LOCAL) {
        of.starts[at] = at < n ? START(batch * n_tokens + block + at) : 0;
        of.lses[at] = at < n ? LSE(rows + block + at) : 0;
        of.deltas[at] = at < n ? ((global const float *)scratch)[rows + block + at] : 0;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int j = 0; present && j < n; j += WIDTH) {
        wide_int away = LOAD_WIDE(places + j) - key_place;
        wide_int there = reads(&f, away, LOAD_WIDE(of.starts + j), (wide_int)key_place);
        ONLY_BLOCKS(there, THAT_PLACE, OWN_KEY)
        if (!any(there)) continue;
        BIASES(biases, away, there)
        wide bend, s = score(&f, products(key, turned + j, PADDED(HEAD_D)), REAL(away), &bend) + biases;
        wide weight = exp(s - LOAD_WIDE(of.lses + j)), kept = queries_kept(&f, places + j, key_place);
        wide inner = products(value, turned_backs + j, PADDED(HEAD_E));
        wide slope = weight * (kept * inner - LOAD_WIDE(of.deltas + j)) * f.scale * bend;
        add_rows(dkey, slope, there, queries + j * PADDED(HEAD_D), PADDED(HEAD_D));
        add_rows(dvalue, kept * weight, there, backs + j * PADDED(HEAD_E), PADDED(HEAD_E));
      }
    }
  }
  float out_key[PADDED(HEAD_D)], out_value[PADDED(HEAD_E)];
  spread(dkey, PADDED(HEAD_D), out_key);
  spread(dvalue, PADDED(HEAD_E), out_value);
  for (int d = 0; present && d < HEAD_D; d++) SET_Y1(row * HEAD_D + d, out_key[d]);
  for (int e = 0; present && e < HEAD_E; e++) SET_Y2(row * HEAD_E + e, out_value[e]);
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
    int place = PLACE(i), start = START(at);
    long kv = (batch * n_kv + head * n_kv / n_heads) * n_keys;
    const form f = FORM(head, batch);
    for (long j = 0; j < keys_end(i + 1, n_keys); j++) {
      int key_place = KEY_PLACE(j), away = place - key_place;
      if (!reads(&f, away, start, key_place) || ENTRY(away) != entry) continue;
      float product = 0, inner = 0;
      for (int d = 0; d < HEAD_D; d++) product += Q(row * HEAD_D + d) * K((kv + j) * HEAD_D + d);
      for (int e = 0; e < HEAD_E; e++)
        inner += DO((at * n_heads + head) * HEAD_E + e) * V((kv + j) * HEAD_E + e);
      float weight = exp(score(&f, product, (float)away, &bend) + BIAS(away) - LSE(row));
      float kept = f.drops ? keep_factor(&f, words_of(&f, place, key_place), key_place) : 1;
      sum += weight * (kept * inner - ((global const float *)scratch)[row]);
    }
  }
  sum = group_sum(sum, room);
  if (get_local_id(0) == 0) SET_Y3(entry, (float)A_factor * sum);
}
#endif
#endif
