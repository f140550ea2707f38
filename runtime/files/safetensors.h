/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tensors in the safetensors format (schema/safetensors.h): mapped where they are read, and written.
 *
 * All of a file that is open has been checked. So reading can not fail. */
#ifndef NXR_SAFETENSORS_H
#define NXR_SAFETENSORS_H

#include "runtime/files/mapping.h"
#include "schema/safetensors.h"

typedef nx_safetensor nxr_safetensor;

typedef struct nxr_safetensors {
  nxr_mapping mapping;
  nx_safetensors start;
  const nxr_safetensor *tensors; /* of start, with their bytes */
  uint64_t n_tensors;
} nxr_safetensors;

/* A failure leaves nothing open; the fault names the file. */
bool nxr_safetensors_open(const char *path, nxr_safetensors *file, nxr_fault *fault);
void nxr_safetensors_close(nxr_safetensors *file);
/* NULL where the file has none of that name. */
const nxr_safetensor *nxr_safetensors_find(const nxr_safetensors *file, const char *name);

/* Of a type that nx_safetensor_is_real: elements [first, first + n) in the order of the file; the caller
 * keeps them within the tensor. */
void nxr_safetensor_floats(const nxr_safetensor *tensor, uint64_t first, uint64_t n, float *values);

/* The same of elements of such a type that stand one behind the other. */
void nxr_floats(nx_dtype dtype, const uint8_t *from, uint64_t n, float *values);

/* Lays out a file of `n` tensors with name, dtype and dims (f32, bf16, f16, f64) in this order: fills offset
 * and n_bytes, and returns what stands before the first of them (header size and header), to be freed by the
 * caller. NULL without memory. The order must not increase the size of elements, so that each is aligned. */
char *nxr_safetensors_layout(nxr_safetensor *tensors, uint64_t n, uint64_t *n_header_bytes,
                             uint64_t *n_file_bytes);

#endif
