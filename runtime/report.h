/* SPDX-License-Identifier: Apache-2.0 */
/* What --dry-run says: which memory is mapped and which kernels are bound, planned beside real. */
#ifndef NXR_REPORT_H
#define NXR_REPORT_H

#include "runtime/step/bind.h"
#include "runtime/logs/metrics.h"

/* Printed by rank 0; meets all ranks. `copy_bytes`: what this rank copies of a checkpoint. */
void nxr_report_memory(const nxr_machine *machine, uint64_t copy_bytes, nxr_log log);

#endif
