#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# As launch_slurm_misspelt.sh with more memory, which it says last:
#SBATCH --nodes=2
#SBATCH --nodes=4
#SBATCH --ntask-per-node=1
#SBATCH --our-plugin=1 --part=a
srun --ntasks-per-node=1 --cpu_bind=none --gpus-per-taks 8 -l --mem=1G --mem=3G \
  torchrun --nnodes 2 --nnodes 4 --nproc-per-node 4 --nproc-per-node 8 pretrain_gpt.py --num-layers 2 \
  --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 \
  --global-batch-size 32 --lr 1e-3 --train-iters 10 --mock-data --tokenizer-type NullTokenizer --vocab-size 99
