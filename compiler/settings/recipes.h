/* SPDX-License-Identifier: Apache-2.0 */
/* What datasets are made from that do not stand there as indexed files: the plan's records (schema/plan.h)
 * before their texts have places. */
#ifndef NXC_SETTINGS_RECIPES_H
#define NXC_SETTINGS_RECIPES_H

#include "compiler/settings/settings.h"
#include "schema/plan.h"

typedef struct nxc_recipe {
  const char *prefix; /* below data.prepared: the input's name, and a hash of everything below */
  const char *input, *field, *labels, *rejected, *reward, *part, *tokenizer, *template;
  nx_recipe record;
  const struct nxc_recipe *const *parts; /* [n_parts] that it merges; NULL: it is made of records */
  size_t n_parts;
} nxc_recipe;

/* Of entry `index` of data.path or a list like it; NULL where what stands there is an indexed dataset. */
const nxc_recipe *nxc_recipe_read(const nxc_settings *settings, const char *path, size_t index);
/* Of all paths of such a list, as one dataset; NULL where data.merge does not ask for that, or nothing is
 * made. */
const nxc_recipe *nxc_recipe_merged(const nxc_settings *settings, const nxc_value *paths, size_t n);

#endif
