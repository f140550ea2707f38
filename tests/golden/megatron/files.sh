#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Validates each file below files/ and compares all that is printed with NAME.out beside it, as TAP; UPDATE=1 rewrites.
# Usage: files.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2/files" || exit 1
unset TP PP SP SLURM_NNODES USE_FLASH MODEL_SIZE WANDB NX_TEST_BATCH NX_TEST_NODES NX_TEST_WANDB NX_TEST_PROJECT MASTER_ADDR DATA_PREFIX CUDA_DEVICE_MAX_CONNECTIONS
export NX_TEST_DATA=/data
for file in *.sh *.yaml *.args; do
  wanted=${file%.*}.out
  found=$("$nxcfg" validate "$file" 2>&1; echo "exit $?")
  # what nxrun cannot execute becomes less; of a part the rules that are skipped become more
  found=$(printf '%s\n' "$found" | grep -vE 'nxrun cannot execute [0-9]+ of the options|^  [0-9]+ rules skipped$')
  golden "$file" "$wanted" <<END
$found
END
done
finish
