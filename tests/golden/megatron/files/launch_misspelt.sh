#!/bin/bash
# What bash runs without a word, and nobody meant.
GPUS_PER_NODE=8
NNODES = 2
DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE)
torchrun ${DISTRIBUTED_ARG[@]} --nnodes ${SLURM_NNODES} pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 \
  --max-position-embeddings 32 --micro-batch-size 1 --global-batch-size $((GPU_PER_NODE)) --train-iters 10 --lr 1e-3 --mock-data \
  --tensor-model-parallel-size $GPU_PER_NODE --vocab-size 100 --tokenizer-type NullTokenizer --swiglu $EXTRA
