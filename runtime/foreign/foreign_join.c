/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a plan, put together of a foreign checkpoint's shards by the parts of a model that both hold. */
#include "runtime/foreign/foreign_rows.h"
#include "runtime/foreign/foreign_shards.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char PRESENT[] = "present"; /* of a row: the plan has tensors of it */

/* names.def */
static const struct {
  nxr_foreign_system system;
  const char *name, *parts;
  nxr_layout layout;
  nxr_join_kind join;
} foreign_rows[] = {
#define FOREIGN(system, name, parts, layout, join) {NXR_FOREIGN_##system, name, parts, layout, join},
#include "runtime/foreign/names.def"
#undef FOREIGN
};
enum { N_FOREIGN_ROWS = sizeof foreign_rows / sizeof *foreign_rows };

typedef struct joiner {
  nxr_foreign *foreign;
  const json_t *parts; /* the plan's */
  uint64_t heads, kv_heads, head_dim;
  bool parallel; /* both branches of a layer are added to the same residual */
  bool *used;    /* [shards] */
  nxr_fault *fault;
} joiner;

/* ---- parts and their rows ---- */

static bool row_has(const json_t *row, const char *part) {
  size_t i;
  json_t *name;
  json_array_foreach(json_object_get(row, "parts"), i,
                     name) if (strcmp(json_string_value(name), part) == 0) return true;
  return false;
}

static bool model_has(const joiner *j, const char *part) {
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(j->parts, "tensors"), i,
                     row) if (json_is_true(json_object_get(row, PRESENT)) && row_has(row, part)) return true;
  return false;
}

/* Queries, keys and values have the heads' rows, all others as many as there are of the whole. */
static void measure(const joiner *j, nxr_stack *s, uint64_t n_rows) {
  s->total = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    const char *part = s->names[i];
    bool is_key = strcmp(part, "k") == 0 || strcmp(part, "v") == 0;
    if (is_key) s->rows[i] = j->kv_heads * j->head_dim;
    else if (strcmp(part, "q") == 0) s->rows[i] = j->heads * j->head_dim;
    else s->rows[i] = n_rows / s->n;
    s->total += s->rows[i];
  }
}

/* The parts of a foreign row that the model has. */
static nxr_stack foreign_stack(const joiner *j, int row, uint64_t n_rows, uint64_t n_shards) {
  nxr_stack s = {.layout = foreign_rows[row].layout, .n_groups = 1};
  const char *list = foreign_rows[row].parts;
  while (s.n < NXR_MOST_PARTS && (list = nxr_next_word(list, s.names[s.n])) != NULL)
    if (model_has(j, s.names[s.n])) s.n++;
  if (s.layout == HEADS) s.layout = j->heads == j->kv_heads ? GROUPS : SHARDS;
  if (s.layout == GROUPS) s.n_groups = j->kv_heads;
  if (s.layout == SHARDS) s.n_groups = n_shards;
  if (s.n > 0) measure(j, &s, n_rows);
  return s;
}

/* ---- names ---- */

/* The plan's row that a tensor is of; its stem is followed by ".weight" or ".bias". */
static const json_t *find_row(const joiner *j, const char *name, uint64_t at[2], bool *bias) {
  size_t i, n_name = strlen(name);
  json_t *row;
  char pattern[NXR_PART_NAME];
  *bias = n_name > 5 && strcmp(name + n_name - 5, ".bias") == 0;
  at[0] = at[1] = 0;
  json_array_foreach(json_object_get(j->parts, "tensors"), i, row) {
    snprintf(pattern, sizeof pattern, "%s.*", json_string_value(json_object_get(row, "stem")));
    if (nxr_name_fits(pattern, name, at)) return row;
  }
  return NULL;
}

