#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every id that the compiler reports is one that `nxcfg explain` knows. TAP. Usage: ids.sh NXCFG ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$1
for id in $(grep -rhoE '"NX[0-9]{4}"' "$2"/compiler --include='*.c' | tr -d '"' | sort -u); do
  "$nxcfg" explain "$id" >/dev/null 2>&1
  result "$id" $?
done
finish
