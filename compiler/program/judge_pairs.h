/* SPDX-License-Identifier: Apache-2.0 */
/* run.reproducible: elastic, where it cannot be kept: then a training is refused, with what would be kept. */
#ifndef NXC_JUDGE_PAIRS_H
#define NXC_JUDGE_PAIRS_H

#include "compiler/program/records/training.h"

bool nxc_pairs_judge(const nxc_settings *settings, nxc_sink *sink, const nxc_training *training);

#endif
