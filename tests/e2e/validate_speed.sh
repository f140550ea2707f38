#!/bin/sh
# validate of a 150-line file takes at most 3 ms and 8 MiB on one core. The time is the least of many runs, so
# that a busy machine does not fail it.
# SPDX-License-Identifier: Apache-2.0
# usage: validate_speed.sh NXCFG FILE REPEAT
set -eu
nxcfg=$1 file=$2 repeat=$3
"$repeat" 200 "$nxcfg" validate "$file" | awk '
  {printf "validate: least %.2f ms, median %.2f ms, at most %.1f MiB\n", $1, $2, $3 / 1024}
  $1 > 3 || $3 > 8192 {exit 1}'
