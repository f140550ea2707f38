/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/arrow_flat.h"

#include <string.h>

int64_t nxd_flat_load(const uint8_t *at, size_t n_bytes) {
  uint64_t value = 0;
  memcpy(&value, at, n_bytes);
  unsigned unused = 64 - 8 * (unsigned)n_bytes;
  return (int64_t)(value << unused) >> unused;
}

static bool within(nxd_flat *flat, size_t at, size_t n_bytes) {
  bool good = at <= flat->n && n_bytes <= flat->n - at;
  if (!good) flat->damaged = true;
  return good;
}

/* Where an offset that stands at `at` leads; 0 where that is outside. */
static size_t follow(nxd_flat *flat, size_t at) {
  if (!within(flat, at, 4)) return 0;
  size_t target = at + (uint32_t)nxd_flat_load(flat->bytes + at, 4);
  return within(flat, target, 4) ? target : 0;
}

static nxd_flat_table table_at(nxd_flat *flat, size_t at) {
  const nxd_flat_table none = {.in = flat};
  if (at == 0) return none;
  int64_t fields = (int64_t)at - nxd_flat_load(flat->bytes + at, 4);
  if (fields < 0 || !within(flat, (size_t)fields, 4)) {
    flat->damaged = true;
    return none;
  }
  uint32_t fields_bytes = (uint16_t)nxd_flat_load(flat->bytes + fields, 2);
  uint32_t n_bytes = (uint16_t)nxd_flat_load(flat->bytes + fields + 2, 2);
  if (fields_bytes < 4 || !within(flat, (size_t)fields, fields_bytes) || !within(flat, at, n_bytes)) {
    flat->damaged = true;
    return none;
  }
  return (nxd_flat_table){.in = flat,
                          .at = at,
                          .fields = (size_t)fields + 4,
                          .n_fields = (fields_bytes - 4) / 2,
                          .n_bytes = n_bytes};
}

nxd_flat_table nxd_flat_root(nxd_flat *flat) {
  return table_at(flat, follow(flat, 0));
}

/* Where a field stands; 0 where it is absent. */
static size_t field_at(const nxd_flat_table *table, uint32_t field, size_t n_bytes) {
  if (field >= table->n_fields) return 0;
  size_t offset = (uint16_t)nxd_flat_load(table->in->bytes + table->fields + 2 * (size_t)field, 2);
  if (offset == 0) return 0;
  bool good = offset >= 4 && offset + n_bytes <= table->n_bytes;
  if (!good) table->in->damaged = true;
  return good ? table->at + offset : 0;
}

bool nxd_flat_has(const nxd_flat_table *table, uint32_t field) {
  return field_at(table, field, 1) != 0;
}

int64_t nxd_flat_integer(const nxd_flat_table *table, uint32_t field, size_t n_bytes, int64_t otherwise) {
  size_t at = field_at(table, field, n_bytes);
  return at ? nxd_flat_load(table->in->bytes + at, n_bytes) : otherwise;
}

nxd_flat_table nxd_flat_member(const nxd_flat_table *table, uint32_t field) {
  size_t at = field_at(table, field, 4);
  return table_at(table->in, at ? follow(table->in, at) : 0);
}

nxd_flat_vector nxd_flat_list(const nxd_flat_table *table, uint32_t field, size_t element_bytes) {
  nxd_flat_vector none = {.in = table->in};
  size_t at = field_at(table, field, 4), list = at ? follow(table->in, at) : 0;
  if (list == 0) return none;
  uint32_t n = (uint32_t)nxd_flat_load(table->in->bytes + list, 4);
  bool good = within(table->in, list + 4, n * element_bytes);
  return good ? (nxd_flat_vector){.in = table->in, .at = list + 4, .n = n} : none;
}

nxd_flat_table nxd_flat_entry(const nxd_flat_vector *vector, size_t i) {
  return table_at(vector->in, follow(vector->in, vector->at + 4 * i));
}
