#!/bin/bash
# A cluster gives hosts by this name, and torchrun the number of ranks.
GPUS_PER_NODE=$(nvidia-smi -L | wc -l)
WORLD_SIZE=${WORLD_SIZE:-1}
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $WORLD_SIZE pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
  --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 --train-iters 10 --lr 1e-3 --mock-data --vocab-size 100 \
  --tokenizer-type NullTokenizer --num-experts 8 --expert-model-parallel-size 8 --disable-bias-linear
