#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH --nodes=1 --job-name=a
# torchrun stops at what it does not have; it takes _ for - and the beginning of an option.
ARGS="--nproc_per_nde 2 --nnode=1 --master_addr localhost --standalone"
srun --gres=gpu:2 torchrun $ARGS --mastr-port 6000 pretrain_gpt.py --num-layers 2 --hidden-size 64 \
  --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 --lr 1e-3 \
  --train-iters 10 --mock-data --tokenizer-type NullTokenizer --vocab-size 99
