/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit/emit.h"

void nxc_emit_enter(nxc_emitter *e, uint32_t index) {
  e->graph = e->pipeline->graphs[index];
  e->value_index = e->value_indices[index];
}

uint32_t nxc_emit_value_of(const nxc_emitter *e, nxc_id id) {
  return id ? e->value_index[id] : NX_NONE;
}
