#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each mistake below wrong/ must fail the build, with the file, the row and the words that its first line names; and
# every file of schema/ must be one that the build reads. TAP. Usage: wrong.sh CATALOGUE_GEN FOLDER SCHEMA FILE...
generator=$1
folder=$2
schema=$3
shift 3
n=0
status=0
result() {
  n=$((n + 1))
  if [ "$1" = 0 ]; then
    echo "ok $n - $2"
  else
    echo "not ok $n - $2"
    printf '%s\n' "$3" | sed 's/^/# /'
    status=1
  fi
}
for file in "$folder"/wrong/*/*.yaml; do
  wanted=$(sed -n '1s/^# wanted: //p' "$file")
  found=$("$generator" "$@" "$file" 2>&1 >/dev/null)
  failed=$?
  case $found in *"$wanted"*) missing=0 ;; *) missing=1 ;; esac
  if [ -z "$wanted" ] || [ $failed = 0 ]; then missing=1; fi
  result $missing "${file#"$folder"/wrong/}" "$found"
done
found=$("$generator" "$@" 2>&1 >/dev/null)
result $? "the catalogue itself" "$found"
for file in "$schema"/*.yaml "$schema"/*/*.yaml; do
  grep -qF "'${file#"$schema"/}'" "$schema/meson.build"
  result $? "${file#"$schema"/} is read" "schema/meson.build does not list it"
done
echo "1..$n"
exit $status
