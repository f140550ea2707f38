/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/weights.h"

#include "compiler/diagnostics/nearest.h"
#include "schema/regular.h"
#include "schema/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint32_t SHAPE_UNKNOWN = UINT32_MAX; /* of a file that only the index names */
static const char OUTPUT[] = "lm_head.weight";

typedef struct weights {
  nxc_arena *arena;
  nx_safetensor *tensors; /* by name */
  size_t n_tensors;
  nx_fault fault;
} weights;

/* -- files ----------------------------------------------------------------------------------------------- */

static void add(weights *w, nx_safetensor tensor) {
  w->tensors = nxc_arena_grow(w->arena, w->tensors, w->n_tensors, sizeof *w->tensors);
  tensor.name = nxc_arena_strdup(w->arena, tensor.name);
  w->tensors[w->n_tensors++] = tensor;
}

static bool read_start(weights *w, FILE *in, const char *path, uint64_t n_bytes) {
  uint8_t first[9] = {0};
  uint64_t n_start;
  nx_safetensors file;
  bool good = fread(first, 1, sizeof first, in) == sizeof first || n_bytes < sizeof first;
  if (!good || !nx_safetensors_start(path, first, n_bytes, &n_start, &w->fault)) return good;
  uint8_t *start = malloc(n_start);
  good = start != NULL && fseeko(in, 0, SEEK_SET) == 0 && fread(start, 1, n_start, in) == n_start;
  if (good && nx_safetensors_read(path, start, n_start, n_bytes, &file, &w->fault)) {
    for (uint64_t i = 0; i < file.n_tensors; i++) add(w, file.tensors[i]);
    nx_safetensors_close(&file);
  }
  free(start);
  return good;
}

/* False: it is not to be seen here. */
static bool add_file(weights *w, const char *path) {
  struct stat status;
  FILE *in = nx_regular_open(path);
  bool good =
      in != NULL && fstat(fileno(in), &status) == 0 && read_start(w, in, path, (uint64_t)status.st_size);
  if (in != NULL) fclose(in);
  return good;
}

static bool has_name(const weights *w, const char *name, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(w->tensors[i].name, name) == 0) return true;
  return false;
}

/* Each file that the index names once; of those that are not here the names alone are known. */
static void add_indexed(weights *w, const char *folder, json_t *map) {
  const char *tensor, *seen;
  json_t *file, *files = json_object(), *here;
  json_object_foreach(map, tensor, file) {
    const char *name = json_string_value(file);
    if (name == NULL || strchr(name, '/') != NULL || json_object_get(files, name) != NULL) continue;
    bool found = add_file(w, nxc_arena_printf(w->arena, "%s/%s", folder, name));
    json_object_set_new(files, name, json_boolean(found));
  }
  size_t n_read = w->n_tensors;
  json_object_foreach(map, tensor, file) {
    seen = json_string_value(file);
    here = seen ? json_object_get(files, seen) : NULL;
    if (!json_is_true(here)) add(w, (nx_safetensor){.name = tensor, .n_dims = SHAPE_UNKNOWN});
    else if (*w->fault.text == '\0' && !has_name(w, tensor, n_read))
      snprintf(w->fault.text, sizeof w->fault.text, "%.300s: tensor %.300s is not in %.300s", folder, tensor,
               seen);
  }
  json_decref(files);
}

/* False: there are no weights here. */
static bool open_weights(weights *w, const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) return false;
  if (!S_ISDIR(status.st_mode)) return add_file(w, path);
  const char *one = nxc_arena_printf(w->arena, "%s/model.safetensors", path);
  if (access(one, F_OK) == 0) return add_file(w, one);
  const char *index = nxc_arena_printf(w->arena, "%s/model.safetensors.index.json", path);
  json_error_t error;
  json_t *root = nx_json_read(index, JSON_REJECT_DUPLICATES, &error);
  json_t *map = json_object_get(root, "weight_map");
  bool found = json_is_object(map);
  if (found) add_indexed(w, path, map);
  json_decref(root);
  return found;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const nx_safetensor *)a)->name, ((const nx_safetensor *)b)->name);
}

static void check_once(weights *w, const char *path) {
  for (size_t i = 1; i < w->n_tensors; i++)
    if (strcmp(w->tensors[i - 1].name, w->tensors[i].name) == 0)
      snprintf(w->fault.text, sizeof w->fault.text, "%.400s: two of its files have tensor %.400s", path,
               w->tensors[i].name);
}

