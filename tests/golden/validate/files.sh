#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Validates each file below files/ and compares all that is printed with NAME.out beside it, as TAP; UPDATE=1 rewrites.
# A file whose first line is "# over BASE ARGUMENTS" is laid over BASE. Usage: files.sh NXCFG FOLDER
nxcfg=$(realpath "$1")
cd "$2/files" || exit 1
n=0
status=0
for file in *.yaml; do
  n=$((n + 1))
  wanted=${file%.yaml}.out
  over=$(sed -n '1s/^# over //p' "$file")
  # shellcheck disable=SC2086
  if [ -n "$over" ]; then set -- $over -l "$file"; else set -- "$file"; fi
  found=$("$nxcfg" validate "$@" 2>&1; echo "exit $?")
  if [ -n "$UPDATE" ]; then
    printf '%s\n' "$found" >"$wanted"
  fi
  if [ "$found" = "$(cat "$wanted")" ]; then
    echo "ok $n - $file"
  else
    echo "not ok $n - $file"
    printf '%s\n' "$found" | diff "$wanted" - | sed 's/^/# /'
    status=1
  fi
done
echo "1..$n"
exit $status
