/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a FlatBuffer that is not trusted: nothing is read outside of it, whatever its offsets say.
 *
 * What is absent reads as nothing or as its default. What points outside does too, and marks the buffer as
 * damaged: whoever has read what he needs looks at that mark. */
#ifndef NXD_ARROW_FLAT_H
#define NXD_ARROW_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxd_flat {
  const uint8_t *bytes;
  size_t n;
  bool damaged;
} nxd_flat;

/* A table of it; n_fields 0: none. */
typedef struct nxd_flat_table {
  nxd_flat *in;
  size_t at, fields; /* the table, and where its fields' offsets stand */
  uint32_t n_fields, n_bytes;
} nxd_flat_table;

/* n elements of so many bytes, from `at`. */
typedef struct nxd_flat_vector {
  nxd_flat *in;
  size_t at, n;
} nxd_flat_vector;

nxd_flat_table nxd_flat_root(nxd_flat *flat);
bool nxd_flat_has(const nxd_flat_table *table, uint32_t field);
/* A little-endian signed integer of 1, 2, 4 or 8 bytes. */
int64_t nxd_flat_integer(const nxd_flat_table *table, uint32_t field, size_t n_bytes, int64_t otherwise);
nxd_flat_table nxd_flat_member(const nxd_flat_table *table, uint32_t field);
nxd_flat_vector nxd_flat_list(const nxd_flat_table *table, uint32_t field, size_t element_bytes);
/* An entry of a list of tables; the caller keeps i below n. */
nxd_flat_table nxd_flat_entry(const nxd_flat_vector *vector, size_t i);
int64_t nxd_flat_load(const uint8_t *at, size_t n_bytes);

#endif
