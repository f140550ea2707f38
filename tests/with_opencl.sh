#!/bin/sh
# with_opencl.sh NXRUN COMMAND...: runs a command whose trainings use OpenCL (NX_BACKEND), where there is a device; else
# its tests are skipped. Programs are built without the compiler's search for speed, unless NXRUN_OPENCL_OPTIONS says how, and
# pocl has one thread for each rank: here ranks share few cores. TAP.
# SPDX-License-Identifier: Apache-2.0
nxrun=$1 command=$(realpath "$2")
shift 2
if ! "$nxrun" --devices | grep -q '^opencl 0'; then
  echo '1..0 # SKIP no OpenCL device (Debian: pocl-opencl-icd)'
  exit 0
fi
export POCL_MAX_PTHREAD_COUNT="${POCL_MAX_PTHREAD_COUNT:-1}"
NX_BACKEND=opencl NXRUN_OPENCL_OPTIONS=${NXRUN_OPENCL_OPTIONS--cl-opt-disable} NXRUN_CLBLAST=${NXRUN_CLBLAST:-0} exec "$command" "$@"
