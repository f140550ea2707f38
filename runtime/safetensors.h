/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tensors in the safetensors format: written, and read without believing them.
 *
 * A file is a u64 header size, a JSON header {name: {dtype, shape, data_offsets}}, and the tensors' bytes,
 * row-major, little-endian, without holes. A file that is open is mapped, and all of it has been checked:
 * every tensor lies within the file, is as large as its shape says, and shares no byte with another. So
 * reading can not fail. */
#ifndef NXR_SAFETENSORS_H
#define NXR_SAFETENSORS_H

#include "runtime/mapping.h"
#include "schema/ops.h"

#include <jansson.h>

enum { NXR_SAFETENSORS_DIMS = 8 };

typedef struct nxr_safetensor {
  const char *name;
  nx_dtype dtype; /* 0: a type that only other programs read */
  uint32_t n_dims;
  int64_t dims[NXR_SAFETENSORS_DIMS];
  uint64_t offset;      /* of its first byte, in the file */
  uint64_t n_bytes;
  const uint8_t *bytes; /* of a file that is open */
} nxr_safetensor;

typedef struct nxr_safetensors {
  nxr_mapping mapping;
  json_t *header; /* owns the names */
  nxr_safetensor *tensors; /* by name, in byte order */
  uint64_t n_tensors;
} nxr_safetensors;

/* A failure leaves nothing open; the fault names the file. */
bool nxr_safetensors_open(const char *path, nxr_safetensors *file, nxr_fault *fault);
void nxr_safetensors_close(nxr_safetensors *file);
/* NULL where the file has none of that name. */
const nxr_safetensor *nxr_safetensors_find(const nxr_safetensors *file, const char *name);

/* Whether nxr_safetensor_floats can read the type: f32, bf16, f16, f64. */
bool nxr_safetensor_is_real(const nxr_safetensor *tensor);
/* Elements [first, first + n) in the order of the file; the caller keeps them within the tensor. */
void nxr_safetensor_floats(const nxr_safetensor *tensor, uint64_t first, uint64_t n, float *values);
/* "[64, 192]" */
void nxr_safetensor_shape(const nxr_safetensor *tensor, char text[160]);

/* Lays out a file of `n` tensors with name, dtype and dims (f32, bf16, f16, f64) in this order: fills offset
 * and n_bytes, and returns what stands before the first of them (header size and header), to be freed by the
 * caller. NULL without memory. The order must not increase the size of elements, so that each is aligned. */
char *nxr_safetensors_layout(nxr_safetensor *tensors, uint64_t n, uint64_t *n_header_bytes,
                             uint64_t *n_file_bytes);

#endif
