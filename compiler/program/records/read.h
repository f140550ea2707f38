/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that may be null, and words that are rows of tables, for the records' readers. */
#ifndef NXC_RECORDS_READ_H
#define NXC_RECORDS_READ_H

#include "compiler/settings/settings.h"

static inline int64_t nxc_int_or(const nxc_settings *settings, nxc_setting_id id, int64_t otherwise) {
  return nxc_has(settings, id) ? nxc_int(settings, id) : otherwise;
}

static inline double nxc_number_or(const nxc_settings *settings, nxc_setting_id id, double otherwise) {
  return nxc_has(settings, id) ? nxc_number(settings, id) : otherwise;
}

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