/* The shards of a name: from *first on. */
static size_t find_shards(const joiner *j, const char *name, size_t *first) {
  size_t low = 0, high = j->foreign->n_shards, n = 0;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(j->foreign->shards[middle].name, name) < 0) low = middle + 1;
    else high = middle;
  }
  while (low + n < j->foreign->n_shards && strcmp(j->foreign->shards[low + n].name, name) == 0) n++;
  *first = low;
  return n;
}

/* The foreign row that has a part, in files that have its tensor; N_FOREIGN_ROWS: there is none. */
static int find_part(const joiner *j, const char *part, const uint64_t at[2], bool bias, size_t *first,
                     size_t *n) {
  for (int i = 0; i < N_FOREIGN_ROWS; i++) {
    char name[NXR_PART_NAME], word[24];
    const char *list = foreign_rows[i].parts;
    bool has = false, star = strchr(foreign_rows[i].name, '*') != NULL;
    while ((list = nxr_next_word(list, word)) != NULL) has = has || strcmp(word, part) == 0;
    if (!has || foreign_rows[i].system != j->foreign->system || (bias && !star)) continue;
    nxr_name_print(foreign_rows[i].name, at, bias ? "bias" : "weight", name);
    if ((*n = find_shards(j, name, first)) > 0) return i;
    nxr_name_print(foreign_rows[i].name, at, "scale", name);
    if (!bias && star && (*n = find_shards(j, name, first)) > 0) return i;
  }
  return N_FOREIGN_ROWS;
}

/* ---- sources ---- */

/* What all shards have a copy of: their mean, or their sum, of vectors in numbers of our own. */
static bool combine(const joiner *j, const nxr_shard *shards, size_t n, bool sum, nxr_chunk *chunk) {
  float *values = nxr_foreign_take(j->foreign, chunk->n_rows, sizeof *values);
  if (values == NULL) return nxr_fault_set(j->fault, "out of memory");
  for (uint64_t row = 0; row < chunk->n_rows; row++) {
    double total = 0;
    for (size_t i = 0; i < n; i++) {
      const nxr_chunk *from = &shards[i].chunk;
      float value;
      nxr_floats(from->dtype, from->bytes + row * from->row_stride * (nx_dtype_bits(from->dtype) / 8), 1,
                 &value);
      total += value;
    }
    values[row] = (float)(sum ? total : total / (double)n);
  }
  chunk->dtype = NX_f32, chunk->row_stride = 1, chunk->bytes = (const uint8_t *)values;
  return true;
}

/* Copies of vectors: GPT-NeoX's ranks may have drifted apart; and where both branches of a layer are summed
 * over the ranks together, each rank has a share of their bias. */
static bool place_copies(const joiner *j, const nxr_shard *shards, size_t n, bool shares, nxr_chunk *chunks,
                         uint64_t *n_chunks) {
  chunks[0] = shards[0].chunk;
  *n_chunks = 1;
  bool alike = shards[0].n_dims == 1;
  for (size_t i = 1; i < n; i++)
    alike = alike && shards[i].n_dims == 1 && shards[i].chunk.n_rows == chunks[0].n_rows;
  if (n == 1 || !alike || j->foreign->system != NXR_FOREIGN_NEOX) return true;
  return combine(j, shards, n, shares && j->parallel, &chunks[0]);
}

