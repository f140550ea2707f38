/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/recomputation.h"

nxc_recomputation nxc_recomputation_read(const nxc_settings *s, const nxc_layout *layout) {
  nxc_recomputation r = {.full = nxc_is(s, NX_SETTING_RECOMPUTE_GRANULARITY, "full"),
                         .block = nxc_is(s, NX_SETTING_RECOMPUTE_METHOD, "block"),
                         .layers = nxc_int(s, NX_SETTING_RECOMPUTE_LAYERS)};
  bool whole = layout->tensor > 1 && !layout->sequence_parallel;
  r.distribute = r.full && whole && nxc_flag(s, NX_SETTING_RECOMPUTE_DISTRIBUTE);
  if (nxc_is(s, NX_SETTING_RECOMPUTE_GRANULARITY, "selective"))
    r.modules = nxc_list(s, NX_SETTING_RECOMPUTE_MODULES, &r.n_modules);
  return r;
}
