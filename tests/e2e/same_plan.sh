#!/bin/sh
# The same configuration gives the same bytes: from another folder, by another name of the folder. (By the other
# compiler's program: other_compiler.sh.)
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
