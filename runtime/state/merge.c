/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/merge.h"

#include "runtime/state/init.h"
#include "runtime/state/requantize.h"
#include "schema/bf16.h"
#include "schema/f16.h"
#include "schema/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char PREFIX[] = "base_model.model.", FIRST[] = ".lora_A.weight", SECOND[] = ".lora_B.weight",
                  WEIGHT[] = ".weight";

typedef struct merger {
  const nxr_pieces *pieces;
  nxr_world *world;
  double *a, *b; /* whole matrices, of the size of the largest */
  float *values; /* a row */
  void *room;
} merger;

static const char *name_of(const merger *m, uint32_t piece) {
  return nx_plan_string(m->pieces->plan, m->pieces->plan->pieces[piece].name);
}

static bool ends_with(const char *text, const char *ending) {
  size_t n = strlen(text), n_ending = strlen(ending);
  return n >= n_ending && strcmp(text + n - n_ending, ending) == 0;
}

/* Of the pieces that are boxes of one tensor. */
static bool is_first_of_name(const nx_plan *plan, uint32_t piece) {
  for (uint32_t i = 0; i < piece; i++)
    if (plan->pieces[i].name == plan->pieces[piece].name) return false;
  return true;
}

static void get_floats(const merger *m, nxr_kind kind, uint32_t piece, const nxr_span *span) {
  nx_dtype dtype = nxr_pieces_dtype(m->pieces, kind, piece);
  const uint16_t *halves = m->room;
  nxr_pieces_get(m->pieces, dtype, span, dtype == NX_f32 ? (void *)m->values : m->room);
  for (int64_t i = 0; dtype == NX_bf16 && i < span->n; i++) m->values[i] = nx_bf16_to_float(halves[i]);
  for (int64_t i = 0; dtype == NX_f16 && i < span->n; i++) m->values[i] = nx_f16_to_float(halves[i]);
}

/* What this rank writes of a piece; the ranks' parts together are the tensor. */
static void take(const merger *m, uint32_t piece, double *matrix) {
  const nx_piece *at = &m->pieces->plan->pieces[piece];
  nxr_kind kind = nxr_pieces_has(m->pieces, NXR_MASTER, piece) ? NXR_MASTER : NXR_PARAM;
  if (!nxr_pieces_writes(m->pieces, kind, piece)) return;
  for (int64_t row = 0; row < at->rows; row++) {
    const nxr_span span = nxr_pieces_row(m->pieces, kind, piece, row);
    if (span.n == 0) continue;
    get_floats(m, kind, piece, &span);
    for (int64_t i = 0; i < span.n; i++)
      matrix[span.row * at->logical_columns + span.column + i] = (double)m->values[i];
  }
}

/* The tensor that this piece is a box of, whole. */
static void gather(const merger *m, uint32_t piece, double *matrix) {
  const nx_plan *plan = m->pieces->plan;
  const nx_piece *of = &plan->pieces[piece];
  size_t n = (size_t)(of->logical_rows * of->logical_columns);
  memset(matrix, 0, n * sizeof *matrix);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (plan->pieces[i].name == of->name) take(m, i, matrix);
  nxr_world_sum(m->world, matrix, n);
}

/* Adds to what this rank holds of a weight. */
static void add(const merger *m, uint32_t piece, const nxr_addend *addend) {
  const nx_piece *at = &m->pieces->plan->pieces[piece];
  for (int64_t row = 0; row < at->rows; row++) {
    const nxr_span span = nxr_pieces_row(m->pieces, NXR_PARAM, piece, row);
    if (span.n == 0) continue;
    get_floats(m, NXR_PARAM, piece, &span);
    for (int64_t i = 0; i < span.n; i++)
      m->values[i] = (float)((double)m->values[i] + nxr_addend_at(addend, span.row, span.column + i));
    nxr_pieces_set(m->pieces, piece, row, m->values, &(nxr_greatest){0}, m->room);
  }
}

static uint32_t find(const merger *m, const char *name) {
  for (uint32_t i = 0; i < m->pieces->plan->n[NX_SECTION_PIECES]; i++)
    if (strcmp(name_of(m, i), name) == 0) return i;
  return NX_NONE;
}

