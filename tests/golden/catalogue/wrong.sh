#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each mistake below wrong/ must fail the build, with the file, the row and the words that its first line names; and
# every file of schema/ must be one that the build reads. TAP. Usage: wrong.sh CATALOGUE_GEN FAMILIES_GEN FOLDER SCHEMA FILE...
. "$(dirname "$0")/../../tap.sh"
generator=$1
families=$2
folder=$3
schema=$4
shift 4
for file in "$folder"/wrong/*/*.yaml; do
  wanted=$(sed -n '1s/^# wanted: //p' "$file")
  found=$("$generator" "$@" "$file" 2>&1 >/dev/null)
  failed=$?
  case $found in *"$wanted"*) missing=0 ;; *) missing=1 ;; esac
  if [ -z "$wanted" ] || [ $failed = 0 ]; then missing=1; fi
  result "${file#"$folder"/wrong/}" $missing "$found"
done
found=$("$generator" "$@" 2>&1 >/dev/null)
result "the catalogue itself" $? "$found"
for file in "$schema"/*.yaml "$schema"/*/*.yaml; do
  case $file in */families/*) continue ;; esac # the build reads the folder
  grep -qF "'${file#"$schema"/}'" "$schema/meson.build"
  result "${file#"$schema"/} is read" $? "schema/meson.build does not list it"
done
# A family that came after meson listed the folder.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cp "$schema"/families/*.yaml "$work"
set -- "$work"/*.yaml
"$families" "$work/out.d" "$@" >/dev/null 2>&1 && grep -qxF "$work/out: $work" "$work/out.d"
result "families know their folder" $?
cp "$work/olmo.yaml" "$work/new.yaml"
"$families" "$work/out.d" "$@" >/dev/null 2>"$work/message"
[ $? = 1 ] && grep -q "meson setup --reconfigure: new.yaml" "$work/message"
result "a new one is told of" $? "$(cat "$work/message")"
finish
