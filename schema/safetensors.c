/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/safetensors.h"

#include "schema/plan_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- types ----------------------------------------------------------------------------------------------- */

static const uint64_t MAX_HEADER_BYTES = 100000000; /* the format's own limit */

typedef struct type_row {
  const char *name;
  nx_dtype dtype;
  uint32_t bytes;
} type_row;

static const type_row types[] = {
    {"F32", NX_f32, 4}, {"BF16", NX_bf16, 2},
    {"F16", NX_f16, 2}, {"F64", NX_f64, 8},
    {"I64", 0, 8},      {"I32", 0, 4},
    {"I16", 0, 2},      {"I8", 0, 1},
    {"U64", 0, 8},      {"U32", 0, 4},
    {"U16", 0, 2},      {"U8", NX_u8, 1},
    {"BOOL", 0, 1},     {"F8_E4M3", NX_f8e4m3, 1},
    {"F8_E5M2", 0, 1},
};
enum { N_TYPES = sizeof types / sizeof *types };

static const type_row *find_type(const char *name) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
  return NULL;
}

const char *nx_safetensor_type(nx_dtype dtype) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (types[i].dtype == dtype && dtype != 0) return types[i].name;
  return NULL;
}

/* -- the header ------------------------------------------------------------------------------------------ */

static bool damage(const char *path, const char *name, const char *what, nx_fault *fault) {
  return nx_fault_set(fault, 0, "%s is damaged: tensor %s %s", path, name, what);
}

/* Reads one tensor's entry; `n_room` is how many bytes all tensors have. */
static bool read_entry(const char *path, const char *name, json_t *entry, uint64_t n_room,
                       nx_safetensor *tensor, nx_fault *fault) {
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
  *tensor = (nx_safetensor){.name = name, .dtype = type ? type->dtype : 0, .offset = (uint64_t)begin,
                             .n_bytes = (uint64_t)(end - begin)};
  if (json_array_size(shape) > NX_SAFETENSORS_DIMS)
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
  const nx_safetensor *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

static int by_name(const void *a, const void *b) {
  const nx_safetensor *x = a, *y = b;
  return strcmp(x->name, y->name);
}

/* The tensors must tile the bytes: neither holes nor overlaps. */
static bool check_tiling(const char *path, nx_safetensors *file, uint64_t n_room, nx_fault *fault) {
  uint64_t at = 0;
  qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_offset);
  for (uint64_t i = 0; i < file->n_tensors; i++) {
    const nx_safetensor *tensor = &file->tensors[i];
    if (tensor->offset < at) return damage(path, tensor->name, "shares bytes with another", fault);
    if (tensor->offset > at) return damage(path, tensor->name, "comes after bytes of no tensor", fault);
    at += tensor->n_bytes;
  }
  if (at != n_room)
    return nx_fault_set(fault, 0, "%s is damaged: %" PRIu64 " bytes at its end belong to no tensor", path,
                         n_room - at);
  return true;
}

static bool read_tensors(const char *path, nx_safetensors *file, uint64_t first, uint64_t n_file_bytes,
                         nx_fault *fault) {
  uint64_t n_room = n_file_bytes - first;
  file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
  if (file->tensors == NULL) return nx_fault_set(fault, 0, "out of memory for the header of %s", path);
  const char *name;
  json_t *entry;
  json_object_foreach(file->header, name, entry) {
    if (strcmp(name, "__metadata__") == 0) continue;
    if (!read_entry(path, name, entry, n_room, &file->tensors[file->n_tensors], fault)) return false;
    file->n_tensors++;
  }
  if (!check_tiling(path, file, n_room, fault)) return false;
  for (uint64_t i = 0; i < file->n_tensors; i++) file->tensors[i].offset += first;
  qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_name);
  return true;
}