/* The shards as one matrix of *n_rows and *n_columns. */
static bool place(const joiner *j, int row, size_t first, size_t n, nxr_joined_source *source,
                  uint64_t *n_rows, uint64_t *n_columns) {
  const nxr_shard *shards = &j->foreign->shards[first];
  nxr_chunk *chunks = nxr_foreign_take(j->foreign, n, sizeof *chunks);
  if (chunks == NULL) return nxr_fault_set(j->fault, "out of memory");
  nxr_join_kind how = row == N_FOREIGN_ROWS ? ROWS : foreign_rows[row].join;
  bool copies = how == COPIES || (how == COLUMNS && shards[0].n_dims == 1);
  *source = (nxr_joined_source){chunks, n};
  *n_rows = *n_columns = 0;
  if (copies && !j->foreign->placed) {
    if (!place_copies(j, shards, n, how == COLUMNS, chunks, &source->n_chunks)) return false;
  } else {
    for (size_t i = 0; i < n; i++) chunks[i] = shards[i].chunk;
    for (size_t i = 1; i < n && !j->foreign->placed; i++)
      if (how == COLUMNS) chunks[i].column = chunks[i - 1].column + chunks[i - 1].n_columns;
      else chunks[i].row = chunks[i - 1].row + chunks[i - 1].n_rows;
  }
  for (size_t i = 0; i < source->n_chunks; i++) {
    uint64_t below = chunks[i].row + chunks[i].n_rows, beside = chunks[i].column + chunks[i].n_columns;
    if (below > *n_rows) *n_rows = below;
    if (beside > *n_columns) *n_columns = beside;
  }
  for (size_t i = 0; i < n; i++) j->used[first + i] = true;
  return true;
}

/* Whether the chunks are the matrix, no more and no less. */
static bool is_covered(const nxr_joined_source *source, uint64_t n_rows, uint64_t n_columns) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < source->n_chunks; i++) n += source->chunks[i].n_rows * source->chunks[i].n_columns;
  return n == n_rows * n_columns;
}

/* ---- tensors ---- */

/* Rows of a plan's tensor where its parts stand: of each part the source, and the stack that this is. */
typedef struct target {
  nxr_stack own;
  nxr_stack from[NXR_MOST_PARTS];
  uint32_t at[NXR_MOST_PARTS]; /* which of `from`'s parts it is */
  nxr_joined_source sources[NXR_MOST_PARTS];
  uint64_t n_columns;
} target;

static bool shape_fault(const joiner *j, const char *name, uint64_t n_rows, uint64_t n_columns) {
  return nxr_fault_set(j->fault, "the shards of %s do not fit: together they are [%llu, %llu]", name,
                       (unsigned long long)n_rows, (unsigned long long)n_columns);
}

/* Tables of tokens may be longer than the vocabulary. */
static bool is_padded(const char *part) {
  return strcmp(part, "embedding") == 0 || strcmp(part, "output") == 0 || strcmp(part, "positions") == 0;
}

/* False with an empty fault: the checkpoint does not have it. */
static bool find_source(const joiner *j, target *t, uint32_t i, const uint64_t at[2], bool bias,
                        const char *name) {
  const char *part = t->own.names[i];
  size_t first, n;
  uint64_t n_rows, n_columns;
  int row = find_part(j, part, at, bias, &first, &n);
  if (row == N_FOREIGN_ROWS) return false;
  if (!place(j, row, first, n, &t->sources[i], &n_rows, &n_columns)) return false;
  nxr_stack *from = &t->from[i];
  *from = foreign_stack(j, row, n_rows, j->foreign->placed ? 1 : n);
  for (t->at[i] = 0; t->at[i] < from->n && strcmp(from->names[t->at[i]], part) != 0;) t->at[i]++;
  bool good =
      t->at[i] < from->n && nxr_stack_divides(from) && is_covered(&t->sources[i], n_rows, n_columns) &&
      from->total == n_rows && (i == 0 || t->n_columns == n_columns) &&
      (from->rows[t->at[i]] == t->own.rows[i] || (is_padded(part) && from->rows[t->at[i]] > t->own.rows[i]));
  t->n_columns = n_columns;
  return good || shape_fault(j, name, n_rows, n_columns);
}

/* The tensor's own parts, of so many rows. */
static nxr_stack own_stack(const joiner *j, const json_t *row, uint64_t n_rows) {
  nxr_stack s = {.n_groups = 1};
  size_t i;
  json_t *part;
  const char *how = json_string_value(json_object_get(row, "layout"));
  json_array_foreach(json_object_get(row, "parts"), i, part) if (s.n < NXR_MOST_PARTS)
      snprintf(s.names[s.n++], sizeof s.names[0], "%s", json_string_value(part));
  s.layout = strcmp(how, "groups") == 0 ? GROUPS : strcmp(how, "turns") == 0 ? TURNS : BLOCKS;
  if (s.layout == GROUPS) s.n_groups = j->kv_heads;
  measure(j, &s, n_rows);
  return s;
}

