#!/bin/bash
# What the other file assigns is unknown, and not empty.
source ./cluster.env
srun -l bash -c "python -u pretrain_gpt.py ${MEGATRON_PARAMS}"