bool nx_safetensors_start(const char *path, const uint8_t *first, uint64_t n_file_bytes, uint64_t *n_start,
                          nx_fault *fault) {
  uint64_t n_header_bytes = 0;
  if (n_file_bytes >= sizeof n_header_bytes) memcpy(&n_header_bytes, first, sizeof n_header_bytes);
  if (n_file_bytes < 10 || n_header_bytes > MAX_HEADER_BYTES || first[8] != '{')
    return nx_fault_set(fault, 0, "%s is not a safetensors file", path);
  if (n_header_bytes > n_file_bytes - 8)
    return nx_fault_set(fault, 0, "%s is cut short: its header has %" PRIu64 " bytes, the file %" PRIu64,
                        path, n_header_bytes, n_file_bytes);
  *n_start = 8 + n_header_bytes;
  return true;
}

bool nx_safetensors_read(const char *path, const uint8_t *start, uint64_t n_start, uint64_t n_file_bytes,
                         nx_safetensors *file, nx_fault *fault) {
  *file = (nx_safetensors){0};
  json_error_t error;
  file->header = json_loadb((const char *)start + 8, n_start - 8, JSON_REJECT_DUPLICATES, &error);
  bool good = json_is_object(file->header) ||
              nx_fault_set(fault, 0, "%s is damaged: its header is not JSON (%s)", path, error.text);
  if (good && read_tensors(path, file, n_start, n_file_bytes, fault)) return true;
  nx_safetensors_close(file);
  return false;
}

void nx_safetensors_close(nx_safetensors *file) {
  json_decref(file->header);
  free(file->tensors);
  *file = (nx_safetensors){0};
}

const nx_safetensor *nx_safetensors_find(const nx_safetensors *file, const char *name) {
  nx_safetensor key = {.name = name};
  return file->n_tensors ? bsearch(&key, file->tensors, file->n_tensors, sizeof key, by_name) : NULL;
}

bool nx_safetensor_is_real(const nx_safetensor *tensor) {
  return nx_dtype_is_real(tensor->dtype) || tensor->dtype == NX_f64;
}

void nx_safetensor_shape(const nx_safetensor *tensor, char text[160]) {
  int n = snprintf(text, 160, "[");
  for (uint32_t dim = 0; dim < tensor->n_dims; dim++)
    n += snprintf(text + n, (size_t)(160 - n), "%s%" PRId64, dim ? ", " : "", tensor->dims[dim]);
  snprintf(text + n, (size_t)(160 - n), "]");
}

/* -- names ----------------------------------------------------------------------------------------------- */

const char nx_all_experts[] = "shared";

bool nx_tensor_shared_name(const char *name, char *shared, size_t n_bytes) {
  static const char experts[] = "experts.";
  const char *number = strstr(name, experts);
  if (number == NULL) return false;
  number += sizeof experts - 1;
  size_t n_digits = strspn(number, "0123456789");
  int n =
      snprintf(shared, n_bytes, "%.*s%s%s", (int)(number - name), name, nx_all_experts, number + n_digits);
  return n_digits > 0 && n >= 0 && (size_t)n < n_bytes;
}

const char *nx_tensor_base_name(const char *name) {
  static const char *const prefixes[] = {"model.", "transformer."};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return name + strlen(prefixes[i]);
  return name;
}

bool nx_tensor_is_scale(const char *name) {
  static const char *const endings[] = {".weight_scale", ".weight_scale_2", ".weight_scale_inv",
                                        ".input_scale",  ".k_scale",        ".v_scale",
                                        ".weight.absmax", ".weight.quant_map", ".weight.nested_absmax",
                                        ".weight.nested_quant_map", ".weight.quant_state.bitsandbytes__nf4"};
  size_t n = strlen(name);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    if (n > strlen(endings[i]) && strcmp(name + n - strlen(endings[i]), endings[i]) == 0) return true;
  return false;
}

bool nx_tensor_is_buffer(const char *name) {
  static const char *const buffers[] = {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"};
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
    size_t ending = strlen(buffers[i]);
    if (length >= ending && strcmp(name + length - ending, buffers[i]) == 0) return true;
  }
  return false;
}
