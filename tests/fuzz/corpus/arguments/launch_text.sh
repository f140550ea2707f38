#!/bin/sh
# Arguments in one text, which the shell divides.
GPT_ARGS="
    --num-layers 24 \
    --hidden-size 1024 --num-attention-heads 16
    --seq-length 1024 --max-position-embeddings 1024
    --micro-batch-size 4 --global-batch-size 63
    --train-iters 500 --lr 1e-4 --bf16
    --tensor-model-parallel-size 2 --sequence-parallel
"
export CUDA_DEVICE_MAX_CONNECTIONS=8
CMD="torchrun --nproc-per-node 8 pretrain_gpt.py $GPT_ARGS --mock-data"
eval $CMD
