/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/adapter_parts.h"
#include "runtime/files/stored.h"
#include "schema/bf16.h"
#include "schema/f16.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor of the file that is written, and where its numbers are from. */
typedef struct weight {
  nxr_safetensor as;
  const nxr_safetensor *from;
  nxr_stored stored; /* where it is quantized */
  bool quantized;
} weight;

static void put(const nxr_safetensor *like, const float *values, int64_t n, void *out) {
  for (int64_t i = 0; i < n; i++) {
    if (like->dtype == NX_f32) ((float *)out)[i] = values[i];
    else if (like->dtype == NX_f64) ((double *)out)[i] = values[i];
    else
      ((uint16_t *)out)[i] =
          like->dtype == NX_bf16 ? nx_bf16_from_float(values[i]) : nx_f16_from_float(values[i]);
  }
}

/* row += scale sum over r of left[row, r] right[r, .], in fp32; `left` has rows of the stored matrix. */
static void add_product(const nxd_adapter *a, const float *first, const float *second, int64_t rows,
                        int64_t columns, int64_t row, float *values) {
  for (int64_t j = 0; j < columns; j++) {
    double sum = 0;
    for (int64_t r = 0; r < a->rank; r++) {
      int64_t in = a->transposed ? row : j, out = a->transposed ? j : row;
      int64_t n_in = a->transposed ? rows : columns;
      sum += (double)second[out * a->rank + r] * first[r * n_in + in];
    }
    values[j] = (float)(values[j] + a->scale * sum);
  }
}

static float *floats_of(const nxr_safetensor *tensor, uint64_t n) {
  float *values = malloc((n + 1) * sizeof *values);
  if (values) nxr_safetensor_floats(tensor, 0, n, values);
  return values;
}

/* The matrices that are added to a row at a time; one is NULL: nothing is. */
typedef struct factors {
  float *one, *two;
} factors;

static bool open_factors(const nxd_adapter *a, const weight *w, const nxr_safetensor *first,
                         const nxr_safetensor *second, factors *f, nxr_fault *fault) {
  int64_t rows = w->as.dims[0], columns = w->as.dims[1];
  int64_t n_in = a->transposed ? rows : columns, n_out = a->transposed ? columns : rows;
  *f = (factors){NULL, NULL};
  if (second == NULL) return true;
  bool fits = w->as.n_dims == 2 && first != NULL && first->n_dims == 2 && second->n_dims == 2 &&
              first->dims[0] == a->rank && first->dims[1] == n_in && second->dims[0] == n_out &&
              second->dims[1] == a->rank && nx_safetensor_is_real(&w->as) && nx_safetensor_is_real(first) &&
              nx_safetensor_is_real(second);
  if (!fits)
    return nxr_fault_set(fault, "the adapter of %s has not its shape, or not the rank of its config",
                         w->as.name);
  f->one = floats_of(first, (uint64_t)(a->rank * n_in));
  f->two = floats_of(second, (uint64_t)(a->rank * n_out));
  return (f->one && f->two) || nxr_fault_set(fault, "out of memory");
}

static void read_row(const weight *w, int64_t row, float *values) {
  int64_t columns = w->as.dims[1];
  if (w->quantized) nxr_stored_row(&w->stored, row, columns, values);
  else nxr_safetensor_floats(w->from, (uint64_t)(row * columns), (uint64_t)columns, values);
}

/* Of a matrix, row by row; `second` NULL: nothing is added. */
static bool write_rows(const nxd_adapter *a, const weight *w, const nxr_safetensor *first,
                       const nxr_safetensor *second, FILE *out, nxr_fault *fault) {
  factors f;
  int64_t rows = w->as.dims[0], columns = w->as.dims[1];
  bool good = open_factors(a, w, first, second, &f, fault);
  float *row = good ? malloc((size_t)columns * sizeof *row) : NULL;
  double *rounded = good ? malloc((size_t)columns * sizeof *rounded) : NULL;
  if (good && !(row && rounded)) good = nxr_fault_set(fault, "out of memory");
  size_t size = nx_dtype_bits(w->as.dtype) / 8;
  for (int64_t i = 0; good && i < rows; i++) {
    read_row(w, i, row);
    if (f.one) add_product(a, f.one, f.two, rows, columns, i, row);
    put(&w->as, row, columns, rounded);
    good = fwrite(rounded, size, (size_t)columns, out) == (size_t)columns;
    if (!good) nxr_fault_set(fault, "cannot write: %s", strerror(errno));
  }
  free(f.one), free(f.two), free(row), free(rounded);
  return good;
}

