/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/state/requantize.h"

#include "runtime/files/stored.h"
#include "schema/nf4_nested.h"
#include "schema/quantized.h"

#include <stdlib.h>
#include <string.h>

enum { STRIP = NX_FP8_TILE /* rows that are whole at a time */ };

typedef struct requantizer {
  const nxr_pieces *pieces;
  nxr_world *world;
  const nxr_addend *addend;
  uint32_t codes, scales; /* a piece of each */
  int64_t rows, columns;  /* of the matrix, in elements */
  double *entries;        /* of a strip: codes, and behind them scales */
  float *values;          /* [STRIP, columns] */
  float *tiles;           /* greatest magnitudes in the strip, of NX_FP8_TILE columns each */
  float *nested;          /* scales of NF4, where they are quantized too; NULL: they are not */
  void *room;             /* for a row of any piece, as floats */
  float greatest;
} requantizer;

double nxr_addend_at(const nxr_addend *addend, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < addend->rank; k++)
    sum += addend->b[row * addend->rank + k] * addend->a[k * addend->columns + column];
  return addend->scale * sum;
}

static const nx_piece *piece_of(const requantizer *r, uint32_t piece) {
  return &r->pieces->plan->pieces[piece];
}

static const char *name_of(const nx_plan *plan, uint32_t piece) {
  return nx_plan_string(plan, plan->pieces[piece].name);
}

/* The scales' name begins with that of the codes. */
static uint32_t find_scales(const nx_plan *plan, uint32_t codes) {
  const char *name = name_of(plan, codes);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (plan->pieces[i].form == plan->pieces[codes].form + 1 &&
        strncmp(name_of(plan, i), name, strlen(name)) == 0)
      return i;
  return NX_NONE;
}

/* ---- a strip of the matrix ---- */

/* What this rank writes of rows [first, first + n) of a piece's entries. */
static void take(const requantizer *r, uint32_t piece, int64_t first, int64_t n, double *entries) {
  const nx_piece *at = piece_of(r, piece);
  nx_dtype dtype = nxr_pieces_dtype(r->pieces, NXR_PARAM, piece);
  if (!nxr_pieces_writes(r->pieces, NXR_PARAM, piece)) return;
  for (int64_t row = 0; row < at->rows; row++) {
    const nxr_span span = nxr_pieces_row(r->pieces, NXR_PARAM, piece, row);
    double *to = entries + (span.row - first) * at->logical_columns + span.column;
    if (span.n == 0 || span.row < first || span.row >= first + n) continue;
    nxr_pieces_get(r->pieces, dtype, &span, r->room);
    for (int64_t i = 0; i < span.n; i++)
      to[i] = dtype == NX_u8 ? (double)((uint8_t *)r->room)[i] : (double)((float *)r->room)[i];
  }
}

/* What all boxes of the tensor have; returns how many entries those are. */
static int64_t take_all(const requantizer *r, uint32_t piece, int64_t first, int64_t n, double *entries) {
  const nx_plan *plan = r->pieces->plan;
  int64_t of_rows = nx_form_find(piece_of(r, piece)->form)->rows;
  first /= of_rows, n = (n + of_rows - 1) / of_rows;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (plan->pieces[i].name == plan->pieces[piece].name) take(r, i, first, n, entries);
  return n * piece_of(r, piece)->logical_columns;
}

static float scale_of(const requantizer *r, const double *scales, int64_t row, int64_t column) {
  const nx_piece *at = piece_of(r, r->scales);
  const nx_form_row *form = nx_form_find(at->form);
  double scale = scales[row / form->rows * at->logical_columns + column / form->elements];
  return at->form == NX_FORM_MXFP4_SCALE ? nx_e8m0_decode((uint8_t)scale) : (float)scale;
}

/* The numbers of rows [first, first + n), with what is added to them. */
static void read_strip(const requantizer *r, int64_t first, int64_t n) {
  const nx_piece *codes = piece_of(r, r->codes);
  size_t n_most = (size_t)(STRIP * (codes->logical_columns + piece_of(r, r->scales)->logical_columns));
  memset(r->entries, 0, n_most * sizeof *r->entries);
  int64_t n_codes = take_all(r, r->codes, first, n, r->entries);
  int64_t n_scales = take_all(r, r->scales, first, n, r->entries + n_codes);
  nxr_world_beat();
  nxr_world_sum(r->world, r->entries, (size_t)(n_codes + n_scales));
  uint8_t *bytes = r->room;
  for (int64_t row = 0; row < n; row++) {
    const double *of_row = r->entries + row * codes->logical_columns;
    for (int64_t i = 0; i < codes->logical_columns; i++) bytes[i] = (uint8_t)of_row[i];
    for (int64_t i = 0; i < r->columns; i++) {
      float scale = scale_of(r, r->entries + n_codes, row, i),
            old = nxr_stored_value((nx_form)codes->form, bytes, (uint64_t)i) * scale;
      r->values[row * r->columns + i] = (float)((double)old + nxr_addend_at(r->addend, first + row, i));
    }
  }
}

