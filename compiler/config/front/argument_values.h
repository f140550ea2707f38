/* SPDX-License-Identifier: Apache-2.0 */
/* The words behind an option as a node of its type; what they cannot be is reported, and the node failed. */
#ifndef NXC_CONFIG_ARGUMENT_VALUES_H
#define NXC_CONFIG_ARGUMENT_VALUES_H

#include "compiler/config/front/arguments.h"

/* Of an option that the script gives on some of its ways, or with values that differ. */
nxc_node *nxc_argument_unknown(nxc_arguments *to, const char *name, const nxc_launch_word *word);
nxc_node *nxc_argument_scalar(nxc_arguments *to, const char *name, nxc_type type,
                              const nxc_launch_word *word);
nxc_node *nxc_argument_list(nxc_arguments *to, const char *name, nxc_type type, nxc_span at,
                            const nxc_launch_words *values);
nxc_node *nxc_argument_switch(nxc_arguments *to, nxc_span at);

#endif
