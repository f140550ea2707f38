#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What nxrun executes of xorl: conf/xorl/quickstart.yaml on an indexed dataset, and the same with each line of plans.txt
# set, becomes a plan; TAP. Usage: plans.sh NXCFG FOLDER SOURCE_ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$3" || exit 99
set -f
compile() { # NAME ARGUMENT...
  name=$1
  shift
  "$nxcfg" plan conf/xorl/quickstart.yaml --world-size 2 --set nx:data.kind=indexed \
    --set nx:data.path='[build/data/devil]' "$@" -o "$work/plan" >"$work/out" 2>&1 && "$nxcfg" show "$work/plan" >/dev/null
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
