/* SPDX-License-Identifier: Apache-2.0 */
/* What the beginning of a file of tensors in the safetensors format says, read without believing it.
 *
 * A file is a u64 header size, a JSON header {name: {dtype, shape, data_offsets}}, and the tensors' bytes,
 * row-major, little-endian, without holes. Once it has been read, every tensor lies within the file, is as
 * large as its shape says, and shares no byte with another. nxcfg reads no more than this; nxrun maps the
 * rest. */
#ifndef NX_SAFETENSORS_H
#define NX_SAFETENSORS_H

#include "schema/ops.h"
#include "schema/plan.h"

#include <jansson.h>

enum { NX_SAFETENSORS_DIMS = 8 };

typedef struct nx_safetensor {
  const char *name;
  nx_dtype dtype; /* 0: a type that only other programs read */
  uint32_t n_dims;
  int64_t dims[NX_SAFETENSORS_DIMS];
  uint64_t offset;      /* of its first byte, in the file */
  uint64_t n_bytes;
  const uint8_t *bytes; /* of a file that is mapped */
  const struct nxr_joined *joined; /* or what it is put together of (runtime/files/joined.h) */
} nx_safetensor;

typedef struct nx_safetensors {
  json_t *header;         /* owns the names */
  nx_safetensor *tensors; /* by name, in byte order */
  uint64_t n_tensors;
} nx_safetensors;

/* How many bytes of the file its header needs, by its first 9: its size and itself. False (the fault names
 * the file) where it is none of the format, or shorter than that. */
bool nx_safetensors_start(const char *path, const uint8_t *first, uint64_t n_file_bytes, uint64_t *n_start,
                          nx_fault *fault);
/* Reads those bytes. A failure leaves nothing to close. */
bool nx_safetensors_read(const char *path, const uint8_t *start, uint64_t n_start, uint64_t n_file_bytes,
                         nx_safetensors *file, nx_fault *fault);
void nx_safetensors_close(nx_safetensors *file);
/* NULL where the file has none of that name. */
const nx_safetensor *nx_safetensors_find(const nx_safetensors *file, const char *name);

/* Whether nxrun can read the type: f32, bf16, f16, f64. */
bool nx_safetensor_is_real(const nx_safetensor *tensor);
/* "[64, 192]" */
void nx_safetensor_shape(const nx_safetensor *tensor, char text[160]);
/* The format's name of a type that is_real; NULL: it has none. */
const char *nx_safetensor_type(nx_dtype dtype);

/* A name without the prefix that Hugging Face's causal models have and its base models lack. */
const char *nx_tensor_base_name(const char *name);
/* What stands in the place of an expert's number where experts have a matrix of their adapters in common, and
 * the name of such a matrix, of the expert's own name; false where that names no expert, or is too long. */
extern const char nx_all_experts[];
bool nx_tensor_shared_name(const char *name, char *shared, size_t n_bytes);
/* Whether it stands beside a quantized matrix, as ModelOpt, bitsandbytes and others name such. */
bool nx_tensor_is_scale(const char *name);
/* Whether it is a buffer that older files hold and nothing needs. */
bool nx_tensor_is_buffer(const char *name);

#endif
