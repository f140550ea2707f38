/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of what torch.save wrote (schema/torch/). */
#ifndef NXR_TORCH_FILE_H
#define NXR_TORCH_FILE_H

#include "runtime/files/fault.h"
#include "schema/ops.h"
#include "schema/torch/torch_file.h"

enum { NXR_TENSOR_DIMS = 5 };

/* A tensor of numbers that weights may have: f32, bf16, f16, f64. */
typedef struct nxr_torch_tensor {
  nx_dtype dtype;
  uint32_t n_dims;
  uint64_t dims[NXR_TENSOR_DIMS], strides[NXR_TENSOR_DIMS]; /* elements */
  const uint8_t *bytes;                                     /* of its first element */
} nxr_torch_tensor;

/* nx_torch_open and nx_pickle_read with a fault of nxrun. */
bool nxr_torch_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_torch_file *file,
                    nxr_fault *fault);
bool nxr_pickle_read(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_pickle *pickle,
                     nxr_fault *fault);

/* Whether the object is a tensor at all, or a parameter that is one. */
bool nxr_torch_is_tensor(const nx_object *object);
/* One whose elements all lie in the file. Else the fault says why, with `name`. */
bool nxr_torch_tensor_of(const nx_torch_file *file, const nx_object *object, const char *name,
                         nxr_torch_tensor *tensor, nxr_fault *fault);

#endif
