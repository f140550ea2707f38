#!/bin/bash
# bash puts nothing for what nothing sets: no slip where the near name is read itself, and one where it is not.
MLA_ARGS="--seed 3"
OUTPUT_ARG="--log-interval 10"
python pretrain_gpt.py $MLA_ARGS $MEM_ARGS $OUTPUT_ARGS --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
  --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 --train-iters 10 --lr 1e-3 --mock-data --vocab-size 100 \
  --tokenizer-type NullTokenizer
