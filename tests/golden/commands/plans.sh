#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nxcfg diff of plans: a plan means what its configuration means. TAP. Usage: plans.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
check() { # NAME WANTED-STATUS WANTED-TEXT ARGUMENTS...
  name=$1 wanted=$2 text=$3
  shift 3
  printed=$("$nxcfg" diff "$@" 2>&1)
  found=$?
  case $printed in *"$text"*) missing=0 ;; *) missing=1 ;; esac
  [ "$found" = "$wanted" ] && [ $missing = 0 ]
  result "$name" $? "exit $found: $printed"
}
"$nxcfg" plan ../ops/llama_tp2.yaml -o "$work/a.plan" >/dev/null || exit 1
"$nxcfg" plan ../ops/llama_tp2.yaml --set run.seed=7 -o "$work/b.plan" >/dev/null || exit 1
check "a plan and its configuration" 0 "mean the same" "$work/a.plan" ../ops/llama_tp2.yaml
check "a plan and the configuration in other words" 0 "mean the same" "$work/a.plan" diff_same.yaml
check "two plans" 1 "changes data order" "$work/a.plan" "$work/b.plan"
check "a configuration and a plan" 1 "llama_tp2.yaml:7" diff_lr.yaml "$work/a.plan"
head -c 2000 "$work/a.plan" >"$work/short.plan"
check "a plan that is cut off" 2 "is no valid plan" "$work/a.plan" "$work/short.plan"
finish
