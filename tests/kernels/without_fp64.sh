#!/bin/sh
# The records of operators on a device whose fp64 is hidden: all but those that fp32 does not serve (which opencl refuses
# there) and those whose sums are wanted to fp64's own bounds. TAP.
# usage: without_fp64.sh TEST_KERNELS RECORDS LOST_DEVICE [PREFIX]    (PREFIX: of the names of records)
# SPDX-License-Identifier: Apache-2.0
set -u
test_kernels=$(realpath "$1") lost_device=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '
  function put() { if (!left_out) printf "%s", text; text = ""; left_out = 0 }
  /^record / { put() }
  /^op (onebit_|random_logits )|^tolerance f64 |^op .* noise=0*[.1-9]/ { left_out = 1 }
  { text = text $0 "\n" }
  END { put() }' "$2" >"$work/records"
export NXRUN_OPENCL_OPTIONS=-cl-opt-disable NXRUN_CLBLAST=0 NX_LACKS=fp64
LD_PRELOAD=$lost_device "$test_kernels" opencl "$work/records" --only "${4:-}"
