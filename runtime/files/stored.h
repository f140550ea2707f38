/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices that files keep quantized: the tensors that each is made of, and what they stand for.
 *
 * ModelOpt writes NVFP4, with a second scale of the whole tensor; others e4m3; compressed-tensors MXFP4;
 * bitsandbytes NF4, whose scales may be quantized once more: codes of 8 bits, of which so many share a scale,
 * and one number that is added to all of them. nxrun's own checkpoints have any of them as the plan keeps it.
 */
#ifndef NXR_STORED_H
#define NXR_STORED_H

#include "runtime/files/safetensors.h"

typedef struct nxr_stored {
  nx_form codes_form, scales_form; /* plain: the file keeps the matrix as it is */
  const nxr_safetensor *codes, *scales;
  const nxr_safetensor *nested, *map; /* of scales that are codes themselves: their scales and values */
  uint64_t n_nested;                  /* scales that share one of `nested` */
  float factor, offset;               /* scales are multiplied by the one, and the other is added */
} nxr_stored;

/* The tensor of this name; NULL: there is none. */
typedef const nxr_safetensor *nxr_stored_lookup(const void *from, const char *name);

/* Finds the tensors of the matrix "STEM.weight" of these sizes, kept with codes of this form. False where the
 * file has not all of them, or of other types and sizes. */
bool nxr_stored_find(nxr_stored_lookup *lookup, const void *from, const char *name, nx_form codes,
                     int64_t rows, int64_t columns, nxr_stored *stored);

/* The same of whatever format the tensor of this name has codes of, with the sizes that the file says. */
bool nxr_stored_open(nxr_stored_lookup *lookup, const void *from, const char *name, int64_t *rows,
                     int64_t *columns, nxr_stored *stored);

/* Scales [first, first + n), as the plan keeps them: numbers, or of MXFP4 codes. */
void nxr_stored_scales(const nxr_stored *stored, uint64_t first, uint64_t n, float *values);
/* What the code of an element stands for before it is scaled. */
float nxr_stored_value(nx_form form, const uint8_t *codes, uint64_t element);
/* A row of so many elements, as numbers. */
void nxr_stored_row(const nxr_stored *stored, int64_t row, int64_t columns, float *values);

#endif
