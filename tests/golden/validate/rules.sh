#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each line of rules.txt and compares what `nxcfg validate` finds, as TAP. Usage: rules.sh NXCFG FOLDER
nxcfg=$1
folder=$2
n=0
status=0
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  n=$((n + 1))
  wanted=$(printf '%s' "${line%%|*}" | tr -s ' ' '\n' | grep -v '^-*$' | sort -u | tr '\n' ' ')
  rest=${line#*|}
  base=$(printf '%s' "${rest%%|*}" | tr -d ' ')
  set -- validate --notes "$folder/${base%+llama}.yaml"
  case $base in *+llama) set -- "$@" --model-config "$folder/llama.json" ;; esac
  case $rest in *'|'*) rest=${rest#*|} ;; *) rest= ;; esac
  while [ -n "$rest" ]; do
    one=$(printf '%s' "${rest%%|*}" | sed 's/^ *//; s/ *$//')
    set -- "$@" --set "$one"
    case $rest in *'|'*) rest=${rest#*|} ;; *) rest= ;; esac
  done
  found=$("$nxcfg" "$@" 2>&1 | sed -n 's/^\([ewn]\)[a-z]*\[NX\([0-9]*\)\].*/\1\2/p' | tr 'ewn' 'EWN' |
    grep -Ev '^N140[123]|^N2417' | sort -u | tr '\n' ' ')
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
