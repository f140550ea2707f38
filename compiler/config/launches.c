/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/launches.h"

#include "compiler/settings/programs.h"

/* Where each stands, and what of its options not all have. */
static void report_several(nxc_arena *arena, const nxc_document *document, nxc_sink *sink) {
  size_t n = document->n_launches;
  nxc_remark *remarks = nxc_arena_array(arena, n, sizeof *remarks);
  for (size_t i = 0; i < n; i++)
    remarks[i] = (nxc_remark){document->launches[i], nxc_arena_printf(arena, "--launch %zu has %s", i + 1,
                                                                      document->launches_differ[i])};
  const nxc_finding finding = {
      .id = "NX5921",
      .severity = NXC_SEVERITY_ERROR,
      .message = nxc_arena_printf(arena, "this script starts %zu programs, and one of them is wanted", n),
      .at = document->launches[0],
      .fix = nxc_arena_printf(arena, "name one with --launch N, from 1 to %zu", n),
      .remarks = remarks,
      .n_remarks = n};
  nxc_sink_report(sink, &finding);
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
  const nxc_program_row *program = document->program;
  bool trains = program == NULL ? !document->idle : program->use == NXC_PROGRAM_TRAINS;
  if (trains && !request->all_launches && request->launch == 0 && document->n_launches > 1) {
    report_several(arena, document, sink);
    return false;
  }
  if (trains) return true; /* model.kind says what it is */
  if (request->all_launches && !request->for_nxrun) return true;
  const char *what = "this script starts no training that is known here";
  if (program != NULL)
    what = nxc_arena_printf(arena, "this runs %s (%s): %s, which is neither compiled nor estimated",
                            program->what, document->program_name, program->model);
  nxc_report(sink, "NX5920", NXC_SEVERITY_ERROR, document->program_at,
             "name a script that starts a training, or give its arguments behind --", "%s", what);
  return false;
}