static nx_safetensor *find(const weights *w, const char *name) {
  nx_safetensor key = {.name = name};
  nx_safetensor *found = bsearch(&key, w->tensors, w->n_tensors, sizeof key, by_name);
  key.name = nx_tensor_base_name(name);
  return found ? found : bsearch(&key, w->tensors, w->n_tensors, sizeof key, by_name);
}

/* -- what does not fit ----------------------------------------------------------------------------------- */

/* The first few by name, and how many there are. */
typedef struct complaint {
  const char *what, *names;
  size_t n;
} complaint;

enum { MOST_NAMED = 3 };

static void complain(nxc_arena *arena, complaint *about, const char *name) {
  if (about->n < MOST_NAMED)
    about->names = nxc_arena_printf(arena, "%s%s%s", about->names, about->n ? ", " : "", name);
  if (about->n++ == MOST_NAMED) about->names = nxc_arena_printf(arena, "%s, ...", about->names);
}

static nx_safetensor shape_of(const nx_plan *plan, const nx_piece *piece) {
  nx_safetensor shape = {.name = nx_plan_string(plan, piece->name)};
  shape.n_dims = nx_piece_shape(piece, shape.dims);
  return shape;
}

/* Codes of the type that the plan keeps: two elements a byte, or one. bitsandbytes has NF4 as one column. */
static bool is_codes(nx_form form, const nx_safetensor *found, const nx_safetensor *wanted) {
  int64_t elements = nx_form_elements(form), all = wanted->dims[0] * wanted->dims[1];
  bool typed = found->dtype == NX_u8 || (form == NX_FORM_FP8 && found->dtype == NX_f8e4m3);
  if (!typed || found->n_dims != 2 || wanted->n_dims != 2) return false;
  if (form == NX_FORM_NF4 && found->dims[1] == 1 && elements * found->dims[0] == all) return true;
  return found->dims[0] == wanted->dims[0] && elements * found->dims[1] == wanted->dims[1];
}

/* Of types that files have too; plain where there are none. */
static nx_form form_of_codes(const nx_plan *plan) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    uint32_t form = plan->pieces[i].form;
    if (form != NX_FORM_PLAIN && !nx_form_is_scale(form)) return (nx_form)form;
  }
  return NX_FORM_PLAIN;
}

static void compare_shape(nxc_arena *arena, complaint *about, const nx_safetensor *found,
                          const nx_safetensor *wanted) {
  char is[160], should[160];
  if (found->n_dims == SHAPE_UNKNOWN) return;
  bool same = found->n_dims == wanted->n_dims && memcmp(found->dims, wanted->dims, sizeof found->dims) == 0;
  if (same && nx_safetensor_is_real(found)) return;
  nx_safetensor_shape(found, is);
  nx_safetensor_shape(wanted, should);
  complain(arena, about, same ? nxc_arena_printf(arena, "%s, which has no type of weights", wanted->name)
                              : nxc_arena_printf(arena, "%s is %s, not %s", wanted->name, is, should));
}

static const char *list(nxc_arena *arena, const complaint *all, size_t n_all) {
  const char *text = "";
  for (size_t i = 0; i < n_all; i++)
    if (all[i].n > 0)
      text = nxc_arena_printf(arena, "%s%s%zu %s: %s", text, *text ? "; " : "", all[i].n, all[i].what,
                              all[i].names);
  return text;
}

/* Pieces are boxes of tensors: each tensor once, by name. */
static nx_safetensor *tensors_of(nxc_arena *arena, const nx_plan *plan, size_t *n) {
  uint32_t n_pieces = plan->n[NX_SECTION_PIECES];
  nx_safetensor *all = nxc_arena_array(arena, n_pieces + 1, sizeof *all);
  size_t n_boxes = 0;
  for (uint32_t i = 0; i < n_pieces; i++)
    if (!(plan->pieces[i].flags & (NX_PIECE_ADAPTER | NX_PIECE_MEMORY)) &&
        !nx_form_is_scale(plan->pieces[i].form))
      all[n_boxes++] = shape_of(plan, &plan->pieces[i]);
  qsort(all, n_boxes, sizeof *all, by_name);
  *n = 0;
  for (size_t i = 0; i < n_boxes; i++)
    if (*n == 0 || strcmp(all[*n - 1].name, all[i].name) != 0) all[(*n)++] = all[i];
  return all;
}

