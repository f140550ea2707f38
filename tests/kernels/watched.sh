#!/bin/sh
# The kernels of opencl in Oclgrind, a device of OpenCL 1.2 that sees every access to memory: none outside a buffer, and
# no two work-items race for one place. Attention is left out, for it takes hours there. TAP.
# usage: watched.sh TEST_KERNELS RECORDS [PREFIX]
# SPDX-License-Identifier: Apache-2.0
set -u
test_kernels=$1 records=$2 prefix=${3:-}
. "$(dirname "$0")/../tap.sh"
command -v oclgrind >/dev/null || skip_all 'oclgrind is not installed'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# It does not know all that a compiler makes of a program that it makes fast.
export NXRUN_OPENCL_OPTIONS=-cl-opt-disable NXRUN_CLBLAST=0 NXRUN_CACHE="$work/kept"
sed -n 's/^record //p' "$records" | grep -v '^attention' | grep "^$prefix" >"$work/names"
while read -r name; do
  oclgrind --data-races "$test_kernels" opencl "$records" --only "$name" >"$work/results" 2>"$work/errors"
  status=$?
  grep -v 'warnings\? generated' "$work/errors" >"$work/found" && status=1
  result "$name" $status "$(cat "$work/results" "$work/found")"
done <"$work/names"
finish
