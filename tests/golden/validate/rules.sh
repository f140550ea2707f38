#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each line of rules.txt and compares what `nxcfg validate` finds, as TAP. Usage: rules.sh NXCFG FOLDER
nxcfg=$1
folder=$2
n=0
status=0
set -f

trim() { # sets $trimmed to TEXT without blanks at its ends
  trimmed=${1#"${1%%[! ]*}"}
  trimmed=${trimmed%"${trimmed##*[! ]}"}
}

# Errors, warnings and notes as E2002 W2302 N2113, each once, in order; what most files get is left out.
findings() {
  sed -n 's/^\([ewn]\)[a-z]*\[NX\([0-9]*\)\].*/\1\2/p' | sort -u | tr 'ewn\n' 'EWN ' |
    sed 's/N140[123] //g'
}

while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  n=$((n + 1))
  wanted=
  trim "${line%%|*}"
  [ "$trimmed" = - ] || wanted="$trimmed "
  IFS='|'
  # shellcheck disable=SC2086
  set -- ${line#*|}
  unset IFS
  trim "$1"
  base=$trimmed
  shift
  for assignment; do
    trim "$assignment"
    set -- "$@" --set "$trimmed"
    shift
  done
  case $base in *!) set -- "$@" --for nxrun; base=${base%!} ;; esac
  case $base in *+*) set -- "$@" --model-config "$folder/${base#*+}.json"; base=${base%+*} ;; esac
  found=$("$nxcfg" validate --notes "$folder/$base.yaml" "$@" 2>&1 | findings)
  if [ "$found" = "$wanted" ]; then
    echo "ok $n - $line"
  else
    echo "not ok $n - $line"
    echo "# found: $found"
    status=1
  fi
done <"$folder/rules.txt"
echo "1..$n"
exit $status
