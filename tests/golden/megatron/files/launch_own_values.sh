#!/bin/bash
# A fork's own options have values that only a run tells; what stands behind them is judged.
torchrun --nproc_per_node 8 pretrain_gpt.py --dist-url tcp://$1 --rank ${RANK} --world-size ${SOME_SIZE} \
  --num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 \
  --micro-batch-size 4 --global-batch-size 32 --lr 1e-4 --train-iters 100 --bf16 --num-query-groupz 4
