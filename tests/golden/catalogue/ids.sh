#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every id that the compiler reports is one that `nxcfg explain` knows. TAP. Usage: ids.sh NXCFG ROOT
nxcfg=$1
n=0
status=0
for id in $(grep -rhoE '"NX[0-9]{4}"' "$2"/compiler --include='*.c' | tr -d '"' | sort -u); do
  n=$((n + 1))
  if "$nxcfg" explain "$id" >/dev/null 2>&1; then
    echo "ok $n - $id"
  else
    echo "not ok $n - $id"
    status=1
  fi
done
echo "1..$n"
exit $status
