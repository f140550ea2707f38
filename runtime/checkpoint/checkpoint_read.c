/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_read.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/world/world.h"
#include "schema/nf4_nested.h"
#include "schema/quantized.h"
#include "schema/regular.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- sources ---- */

static int by_name(const void *a, const void *b) {
  const nxr_safetensor *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static bool add_file(nxr_source *source, const char *path, nxr_fault *fault) {
  nxr_safetensors *files = realloc(source->files, (source->n_files + 1) * sizeof *files);
  if (files == NULL) return nxr_fault_set(fault, "out of memory");
  source->files = files;
  if (!nxr_safetensors_open(path, &files[source->n_files], fault)) return false;
  source->n_files++;
  return true;
}

/* One list of all files' tensors. */
static bool join_files(nxr_source *source, nxr_fault *fault) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < source->n_files; i++) n += source->files[i].n_tensors;
  source->tensors = calloc(n + 1, sizeof *source->tensors);
  if (source->tensors == NULL) return nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; i < source->n_files; i++)
    for (uint64_t at = 0; at < source->files[i].n_tensors; at++)
      source->tensors[source->n_tensors++] = &source->files[i].tensors[at];
  qsort(source->tensors, n, sizeof *source->tensors, by_name);
  for (uint64_t i = 1; i < n; i++)
    if (strcmp(source->tensors[i - 1]->name, source->tensors[i]->name) == 0)
      return nxr_fault_set(fault, "%s: two of its files have tensor %s", source->path,
                           source->tensors[i]->name);
  return true;
}

/* Whether an earlier name in the index has the file already. */
static bool is_known(const json_t *names, const char *name, const char *until) {
  const char *tensor;
  json_t *file;
  json_object_foreach((json_t *)(uintptr_t)names, tensor, file) {
    if (strcmp(tensor, until) == 0) return false;
    if (strcmp(json_string_value(file), name) == 0) return true;
  }
  return false;
}

static bool add_indexed(nxr_source *source, const json_t *map, const char *index_path, nxr_fault *fault) {
  const char *tensor;
  json_t *file;
  if (!json_is_object(map)) return nxr_fault_set(fault, "%s is damaged: it has no weight_map", index_path);
  json_object_foreach((json_t *)(uintptr_t)map, tensor, file) {
    const char *name = json_string_value(file);
    char path[NXR_PATH_BYTES];
    if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL)
      return nxr_fault_set(fault, "%s: the file of tensor %s is none of its folder", index_path, tensor);
    if (is_known(map, name, tensor)) continue;
    snprintf(path, sizeof path, "%s/%s", source->path, name);
    if (!add_file(source, path, fault)) return false;
  }
  if (!join_files(source, fault)) return false;
  json_object_foreach((json_t *)(uintptr_t)map, tensor, file)
    if (nxr_source_find(source, tensor) == NULL)
      return nxr_fault_set(fault, "%s: tensor %s is not in %s", index_path, tensor, json_string_value(file));
  return true;
}

static bool open_index(nxr_source *source, const char *index_path, nxr_fault *fault) {
  json_error_t error;
  json_t *index = nx_json_read(index_path, JSON_REJECT_DUPLICATES, &error);
  bool good = index ? add_indexed(source, json_object_get(index, "weight_map"), index_path, fault)
                    : nxr_fault_set(fault, "%s is damaged: %s", index_path, error.text);
  json_decref(index);
  return good;
}

static bool open_any(nxr_source *source, const char *state, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  struct stat status;
  if (strlen(source->path) > NXR_PATH_BYTES / 2)
    return nxr_fault_set(fault, "the name of the weights is too long");
  if (stat(source->path, &status) != 0)
    return nxr_fault_set(fault, "cannot open %s: %s", source->path, strerror(errno));
  if (!S_ISDIR(status.st_mode)) return add_file(source, source->path, fault) && join_files(source, fault);
  snprintf(path, sizeof path, "%s/model.safetensors", source->path);
  if (access(path, F_OK) == 0) return add_file(source, path, fault) && join_files(source, fault);
  snprintf(path, sizeof path, "%s/model.safetensors.index.json", source->path);
  if (access(path, F_OK) == 0) return open_index(source, path, fault);
  uint64_t step;
  if (nxr_foreign_find(source->path, 0, path, &step))
    return (source->foreign = nxr_foreign_open(path, state, fault)) != NULL;
  return nxr_fault_set(fault, "%s has neither model.safetensors nor model.safetensors.index.json",
                       source->path);
}

