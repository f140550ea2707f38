#!/bin/sh
# Programs that opencl keeps on disk: taken again, and built again where a file is damaged or nothing can be kept. TAP.
# usage: kept.sh TEST_KERNELS RECORDS
# SPDX-License-Identifier: Apache-2.0
set -u
test_kernels=$1 records=$2
. "$(dirname "$0")/../tap.sh"
"$test_kernels" opencl "$records" --only nothing >/dev/null 2>&1 || skip_all 'no OpenCL device (Debian: pocl-opencl-icd)'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A name that is defined twice: the driver's compiler has something to warn of.
export NXRUN_OPENCL_OPTIONS='-cl-opt-disable -DLOCAL=1' NXRUN_CLBLAST=0 NXRUN_CACHE="$work/kept"
tried() { # NAME
  "$test_kernels" opencl "$records" --only 'loss_weights' >"$work/said" 2>&1
  result "$1" $? "$(cat "$work/said")"
}
tried 'built'
! grep -qi warning "$work/said"
result 'without a word of what its compiler warns of' $? "$(cat "$work/said")"
kept=$(find "$NXRUN_CACHE" -type f | wc -l)
touch -d '2000-01-01' "$NXRUN_CACHE"/*
tried 'taken again'
[ "$kept" -gt 0 ] && [ "$(find "$NXRUN_CACHE" -type f ! -newermt 2000-01-02 | wc -l)" -eq "$kept" ]
result 'nothing is built twice' $? "$(ls -l "$NXRUN_CACHE")"
for file in "$NXRUN_CACHE"/*; do truncate -s 1000 "$file"; done
tried 'files that were cut off'
for file in "$NXRUN_CACHE"/*; do printf 'other' | dd of="$file" bs=1 seek=700 conv=notrunc 2>/dev/null; done
tried 'files with other bytes'
for file in "$NXRUN_CACHE"/*; do : >"$file"; done
tried 'empty files'
NXRUN_CACHE=/dev/null/kept tried 'a folder that is none'
finish