static bool make(const joiner *j, const nxr_safetensor *wanted, const target *t, bool transposed,
                 nxr_safetensor *made) {
  nxr_joined *joined = nxr_foreign_take(j->foreign, 1, sizeof *joined);
  nxr_joined_source *sources = nxr_foreign_take(j->foreign, NXR_MOST_PARTS, sizeof *sources);
  nxr_joined_row *rows = nxr_foreign_take(j->foreign, t->own.total, sizeof *rows);
  if (joined == NULL || sources == NULL || rows == NULL) return nxr_fault_set(j->fault, "out of memory");
  memcpy(sources, t->sources, sizeof t->sources);
  for (uint64_t i = 0; i < t->own.total; i++) {
    uint64_t of_part;
    uint32_t part = nxr_stack_split(&t->own, i, &of_part);
    rows[i] = (nxr_joined_row){part, (uint32_t)nxr_stack_row(&t->from[part], t->at[part], of_part)};
  }
  *joined = (nxr_joined){sources, rows, t->own.total, t->n_columns, transposed};
  *made = *wanted;
  made->dtype = NX_f32; /* what its numbers are read as */
  made->joined = joined;
  made->dims[transposed] = (int64_t)t->own.total;
  if (wanted->n_dims == 2) made->dims[!transposed] = (int64_t)t->n_columns;
  return true;
}

/* A tensor that the files call as the plan does, such as a model of transformers that FSDP saved. */
static bool join_same(const joiner *j, const nxr_safetensor *wanted, nxr_safetensor *made) {
  target t = {.own = {.n = 1, .n_groups = 1}};
  size_t first, n = find_shards(j, wanted->name, &first);
  if (n == 0) n = find_shards(j, nx_tensor_base_name(wanted->name), &first);
  if (n == 0 || j->foreign->shards[first].n_dims != wanted->n_dims) return false;
  if (!place(j, N_FOREIGN_ROWS, first, n, &t.sources[0], &t.own.total, &t.n_columns)) return false;
  if (t.own.total != (uint64_t)wanted->dims[0]) { /* it is told as of another shape */
    *made = *wanted;
    made->dtype = NX_f32, made->dims[0] = (int64_t)t.own.total;
    return true;
  }
  t.own.rows[0] = t.own.total;
  t.from[0] = t.own;
  if (!is_covered(&t.sources[0], t.own.total, t.n_columns))
    return shape_fault(j, wanted->name, t.own.total, t.n_columns);
  return make(j, wanted, &t, false, made);
}

/* False with an empty fault: the checkpoint does not have it. */
static bool join_one(const joiner *j, const nxr_safetensor *wanted, nxr_safetensor *made) {
  uint64_t at[2];
  bool bias;
  if (join_same(j, wanted, made)) return true;
  const json_t *row = j->fault->text[0] == '\0' ? find_row(j, wanted->name, at, &bias) : NULL;
  if (row == NULL || wanted->n_dims < 1 || wanted->n_dims > 2) return false;
  bool transposed = json_is_true(json_object_get(row, "transposed")) && wanted->n_dims == 2;
  target t = {.own = own_stack(j, row, (uint64_t)wanted->dims[transposed])};
  if (t.own.total != (uint64_t)wanted->dims[transposed] || !nxr_stack_divides(&t.own))
    return shape_fault(j, wanted->name, t.own.total, 0);
  for (uint32_t i = 0; i < t.own.n; i++)
    if (!find_source(j, &t, i, at, bias, wanted->name)) return false;
  return make(j, wanted, &t, transposed, made);
}

