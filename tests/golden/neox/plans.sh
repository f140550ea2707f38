#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles conf/neox/quickstart.yml, and the same with each line of plans.txt set, to a plan; TAP.
# Usage: plans.sh NXCFG FOLDER SOURCE_ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$1
folder=$2
config=$3/conf/neox/quickstart.yml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
set -f
compile() { # NAME ARGUMENT...: a plan comes out, and it shows what it is
  name=$1
  shift
  "$nxcfg" plan "$config" "$@" -o "$work/plan" >"$work/out" 2>&1 && "$nxcfg" show "$work/plan" >/dev/null
  result "$name" $? "$(cat "$work/out")"
}
compile quickstart
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  # shellcheck disable=SC2086
  set -- $line
  for assignment; do
    set -- "$@" --set "$assignment"
    shift
  done
  compile "$line" "$@"
done <"$folder/plans.txt"
finish
