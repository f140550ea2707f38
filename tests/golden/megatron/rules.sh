#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each line of rules.txt and compares what `nxcfg validate` finds, as TAP. Usage: rules.sh NXCFG FOLDER
nxcfg=$1
folder=$2
n=0
status=0
set -f

# Errors and warnings as E2002 W5110, and notes of Megatron's own rules, each once, in order of ids.
findings() {
  sed -n 's/^\([ewn]\)[a-z]*\[NX\([0-9]*\)\].*/\1\2/p' | sort -u | tr 'ewn' 'EWN' | grep -v 'N[1234]...' | tr '\n' ' '
}

while IFS='|' read -r wanted base arguments options; do
  case $wanted in '' | '#'*) continue ;; esac
  n=$((n + 1))
  line="$wanted|$base|$arguments|$options"
  # shellcheck disable=SC2086
  set -- $wanted
  [ "$*" = - ] && set --
  wanted="$*"
  # shellcheck disable=SC2086
  set -- $base
  file=$folder/$1.args
  version=${2:-0.10}
  # shellcheck disable=SC2086
  found=$("$nxcfg" validate --notes --dialect "megatron@$version" --world-size 8 $options "$file" -- $arguments 2>&1 | findings)
  if [ "$found" = "${wanted:+$wanted }" ]; then
    echo "ok $n - $line"
  else
    echo "not ok $n - $line"
    echo "# found: $found"
    status=1
  fi
done <"$folder/rules.txt"
echo "1..$n"
exit $status