/* A bias that was trained stands in the place of the base's. */
static bool write_bias(const nxr_safetensor *base, const nxr_safetensor *bias, FILE *out, nxr_fault *fault) {
  uint64_t n = (uint64_t)base->dims[0];
  if (base->n_dims != 1 || bias->n_dims != 1 || bias->dims[0] != base->dims[0] ||
      !nx_safetensor_is_real(base) || !nx_safetensor_is_real(bias))
    return nxr_fault_set(fault, "the adapter's %s has another shape than the model's", bias->name);
  float *values = floats_of(bias, n);
  double *stored = malloc((n + 1) * sizeof *stored);
  bool good = values && stored;
  if (good) put(base, values, (int64_t)n, stored);
  good = good && fwrite(stored, nx_dtype_bits(base->dtype) / 8, n, out) == n;
  free(values), free(stored);
  return good || nxr_fault_set(fault, "cannot write: %s", strerror(errno));
}

static bool write_tensor(const nxd_adapter *a, const weight *w, FILE *out, nxr_fault *fault) {
  const char *name = w->as.name;
  const nxr_safetensor *second = nxd_adapter_find(a, name, ".weight", ".lora_B.weight");
  const nxr_safetensor *first = second ? nxd_adapter_find(a, name, ".weight", ".lora_A.weight") : NULL;
  if (second != NULL || w->quantized) return write_rows(a, w, first, second, out, fault);
  const nxr_safetensor *bias = nxd_adapter_find(a, name, ".bias", ".base_layer.bias");
  if (bias == NULL) bias = nxd_adapter_find(a, name, ".bias", ".bias");
  if (bias != NULL) return write_bias(w->from, bias, out, fault);
  return fwrite(w->from->bytes, 1, w->from->n_bytes, out) == w->from->n_bytes ||
         nxr_fault_set(fault, "cannot write: %s", strerror(errno));
}

/* ---- files ---- */

typedef struct weights {
  nxr_safetensors file;
  weight *all;
  uint64_t n;
  bool quantized;
} weights;

static const nxr_safetensor *look_up(const void *file, const char *name) {
  return nxr_safetensors_find(file, name);
}

void nxd_adapter_plain_name(const char *codes, char *name, size_t n_bytes) {
  static const char packed[] = ".weight_packed";
  const char *ending = strstr(codes, packed);
  snprintf(name, n_bytes, "%.*s%s", ending ? (int)(ending - codes) : (int)strlen(codes), codes,
           ending ? ".weight" : "");
}

/* Numbers of the type of the first tensor that has one. */
static nx_dtype type_beside(const nxr_safetensors *file) {
  for (uint64_t i = 0; i < file->n_tensors; i++)
    if (nx_safetensor_is_real(&file->tensors[i]) && !nx_tensor_is_scale(file->tensors[i].name))
      return file->tensors[i].dtype;
  return NX_bf16;
}

static bool find_quantized(weights *w, const nxr_safetensor *tensor, weight *found) {
  char name[512];
  *found = (weight){.as = *tensor, .from = tensor};
  int64_t rows, columns;
  found->quantized = nxr_stored_open(look_up, &w->file, tensor->name, &rows, &columns, &found->stored);
  if (!found->quantized) return true;
  nxd_adapter_plain_name(tensor->name, name, sizeof name);
  w->quantized = true;
  found->as = (nxr_safetensor){
      .name = strdup(name), .dtype = type_beside(&w->file), .n_dims = 2, .dims = {rows, columns}};
  return found->as.name != NULL;
}

