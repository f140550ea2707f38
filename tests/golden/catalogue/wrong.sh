#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each mistake below wrong/ must fail the build, with the file, the row and the words that its first line names; and
# every file of schema/ must be one that the build reads. TAP. Usage: wrong.sh CATALOGUE_GEN FOLDER SCHEMA FILE...
. "$(dirname "$0")/../../tap.sh"
generator=$1
folder=$2
schema=$3
shift 3
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
finish
