#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A variable that holds the command itself is nothing that the training finds in its environment.
export NCCL_DEBUG=WARN
export CMD="pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 \
  --max-position-embeddings 64 --micro-batch-size 1 --train-iters 10 --lr 1e-4 --mock-data \
  --tokenizer-type NullTokenizer --vocab-size 99"
srun bash -c "python -m torch.distributed.run --nproc_per_node 8 --node_rank \$SLURM_PROCID $CMD"