/* What no tensor was made of. */
static bool list_rest(const joiner *j, const nxr_safetensor **found, uint64_t *n_found) {
  const nxr_shard *shards = j->foreign->shards;
  for (size_t i = 0; i < j->foreign->n_shards; i++) {
    if (j->used[i] || (i > 0 && strcmp(shards[i].name, shards[i - 1].name) == 0)) continue;
    nxr_safetensor *rest = nxr_foreign_take(j->foreign, 1, sizeof *rest);
    if (rest == NULL) return nxr_fault_set(j->fault, "out of memory");
    *rest = (nxr_safetensor){.name = shards[i].name, .dtype = NX_f32};
    found[(*n_found)++] = rest;
  }
  return true;
}

/* A plan may say anything here. */
static bool is_row(const json_t *row) {
  size_t i, n = json_array_size(json_object_get(row, "parts"));
  json_t *part;
  json_array_foreach(json_object_get(row, "parts"), i, part) if (!json_is_string(part)) return false;
  return n > 0 && n <= NXR_MOST_PARTS && json_is_string(json_object_get(row, "stem")) &&
         json_is_string(json_object_get(row, "layout"));
}

/* Which rows the plan has tensors of. */
static bool read_rows(joiner *j, const nxr_safetensor *wanted, uint64_t n) {
  size_t i;
  uint64_t at[2];
  json_t *row;
  char pattern[NXR_PART_NAME];
  json_array_foreach(json_object_get(j->parts, "tensors"), i, row) {
    if (!is_row(row)) return nxr_fault_set(j->fault, "the plan's text about parts is malformed");
    snprintf(pattern, sizeof pattern, "%s.*", json_string_value(json_object_get(row, "stem")));
    for (uint64_t k = 0; k < n; k++)
      if (nxr_name_fits(pattern, wanted[k].name, at)) json_object_set_new(row, PRESENT, json_true());
  }
  return true;
}

static bool read_heads(joiner *j) {
  json_int_t heads = 0, kv_heads = 0, head_dim = 0;
  int parallel = 0;
  if (json_unpack((json_t *)(uintptr_t)j->parts, "{s:I, s:I, s:I, s:b}", "heads", &heads, "kv_heads",
                  &kv_heads, "head_dim", &head_dim, "parallel", &parallel) != 0 ||
      heads <= 0 || kv_heads <= 0 || head_dim <= 0)
    return nxr_fault_set(j->fault, "the plan does not say which parts its tensors have: compile it anew");
  j->heads = (uint64_t)heads, j->kv_heads = (uint64_t)kv_heads, j->head_dim = (uint64_t)head_dim;
  j->parallel = parallel;
  return true;
}

static bool join_all(joiner *j, const nxr_safetensor *wanted, uint64_t n, const nxr_safetensor **found,
                     uint64_t *n_found) {
  nxr_safetensor *made = nxr_foreign_take(j->foreign, n, sizeof *made);
  if (made == NULL) return nxr_fault_set(j->fault, "out of memory");
  for (uint64_t i = 0; i < n; i++) {
    if (join_one(j, &wanted[i], &made[i])) found[(*n_found)++] = &made[i];
    else if (j->fault->text[0] != '\0') return false;
  }
  return list_rest(j, found, n_found);
}

bool nxr_foreign_join(nxr_foreign *foreign, const char *parts, const nxr_safetensor *wanted, uint64_t n,
                      const nxr_safetensor **found, uint64_t *n_found, nxr_fault *fault) {
  json_t *text = json_loads(parts, 0, NULL);
  joiner j = {.foreign = foreign, .parts = text, .fault = fault};
  j.used = calloc(foreign->n_shards + 1, sizeof *j.used);
  *n_found = 0;
  bool good = j.used ? read_heads(&j) && read_rows(&j, wanted, n) && join_all(&j, wanted, n, found, n_found)
                     : nxr_fault_set(fault, "out of memory");
  free(j.used);
  json_decref(text);
  return good;
}
