/* SPDX-License-Identifier: Apache-2.0 */
/* Settings -> plan: the compiler's second half.
 *
 * The passes and their order stand in one function of program.c. What comes out is the plan file's bytes and
 * a view of them that nx_plan_check has verified and nx_plan_prove has proved; both live in the arena that
 * was passed in. The same settings give the same bytes. */
#ifndef NXC_PROGRAM_H
#define NXC_PROGRAM_H

#include "compiler/program/emit/emit.h"
#include "compiler/program/pipeline/pipeline.h"

/* False, with findings, where the settings do not determine a plan or nxrun cannot execute it. */
bool nxc_program_compile(const nxc_settings *settings, nxc_arena *arena, nxc_sink *sink, nxc_plan_bytes *out);
/* The passes up to memory, for tests and for whoever wants the graphs. NULL with findings. */
nxc_pipeline *nxc_program_build(const nxc_training *training, nxc_arena *arena, nxc_sink *sink);

/* Bytes of one rank by arena, all slots together; of the pipeline stage that needs most, which it returns. */
uint32_t nxc_forecast_memory(const nx_plan *plan, uint64_t bytes[NX_N_ARENAS]);

#endif
