/* SPDX-License-Identifier: Apache-2.0 */
/* What is trained on, and what is held out: the plan's records (schema/plan.h) before their texts have
 * places.
 *
 * A set of paths of its own is a dataset; those of training are divided by data.split, and the parts for
 * validation and test are datasets too, where no paths of their own are given. What is divided off is never
 * trained on, whether it is evaluated or not. */
#ifndef NXC_RECORDS_DATASETS_H
#define NXC_RECORDS_DATASETS_H

#include "compiler/settings/recipes.h"

typedef struct nxc_dataset_source {
  const char *prefix, *rejected, *labels, *rejected_labels, *rewards; /* "": none */
  const nxc_recipe *recipe; /* that makes it; NULL: it is there */
  nx_source record;
} nxc_dataset_source;

typedef struct nxc_dataset {
  const char *name;
  nx_dataset record;
  const nxc_dataset_source *sources; /* [record.n_sources] */
} nxc_dataset;

typedef struct nxc_datasets {
  uint32_t n;
  nxc_dataset *sets; /* training first; none where no path is known */
} nxc_datasets;

nxc_datasets nxc_datasets_read(const nxc_settings *settings);

#endif