static bool list(weights *w, nxr_fault *fault) {
  w->all = calloc(w->file.n_tensors + 1, sizeof *w->all);
  bool good = w->all != NULL;
  for (uint64_t i = 0; good && i < w->file.n_tensors; i++)
    good = find_quantized(w, &w->file.tensors[i], &w->all[w->n++]);
  return good || nxr_fault_set(fault, "out of memory");
}

static void close_weights(weights *w) {
  for (uint64_t i = 0; i < w->n; i++)
    if (w->all[i].quantized) free((char *)(uintptr_t)w->all[i].as.name);
  free(w->all);
  nxr_safetensors_close(&w->file);
}

static int by_size(const void *a, const void *b) {
  const weight *x = a, *y = b;
  uint32_t one = nx_dtype_bits(x->as.dtype), other = nx_dtype_bits(y->as.dtype);
  return one != other ? (one < other) - (one > other) : strcmp(x->as.name, y->as.name);
}

/* A file of numbers alone: scales are left out. Returns what stands before them. */
static char *lay_out(weights *w, uint64_t *n_header, nxr_fault *fault) {
  uint64_t n = 0, n_file;
  for (uint64_t i = 0; i < w->n; i++) {
    const nxr_safetensor *as = &w->all[i].as;
    if (nx_tensor_is_scale(as->name)) continue;
    if (nx_safetensor_type(as->dtype) == NULL)
      return nxr_fault_set(fault, "%s has no type of weights, and is not quantized as this program knows it",
                           as->name), NULL;
    const weight kept = w->all[i];
    w->all[i] = w->all[n], w->all[n++] = kept;
  }
  qsort(w->all, n, sizeof *w->all, by_size);
  nxr_safetensor *tensors = calloc(n + 1, sizeof *tensors);
  for (uint64_t i = 0; tensors && i < n; i++) tensors[i] = w->all[i].as;
  char *header = tensors ? nxr_safetensors_layout(tensors, n, n_header, &n_file) : NULL;
  for (uint64_t i = 0; header && i < n; i++) w->all[i].as = tensors[i];
  free(tensors);
  if (header == NULL) nxr_fault_set(fault, "out of memory");
  else w->n = n;
  return header;
}

static char *same_header(const weights *w, uint64_t *n_header, nxr_fault *fault) {
  *n_header = w->n ? w->all[0].as.offset : w->file.mapping.n_bytes;
  for (uint64_t i = 0; i < w->n; i++)
    if (w->all[i].as.offset < *n_header) *n_header = w->all[i].as.offset;
  char *header = malloc(*n_header + 1);
  if (header) memcpy(header, w->file.mapping.bytes, *n_header);
  else nxr_fault_set(fault, "out of memory");
  return header;
}

static bool write_all(const nxd_adapter *a, weights *w, const char *to, nxr_fault *fault) {
  uint64_t n_header = 0;
  char *header = w->quantized ? lay_out(w, &n_header, fault) : same_header(w, &n_header, fault);
  if (header == NULL) return false;
  FILE *out = fopen(to, "wbx");
  bool good = out != NULL || nxr_fault_set(fault, "cannot create %s: %s", to, strerror(errno));
  good = good && (fwrite(header, 1, n_header, out) == n_header ||
                  nxr_fault_set(fault, "cannot write %s: %s", to, strerror(errno)));
  free(header);
  for (uint64_t i = 0; good && i < w->n; i++)
    good = fseeko(out, (off_t)w->all[i].as.offset, SEEK_SET) == 0 && write_tensor(a, &w->all[i], out, fault);
  if (out != NULL && fclose(out) != 0 && good)
    good = nxr_fault_set(fault, "cannot write %s: %s", to, strerror(errno));
  return good;
}

bool nxd_adapter_write_file(const nxd_adapter *a, const char *from, const char *to, bool *quantized,
                            nxr_fault *fault) {
  weights w = {0};
  if (!nxr_safetensors_open(from, &w.file, fault)) return false;
  bool good = list(&w, fault) && write_all(a, &w, to, fault);
  *quantized = *quantized || w.quantized;
  close_weights(&w);
  return good;
}
