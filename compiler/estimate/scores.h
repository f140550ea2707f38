/* SPDX-License-Identifier: Apache-2.0 */
/* What attention reads and stores, layer by layer: some layers read all keys, in a kernel that stores no
 * scores or as operators that do, and others blocks of them. */
#ifndef NXC_SCORES_H
#define NXC_SCORES_H

#include "compiler/estimate/sizes.h"

/* Of the whole model. */
void nxc_scores_read(const nxc_training *training, const nxc_settings *settings, nxc_sizes *sizes);

/* What has been seen of some layers, one after another. */
typedef struct nxc_scores {
  double layers, sparse, flash;
  double stored, most; /* scores: of all of them; on average of those that are computed again together */
  double group, n_group;
} nxc_scores;

void nxc_scores_see(const nxc_model *model, const nxc_sizes *sizes, int64_t layer, nxc_scores *seen);
/* The sizes of these layers. Where all are computed again, what is stored is that of the layers that store
 * most. */
void nxc_scores_sum_up(const nxc_scores *seen, nxc_sizes *sizes);

#endif
