#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the types that each line of presets.txt names with those of `nxcfg plan`, as TAP. Usage: presets.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$1
folder=$2
set -f
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  # shellcheck disable=SC2086
  wanted=$(echo ${line%%|*})
  IFS='|'
  # shellcheck disable=SC2086
  set -- ${line#*|}
  unset IFS
  base=$(echo $1)
  shift
  for assignment; do
    set -- "$@" --set "$(echo "$assignment" | sed 's/^ *//; s/ *$//')"
    shift
  done
  found=$("$nxcfg" plan --all "$folder/$base.yaml" "$@" 2>/dev/null | awk '
    $1 ~ /^precision\./ { value[$1] = $2 }
    END {
      n = split("param compute master_weights grad_accumulation optimizer_state reduce stochastic_rounding", names, " ")
      for (i = 1; i <= n; i++) printf "%s%s", value["precision." names[i]], i < n ? " " : ""
    }')
  [ "$found" = "$wanted" ]
  result "$line" $? "found: $found"
done <"$folder/presets.txt"
finish
