/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about settings: what must hold, and where it is said when it does not. */
#ifndef NXC_DEMANDS_H
#define NXC_DEMANDS_H

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/settings/settings.h"

typedef struct nxc_demand {
  bool met;
  nxc_setting_id at;
  const char *id, *text;
} nxc_demand;

/* False, with an error for each that is not met, where any is not. */
bool nxc_demands_check(const nxc_settings *settings, nxc_sink *sink, const nxc_demand *demands, size_t n);
/* NX3002: a plan needs the settings, and nothing tells them. One finding for what one thing would tell. */
void nxc_report_unknown(const nxc_settings *settings, nxc_sink *sink, const nxc_setting_id *ids, size_t n);

#endif
