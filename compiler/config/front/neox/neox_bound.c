/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/neox/front_neox.h"

nxc_bound *nxc_neox_bound(nxc_binding *binding, const char *option) {
  const nxc_option_row *row = nxc_option_find(binding->dialect, option);
  return row ? &binding->options[row - binding->dialect->options] : NULL;
}
