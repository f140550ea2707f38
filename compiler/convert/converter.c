/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/convert/converter.h"

const char nxc_not_shown[] = "a secret, or a value of the environment; --reveal writes it";

bool nxc_converter_stays(const nxc_converter *c) {
  return c->dialect == c->source->dialect && !c->request->anew;
}

void nxc_converter_add(nxc_converter *c, nxc_unsaid one) {
  nxc_conversion *out = c->out;
  out->unsaid = nxc_arena_grow(c->arena, out->unsaid, out->n_unsaid, sizeof one);
  out->unsaid[out->n_unsaid++] = one;
}

bool nxc_converter_is_outside(const nxc_settings *settings, nxc_setting_id id) {
  nxc_provenance_kind kind = nxc_settings_from(settings, id)->kind;
  return kind == NXC_FROM_CLI || kind == NXC_FROM_PROJECT;
}
