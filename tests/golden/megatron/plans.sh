#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles conf/megatron/quickstart.sh, and the same with each line of plans.txt behind --, to a plan; TAP.
# Usage: plans.sh NXCFG FOLDER SOURCE_ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$1
folder=$2
config=$3/conf/megatron/quickstart.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
set -f
compile() { # NAME PLAN ARGUMENT...: a plan comes out, and it shows what it is
  name=$1
  plan=$2
  shift 2
  "$nxcfg" plan --dialect megatron -o "$work/$plan" "$@" >"$work/out" 2>&1 && "$nxcfg" show "$work/$plan" >"$work/$plan.shown"
  result "$name" $? "$(cat "$work/out")"
}
compile quickstart whole "$config"
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  # shellcheck disable=SC2086
  compile "$line" plan "$config" -- $line
done <"$folder/plans.txt"

# The same training as arguments alone is the same plan.
arguments=$(sed -n '/_ARGS="$/,/^"/p; /--data-path/,$p' "$config" | grep -o '^ *--.*' | sed 's/\\$//' |
  sed 's|$DATA|build/data/devil|; s|$CHECKPOINTS|runs/quickstart-megatron|g')
# shellcheck disable=SC2086
compile 'arguments alone' alone --world-size 2 -- $arguments --tensor-model-parallel-size 2 --sequence-parallel
grep plan_id "$work/whole.shown" >"$work/whole.id"
grep plan_id "$work/alone.shown" >"$work/alone.id"
[ -s "$work/whole.id" ] && cmp -s "$work/whole.id" "$work/alone.id"
result "the same plan" $?
finish
