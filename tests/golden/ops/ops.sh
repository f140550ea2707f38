#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles each NAME.yaml and compares its operators with NAME.ops beside it, as TAP; UPDATE=1 rewrites.
# What a list says of itself must hold (sums.awk), and a mesh must not change how much is multiplied. A plan is also
# compiled from another folder and must have the same bytes. Usage: ops.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for file in *.yaml; do
  wanted=${file%.yaml}.ops
  "$nxcfg" plan "$file" -o "$work/plan.bin" >"$work/out" || sed 's/^/# /' "$work/out"
  "$nxcfg" show --ops "$work/plan.bin" >"$work/ops"
  golden "$file" "$wanted" <"$work/ops"
  awk -f sums.awk "$work/ops" >"$work/odd"
  [ ! -s "$work/odd" ]
  result "$file: numbers of programs are those of their operators" $? "$(cat "$work/odd")"
  mkdir -p "$work/elsewhere"
  cp "$file" "$work/elsewhere/"
  (cd "$work" && "$nxcfg" plan "elsewhere/$file" -o other.bin >out) || sed 's/^/# /' "$work/out"
  cmp "$work/plan.bin" "$work/other.bin"
  result "$file from another folder" $?
done
# The same training takes the same FLOP, has the same parameters and tokens, however its ranks are laid out.
training() { # SETTING=VALUE...
  for set in "$@"; do
    set -- "$@" --set "nx:$set"
    shift
  done
  "$nxcfg" plan llama_tp2.yaml --set nx:model.vocab=32 --set nx:model.layers=2 "$@" -o "$work/plan.bin" >"$work/out" &&
    "$nxcfg" show "$work/plan.bin" | sed -n 's/^step  *.*, //p; s/^model  *//p; s/^training  *//p'
}
alone=$(training mesh.world=1 mesh.tensor=1 sequence_parallel=false optimizer.zero_stage=0)
for mesh in mesh.world=4 'mesh.world=2 mesh.tensor=2' 'mesh.world=2 mesh.tensor=1 sequence_parallel=false' \
  'mesh.world=4 mesh.tensor=1 sequence_parallel=false optimizer.zero_stage=3' \
  'mesh.world=2 mesh.tensor=1 sequence_parallel=false mesh.context=2 attention.ring=true' \
  'mesh.world=2 mesh.tensor=1 sequence_parallel=false mesh.pipeline=2' \
  'mesh.world=8 mesh.tensor=2 mesh.pipeline=2'; do
  # shellcheck disable=SC2086
  laid_out=$(training $mesh)
  [ -n "$alone" ] && [ "$laid_out" = "$alone" ]
  result "as much work as on one rank: $mesh" $? "$laid_out, not $alone"
done
finish
