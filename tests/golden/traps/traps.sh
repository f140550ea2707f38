#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The thirty traps: each line of traps.txt is NUMBER | WHAT IS FOUND | COMMAND, run in the folder above; findings are
# separated by " ; " and begin with file, line and column. Every number must be there. TAP. Usage: traps.sh NXCFG FOLDER
nxcfg=$(realpath "$1")
cd "$2/.." || exit 1
export XLA_USE_BF16=1
n=0
status=0
result() { # NUMBER GOOD NAME
  n=$((n + 1))
  [ "$1" = 1 ] || status=1
  [ "$1" = 1 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}
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
  good=1
  while [ -n "$wanted" ]; do
    one=${wanted%% ; *}
    [ "$one" = "$wanted" ] && wanted= || wanted=${wanted#* ; }
    case $found in *"$one"*) ;; *) good=0 && echo "# lacks: $one" ;; esac
  done
  result $good "trap $number: $command"
  [ $good = 1 ] || printf '%s\n' "$found" | sed 's/^/# /'
done <traps/traps.txt
for number in $(seq 30); do
  case $seen in *" $number "*) result 1 "trap $number is there" ;; *) result 0 "trap $number is there" ;; esac
done
echo "1..$n"
exit $status
