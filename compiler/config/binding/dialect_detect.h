/* SPDX-License-Identifier: Apache-2.0 */
/* Which dialect a document is of, as its keys tell. */
#ifndef NXC_DIALECT_DETECT_H
#define NXC_DIALECT_DETECT_H

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/document/document.h"
#include "compiler/settings/catalogue.h"

/* Whether anything hints at a dialect that keys tell: at least half of the document's keys are its, and not
 * names that any program has alone; of what cannot be read to its end, whether a line begins with such a key.
 */
bool nxc_dialect_hinted(const nxc_document *document, bool (*told_by_keys)(const char *dialect));
/* The dialect, among those that keys tell, whose options the document has and the others lack. NULL
 * (reported, naming --dialect) on a tie. */
const nxc_dialect *nxc_dialect_detect(const nxc_document *document, bool (*told_by_keys)(const char *dialect),
                                      nxc_sink *sink);

#endif
