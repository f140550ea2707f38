/* SPDX-License-Identifier: Apache-2.0 */
/* The machines that are known by name: the descriptions in machines/, as they stand there. */
#ifndef NXC_MACHINE_NAMES_H
#define NXC_MACHINE_NAMES_H

#include <stddef.h>

typedef struct nxc_machine_text {
  const char *name, *text;
} nxc_machine_text;

/* Ascending by name. */
extern const nxc_machine_text nxc_machine_texts[];
extern const size_t nxc_machine_texts_n;

/* By a name of the list, or one of those in its text's `also`: case and punctuation do not count. NULL:
 * none. */
const nxc_machine_text *nxc_machine_named(const char *name);
/* The name nearest to one that is none, or NULL. */
const char *nxc_machine_nearest(const char *name);

#endif