bool nxr_source_open(const char *path, const char *state, nxr_source *source, nxr_fault *fault) {
  *source = (nxr_source){.path = path};
  if (open_any(source, state, fault)) return true;
  nxr_source_close(source);
  return false;
}

void nxr_source_close(nxr_source *source) {
  for (uint32_t i = 0; i < source->n_files; i++) nxr_safetensors_close(&source->files[i]);
  nxr_foreign_close(source->foreign);
  free(source->files);
  free(source->tensors);
  *source = (nxr_source){0};
}

const nxr_safetensor *nxr_source_find(const nxr_source *source, const char *name) {
  const nxr_safetensor key = {.name = name}, *wanted = &key;
  const nxr_safetensor **found =
      source->n_tensors ? bsearch(&wanted, source->tensors, source->n_tensors, sizeof *found, by_name) : NULL;
  return found ? *found : NULL;
}

bool nxr_source_join(nxr_source *source, const nxr_tensors *tensors, nxr_content content, nxr_fault *fault) {
  const nx_plan *plan = tensors->pieces->plan;
  nxr_safetensor *wanted = calloc((size_t)tensors->n + 1, sizeof *wanted);
  uint64_t n = 0;
  source->tensors = calloc(tensors->n + nxr_foreign_size(source->foreign) + 1, sizeof *source->tensors);
  bool good = wanted && source->tensors;
  if (!good) nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; good && i < tensors->n; i++) {
    uint32_t piece = tensors->items[i].piece;
    if (nxr_pieces_has(tensors->pieces, nxr_tensors_kind(tensors, content, piece), piece))
      nxr_tensors_describe(tensors, content, i, &wanted[n++]);
  }
  good = good && nxr_foreign_join(source->foreign, nx_plan_string(plan, plan->run->tensor_parts), wanted, n,
                                  source->tensors, &source->n_tensors, fault);
  if (good) qsort(source->tensors, source->n_tensors, sizeof *source->tensors, by_name);
  free(wanted);
  return good;
}

/* ---- reading ---- */

enum { BLOCK_ROWS = 32 };

typedef struct reader {
  const nxr_tensors *tensors;
  nxr_content content;
  float *block;  /* [BLOCK_ROWS, widest piece] */
  float *column; /* [BLOCK_ROWS] */
  void *room;    /* [widest piece] floats */
  float *tiles;  /* the greatest magnitudes of a row of tiles, of these: */
  const nxr_safetensor *tiles_of;
  int64_t tile_row;
  float *nested; /* scales of NF4 that are quantized once more, of all of this tensor: */
  const nxr_safetensor *nested_of;
} reader;

/* What of a row is to be read: of weights all of the box where this rank holds whole parameters. */
static nxr_span row_span(const reader *in, uint32_t piece, int64_t row) {
  nxr_kind kind =
      nxr_content_is_weights(in->content) ? NXR_PARAM : nxr_tensors_kind(in->tensors, in->content, piece);
  return nxr_pieces_row(in->tensors->pieces, kind, piece, row);
}

static void store(const reader *in, uint32_t piece, int64_t row, const nxr_span *span, const float *values,
                  const nxr_greatest *most) {
  const nxr_pieces *pieces = in->tensors->pieces;
  if (span->n == 0) return;
  if (nxr_content_is_weights(in->content)) {
    nxr_pieces_set(pieces, piece, row, values, most, in->room);
    return;
  }
  nx_dtype dtype = nxr_pieces_dtype(pieces, nxr_tensors_kind(in->tensors, in->content, piece), piece);
  nxr_pieces_put_floats(pieces, dtype, span, values, in->room);
}

