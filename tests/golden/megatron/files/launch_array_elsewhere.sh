#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is not here begins the array: its options are unknown, not missing.
source ./params_of_the_task.sh
ALL_PARAMS+=(--log-interval 1 --save checkpoints --save-interval 1000)
torchrun --nproc_per_node 8 pretrain_gpt.py ${ALL_PARAMS[@]}
