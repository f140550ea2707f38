/* SPDX-License-Identifier: Apache-2.0 */
/* An adapter that is open, and the weights that it is added to: what the files of merge-adapter share. */
#ifndef NXD_ADAPTER_PARTS_H
#define NXD_ADAPTER_PARTS_H

#include "runtime/files/safetensors.h"

typedef struct nxd_adapter {
  nxr_safetensors file;
  bool *used; /* per tensor */
  int64_t rank;
  double scale;
  bool transposed; /* the base has inputs in rows */
} nxd_adapter;

/* The adapter's tensor of this base tensor, which ends in `own`: its module's name, or that of all experts,
 * and an ending; it is marked as used. NULL: there is none. */
const nxr_safetensor *nxd_adapter_find(const nxd_adapter *a, const char *base, const char *own,
                                       const char *ending);

/* The name of a matrix whose codes have this one. */
void nxd_adapter_plain_name(const char *codes, char *name, size_t n_bytes);
/* datasets/adapter_weights.c: writes a file of weights with the adapter added. Types, shapes and so the
 * header stay as they are, unless matrices are quantized: those are written as numbers, in the type of what
 * stands beside them, under their plain names, and *quantized becomes true. */
bool nxd_adapter_write_file(const nxd_adapter *a, const char *from, const char *to, bool *quantized,
                            nxr_fault *fault);

#endif