/* Codes and scales as the file has them. */
static void read_quantized(const reader *in, const nxr_found *found, uint32_t piece, const nxr_span *span) {
  const nx_piece *at = &in->tensors->pieces->plan->pieces[piece];
  const uint64_t first = (uint64_t)(span->row * at->logical_columns + span->column);
  const void *entries = found->tensor->bytes + first;
  nx_dtype dtype = (nx_dtype)nx_form_find(at->form)->dtype;
  if (span->n == 0) return;
  if (dtype == NX_f32) {
    nxr_stored_scales(&found->stored, first, (uint64_t)span->n, in->block);
    entries = in->block;
  }
  nxr_pieces_put(in->tensors->pieces, dtype, span, entries);
}

/* The greatest magnitudes of the tiles in which a row of a matrix is, all along it. */
static void find_tiles(reader *in, const nxr_safetensor *matrix, int64_t tile_row) {
  int64_t rows = matrix->dims[0], columns = matrix->dims[1], first = tile_row * NX_FP8_TILE;
  if (in->tiles_of == matrix && in->tile_row == tile_row) return;
  in->tiles_of = matrix;
  in->tile_row = tile_row;
  for (int64_t i = 0; i < columns; i += NX_FP8_TILE) in->tiles[i / NX_FP8_TILE] = 0;
  for (int64_t row = first; row < rows && row < first + NX_FP8_TILE; row++)
    for (int64_t start = 0; start < columns; start += NX_FP8_TILE) {
      float values[NX_FP8_TILE], *most = &in->tiles[start / NX_FP8_TILE];
      int64_t n = columns - start < NX_FP8_TILE ? columns - start : NX_FP8_TILE;
      nxr_safetensor_floats(matrix, (uint64_t)(row * columns + start), (uint64_t)n, values);
      for (int64_t i = 0; i < n; i++) *most = fabsf(values[i]) > *most ? fabsf(values[i]) : *most;
    }
}

/* The scales of a whole matrix, which have a mean. */
static void find_nested(reader *in, const nxr_safetensor *matrix) {
  uint64_t n = (uint64_t)(matrix->dims[0] * matrix->dims[1] / NX_NF4_BLOCK);
  float values[NX_NF4_BLOCK];
  if (in->nested_of == matrix) return;
  in->nested_of = matrix;
  for (uint64_t i = 0; i < n; i++) {
    nxr_safetensor_floats(matrix, i * NX_NF4_BLOCK, NX_NF4_BLOCK, values);
    in->nested[i] = nx_nf4_absmax(values, NX_NF4_BLOCK);
  }
  nx_nf4_nest(in->nested, n);
}

/* What is scaled by tiles of rows follows them alone. */
static void read_row(reader *in, const nxr_found *found, uint32_t piece, int64_t row) {
  const nx_piece *at = &in->tensors->pieces->plan->pieces[piece];
  int64_t columns = at->logical_columns * nx_form_elements(at->form);
  nxr_span span = row_span(in, piece, row), read = nxr_pieces_elements(in->tensors->pieces, piece, &span);
  nxr_greatest most = {.all = found->greatest};
  bool tiled = at->form == NX_FORM_FP8 || at->form == NX_FORM_FP8_SCALE;
  if (found->quantized) {
    read_quantized(in, found, piece, &span);
    return;
  }
  if (span.n > 0 && tiled) {
    find_tiles(in, found->tensor, at->form == NX_FORM_FP8 ? span.row / NX_FP8_TILE : span.row);
    most.tiles = in->tiles;
  }
  if (span.n > 0 && at->form == NX_FORM_NF4_ABSMAX && in->nested) {
    find_nested(in, found->tensor);
    most.nested = in->nested + span.row * at->logical_columns;
  }
  if (span.n > 0 && at->form != NX_FORM_FP8_SCALE)
    nxr_safetensor_floats(found->tensor, (uint64_t)(read.row * columns + read.column), (uint64_t)read.n,
                          in->block);
  store(in, piece, row, &span, in->block, &most);
}

