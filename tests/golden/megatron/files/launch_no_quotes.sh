#!/bin/bash
# Tests without quotes: each holds where the variable is empty, but for -z, which is right by accident.
MICRO=2
if [ -n $LARGE ]; then MICRO=4; fi
if [ -z $TENSOR ]; then TENSOR=1; fi
SEQUENCE=128
if [ ! -d $CHECKPOINTS ]; then SEQUENCE=256; fi
torchrun --nproc-per-node 2 pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 \
  --seq-length $SEQUENCE --max-position-embeddings 128 --micro-batch-size $MICRO --global-batch-size 6 --train-iters 10 \
  --lr 1e-3 --tokenizer-type NullTokenizer --vocab-size 1000 --mock-data --bf16 --tensor-model-parallel-size $TENSOR
