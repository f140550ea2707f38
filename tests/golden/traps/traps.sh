#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The thirty traps: each line of traps.txt is NUMBER | WHAT IS FOUND | COMMAND, run in the folder above; findings are
# separated by " ; " and begin with file, line and column. Every number must be there. TAP. Usage: traps.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2/.." || exit 1
export XLA_USE_BF16=1
seen=" "
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  number=${line%% | *}
  rest=${line#* | }
  wanted=${rest%% | *}
  command=${rest#* | }
  seen="$seen$number "
  set -f
  # shellcheck disable=SC2086
  found=$("$nxcfg" $command 2>&1)
  set +f
  bad=0
  while [ -n "$wanted" ]; do
    one=${wanted%% ; *}
    [ "$one" = "$wanted" ] && wanted= || wanted=${wanted#* ; }
    case $found in *"$one"*) ;; *) bad=1 && echo "# lacks: $one" ;; esac
  done
  result "trap $number: $command" $bad "$found"
done <traps/traps.txt
for number in $(seq 30); do
  case $seen in *" $number "*) result "trap $number is there" 0 ;; *) result "trap $number is there" 1 ;; esac
done
finish
