/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/safetensors.h"

#include "runtime/files/joined.h"
#include "runtime/files/reading.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool nxr_safetensors_open(const char *path, nxr_safetensors *file, nxr_fault *fault) {
  nx_fault found = {0};
  uint64_t n_start;
  *file = (nxr_safetensors){0};
  if (!nxr_mapping_open(path, &file->mapping, fault)) return false;
  const nxr_mapping *mapping = &file->mapping;
  nxr_reading_begin(path, NULL);
  bool good = nx_safetensors_start(path, mapping->bytes, mapping->n_bytes, &n_start, &found) &&
              nx_safetensors_read(path, mapping->bytes, n_start, mapping->n_bytes, &file->start, &found);
  nxr_reading_end();
  if (good) {
    for (uint64_t i = 0; i < file->start.n_tensors; i++)
      file->start.tensors[i].bytes = mapping->bytes + file->start.tensors[i].offset;
    file->tensors = file->start.tensors;
    file->n_tensors = file->start.n_tensors;
    return true;
  }
  nxr_safetensors_close(file);
  return nxr_fault_set(fault, "%s", found.text);
}

void nxr_safetensors_close(nxr_safetensors *file) {
  nx_safetensors_close(&file->start);
  nxr_mapping_close(&file->mapping);
  *file = (nxr_safetensors){0};
}

const nxr_safetensor *nxr_safetensors_find(const nxr_safetensors *file, const char *name) {
  return nx_safetensors_find(&file->start, name);
}

void nxr_safetensor_floats(const nxr_safetensor *tensor, uint64_t first, uint64_t n, float *values) {
  const nxr_joined *joined = tensor->joined;
  nxr_reading_begin(NULL, joined ? joined->sources[0].chunks[0].bytes : tensor->bytes);
  if (joined) nxr_joined_floats(joined, first, n, values);
  else nxr_floats(tensor->dtype, tensor->bytes + first * (nx_dtype_bits(tensor->dtype) / 8), n, values);
  nxr_reading_end();
}

static json_t *make_entry(const nxr_safetensor *tensor, uint64_t begin) {
  json_t *shape = json_array();
  for (uint32_t dim = 0; dim < tensor->n_dims; dim++)
    json_array_append_new(shape, json_integer(tensor->dims[dim]));
  return json_pack("{s:s, s:o, s:[I, I]}", "dtype", nx_safetensor_type(tensor->dtype), "shape", shape,
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
    assert(nx_safetensor_type(tensors[i].dtype) != NULL);
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
