/* SPDX-License-Identifier: Apache-2.0 */
/* Words that are rows of tables, for the records' readers. */
#ifndef NXC_RECORDS_READ_H
#define NXC_RECORDS_READ_H

#include "compiler/settings/settings.h"

/* The row that an enumeration names, of a table whose rows begin with their names and which ends with a name
 * of NULL: the catalogue's values are the tables' names (tested). */
static inline const void *nxc_row_named(const nxc_settings *settings, nxc_setting_id id, const void *rows,
                                        size_t row_bytes) {
  const char *row = rows;
  for (; *(const char *const *)(const void *)row != NULL; row += row_bytes)
    if (nxc_is(settings, id, *(const char *const *)(const void *)row)) return row;
  return NULL;
}

#endif