/* Rows [first, first + n) of a tensor that the file has transposed: what is one below the other here stands
 * side by side there. */
static void read_transposed(const reader *in, const nxr_safetensor *tensor, uint32_t piece, int64_t first,
                            int64_t n) {
  const nx_piece *at = &in->tensors->pieces->plan->pieces[piece];
  nxr_span spans[BLOCK_ROWS];
  int64_t start = INT64_MAX, end = 0;
  for (int64_t i = 0; i < n; i++) {
    spans[i] = row_span(in, piece, first + i);
    if (spans[i].row >= at->logical_rows) n = i;
    else if (spans[i].n > 0 && spans[i].column < start) start = spans[i].column;
    if (i < n && spans[i].n > 0 && spans[i].column + spans[i].n > end) end = spans[i].column + spans[i].n;
  }
  for (int64_t column = start; column < end; column++) {
    uint64_t element = (uint64_t)(column * at->logical_rows + spans[0].row);
    nxr_safetensor_floats(tensor, element, (uint64_t)n, in->column);
    for (int64_t i = 0; i < n; i++) {
      int64_t place = column - spans[i].column;
      if (place >= 0 && place < spans[i].n) in->block[i * at->columns + place] = in->column[i];
    }
  }
  const nxr_greatest none = {0}; /* what is quantized is never transposed */
  for (int64_t i = 0; i < n; i++) store(in, piece, first + i, &spans[i], in->block + i * at->columns, &none);
}

static void read_piece(reader *in, const nxr_found *found, uint32_t index) {
  const nx_piece *piece = &in->tensors->pieces->plan->pieces[index];
  bool transposed = piece->n_dims == 2 && (piece->flags & NX_PIECE_TRANSPOSED);
  int64_t step = transposed ? BLOCK_ROWS : 1;
  for (int64_t row = 0; row < piece->rows; row += step) {
    int64_t n = step < piece->rows - row ? step : piece->rows - row;
    nxr_world_beat();
    if (transposed) read_transposed(in, found->tensor, index, row, n);
    else read_row(in, found, index, row);
  }
}

/* Tiles along the widest tensor that is kept in them. */
static size_t tiles_of_widest(const nx_plan *plan) {
  int64_t widest = 1;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (plan->pieces[i].form == NX_FORM_FP8_SCALE && plan->pieces[i].logical_columns > widest)
      widest = plan->pieces[i].logical_columns;
  return (size_t)widest;
}

/* Scales of the largest matrix; 0: none are quantized once more. */
static size_t nested_of_largest(const nx_plan *plan) {
  int64_t most = 0;
  if (!(plan->run_names->rules & NX_RUN_NESTED_SCALES)) return 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    int64_t n = plan->pieces[i].logical_rows * plan->pieces[i].logical_columns;
    if (plan->pieces[i].form == NX_FORM_NF4_ABSMAX && n > most) most = n;
  }
  return (size_t)most;
}

bool nxr_tensors_read(const nxr_tensors *tensors, nxr_content content, const nxr_found *found,
                      nxr_fault *fault) {
  const nx_plan *plan = tensors->pieces->plan;
  size_t widest = nxr_pieces_widest(plan);
  float column[BLOCK_ROWS];
  reader in = {.tensors = tensors, .content = content, .column = column};
  in.block = malloc(BLOCK_ROWS * widest * sizeof *in.block);
  in.room = malloc(widest * sizeof(float));
  in.tiles = malloc(tiles_of_widest(plan) * sizeof *in.tiles);
  size_t n_nested = nested_of_largest(plan);
  in.nested = n_nested ? malloc(n_nested * sizeof *in.nested) : NULL;
  bool good = in.block && in.room && in.tiles && (in.nested || n_nested == 0);
  for (uint32_t i = 0; good && i < plan->n[NX_SECTION_PIECES]; i++)
    if (found[tensors->of_piece[i]].tensor) read_piece(&in, &found[tensors->of_piece[i]], i);
  free(in.block);
  free(in.room);
  free(in.tiles);
  free(in.nested);
  return good || nxr_fault_set(fault, "out of memory");
}
