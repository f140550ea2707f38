/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration says beyond its settings.
 *
 * Most options become settings, which are compared, converted and shown. Of the rest, and of keys that are no
 * option at all, there is one nxc_beyond each, with the value itself: given, or what stands where nothing is
 * given. An option is followed where settings hold all that it says: its row says so (`changes: settings`),
 * or its `sets` give a value. Secrets are hashes, as everywhere. */
#ifndef NXC_CONFIG_BEYOND_H
#define NXC_CONFIG_BEYOND_H

#include "compiler/config/compile_settings.h"

typedef struct nxc_beyond {
  const char *name;
  const char *value; /* as JSON; NULL: unknown */
  nxc_changes changes;
  bool given;    /* it stands in the configuration */
  bool usual;    /* its value is the default, or null */
  bool read;     /* false: the real system does not look at it */
  bool followed; /* settings say it */
  nxc_span at;
} nxc_beyond;

/* One for each option that has a value or may have one, followed ones too, and for each further key. */
nxc_beyond *nxc_beyond_settings(nxc_arena *arena, const nxc_compiled *compiled, size_t *n);
/* Whether it is given, changes the training, and no setting says it: nxcfg follows it no further. */
bool nxc_beyond_counts(const nxc_beyond *beyond);
/* Those of a configuration, in the order of their names. */
nxc_beyond *nxc_beyond_unfollowed(nxc_arena *arena, const nxc_compiled *compiled, size_t *n);
/* Whether the option has a part in the value of a setting: it set it, or a rule that reads it derived it. */
bool nxc_setting_follows(nxc_arena *arena, const nxc_settings *settings, nxc_setting_id id,
                         const char *option);

#endif
