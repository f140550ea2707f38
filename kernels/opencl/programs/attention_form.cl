/* SPDX-License-Identifier: Apache-2.0 */
/* What attention.cl is made of: which keys a query reads and how a score is bent, weights that are dropped,
 * vectors in local memory, and sums over them. */
#include "kernels/opencl/programs/wide.cl"
#include "kernels/alibi.h"
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
/* kernels/relative.h: the distances up to EXACT have a bucket each. */
static long bucket_of(int distance) {
  int bucket = min(distance, EXACT);
  for (int k = 0; bucket == EXACT + k && distance >= bucket_begins[k]; k++) bucket++;
  return bucket;
}
#define ENTRY(away) \
  (bucket_of(away) * XDIM(EXTRA, 3) + A_head_start + head)
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
  int window;
  ulong seed, sample;
  uint tensor_id, head, threshold;
  float kept; /* what a weight that is not dropped is multiplied by */
  bool drops;
} form;

#define FORM(of_head, batch) \
  {(float)A_scale, \
   (float)A_soft_cap, \
   A_alibi_heads > 0 ? (float)nxk_alibi_slope(A_alibi_heads, A_head_start + (of_head)) : 0, \
   A_window > 0 ? (int)min(A_window, (long)INT_MAX) : INT_MAX, \
   call.seed, \
   (ulong)SAMPLE(batch), \
   (uint)A_tensor_id, \
   (uint)(A_head_start + (of_head)), \
   THRESHOLD(dropout), \
   (float)(1 / (1 - A_dropout)), \
   A_dropout > 0}

/* For one key and query, or for WIDTH. reads: not 0, in vectors -1, where the query reads the key. score:
 * `bend` is its slope by the product of query and key, over the scale. */
#define OF_PAIRS(integer, real) \
  static integer __attribute__((overloadable)) reads(const form *f, integer away, integer start, \
                                                     integer key_place) { \
    return (away >= 0) & (away < f->window) & (start <= key_place); \
  } \
  static real __attribute__((overloadable)) score(const form *f, real product, real away, real *bend) { \
    real s = product * f->scale, t = 0; \
    if (f->cap > 0) t = tanh(s / f->cap), s = f->cap * t; \
    *bend = 1 - t * t; \
    return s - f->slope * away; \
  }
OF_PAIRS(int, float)
OF_PAIRS(wide_int, wide)
#define REAL(x) JOIN(convert_float, WIDTH)(x)

/* What the table has for the distances, and which keys lie in blocks that are read. */
#ifdef TABLE
#define BIASES(biases, away, there) \
  wide biases = 0; \
  { \
    int ways[WIDTH], read[WIDTH]; \
    float each[WIDTH]; \
    STORE_WIDE(away, ways), STORE_WIDE(there, read); \
    for (int k = 0; k < WIDTH; k++) each[k] = read[k] ? BIAS(ways[k]) : 0; \
    biases = LOAD_WIDE(each); \
  }
#else
#define BIASES(biases, away, there) const float biases = 0;
#endif
#ifdef BLOCKS
#define ONLY_BLOCKS(there, PLACE_OF, KEY_OF) \
  { \
    int read[WIDTH]; \
    STORE_WIDE(there, read); \
    for (int k = 0; k < WIDTH; k++) read[k] = read[k] && IN_BLOCKS(PLACE_OF(k), KEY_OF(k)) ? -1 : 0; \
    there = LOAD_WIDE(read); \
  }
#else
#define ONLY_BLOCKS(there, PLACE_OF, KEY_OF)
#endif

static float keep_factor(const form *f, nx_philox words, int key_place) {
  return nx_philox_keeps(words.word[key_place & 3], f->threshold) ? f->kept : 0;
}
static nx_philox words_of(const form *f, int place, int key_place) {
  return nx_philox_attention(f->seed, f->tensor_id, f->sample, f->head, (uint)place, (uint)(key_place >> 2));
}

/* Of a query and WIDTH keys, of which four and four share their random words unless places say other; and of
 * WIDTH queries and a key. */
static wide keys_kept(const form *f, int place, local const int *key_places) {
  float kept[WIDTH];
  nx_philox words;
  if (!f->drops) return 1;
  for (int k = 0; k < WIDTH; k++) {
    if (PLACED || k % 4 == 0) words = words_of(f, place, key_places[k]);
    kept[k] = keep_factor(f, words, key_places[k]);
  }
  return LOAD_WIDE(kept);
}
static wide queries_kept(const form *f, local const int *places, int key_place) {
  float kept[WIDTH];
  if (!f->drops) return 1;
  for (int k = 0; k < WIDTH; k++) kept[k] = keep_factor(f, words_of(f, places[k], key_place), key_place);
  return LOAD_WIDE(kept);
}

