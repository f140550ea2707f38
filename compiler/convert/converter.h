/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a conversion share. */
#ifndef NXC_CONVERTER_H
#define NXC_CONVERTER_H

#include "compiler/compare/beyond.h"
#include "compiler/convert/convert.h"

typedef struct nxc_converter {
  nxc_arena *arena;
  const nxc_conversion_request *request;
  const nxc_compiled *source;
  const nxc_settings *wanted; /* without what must not be shown */
  const nxc_beyond *beyond;   /* what settings do not say */
  size_t n_beyond;
  const nxc_front *front;     /* of the dialect that is converted to */
  const nxc_dialect *dialect;
  const char *version;        /* whose options are composed; NULL: any */
  bool insist[NX_N_SETTINGS]; /* settings that a default turned out not to say */
  const char **refused; /* of each option: what the dialect's own rules say of it here; NULL: nothing */
  bool *filled;         /* of each option: given since the dialect demands it */
  nxc_compiled back;    /* the text, read back */
  nxc_sink *findings;   /* of that */
  nxc_conversion *out;
} nxc_converter;

/* Whether the file stays in its dialect, and its own tree is written. */
bool nxc_converter_stays(const nxc_converter *c);
void nxc_converter_add(nxc_converter *c, nxc_unsaid one);
extern const char nxc_not_shown[];
const char *nxc_converter_join(nxc_arena *arena, const char *names, const char *name);

/* Whether the command line, or the project, says the setting. */
bool nxc_converter_is_outside(const nxc_settings *settings, nxc_setting_id id);
/* No file of the dialect says how many ranks there are: its launcher does. */
bool nxc_converter_is_launchers(nxc_converter *c, nxc_setting_id id);
bool nxc_converter_differs(const nxc_converter *c, nxc_setting_id id);
/* Lists the settings that the text, read back, says otherwise. */
void nxc_converter_compare(nxc_converter *c);
/* Options, and keys that are none, whose meaning no setting holds. What the training does not depend on is
 * left out; what it may depend on is unsaid. */
void nxc_converter_list_left(nxc_converter *c);

#endif
