/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/request.h"

#include "compiler/config/front/shell/script.h"

void nxc_request_keep(nxc_arena *arena, nxc_request *request) {
  request->followed = nxc_arena_alloc(arena, sizeof *request->followed);
  *request->followed = (nxc_followed){.arena = arena, .source = request->text};
}
