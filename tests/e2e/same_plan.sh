#!/bin/sh
# The same configuration gives the same bytes: from another folder, by another name of the folder, by a
# program built with the other compiler.
# SPDX-License-Identifier: Apache-2.0
# usage: same_plan.sh NXCFG SOURCE_ROOT
set -eu
nxcfg=$(realpath "$1") source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for config in conf/nx/quickstart.yaml conf/nxdt/quickstart.yaml; do
  name=$(basename "$(dirname "$config")")
  mkdir -p "$work/here" "$work/there/deeper"
  cp "$source/$config" "$work/here/$name.yaml"
  cp "$source/$config" "$work/there/deeper/$name.yaml"
  (cd "$work/here" && "$nxcfg" plan "$name.yaml" -o "$work/$name.1" >/dev/null)
  (cd "$work" && "$nxcfg" plan "there/deeper/$name.yaml" -o "$work/$name.2" >/dev/null)
  (cd / && "$nxcfg" plan "$work/here/$name.yaml" -o "$work/$name.3" >/dev/null)
  cmp "$work/$name.1" "$work/$name.2"
  cmp "$work/$name.1" "$work/$name.3"
  echo "$config: the same plan from three folders"
done
if ! command -v clang >/dev/null; then
  echo "no clang here: the other compiler was not tried (tools/check installs it)"
  exit 77
fi
CC=clang meson setup "$work/clang" "$source" -Druntime=disabled >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
ninja -C "$work/clang" nxcfg >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for name in nx nxdt; do
  (cd "$work/here" && "$work/clang/nxcfg" plan "$name.yaml" -o "$work/$name.clang" >/dev/null)
  cmp "$work/$name.1" "$work/$name.clang"
done
echo "gcc and clang: the same plans"