/* ---- what scales follow ---- */

static float greatest(const float *values, int64_t n, float most) {
  for (int64_t i = 0; i < n; i++) most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
  return most;
}

static void find_tiles(const requantizer *r, int64_t n) {
  for (int64_t start = 0; start < r->columns; start += NX_FP8_TILE) {
    int64_t width = r->columns - start < NX_FP8_TILE ? r->columns - start : NX_FP8_TILE;
    float most = 0;
    for (int64_t row = 0; row < n; row++) most = greatest(r->values + row * r->columns + start, width, most);
    r->tiles[start / NX_FP8_TILE] = most;
  }
}

/* Of the whole matrix, before any of it changes. */
static void look_over(requantizer *r) {
  bool needed = r->nested || piece_of(r, r->codes)->form == NX_FORM_NVFP4;
  for (int64_t first = 0; needed && first < r->rows; first += STRIP) {
    int64_t n = r->rows - first < STRIP ? r->rows - first : STRIP, n_elements = n * r->columns;
    read_strip(r, first, n);
    r->greatest = greatest(r->values, n_elements, r->greatest);
    for (int64_t i = 0; r->nested && i < n_elements; i += NX_NF4_BLOCK)
      r->nested[(first * r->columns + i) / NX_NF4_BLOCK] = nx_nf4_absmax(r->values + i, NX_NF4_BLOCK);
  }
  if (r->nested) nx_nf4_nest(r->nested, (uint64_t)(r->rows * r->columns / NX_NF4_BLOCK));
}

/* ---- back into codes and scales ---- */

static void set_rows(const requantizer *r, uint32_t piece, int64_t first, int64_t n) {
  const nx_piece *at = piece_of(r, piece);
  int64_t of_rows = nx_form_find(at->form)->rows;
  for (int64_t row = 0; row < at->rows; row++) {
    const nxr_span span = nxr_pieces_row(r->pieces, NXR_PARAM, piece, row),
                   elements = nxr_pieces_elements(r->pieces, piece, &span);
    int64_t of_matrix = span.row * of_rows;
    if (span.n == 0 || of_matrix < first || of_matrix >= first + n) continue;
    const nxr_greatest most = {.all = r->greatest,
                               .tiles = r->tiles,
                               .nested = r->nested ? r->nested + span.row * at->logical_columns : NULL};
    nxr_pieces_set(r->pieces, piece, row, r->values + (of_matrix - first) * r->columns + elements.column,
                   &most, r->room);
  }
}

static void set_strip(const requantizer *r, int64_t first, int64_t n) {
  const nx_plan *plan = r->pieces->plan;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (plan->pieces[i].name == plan->pieces[r->codes].name ||
        plan->pieces[i].name == plan->pieces[r->scales].name)
      set_rows(r, i, first, n);
}

static bool allocate(requantizer *r) {
  const nx_plan *plan = r->pieces->plan;
  size_t columns = (size_t)r->columns, n_scales = (size_t)(r->rows * r->columns / NX_NF4_BLOCK);
  bool nested = piece_of(r, r->codes)->form == NX_FORM_NF4 && plan->run_names->rules & NX_RUN_NESTED_SCALES;
  size_t entries = (size_t)(piece_of(r, r->codes)->logical_columns + piece_of(r, r->scales)->logical_columns);
  r->entries = malloc(STRIP * entries * sizeof *r->entries);
  r->values = malloc(STRIP * columns * sizeof *r->values);
  r->tiles = malloc((columns / NX_FP8_TILE + 1) * sizeof *r->tiles);
  r->nested = nested ? malloc(n_scales * sizeof *r->nested) : NULL;
  r->room = malloc((nxr_pieces_widest(plan) + columns) * sizeof(float));
  return r->entries && r->values && r->tiles && (r->nested || !nested) && r->room;
}

bool nxr_requantize(const nxr_pieces *pieces, nxr_world *world, uint32_t codes, const nxr_addend *addend,
                    nxr_fault *fault) {
  const nx_piece *at = &pieces->plan->pieces[codes];
  requantizer r = {.pieces = pieces, .world = world, .addend = addend, .codes = codes,
                   .scales = find_scales(pieces->plan, codes), .rows = at->logical_rows,
                   .columns = at->logical_columns * nx_form_elements(at->form)};
  if (r.scales == NX_NONE)
    nxr_fault_set(fault, "the plan has no scales of %s", name_of(pieces->plan, codes));
  else if (!allocate(&r)) nxr_fault_set(fault, "no memory to quantize weights anew");
  bool good = nxr_world_agree(world, fault);
  if (good) look_over(&r);
  for (int64_t first = 0; good && first < r.rows; first += STRIP) {
    int64_t n = r.rows - first < STRIP ? r.rows - first : STRIP;
    read_strip(&r, first, n);
    find_tiles(&r, n);
    set_strip(&r, first, n);
  }
  free(r.entries);
  free(r.values);
  free(r.tiles);
  free(r.nested);
  free(r.room);
  return good;
}
