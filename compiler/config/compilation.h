/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration on its way to settings: the texts that a request names, read as one document of a dialect.
 * What becomes of that is compile_settings.c's. */
#ifndef NXC_COMPILATION_H
#define NXC_COMPILATION_H

#include "compiler/config/binding/version.h"
#include "compiler/config/compile_settings.h"
#include "compiler/config/fronts.h"
#include "compiler/config/handover.h"
#include "compiler/config/site_rules.h"

typedef struct nxc_compilation {
  nxc_arena *arena;
  const nxc_request *request;
  nxc_sink *sink;
  nxc_compiled *out;
  nxc_origin origin;
  const nxc_front *front;
  nxc_front_texts texts;
  nxc_front_parts parts; /* of the first */
  nxc_site_rules site;
  bool ruled; /* they, and what the project says, could be read */
  nxc_handover handover;
  const nxc_version_search *versions; /* NULL where the user named one, or there is one only */
  const nxc_relative *relative;       /* the code that it is for instead; NULL: the system as known */
} nxc_compilation;

/* The project's words, the texts, whose dialect they are, and the document, with what it reads elsewhere
 * filled in. False: there is none, or it is another system's. */
bool nxc_compilation_read(nxc_compilation *compilation);
/* Whether the file is one, by its name: those of a folder are YAML or scripts. */
bool nxc_compilation_is_script(const nxc_compilation *compilation);

#endif
