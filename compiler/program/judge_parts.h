/* SPDX-License-Identifier: Apache-2.0 */
/* What nxrun refuses of a training, by subject; the parts of nxc_training_judge that have files of their own.
 * False: reported. */
#ifndef NXC_JUDGE_PARTS_H
#define NXC_JUDGE_PARTS_H

#include "compiler/program/records/training.h"

/* Adapters that this mesh, family or base cannot have. */
bool nxc_adapters_judge(const nxc_settings *settings, nxc_sink *sink, const nxc_training *training);
/* run.reproducible: elastic, where it cannot be kept; says what would be kept. */
bool nxc_pairs_judge(const nxc_settings *settings, nxc_sink *sink, const nxc_training *training);

#endif
