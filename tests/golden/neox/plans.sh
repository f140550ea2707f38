#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What nxrun executes: a configuration, and the same with each line of FOLDER/plans.txt set, becomes a plan, which shows
# what it is; TAP. Usage: plans.sh NXCFG FOLDER SOURCE_ROOT CONFIGURATION [ARGUMENT of nxcfg plan]...
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1") lines=$(realpath "$2/plans.txt")
cd "$3" || exit 99
config=$4
shift 4
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
set -f
compile() { # LINE ARGUMENT...
  line=$1
  shift
  for assignment in $line; do set -- "$@" --set "$assignment"; done
  "$nxcfg" plan "$config" "$@" -o "$work/plan" >"$work/out" 2>&1 && "$nxcfg" show "$work/plan" >/dev/null
  result "${line:-$config}" $? "$(cat "$work/out")"
}
compile '' "$@"
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  compile "$line" "$@"
done <"$lines"
finish
