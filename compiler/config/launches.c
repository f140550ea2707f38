/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/launches.h"

#include "compiler/settings/programs.h"

static void report_several(nxc_arena *arena, const nxc_document *document, nxc_sink *sink) {
  const char *lines = "";
  for (size_t i = 0; i < document->n_launches; i++) {
    nxc_span at = document->launches[i];
    const char *file = at.source == document->launches[0].source ? "" : " of ";
    lines = nxc_arena_printf(arena, "%s%s%zu at line %u%s%s", lines, i ? ", " : "", i + 1, at.line, file,
                             *file ? at.source->name : "");
  }
  nxc_report(sink, "NX5921", NXC_SEVERITY_ERROR, document->launches[0], "name one with --launch N",
             "this script starts several programs: %s", lines);
}

bool nxc_launches_check(nxc_arena *arena, const nxc_request *request, const nxc_document *document,
                        nxc_sink *sink) {
  if (request->launch > document->n_launches && request->launch > 1) {
    nxc_report(sink, "NX5921", NXC_SEVERITY_ERROR, (nxc_span){0},
               nxc_arena_printf(arena, "give a number from 1 to %zu", document->n_launches),
               "--launch %zu: this file starts %zu program%s",
               request->launch, document->n_launches, document->n_launches == 1 ? "" : "s");
    return false;
  }
  if (request->all_launches) return true;
  const nxc_program_row *program = document->program;
  bool trains = program == NULL ? !document->idle : program->use == NXC_PROGRAM_TRAINS;
  if (trains && request->launch == 0 && document->n_launches > 1) {
    report_several(arena, document, sink);
    return false;
  }
  if (trains) return true; /* model.kind says what it is */
  const char *what = "this script starts no training that is known here";
  if (program != NULL)
    what = nxc_arena_printf(arena, "this runs %s (%s): %s, which is neither compiled nor estimated",
                            program->what, document->program_name, program->model);
  nxc_report(sink, "NX5920", NXC_SEVERITY_ERROR, document->program_at,
             "name a script that starts a training, or give its arguments behind --", "%s", what);
  return false;
}