/* compressed-tensors names codes of MXFP4 in its own way. */
static const nx_safetensor *find_codes(const weights *w, nx_form form, const char *name) {
  const nx_safetensor *found = find(w, name);
  if (found || form != NX_FORM_MXFP4) return found;
  return find(w, nxc_arena_printf(w->arena, "%s_packed", name));
}

/* Those that the files lack, with what else in them may be meant. */
static void complain_missing(const weights *w, const nx_safetensor *wanted, size_t n_wanted,
                             const bool *lacks, const bool *used, complaint *about) {
  const char **others = nxc_arena_array(w->arena, w->n_tensors + 1, sizeof *others);
  size_t n_others = 0;
  for (size_t i = 0; i < w->n_tensors; i++)
    if (!used[i]) others[n_others++] = w->tensors[i].name;
  for (size_t i = 0; i < n_wanted; i++) {
    if (!lacks[i]) continue;
    const char *near = about->n < MOST_NAMED ? nxc_nearest(wanted[i].name, others, n_others) : NULL;
    complain(w->arena, about, near ? nxc_arena_printf(w->arena, "%s (is %s it?)", wanted[i].name, near)
                                   : wanted[i].name);
  }
}

static const char *compare(const weights *w, const nx_plan *plan) {
  complaint all[] = {{"missing", "", 0}, {"of another shape", "", 0}, {"too much", "", 0}};
  bool *used = nxc_arena_array(w->arena, w->n_tensors + 1, sizeof *used), has_output = false;
  nx_form codes = form_of_codes(plan);
  size_t n_wanted;
  const nx_safetensor *wanted = tensors_of(w->arena, plan, &n_wanted);
  bool *lacks = nxc_arena_array(w->arena, n_wanted + 1, sizeof *lacks);
  for (size_t i = 0; i < n_wanted; i++) {
    const nx_safetensor *found = find_codes(w, codes, wanted[i].name);
    has_output = has_output || strcmp(wanted[i].name, OUTPUT) == 0;
    if (found == NULL) lacks[i] = true;
    else if (codes == NX_FORM_PLAIN || !is_codes(codes, found, &wanted[i]))
      compare_shape(w->arena, &all[1], found, &wanted[i]);
    if (found != NULL) used[found - w->tensors] = true;
  }
  complain_missing(w, wanted, n_wanted, lacks, used, &all[0]);
  for (size_t i = 0; i < w->n_tensors; i++) {
    const char *name = w->tensors[i].name;
    bool tied =
        !has_output && strcmp(name, OUTPUT) == 0; /* the embeddings once more, if nxrun finds them so */
    if (!used[i] && !tied && !nx_tensor_is_buffer(name) && !(codes && nx_tensor_is_scale(name)))
      complain(w->arena, &all[2], name);
  }
  nx_strictness strictness = plan->run_names->strictness; /* what nxrun forgives */
  if (strictness == NX_STRICT_LOG_ALL || strictness == NX_STRICT_IGNORE_ALL) all[0].n = 0;
  if (strictness != NX_STRICT_RAISE) all[2].n = 0;
  return list(w->arena, all, sizeof all / sizeof *all);
}

/* Of weights that describe another model, the shapes are no news. */
static bool is_of_another(const nxc_sink *sink) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++)
    if (strcmp(nxc_sink_finding(sink, i)->id, "NX1321") == 0) return true;
  return false;
}

void nxc_weights_check(const nx_plan *plan, const nxc_settings *settings, nxc_severity severity,
                       nxc_sink *sink) {
  if (!nxc_has(settings, NX_SETTING_RUN_INIT_FROM) || is_of_another(sink)) return;
  const char *path = nxc_text(settings, NX_SETTING_RUN_INIT_FROM), *what = "";
  weights w = {.arena = nxc_arena_new()};
  if (open_weights(&w, path) && *w.fault.text == '\0') {
    qsort(w.tensors, w.n_tensors, sizeof *w.tensors, by_name);
    check_once(&w, path);
    what = compare(&w, plan);
  }
  nxc_span at = nxc_settings_span(settings, NX_SETTING_RUN_INIT_FROM);
  if (*w.fault.text != '\0') nxc_report(sink, "NX1322", severity, at, "fetch it again", "%s", w.fault.text);
  else if (*what != '\0')
    nxc_report(sink, "NX1322", severity, at,
               "begin from weights of this model, or describe the model that they are of",
               "the tensors of %s are not those of the model: %s", path, what);
  nxc_arena_free(w.arena);
}
