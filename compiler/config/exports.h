/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment that the real system trains with: what its launcher makes of a configuration.
 *
 * They come from the launcher itself, from the precision preset and from the `exports` of options, each name
 * once. Where several give the same one, their texts are joined, as flags of a compiler are. nxrun reads none
 * of them. What lies in nxcfg's own environment is told beside it, since a launcher that finds a variable set
 * may leave it so. */
#ifndef NXC_CONFIG_EXPORTS_H
#define NXC_CONFIG_EXPORTS_H

#include "compiler/config/compile_settings.h"

typedef struct nxc_export {
  const char *name, *value;
  const char *from;    /* the option, "preset NAME", or the launcher */
  nxc_span at;         /* of the option or the preset; source is NULL where no text gives it */
  bool fixed;          /* set whatever the environment has */
  bool joined;         /* the launcher puts its text behind what it finds; what it finds elsewhere wins */
  const char *ambient; /* what nxcfg's own environment has and differs; NULL: the same, or nothing */
} nxc_export;

/* In the order of launcher, preset and options. */
const nxc_export *nxc_exports(nxc_arena *arena, const nxc_compiled *compiled, size_t *n_exports);

#endif