/* A matrix of the adapter beside a weight: its own, or the one that all experts have. */
static uint32_t find_factor(const merger *m, const char *weight, const char *ending) {
  char own[512], shared[512];
  size_t n_module = strlen(weight) - strlen(WEIGHT);
  int n = snprintf(own, sizeof own, "%s%.*s%s", PREFIX, (int)n_module, weight, ending);
  uint32_t found = n > 0 && (size_t)n < sizeof own ? find(m, own) : NX_NONE;
  if (found == NX_NONE && nx_tensor_shared_name(own, shared, sizeof shared)) found = find(m, shared);
  return found;
}

static bool merge(const merger *m, uint32_t weight, nxr_fault *fault) {
  const nx_plan *plan = m->pieces->plan;
  uint32_t first = find_factor(m, name_of(m, weight), FIRST),
           second = find_factor(m, name_of(m, weight), SECOND);
  if (first == NX_NONE || second == NX_NONE) return true;
  gather(m, first, m->a);
  gather(m, second, m->b);
  const nxr_addend addend = {m->a, m->b, plan->pieces[first].logical_rows,
                             plan->pieces[first].logical_columns, plan->run->merge_scale};
  if (plan->pieces[weight].form != NX_FORM_PLAIN)
    return nxr_requantize(m->pieces, m->world, weight, &addend, fault);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (plan->pieces[i].name == plan->pieces[weight].name) add(m, i, &addend);
  return true;
}

/* Whether the piece is the first box of a frozen weight. */
static bool is_weight(const merger *m, uint32_t piece) {
  const nx_plan *plan = m->pieces->plan;
  return !(plan->pieces[piece].flags & NX_PIECE_ADAPTER) && ends_with(name_of(m, piece), WEIGHT) &&
         is_first_of_name(plan, piece);
}

static void begin_anew(const merger *m, uint32_t piece, bool first, uint64_t times) {
  const nx_plan *plan = m->pieces->plan;
  uint64_t seed = plan->run->seed + (times + 1) * UINT64_C(0x9E3779B97F4A7C15);
  nxr_init_adapter(m->pieces, piece, first, seed, m->values, m->room);
  if (plan->run->updates == NX_NONE) return;
  memset(m->values, 0, (size_t)plan->pieces[piece].columns * sizeof *m->values);
  for (nxr_kind kind = NXR_STATE; kind < NXR_N_KINDS; kind++) {
    if (!nxr_pieces_has(m->pieces, kind, piece)) continue;
    for (int64_t row = 0; row < plan->pieces[piece].rows; row++) {
      const nxr_span span = nxr_pieces_row(m->pieces, kind, piece, row);
      nxr_pieces_put(m->pieces, nxr_pieces_dtype(m->pieces, kind, piece), &span, m->values);
    }
  }
}

static size_t largest_adapter(const nx_plan *plan) {
  size_t most = 1;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    size_t n = (size_t)(plan->pieces[i].logical_rows * plan->pieces[i].logical_columns);
    if (plan->pieces[i].flags & NX_PIECE_ADAPTER && n > most) most = n;
  }
  return most;
}

bool nxr_merge_adapters(const nxr_pieces *pieces, nxr_world *world, uint64_t times, nxr_fault *fault) {
  const nx_plan *plan = pieces->plan;
  size_t n = largest_adapter(plan), widest = nxr_pieces_widest(plan);
  merger m = {.pieces = pieces, .world = world};
  m.a = malloc(n * sizeof *m.a);
  m.b = malloc(n * sizeof *m.b);
  m.values = malloc(widest * sizeof *m.values);
  m.room = malloc(widest * sizeof(float));
  if (!m.a || !m.b || !m.values || !m.room)
    nxr_fault_set(fault, "no memory to add adapters to the weights");
  bool good = nxr_world_agree(world, fault);
  for (uint32_t i = 0; good && i < plan->n[NX_SECTION_PIECES]; i++)
    if (is_weight(&m, i)) good = merge(&m, i, fault);
  for (uint32_t i = 0; good && i < plan->n[NX_SECTION_PIECES]; i++) {
    bool first = ends_with(name_of(&m, i), FIRST);
    if (first || ends_with(name_of(&m, i), SECOND)) begin_anew(&m, i, first, times);
  }
  free(m.a);
  free(m.b);
  free(m.values);
  free(m.room);
  return good;
}
