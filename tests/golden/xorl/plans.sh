#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What nxrun executes of xorl: base.yaml without divided weights and on an indexed dataset, and the same with each line
# of plans.txt set, becomes a plan; TAP. Usage: plans.sh NXCFG FOLDER
nxcfg=$1
folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
status=0
set -f
compile() { # NAME ARGUMENT...
  n=$((n + 1))
  name=$1
  shift
  if "$nxcfg" plan "$folder/base.yaml" --model-config "$folder/../validate/llama.json" --world-size 2 \
    --set train.data_parallel_mode=ddp --set train.init_device=cuda --set train.tensor_parallel_size=2 \
    --set model.merge_qkv=false --set nx:data.kind=indexed --set nx:data.path='[tokens]' "$@" -o "$work/plan" \
    >"$work/out" 2>&1 && "$nxcfg" show "$work/plan" >/dev/null; then
    echo "ok $n - $name"
  else
    echo "not ok $n - $name"
    sed 's/^/# /' "$work/out"
    status=1
  fi
}
compile base
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
echo "1..$n"
exit $status
