/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/safetensors.h"

#include "schema/bf16.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t MAX_HEADER_BYTES = 100000000; /* the format's own limit */

typedef struct type_row {
  const char *name;
  nx_dtype dtype;
  uint32_t bytes;
} type_row;

static const type_row types[] = {
    {"F32", NX_f32, 4}, {"BF16", NX_bf16, 2}, {"F16", NX_f16, 2}, {"F64", NX_f64, 8}, {"I64", 0, 8},
    {"I32", 0, 4},      {"I16", 0, 2},        {"I8", 0, 1},       {"U64", 0, 8},      {"U32", 0, 4},
    {"U16", 0, 2},      {"U8", 0, 1},         {"BOOL", 0, 1},     {"F8_E4M3", 0, 1},  {"F8_E5M2", 0, 1},
};
enum { N_TYPES = sizeof types / sizeof *types };

static const type_row *find_type(const char *name) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
  return NULL;
}

static const type_row *find_dtype(nx_dtype dtype) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (types[i].dtype == dtype) return &types[i];
  return NULL;
}

static bool damage(const char *path, const char *name, const char *what, nxr_fault *fault) {
  return nxr_fault_set(fault, "%s is damaged: tensor %s %s", path, name, what);
}

/* Reads one tensor's entry; `n_room` is how many bytes all tensors have. */
static bool read_entry(const char *path, const char *name, json_t *entry, uint64_t n_room,
                       nxr_safetensor *tensor, nxr_fault *fault) {
  const char *type_name = json_string_value(json_object_get(entry, "dtype"));
  json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
  if (!type_name || !json_is_array(shape) || json_array_size(offsets) != 2 ||
      !json_is_integer(json_array_get(offsets, 0)) || !json_is_integer(json_array_get(offsets, 1)))
    return damage(path, name, "has no dtype, shape or data_offsets", fault);
  int64_t begin = json_integer_value(json_array_get(offsets, 0)),
          end = json_integer_value(json_array_get(offsets, 1));
  if (begin < 0 || end < begin || (uint64_t)end > n_room)
    return damage(path, name, "lies outside the file: it is cut short", fault);
  const type_row *type = find_type(type_name);
  *tensor = (nxr_safetensor){.name = name, .dtype = type ? type->dtype : 0, .offset = (uint64_t)begin,
                             .n_bytes = (uint64_t)(end - begin)};
  if (json_array_size(shape) > NXR_SAFETENSORS_DIMS)
    return damage(path, name, "has too many dimensions", fault);
  uint64_t n_bytes = type ? type->bytes : 0;
  json_t *dim;
  size_t index;
  json_array_foreach(shape, index, dim) {
    int64_t size = json_is_integer(dim) ? json_integer_value(dim) : -1;
    if (size < 0 || __builtin_mul_overflow(n_bytes, (uint64_t)size, &n_bytes))
      return damage(path, name, "has an impossible shape", fault);
    tensor->dims[tensor->n_dims++] = size;
  }
  if (type && n_bytes != tensor->n_bytes)
    return damage(path, name, "is not as large as its shape says", fault);
  return true;
}

static int by_offset(const void *a, const void *b) {
  const nxr_safetensor *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

static int by_name(const void *a, const void *b) {
  const nxr_safetensor *x = a, *y = b;
  return strcmp(x->name, y->name);
}

/* The tensors must tile the bytes: neither holes nor overlaps. */
static bool check_tiling(const char *path, nxr_safetensors *file, uint64_t n_room, nxr_fault *fault) {
  uint64_t at = 0;
  qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_offset);
  for (uint64_t i = 0; i < file->n_tensors; i++) {
    const nxr_safetensor *tensor = &file->tensors[i];
    if (tensor->offset < at) return damage(path, tensor->name, "shares bytes with another", fault);
    if (tensor->offset > at) return damage(path, tensor->name, "comes after bytes of no tensor", fault);
    at += tensor->n_bytes;
  }
  if (at != n_room)
    return nxr_fault_set(fault, "%s is damaged: %" PRIu64 " bytes at its end belong to no tensor", path,
                         n_room - at);
  return true;
}

static bool read_tensors(const char *path, nxr_safetensors *file, uint64_t first, nxr_fault *fault) {
  uint64_t n_room = file->mapping.n_bytes - first;
  file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
  if (file->tensors == NULL) return nxr_fault_set(fault, "out of memory for the header of %s", path);
  const char *name;
  json_t *entry;
  json_object_foreach(file->header, name, entry) {
    if (strcmp(name, "__metadata__") == 0) continue;
    if (!read_entry(path, name, entry, n_room, &file->tensors[file->n_tensors], fault)) return false;
    file->n_tensors++;
  }
  if (!check_tiling(path, file, n_room, fault)) return false;
  for (uint64_t i = 0; i < file->n_tensors; i++) {
    file->tensors[i].offset += first;
    file->tensors[i].bytes = file->mapping.bytes + file->tensors[i].offset;
  }
  qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_name);
  return true;
}

