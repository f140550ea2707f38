/* SPDX-License-Identifier: Apache-2.0 */
/* From the user's files to settings: the front half of the compiler, as one function.
 *
 *   files, -l, --set, arguments ─▶ document ─▶ interpolated ─▶ bound to a dialect ─▶ preset ─▶ rules ─▶
 * settings
 *
 * validate, plan and explain all start here. Every stage reports to the sink and the next goes on with
 * what is left, so that all problems of a file come out in one run; a text that is no YAML ends it early.
 * Everything lives in the arena that is passed. */
#ifndef NXC_COMPILE_SETTINGS_H
#define NXC_COMPILE_SETTINGS_H

#include "compiler/config/binding/dialect.h"
#include "compiler/config/front/front.h"
#include "compiler/config/interpolation/interpolate.h"
#include "compiler/config/project.h"
#include "compiler/config/request.h"
#include "compiler/config/rules/rules.h"
#include "compiler/settings/settings.h"

typedef struct nxc_compiled {
  nxc_document *document;     /* NULL when the file cannot be read */
  nxc_resolution resolution;  /* with the environment variables that the file names */
  const nxc_dialect *dialect; /* NULL when it could not be told */
  const char *version;        /* of the dialect; NULL where it has one only */
  const char *version_evidence; /* the key that tells it; NULL: none does, or the user named it */
  const char
      *version_doubts; /* options whose defaults are others in versions that it may be too; NULL: none */
  nxc_settings *settings;     /* NULL when there is no dialect */
  nxc_binding *binding;
  nxc_project project; /* what .nxcfg.yaml says about this file */
  nxc_rule_run rules; /* with the rules that were skipped */
  bool unreadable;    /* a file could not be opened: exit 2, not 1 */
  bool foreign;       /* searched, and no training's: nothing is reported */
} nxc_compiled;

/* False when an error was reported. */
bool nxc_compile_settings(nxc_arena *arena, const nxc_request *request, nxc_sink *sink,
                          nxc_compiled *compiled);

#endif
