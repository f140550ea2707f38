/* SPDX-License-Identifier: Apache-2.0 */
/* One value of a column. Everything is checked before it is read: a fault is damage. */
#ifndef NXD_ARROW_VALUE_H
#define NXD_ARROW_VALUE_H

#include "datasets/arrow.h"
#include "datasets/buffer.h"

/* Of a list its rows [first, end) in the column below it. */
typedef struct nxd_arrow_range {
  uint64_t first, end;
} nxd_arrow_range;

bool nxd_arrow_is_valid(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, bool *valid,
                        nxr_fault *fault);
bool nxd_arrow_range_of(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row,
                        nxd_arrow_range *range, nxr_fault *fault);
/* Of a text or binary its bytes. */
bool nxd_arrow_text_of(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row,
                       nxd_arrow_bytes *text, nxr_fault *fault);
bool nxd_arrow_is_text(nxd_arrow_type type);
/* Of any kind, and maps. */
bool nxd_arrow_is_list(nxd_arrow_type type);
/* The entry of a column of numbers that all take so many bytes. */
bool nxd_arrow_number(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, size_t n_bytes,
                      int64_t *number, nxr_fault *fault);
/* arrow_json.c: appends the value as JSON. */
bool nxd_arrow_json(const nxd_arrow *arrow, const nxd_arrow_column *column, uint64_t row, nxd_buffer *to,
                    nxr_fault *fault);

/* The fault of a column whose rows lead out of it. */
bool nxd_arrow_damaged(const nxd_arrow *arrow, const nxd_arrow_column *column, nxr_fault *fault);

#endif