/* The keys that the queries [first, end) of a sequence may read begin and end here; without places. */
static long keys_begin(const form *f, long first) {
  return PLACED ? 0 : max(first - f->window + 1, 0L) / BLOCK * BLOCK;
}
static long keys_end(long end, long n_keys) {
  return PLACED ? n_keys : min(end, n_keys);
}

/* n vectors of an operand to local memory, as rows, turned, or both (NULL: not so); what is beyond is 0.
 * Vector j begins at element FIRST(j). */
static void put(wide x, local float *rows, local float *turned, int j, int feature, int n_padded) {
  float part[WIDTH];
  STORE_WIDE(x, part);
  if (rows) STORE_WIDE(x, rows + j * n_padded + feature);
  for (int k = 0; turned && k < WIDTH; k++) turned[(feature + k) * BLOCK + j] = part[k];
}
#define READ_VECTORS(rows, turned, OPERAND, FIRST, n_features, n) \
  for (int at = WIDTH * (int)get_local_id(0); at < BLOCK * PADDED(n_features); at += WIDTH * LOCAL) { \
    int j = at / PADDED(n_features), feature = at % PADDED(n_features); \
    wide x = 0; \
    if (j < (n)) x = OPERAND##_WIDE(FIRST(j) + feature, FIRST(j) + (n_features)); \
    put(x, rows, turned, j, feature, PADDED(n_features)); \
  }
#define READ_PLACES(places, PLACE_OF, block, n, none) \
  for (int at = get_local_id(0); at < BLOCK; at += LOCAL) \
    places[at] = at < (n) ? (int)PLACE_OF((block) + at) : (none);
/* A query's or a key's own features; 0 behind them. */
#define READ_OWN(own, OPERAND, first, n_features) \
  for (int at = 0; at < PADDED(n_features); at++) \
    own[at] = present && at < (n_features) ? OPERAND((first) + at) : 0;
#define CLEAR(sums, n_features) \
  for (int i = 0; i < PADDED(n_features) / WIDTH; i++) sums[i] = 0;

/* sums[i] into parts, number by number. */
static void spread(const wide *sums, int n_features, float *parts) {
  for (int i = 0; i < n_features / WIDTH; i++) STORE_WIDE(sums[i], parts + i * WIDTH);
}

static wide products(const float *own, local const float *turned, int n_features) {
  wide sums[4] = {0, 0, 0, 0};
  for (int i = 0; i < n_features; i += 4)
    for (int k = 0; k < 4; k++) sums[k] += own[i + k] * LOAD_WIDE(turned + (i + k) * BLOCK);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* sums += factors * rows, those that are read. */
static void add_rows(wide *sums, wide factors, wide_int there, local const float *rows, int n_features) {
  float factor[WIDTH];
  int read[WIDTH];
  STORE_WIDE(factors, factor), STORE_WIDE(there, read);
  for (int k = 0; k < WIDTH; k++)
    for (int i = 0; read[k] && i < n_features / WIDTH; i++)
      sums[i] += factor[k] * LOAD_WIDE(rows + k * n_features + i * WIDTH);
}

static float widest(wide x) {
  float part[WIDTH], most = -INFINITY;
  STORE_WIDE(x, part);
  for (int k = 0; k < WIDTH; k++) most = fmax(most, part[k]);
  return most;
}
static float total(wide x) {
  float part[WIDTH], sum = 0;
  STORE_WIDE(x, part);
  for (int k = 0; k < WIDTH; k++) sum += part[k];
  return sum;
}

#define KEY_AT(j) ((kv + block + (j)) * HEAD_D)
#define VALUE_AT(j) ((kv + block + (j)) * HEAD_E)
#define ROW_AT(j) ((rows + block + (j)) * HEAD_D)
#define BACK_AT(j) (((batch * n_tokens + block + (j)) * n_heads + head) * HEAD_E)
#define OWN_PLACE(k) place
#define THAT_KEY(k) key_places[j + (k)]
#define OWN_KEY(k) key_place
#define THAT_PLACE(k) places[j + (k)]
#define SELECT(x, there) ((there) ? (x) : (wide)0)

/* A query's scores of the keys from j on; goes on where it reads none of them. */
#define KEY_SCORES \
  wide_int key_place = LOAD_WIDE(key_places + j), away = place - key_place; \
  wide_int there = reads(&f, away, (wide_int)start, key_place); \
  ONLY_BLOCKS(there, OWN_PLACE, THAT_KEY) \
  if (!any(there)) continue; \
  BIASES(biases, away, there) \
  wide bend, s = score(&f, products(query, turned + j, PADDED(HEAD_D)), REAL(away), &bend) + biases;
