#!/bin/sh
# The quick start of the neox dialect, compiled and trained for three steps: the learning rates are GPT-NeoX's. TAP.
# usage: neox.sh NXCFG NXRUN NXDATA MPIEXEC SOURCE_ROOT
# SPDX-License-Identifier: Apache-2.0
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 source=$5
folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99
mkdir -p build/data
"$nxdata" build "$source/conf/text/devil.txt" -o build/data/devil >out 2>&1 || exit 99
echo 1..2
"$nxcfg" plan "$source/conf/neox/quickstart.yml" -o plan >out 2>&1 &&
  timeout 100 "$mpiexec" -n 2 "$nxrun" plan --dir run --stop-after 3 >out 2>&1
if [ $? -eq 0 ]; then echo "ok 1 - three steps"; else
  echo "not ok 1 - three steps"
  sed 's/^/# /' out
fi
# 0, 1/15 and 2/15 of 3e-3
rates=$(grep -o '"lr":[^,]*' run/metrics.jsonl | tr '\n' ' ')
if [ "$rates" = '"lr":0 "lr":0.0002 "lr":0.0004 ' ]; then echo "ok 2 - learning rates"; else
  echo "not ok 2 - learning rates"
  echo "# $rates"
fi
