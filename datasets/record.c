/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/record.h"

#include <stdlib.h>

enum { LEAST_RECORDS = 64, ALIGNMENT = sizeof(int64_t) };

nxd_record *nxd_batch_add(nxd_batch *batch) {
  if (batch->n == batch->room) {
    size_t room = batch->room ? 2 * batch->room : LEAST_RECORDS;
    nxd_record *records = reallocarray(batch->records, room, sizeof *records);
    if (records == NULL) return NULL;
    batch->records = records, batch->room = room;
  }
  nxd_record *record = &batch->records[batch->n++];
  *record = (nxd_record){0};
  return record;
}

void *nxd_batch_field(nxd_batch *batch, nxd_record *record, uint32_t which, nxd_form form, size_t n) {
  size_t padding = form == NXD_IDS ? -batch->bytes.n % ALIGNMENT : 0;
  if (form == NXD_IDS && n > SIZE_MAX / sizeof(int64_t)) return NULL;
  if (nxd_buffer_extend(&batch->bytes, padding) == NULL) return NULL;
  record->fields[which] = (nxd_field){form, batch->bytes.n, n};
  return nxd_buffer_extend(&batch->bytes, form == NXD_IDS ? n * sizeof(int64_t) : n);
}

void nxd_batch_empty(nxd_batch *batch) {
  batch->n = batch->bytes.n = 0;
}

void nxd_batch_free(nxd_batch *batch) {
  free(batch->records);
  nxd_buffer_free(&batch->bytes);
  *batch = (nxd_batch){0};
}
