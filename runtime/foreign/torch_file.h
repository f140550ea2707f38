/* SPDX-License-Identifier: Apache-2.0 */
/* What torch.save wrote: a zip of a pickle and of the bytes of storages, that its tensors are views of. */
#ifndef NXR_TORCH_FILE_H
#define NXR_TORCH_FILE_H

#include "runtime/foreign/pickle.h"
#include "runtime/foreign/zip.h"
#include "schema/ops.h"

enum { NXR_TENSOR_DIMS = 4 };

typedef struct nxr_torch_file {
  const char *path; /* the caller's */
  nxr_zip zip;
  nxr_pickle pickle;
  char prefix[256]; /* of its members' names, with "/" */
} nxr_torch_file;

/* A tensor of numbers that weights may have: f32, bf16, f16, f64. */
typedef struct nxr_torch_tensor {
  nx_dtype dtype;
  uint32_t n_dims;
  uint64_t dims[NXR_TENSOR_DIMS], strides[NXR_TENSOR_DIMS]; /* elements */
  const uint8_t *bytes;                                     /* of its first element */
} nxr_torch_tensor;

/* A part of a file's bytes, which stay the caller's. A failure leaves nothing to close. */
bool nxr_torch_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nxr_torch_file *file,
                    nxr_fault *fault);
void nxr_torch_close(nxr_torch_file *file);

/* Whether the object is a tensor at all, or a parameter that is one. */
bool nxr_torch_is_tensor(const nxr_object *object);
/* One whose elements all lie in the file. Else the fault says why, with `name`. */
bool nxr_torch_tensor_of(const nxr_torch_file *file, const nxr_object *object, const char *name,
                         nxr_torch_tensor *tensor, nxr_fault *fault);

#endif
