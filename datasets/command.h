/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, and what they share. Each takes the arguments behind its name and returns the exit status. */
#ifndef NXD_COMMAND_H
#define NXD_COMMAND_H

#include "datasets/journal.h"
#include "datasets/options.h"
#include "runtime/data/dataset.h"

enum { NXD_MAX_PREFIX = 4000 };

int nxd_command_adapter(int n, char **arguments);
int nxd_command_build(int n, char **arguments);
int nxd_command_check(int n, char **arguments);
int nxd_command_info(int n, char **arguments);
int nxd_command_merge(int n, char **arguments);
int nxd_command_prepare(int n, char **arguments);
int nxd_command_show(int n, char **arguments);
int nxd_command_split(int n, char **arguments);

/* Says what is wrong; returns STATUS_DAMAGED. */
int nxd_damaged(const nxr_fault *fault);
/* The name of a dataset: users complete file names, so the ending of either file is taken off. */
bool nxd_read_prefix(const char *name, char prefix[NXD_MAX_PREFIX]);
/* Opens a dataset that exists. Returns the status to leave with, or STATUS_DONE. */
int nxd_open_dataset(const char *name, char prefix[NXD_MAX_PREFIX], nxr_dataset *dataset);
/* Opens the one dataset that a command takes, whose options have been read. */
int nxd_open_only(int n, char **arguments, char prefix[NXD_MAX_PREFIX], nxr_dataset *dataset);
/* Of a dataset of pairs, whose documents are by turns chosen and rejected ones: a fault where one is alone.
 */
bool nxd_check_pairs(const nxr_dataset *dataset, nxr_fault *fault);
void nxd_print_info(const nxr_dataset *dataset);
/* The same of a dataset that was just written, and what was left out. */
void nxd_print_written(const char *prefix, uint8_t type_code, const nxd_standing *standing);

#endif
