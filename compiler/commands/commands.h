/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg's subcommands. Each has its own file, reads its own options (argv[0] is its name) and gives the exit
 * status. */
#ifndef NXC_COMMANDS_H
#define NXC_COMMANDS_H

enum {
  NXC_EXIT_GOOD = 0,
  NXC_EXIT_FOUND = 1, /* an error was found in what was examined */
  NXC_EXIT_USAGE = 2, /* wrong usage, or an input that cannot be read */
  NXC_EXIT_INTERNAL = 3
};

typedef int nxc_command(int argc, char **argv);

nxc_command nxc_command_validate, nxc_command_plan, nxc_command_diff, nxc_command_show, nxc_command_resolve,
    nxc_command_explain, nxc_command_schema, nxc_command_convert, nxc_command_machines, nxc_command_tune,
    nxc_command_lsp, nxc_command_init, nxc_command_completion, nxc_command_sign,
    nxc_command_lint_sweep;

#endif
