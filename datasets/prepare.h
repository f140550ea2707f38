/* SPDX-License-Identifier: Apache-2.0 */
/* The dataset that a recipe of a plan describes. */
#ifndef NXD_PREPARE_H
#define NXD_PREPARE_H

#include "runtime/files/fault.h"
#include "schema/plan.h"

/* Makes it, where it is not there, or was made from other inputs. PREFIX.key says from which. */
bool nxd_prepare(const nx_plan *plan, const nx_recipe *recipe, uint32_t n_workers, bool watched,
                 nxr_fault *fault);

#endif
