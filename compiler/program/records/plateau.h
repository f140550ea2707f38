/* SPDX-License-Identifier: Apache-2.0 */
/* When a learning rate is reduced that follows a loss: the plan's record (schema/plan_run.h). */
#ifndef NXC_RECORDS_PLATEAU_H
#define NXC_RECORDS_PLATEAU_H

#include "compiler/program/records/evaluations.h"

nx_plateau nxc_plateau_read(const nxc_settings *settings, const nxc_evaluations *evaluations);
/* False, with a finding, where the loss that a learning rate follows is measured nowhere. */
bool nxc_plateau_judge(const nxc_settings *settings, nxc_sink *sink, const nx_plateau *plateau);

#endif
