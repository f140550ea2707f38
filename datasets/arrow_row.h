/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in a row of a batch. Everything is checked before it is read: a fault is damage. */
#ifndef NXD_ARROW_ROW_H
#define NXD_ARROW_ROW_H

#include "datasets/arrow.h"
#include "datasets/record.h"

/* Gives a record the field: a text as NXD_STRING, a list of integers as NXD_IDS, null as NXD_NOTHING, and
 * everything else, and texts that are JSON, as NXD_VALUE. */
bool nxd_arrow_row(const nxd_arrow *arrow, const nxd_arrow_path *path, uint64_t row, nxd_batch *batch,
                   nxd_record *record, uint32_t which, nxr_fault *fault);

#endif
