/* SPDX-License-Identifier: Apache-2.0 */
/* Where the members of a zip file stand in its bytes, when they are stored as they are: as torch.save does,
 * so that tensors are mapped and not copied. That is why no library unpacks them. */
#ifndef NX_ZIP_H
#define NX_ZIP_H

#include "schema/plan.h"

#include <stddef.h>
#include <stdint.h>

typedef struct nx_zip_member {
  const char *name; /* no 0 stands behind it */
  size_t n_name;
  const uint8_t *bytes;
  uint64_t n_bytes;
} nx_zip_member;

typedef struct nx_zip {
  nx_zip_member *members; /* by name, in byte order; they point into the file's bytes */
  size_t n_members;
} nx_zip;

/* `path` is for messages. A failure leaves nothing to close. */
bool nx_zip_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_zip *zip, nx_fault *fault);
void nx_zip_close(nx_zip *zip);
/* NULL: there is none of this name. */
const nx_zip_member *nx_zip_find(const nx_zip *zip, const char *name);
bool nx_is_zip(const uint8_t *bytes, uint64_t n_bytes);

#endif
