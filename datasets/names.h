/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a dataset get their names, and lose them. */
#ifndef NXD_NAMES_H
#define NXD_NAMES_H

#include "runtime/files/fault.h"

#include <stdbool.h>

/* Whether one of its files is there: the fault says which, and what can be done. */
bool nxd_dataset_exists(const char *prefix, nxr_fault *fault);
typedef struct nxd_naming {
  const char *folder, *prefix;
  bool force;   /* a dataset that is there is replaced */
  bool weights, rewards; /* it has some */
  bool again;   /* some may have been named before: a naming that was cut off goes on */
} nxd_naming;

/* Moves the files of a work folder to their names. An old index goes first and the new one comes last, so
 * that an index never stands beside another dataset's data. */
bool nxd_give_names(const nxd_naming *naming, nxr_fault *fault);

#endif
