#!/bin/bash
# What is common stands beside; the job's script is handed in by another file.
TP=2
source "$(dirname "$0")/parts/common.sh"
export CUDA_DEVICE_MAX_CONNECTIONS=1 TRAINING_ARGS="$COMMON_ARGS --tensor-model-parallel-size $TP --lr 2.0e-4"
. parts/absent.sh
sbatch --nodes=4 parts/job.sh --bf16
