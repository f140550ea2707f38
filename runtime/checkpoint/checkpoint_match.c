/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_read.h"

#include "runtime/files/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const embeddings[] = {"model.embed_tokens.weight", "transformer.wte.weight"};
static const char OUTPUT[] = "lm_head.weight";

enum { N_EMBEDDINGS = sizeof embeddings / sizeof *embeddings, MOST_NAMED = 3, MOST_LETTERS = 128 };

/* What does not fit, as it is found: the first few by name, and how many there are. */
typedef struct complaint {
  char text[300];
  uint64_t n;
} complaint;

static void complain(complaint *about, const char *name, const char *detail) {
  size_t used = strlen(about->text);
  if (about->n++ < MOST_NAMED)
    snprintf(about->text + used, sizeof about->text - used, "%s%.80s%.90s", used ? ", " : "", name, detail);
}

static const nxr_safetensor *find(const nxr_source *source, const char *name) {
  const nxr_safetensor *found = nxr_source_find(source, name);
  return found ? found : nxr_source_find(source, nx_tensor_base_name(name));
}

/* How many letters must be changed, added or left out. */
static uint32_t distance(const char *a, const char *b) {
  uint32_t row[MOST_LETTERS + 1];
  size_t n_a = strlen(a), n_b = strlen(b);
  if (n_a > MOST_LETTERS || n_b > MOST_LETTERS) return MOST_LETTERS;
  for (size_t j = 0; j <= n_b; j++) row[j] = (uint32_t)j;
  for (size_t i = 1; i <= n_a; i++) {
    uint32_t diagonal = row[0];
    row[0] = (uint32_t)i;
    for (size_t j = 1; j <= n_b; j++) {
      uint32_t above = row[j], least = above < row[j - 1] ? above : row[j - 1];
      uint32_t changed = diagonal + (a[i - 1] != b[j - 1]);
      row[j] = changed < least + 1 ? changed : least + 1;
      diagonal = above;
    }
  }
  return row[n_b];
}

static void complain_missing(complaint *about, const nxr_source *source, const bool *used, const char *name) {
  char detail[160] = "";
  uint32_t nearest = 6; /* further than that is another name */
  for (uint64_t i = 0; about->n < MOST_NAMED && i < source->n_tensors; i++) {
    uint32_t far = used[i] ? MOST_LETTERS : distance(name, source->tensors[i]->name);
    if (far >= nearest) continue;
    nearest = far;
    snprintf(detail, sizeof detail, " (did it mean %.70s?)", source->tensors[i]->name);
  }
  complain(about, name, detail);
}

static void complain_shape(complaint *about, const nxr_safetensor *found, const nxr_safetensor *wanted) {
  char is[160], should[160], detail[340];
  nx_safetensor_shape(found, is);
  nx_safetensor_shape(wanted, should);
  snprintf(detail, sizeof detail,
           nx_safetensor_is_real(found) ? " is %.40s, not %.40s" : " has no type of weights", is, should);
  complain(about, wanted->name, detail);
}

static bool has_shape(const nxr_safetensor *found, const nxr_safetensor *wanted) {
  return nx_safetensor_is_real(found) && found->n_dims == wanted->n_dims &&
         memcmp(found->dims, wanted->dims, sizeof found->dims) == 0;
}

/* An output matrix that the plan does not have may stand in the file, if it is the embeddings once more. */
static bool is_tied_output(const nxr_source *source, const nxr_safetensor *tensor) {
  if (strcmp(tensor->name, OUTPUT) != 0 || tensor->bytes == NULL) return false;
  for (int i = 0; i < N_EMBEDDINGS; i++) {
    const nxr_safetensor *embedding = find(source, embeddings[i]);
    if (embedding && embedding->dtype == tensor->dtype && embedding->n_bytes == tensor->n_bytes)
      return memcmp(embedding->bytes, tensor->bytes, tensor->n_bytes) == 0;
  }
  return false;
}

static const char *hint(const nxr_source *source, const nxr_tensors *tensors) {
  bool in_file = nxr_source_find(source, OUTPUT) != NULL,
       in_plan = nxr_tensors_find(tensors, OUTPUT) != NX_NONE;
  if (in_file && !in_plan)
    return ". The plan ties the embeddings (model.tied_embeddings), and these are not tied";
  if (in_plan && !in_file) return ". These weights may be of tied embeddings: see model.tied_embeddings";
  return "";
}

