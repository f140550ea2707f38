#!/bin/sh
# A dialect's quick start, compiled and trained for three steps: the learning rates are those of the original.
# TAP.
# usage: quick_start.sh NXCFG NXRUN NXDATA MPIEXEC TEXT CONFIG [ARGUMENT of nxcfg plan...]
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 text=$(realpath "$5")
config=$(realpath "$6")
shift 6
. "$(dirname "$0")/lib.sh"

mkdir -p build/data
ln -s "$(dirname "$(dirname "$config")")" conf # what a configuration names by its path in the repository
"$nxdata" build "$text" -o build/data/devil >out 2>&1 || exit 99
"$nxcfg" plan "$config" "$@" -o plan >out 2>&1 &&
  timeout 100 "$mpiexec" -n 2 "$nxrun" plan --dir run --stop-after 3 >out 2>&1
report 'three steps' $?
grep -o '"lr":[^,]*' run/metrics.jsonl | tr '\n' ' ' >out
case $config in # 0, 1/15 and 2/15 of 3e-3; GPT-NeoX takes the second step's for the first
  */neox/*) first=0.0002 ;;
  *) first=0 ;;
esac
[ "$(cat out)" = "\"lr\":$first \"lr\":0.0002 \"lr\":0.0004 " ]
report 'learning rates' $?
finish
