#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles each NAME.yaml and compares its operators with NAME.ops beside it, as TAP; UPDATE=1 rewrites.
# A plan is also compiled from another folder and must have the same bytes. Usage: ops.sh NXCFG FOLDER
nxcfg=$(realpath "$1")
cd "$2" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n=0
status=0
check() {
  n=$((n + 1))
  if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; status=1; fi
}
for file in *.yaml; do
  wanted=${file%.yaml}.ops
  "$nxcfg" plan "$file" -o "$work/plan.bin" >"$work/out" || sed 's/^/# /' "$work/out"
  "$nxcfg" show --ops "$work/plan.bin" >"$work/ops"
  [ -n "$UPDATE" ] && cp "$work/ops" "$wanted"
  diff "$wanted" "$work/ops" >"$work/diff"
  check $? "$file"
  sed 's/^/# /' "$work/diff"
  mkdir -p "$work/elsewhere"
  cp "$file" "$work/elsewhere/"
  (cd "$work" && "$nxcfg" plan "elsewhere/$file" -o other.bin >out) || sed 's/^/# /' "$work/out"
  cmp "$work/plan.bin" "$work/other.bin"
  check $? "$file from another folder"
done
echo "1..$n"
exit $status
