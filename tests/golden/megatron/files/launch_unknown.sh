#!/bin/bash
# What nothing here tells is unknown, with a word about it.
TP=$1
S=4
[ -d /nowhere/x ] && S=8
torchrun --nproc_per_node $(nvidia-smi -L | wc -l) pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
  --seq-length 32 --max-position-embeddings 32 --micro-batch-size $S --train-iters 10 --lr 1e-3 --mock-data --bf16 ${EXTRA:-} \
  --tensor-model-parallel-size $TP --vocab-size 100 --tokenizer-type NullTokenizer "$@"
