#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What Slurm gives its variables follows from what the job is told.
#SBATCH -N 4
#SBATCH --ntasks-per-node=8 --gres=gpu:h100:8
#SBATCH -c 6
G=$((SLURM_NTASKS * 2))
srun torchrun --nnodes $SLURM_JOB_NUM_NODES --nproc_per_node $SLURM_GPUS_ON_NODE pretrain_gpt.py \
  --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \
  --micro-batch-size 1 --global-batch-size $G --num-workers $SLURM_CPUS_PER_TASK --train-iters 10 --lr 1e-3 --vocab-size 100 --tokenizer-type NullTokenizer --bf16 --mock-data