static uint64_t position(const nxr_source *source, const nxr_safetensor *tensor) {
  uint64_t low = 0, high = source->n_tensors;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (strcmp(source->tensors[middle]->name, tensor->name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool report(const nxr_source *source, const nxr_tensors *tensors, const complaint *missing,
                   const complaint *misshapen, const complaint *extra, nxr_fault *fault) {
  const complaint *const all[] = {missing, misshapen, extra};
  static const char *const what[] = {"missing", "of another shape", "too much"};
  char text[960] = "";
  size_t n_used = 0;
  for (int i = 0; i < 3; i++) {
    if (all[i]->n == 0) continue;
    n_used += (size_t)snprintf(text + n_used, sizeof text - n_used, "%s%llu %s: %s%s", n_used ? "; " : "",
                               (unsigned long long)all[i]->n, what[i], all[i]->text,
                               all[i]->n > MOST_NAMED ? ", …" : "");
  }
  if (n_used == 0) return true;
  return nxr_fault_set(fault, "the tensors of %s are not those of the plan. %s%s", source->path, text,
                       hint(source, tensors));
}

/* What need not be there, or may be too much: said by rank 0, or not at all, and forgotten. */
static void forgive(const nxr_source *source, const nxr_tensors *tensors, complaint *about,
                    const char *what) {
  bool says = source->strictness == NX_STRICT_LOG_ALL || source->strictness == NX_STRICT_LOG_UNEXPECTED;
  if (about->n > 0 && says && tensors->pieces->rank == 0)
    nxr_print(stderr, "nxrun: of the tensors of %s %llu %s: %s%s\n", source->path,
              (unsigned long long)about->n, what, about->text, about->n > MOST_NAMED ? ", …" : "");
  about->n = 0;
}

/* ---- what is kept quantized ---- */

/* The greatest magnitude in a tensor. */
static float greatest(const nxr_safetensor *tensor) {
  enum { RUN = 4096 };
  float values[RUN], most = 0;
  uint64_t n = 1;
  for (uint32_t i = 0; i < tensor->n_dims; i++) n *= (uint64_t)tensor->dims[i];
  for (uint64_t first = 0; first < n; first += RUN) {
    uint64_t count = n - first < RUN ? n - first : RUN;
    nxr_safetensor_floats(tensor, first, count, values);
    for (uint64_t i = 0; i < count; i++) most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
  }
  return most;
}

static const nxr_safetensor *look_up(const void *source, const char *name) {
  return find(source, name);
}

/* The codes that a piece is, or has the scales of. */
static nx_form codes_of(nx_form form) {
  return nx_form_is_scale(form) ? (nx_form)(form - 1) : form;
}

/* Codes and scales are those of the file, or both are made of the matrix. */
static nxr_found find_found(const nxr_source *source, const nxr_tensors *tensors, uint32_t tensor,
                            const nxr_safetensor *shape) {
  const nxr_tensor *item = &tensors->items[tensor];
  nx_form form = tensors->pieces->plan->pieces[item->piece].form;
  nxr_found found = {.tensor = find(source, item->name)};
  if (form == NX_FORM_PLAIN) return found;
  char matrix[512];
  const char *ending = strstr(item->name, ".weight");
  snprintf(matrix, sizeof matrix, "%.*s.weight", ending ? (int)(ending - item->name) : 0, item->name);
  found.tensor = find(source, matrix);
  if (found.tensor && nx_safetensor_is_real(found.tensor)) {
    if (form == NX_FORM_NVFP4_SCALE) found.greatest = greatest(found.tensor);
    return found;
  }
  found.quantized = shape->n_dims == 2 && nxr_stored_find(look_up, source, matrix, codes_of(form),
                                                          shape->dims[0], shape->dims[1], &found.stored);
  const nxr_safetensor *part = nx_form_is_scale(form) ? found.stored.scales : found.stored.codes;
  if (part != NULL) found.tensor = part; /* else what the file has in its place, of another shape */
  return found;
}

static bool fits(const nxr_found *found, const nxr_safetensor *shape) {
  return found->quantized || has_shape(found->tensor, shape);
}

bool nxr_source_match(const nxr_source *source, const nxr_tensors *tensors, nxr_content content,
                      nxr_found *found, nxr_fault *fault) {
  complaint missing = {"", 0}, misshapen = {"", 0}, extra = {"", 0};
  bool quantized = false;
  bool *used = calloc(source->n_tensors + 1, sizeof *used);
  if (used == NULL) return nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; i < tensors->n; i++) {
    uint32_t piece = tensors->items[i].piece;
    nxr_safetensor shape;
    found[i] = (nxr_found){0};
    if (!nxr_pieces_has(tensors->pieces, nxr_tensors_kind(tensors, content, piece), piece)) continue;
    nxr_tensors_describe(tensors, content, i, &shape);
    found[i] = find_found(source, tensors, i, &shape);
    if (found[i].tensor) used[position(source, found[i].tensor)] = true;
    quantized = quantized || found[i].quantized;
  }
  for (uint32_t i = 0; i < tensors->n; i++) {
    nxr_safetensor shape;
    uint32_t piece = tensors->items[i].piece;
    if (!nxr_pieces_has(tensors->pieces, nxr_tensors_kind(tensors, content, piece), piece)) continue;
    nxr_tensors_describe(tensors, content, i, &shape);
    if (found[i].tensor == NULL) complain_missing(&missing, source, used, tensors->items[i].name);
    else if (!fits(&found[i], &shape)) complain_shape(&misshapen, found[i].tensor, &shape);
  }
  for (uint64_t i = 0; i < source->n_tensors; i++)
    if (!used[i] && !nx_tensor_is_buffer(source->tensors[i]->name) &&
        !is_tied_output(source, source->tensors[i]) &&
        !(quantized && nx_tensor_is_scale(source->tensors[i]->name)))
      complain(&extra, source->tensors[i]->name, "");
  free(used);
  nx_strictness strictness = source->strictness;
  if (strictness == NX_STRICT_LOG_ALL || strictness == NX_STRICT_IGNORE_ALL)
    forgive(source, tensors, &missing, "are missing, and stay as they were drawn");
  if (strictness != NX_STRICT_RAISE)
    forgive(source, tensors, &extra, "are not the plan's, and are passed over");
  return report(source, tensors, &missing, &misshapen, &extra, fault);
}