static bool read_header(const char *path, nxr_safetensors *file, nxr_fault *fault) {
  const nxr_mapping *mapping = &file->mapping;
  uint64_t n_header_bytes = 0;
  if (mapping->n_bytes >= sizeof n_header_bytes)
    memcpy(&n_header_bytes, mapping->bytes, sizeof n_header_bytes);
  if (mapping->n_bytes < 10 || n_header_bytes > MAX_HEADER_BYTES || mapping->bytes[8] != '{')
    return nxr_fault_set(fault, "%s is not a safetensors file", path);
  if (n_header_bytes > mapping->n_bytes - 8)
    return nxr_fault_set(fault, "%s is cut short: its header has %" PRIu64 " bytes, the file %" PRIu64, path,
                         n_header_bytes, mapping->n_bytes);
  json_error_t error;
  file->header = json_loadb((const char *)mapping->bytes + 8, n_header_bytes, JSON_REJECT_DUPLICATES, &error);
  if (!json_is_object(file->header))
    return nxr_fault_set(fault, "%s is damaged: its header is not JSON (%s)", path, error.text);
  return read_tensors(path, file, 8 + n_header_bytes, fault);
}

bool nxr_safetensors_open(const char *path, nxr_safetensors *file, nxr_fault *fault) {
  *file = (nxr_safetensors){0};
  if (nxr_mapping_open(path, &file->mapping, fault) && read_header(path, file, fault)) return true;
  nxr_safetensors_close(file);
  return false;
}

void nxr_safetensors_close(nxr_safetensors *file) {
  json_decref(file->header);
  free(file->tensors);
  nxr_mapping_close(&file->mapping);
  *file = (nxr_safetensors){0};
}

const nxr_safetensor *nxr_safetensors_find(const nxr_safetensors *file, const char *name) {
  nxr_safetensor key = {.name = name};
  return file->n_tensors ? bsearch(&key, file->tensors, file->n_tensors, sizeof key, by_name) : NULL;
}

static float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FF;
  if (exponent == 0) {
    float size = (float)fraction * 0x1p-24f;
    return sign ? -size : size;
  }
  uint32_t bits = sign | (exponent == 31 ? UINT32_C(0x7F800000) : (exponent + 112) << 23) | fraction << 13;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

bool nxr_safetensor_is_real(const nxr_safetensor *tensor) {
  return tensor->dtype != 0;
}

void nxr_safetensor_floats(const nxr_safetensor *tensor, uint64_t first, uint64_t n, float *values) {
  const uint8_t *from = tensor->bytes + first * (nx_dtype_bits(tensor->dtype) / 8);
  if (tensor->dtype == NX_f32) {
    memcpy(values, from, n * sizeof *values);
    return;
  }
  for (uint64_t i = 0; i < n; i++) {
    uint16_t half;
    double wide;
    if (tensor->dtype == NX_f64) {
      memcpy(&wide, from + 8 * i, sizeof wide);
      values[i] = (float)wide;
    } else {
      memcpy(&half, from + 2 * i, sizeof half);
      values[i] = tensor->dtype == NX_bf16 ? nx_bf16_to_float(half) : half_to_float(half);
    }
  }
}

void nxr_safetensor_shape(const nxr_safetensor *tensor, char text[160]) {
  int n = snprintf(text, 160, "[");
  for (uint32_t dim = 0; dim < tensor->n_dims; dim++)
    n += snprintf(text + n, (size_t)(160 - n), "%s%" PRId64, dim ? ", " : "", tensor->dims[dim]);
  snprintf(text + n, (size_t)(160 - n), "]");
}

static json_t *make_entry(const nxr_safetensor *tensor, uint64_t begin) {
  json_t *shape = json_array();
  for (uint32_t dim = 0; dim < tensor->n_dims; dim++)
    json_array_append_new(shape, json_integer(tensor->dims[dim]));
  return json_pack("{s:s, s:o, s:[I, I]}", "dtype", find_dtype(tensor->dtype)->name, "shape", shape,
                   "data_offsets", (json_int_t)begin, (json_int_t)(begin + tensor->n_bytes));
}

/* Header size and header in one block, padded with blanks so that the tensors begin aligned. */
static char *print_header(json_t *header, uint64_t *n_header_bytes) {
  char *text = json_dumps(header, JSON_COMPACT);
  if (text == NULL) return NULL;
  uint64_t n_text = strlen(text), n_padded = (n_text + 7) / 8 * 8;
  char *block = malloc(8 + n_padded);
  if (block) {
    memcpy(block, &n_padded, 8);
    memcpy(block + 8, text, n_text);
    memset(block + 8 + n_text, ' ', n_padded - n_text);
    *n_header_bytes = 8 + n_padded;
  }
  free(text);
  return block;
}

char *nxr_safetensors_layout(nxr_safetensor *tensors, uint64_t n, uint64_t *n_header_bytes,
                             uint64_t *n_file_bytes) {
  json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
  uint64_t at = 0;
  bool good = header != NULL;
  for (uint64_t i = 0; good && i < n; i++) {
    assert(tensors[i].dtype != 0 && find_dtype(tensors[i].dtype) != NULL);
    tensors[i].n_bytes = nx_dtype_bits(tensors[i].dtype) / 8;
    for (uint32_t dim = 0; dim < tensors[i].n_dims; dim++)
      tensors[i].n_bytes *= (uint64_t)tensors[i].dims[dim];
    tensors[i].offset = at;
    good = json_object_set_new(header, tensors[i].name, make_entry(&tensors[i], at)) == 0;
    at += tensors[i].n_bytes;
  }
  char *block = good ? print_header(header, n_header_bytes) : NULL;
  json_decref(header);
  if (block == NULL) return NULL;
  for (uint64_t i = 0; i < n; i++) tensors[i].offset += *n_header_bytes;
  *n_file_bytes = *n_header_bytes + at;
  return block;
}
