#!/bin/sh
# Llama 3 405B as published ("The Llama 3 Herd of Models", table 3 and section 3.3): 16,384 ranks, tensor 8 x pipeline
# 16 x data 128, sequences of 8192 and 16 million tokens a step. First and last stage, which have embedding and loss,
# have one layer less than the others.
#   nxcfg plan conf/megatron/llama-405b.sh # with --machine h100: the time of a step, and whether a rank fits
export CUDA_DEVICE_MAX_CONNECTIONS=1
NODES=2048
DATA=/data/tokens/text_document

LAUNCH_ARGS="--nproc_per_node 8 --nnodes $NODES"

MODEL_ARGS="
    --num-layers 126 --hidden-size 16384 --ffn-hidden-size 53248
    --num-attention-heads 128 --group-query-attention --num-query-groups 8
    --seq-length 8192 --max-position-embeddings 8192
    --position-embedding-type rope --rotary-base 500000 --normalization RMSNorm --norm-epsilon 1e-5 --swiglu
    --disable-bias-linear --untie-embeddings-and-output-weights
    --attention-dropout 0 --hidden-dropout 0
    --tokenizer-type NullTokenizer --vocab-size 128255 --make-vocab-size-divisible-by 16
"
PARALLEL_ARGS="
    --tensor-model-parallel-size 8 --sequence-parallel
    --pipeline-model-parallel-size 16
    --decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7
    --use-distributed-optimizer
"
TRAINING_ARGS="
    --micro-batch-size 1 --global-batch-size 2048
    --train-iters 1200000 --eval-iters 0
    --lr 8e-5 --min-lr 8e-7 --lr-decay-style cosine --lr-warmup-iters 8000 --lr-decay-iters 1200000
    --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --clip-grad 1.0
    --bf16 --seed 1234
"

torchrun $LAUNCH_ARGS pretrain_gpt.py $MODEL_ARGS $TRAINING_ARGS $PARALLEL_ARGS \
    --data-path $DATA --split 1000,0,0 --save runs/llama-405b --save-interval 1000
