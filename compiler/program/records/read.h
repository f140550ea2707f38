/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that may be null, for the records' readers. */
#ifndef NXC_RECORDS_READ_H
#define NXC_RECORDS_READ_H

#include "compiler/settings/settings.h"

static inline int64_t nxc_int_or(const nxc_settings *settings, nxc_setting_id id, int64_t otherwise) {
  return nxc_has(settings, id) ? nxc_int(settings, id) : otherwise;
}

static inline double nxc_number_or(const nxc_settings *settings, nxc_setting_id id, double otherwise) {
  return nxc_has(settings, id) ? nxc_number(settings, id) : otherwise;
}

#endif
