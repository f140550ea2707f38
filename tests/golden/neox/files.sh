#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Validates each file below files/ with the arguments that its first line names, and compares all that is printed with
# NAME.out beside it, as TAP; UPDATE=1 rewrites. Usage: files.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2/files" || exit 1
for file in *.yml; do
  wanted=${file%.yml}.out
  # shellcheck disable=SC2046
  found=$("$nxcfg" validate "$file" $(sed -n '1s/^# arguments: //p' "$file") 2>&1; echo "exit $?")
  golden "$file" "$wanted" <<END
$found
END
done
finish
