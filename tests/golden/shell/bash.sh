#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs each snippet with bash and with the follower of shell texts, and compares the arguments that `python x.py` gets; TAP.
# Snippets stand between lines of %; their own arguments in a first line `#args WORD...`, as a shell reads them. In the second file a snippet ends with lines of what must come out, behind a line =.
# Usage: bash.sh SHELL_WORDS SNIPPETS UNKNOWN
. "$(dirname "$0")/../../tap.sh"
words=$(realpath "$1") snippets=$(realpath "$2") unknown=$(realpath "$3")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
awk 'BEGIN { RS = "\n%\n" } { sub(/\n$/, ""); file = sprintf("known.%04d", NR); printf "%s\n", $0 > file; close(file) }' "$snippets"
awk 'BEGIN { RS = "\n%\n" } { sub(/\n$/, ""); split($0, half, "\n=\n"); file = sprintf("open.%04d", NR); printf "%s\n", half[1] > file; close(file)
  printf "%s\n", half[2] > file ".wanted"; close(file ".wanted") }' "$unknown"
for file in known.????; do sed -n '1s/^#args //p' "$file" >"$file.args"; [ -s "$file.args" ] || rm "$file.args"; done
# What snippets read and run beside them.
mkdir sub
printf '%s\n' 'export A="--from file ${X-}"' 'B=(1 "2 3")' '[ -z "$1" ] || C=$1' 'return 0' 'A=never' >config.sh
printf '%s\n' 'python x.py child "$@" ${A-} ${B-}' >run.sh
printf '%s\n' 'source "$(dirname "${BASH_SOURCE[0]}")/deep.sh"' 'S=sub' >sub/env.sh
printf '%s\n' 'D=deep' >sub/deep.sh
printf '%s\n' 'A=(' >broken.sh
printf '%s\n' 'source ./again.sh' 'E=1' >again.sh
# Each in a shell of its own, which begins without variables.
env -i PATH="$PATH" bash --norc -c '
  python() { shift; [ $# -eq 0 ] || printf "<%s>\n" "$@" >&5; echo . >&5; }
  export -f python
  for snippet; do (own=""; [ ! -f "$snippet.args" ] || own=$(cat "$snippet.args"); eval "set -- \"\$snippet\" $own"
    unset snippet own; [ $# -eq 1 ] || { file=$1; shift; source "$file" "$@"; exit; }; source "$1") 5>"$snippet.wanted" >/dev/null 2>&1; done' bash known.????
"$words" known.???? open.????
for file in known.???? open.????; do
  read -r name <"$file"
  if cmp -s "$file.wanted" "$file.found"; then
    result "${name//#/}" 0
  else
    result "${name//#/}" 1 "$(sed 's/^/| /' "$file"; diff "$file.wanted" "$file.found")"
  fi
done
finish
