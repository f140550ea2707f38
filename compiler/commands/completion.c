/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg completion: what a shell needs to complete nxcfg's command lines.
 *
 * The scripts ask nxcfg itself: the commands stand in its help, the options in each command's, and the names
 * of settings and options are what `explain --names` prints. So they are never out of date. */
#include "compiler/commands/commands.h"
#include "compiler/render/screen.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg completion bash|zsh|fish\n"
    "Prints the completion of nxcfg's command lines for a shell:\n"
    "  bash   nxcfg completion bash >~/.local/share/bash-completion/completions/nxcfg\n"
    "  zsh    nxcfg completion zsh >~/.zfunc/_nxcfg   (a folder of fpath)\n"
    "  fish   nxcfg completion fish >~/.config/fish/completions/nxcfg.fish\n";

/* Words of two blanks and an option, or a command, in a help text. */
#define OPTIONS_OF "sed -nE 's/^ +(-[-a-zA-Z]+).*/\\1/p'"
#define COMMANDS_OF "sed -nE 's/^  ([a-z-]+) .*/\\1/p'"
/* Of the table of machines, without what stands around it. */
#define MACHINES "nxcfg machines | sed -nE 's/^([^ ]+) +[0-9]+ GiB .*/\\1/p'"

static const char bash[] =
    "# nxcfg completion bash\n"
    "_nxcfg() {\n"
    "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
    "  COMPREPLY=()\n"
    "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "    COMPREPLY=($(compgen -W \"$(nxcfg --help | " COMMANDS_OF ") --help --version\" -- \"$word\"))\n"
    "    return\n"
    "  fi\n"
    "  case $before in\n"
    "    --dialect|--to) COMPREPLY=($(compgen -W \"nx nxdt megatron neox xorl\" -- \"$word\")); return ;;\n"
    "    --set|--at|--why|--assume|--allow) COMPREPLY=($(compgen -W \"$(nxcfg explain --names)\" -- "
    "\"$word\")); "
    "return ;;\n"
    "    --machine) COMPREPLY=($(compgen -f -W \"$(" MACHINES ")\" -- \"$word\")); return ;;\n"
    "  esac\n"
    "  case $command:$word in\n"
    "    *:-*) COMPREPLY=($(compgen -W \"$(nxcfg \"$command\" --help | " OPTIONS_OF ")\" -- \"$word\")) ;;\n"
    "    explain:*) COMPREPLY=($(compgen -W \"$(nxcfg explain --names)\" -- \"$word\")) ;;\n"
    "    schema:*) COMPREPLY=($(compgen -W \"nx nxdt megatron neox xorl\" -- \"$word\")) ;;\n"
    "    machines:*) COMPREPLY=($(compgen -W \"$(" MACHINES ")\" -- \"$word\")) ;;\n"
    "    completion:*) COMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$word\")) ;;\n"
    "    *) compopt -o default ;;\n"
    "  esac\n"
    "}\n"
    "complete -F _nxcfg nxcfg\n";

static const char zsh[] =
    "#compdef nxcfg\n"
    "_nxcfg() {\n"
    "  local command=${words[2]} before=${words[CURRENT-1]}\n"
    "  if (( CURRENT == 2 )); then\n"
    "    compadd -- ${(f)\"$(nxcfg --help | " COMMANDS_OF ")\"} --help --version\n"
    "    return\n"
    "  fi\n"
    "  case $before in\n"
    "    (--dialect|--to) compadd nx nxdt megatron neox xorl; return ;;\n"
    "    (--set|--at|--why|--assume|--allow) compadd -- ${(f)\"$(nxcfg explain --names)\"}; return ;;\n"
    "    (--machine) compadd -- ${(f)\"$(" MACHINES ")\"}; _files; return ;;\n"
    "  esac\n"
    "  case $command:${words[CURRENT]} in\n"
    "    (*:-*) compadd -- ${(f)\"$(nxcfg $command --help | " OPTIONS_OF ")\"} ;;\n"
    "    (explain:*) compadd -- ${(f)\"$(nxcfg explain --names)\"} ;;\n"
    "    (schema:*) compadd nx nxdt megatron neox xorl ;;\n"
    "    (machines:*) compadd -- ${(f)\"$(" MACHINES ")\"} ;;\n"
    "    (completion:*) compadd bash zsh fish ;;\n"
    "    (*) _files ;;\n"
    "  esac\n"
    "}\n"
    "compdef _nxcfg nxcfg\n";

static const char fish[] =
    "# nxcfg completion fish\n"
    "function __nxcfg_command\n"
    "  set -l words (commandline -opc)\n"
    "  test (count $words) -gt 1; and echo $words[2]\n"
    "end\n"
    "function __nxcfg_before\n"
    "  set -l words (commandline -opc)\n"
    "  echo $words[-1]\n"
    "end\n"
    "function __nxcfg_options\n"
    "  nxcfg (__nxcfg_command) --help | " OPTIONS_OF "\n"
    "end\n"
    "complete -c nxcfg -n '__fish_use_subcommand' -f -a '(nxcfg --help | sed -nE \"s/^  ([a-z-]+) "
    ".*/\\\\1/p\")'\n"
    "complete -c nxcfg -n 'not __fish_use_subcommand; and string match -q -- \"-*\" (commandline -ct)' "
    "-a '(__nxcfg_options)'\n"
    "complete -c nxcfg -n 'contains -- explain (__nxcfg_command)' -f -a '(nxcfg explain --names)'\n"
    "complete -c nxcfg -n 'contains -- schema (__nxcfg_command)' -f -a 'nx nxdt megatron neox xorl'\n"
    "complete -c nxcfg -n 'contains -- completion (__nxcfg_command)' -f -a 'bash zsh fish'\n"
    "complete -c nxcfg -n 'contains -- (__nxcfg_before) --dialect --to' -f -a 'nx nxdt megatron neox xorl'\n"
    "complete -c nxcfg -n 'contains -- (__nxcfg_before) --set --at --why --assume --allow' -f "
    "-a '(nxcfg explain --names)'\n"
    "complete -c nxcfg -n 'contains -- (__nxcfg_before) --machine' -a '(nxcfg machines | sed -nE \"s/^([^ "
    "]+) +[0-9]+ GiB .*/\\\\1/p\")'\n";

int nxc_command_completion(int argc, char **argv) {
  static const struct { const char *shell, *text; } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
  bool help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
  for (size_t i = 0; argc == 2 && i < sizeof shells / sizeof *shells; i++) {
    if (strcmp(shells[i].shell, argv[1]) != 0) continue;
    fputs(shells[i].text, stdout);
    return NXC_EXIT_GOOD;
  }
  nxc_print_usage(help ? stdout : stderr, usage);
  return help ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
}
