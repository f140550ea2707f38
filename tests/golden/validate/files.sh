#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Validates each file below files/ and compares all that is printed with NAME.out beside it, as TAP; UPDATE=1 rewrites.
# A file whose first line is "# over BASE ARGUMENTS" is laid over BASE. Usage: files.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2/files" || exit 1
for file in *.yaml; do
  wanted=${file%.yaml}.out
  over=$(sed -n '1s/^# over //p' "$file")
  # shellcheck disable=SC2086
  if [ -n "$over" ]; then set -- $over -l "$file"; else set -- "$file"; fi
  found=$("$nxcfg" validate "$@" 2>&1; echo "exit $?")
  golden "$file" "$wanted" <<END
$found
END
done
finish
