#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles each NAME.yaml and compares its operators with NAME.ops beside it, as TAP; UPDATE=1 rewrites.
# A plan is also compiled from another folder and must have the same bytes. Usage: ops.sh NXCFG FOLDER
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
  mkdir -p "$work/elsewhere"
  cp "$file" "$work/elsewhere/"
  (cd "$work" && "$nxcfg" plan "elsewhere/$file" -o other.bin >out) || sed 's/^/# /' "$work/out"
  cmp "$work/plan.bin" "$work/other.bin"
  result "$file from another folder" $?
done
finish
