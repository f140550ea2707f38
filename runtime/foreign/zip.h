/* SPDX-License-Identifier: Apache-2.0 */
/* Where the members of a zip file stand in its bytes, when they are stored as they are: as torch.save does,
 * so that tensors are mapped and not copied. That is why no library unpacks them. */
#ifndef NXR_ZIP_H
#define NXR_ZIP_H

#include "runtime/files/fault.h"

#include <stddef.h>
#include <stdint.h>

typedef struct nxr_zip_member {
  const char *name; /* no 0 stands behind it */
  size_t n_name;
  const uint8_t *bytes;
  uint64_t n_bytes;
} nxr_zip_member;

typedef struct nxr_zip {
  nxr_zip_member *members; /* by name, in byte order; they point into the file's bytes */
  size_t n_members;
} nxr_zip;

/* `path` is for messages. A failure leaves nothing to close. */
bool nxr_zip_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nxr_zip *zip, nxr_fault *fault);
void nxr_zip_close(nxr_zip *zip);
/* NULL: there is none of this name. */
const nxr_zip_member *nxr_zip_find(const nxr_zip *zip, const char *name);
bool nxr_is_zip(const uint8_t *bytes, uint64_t n_bytes);

#endif
