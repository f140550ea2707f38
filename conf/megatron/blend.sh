#!/bin/sh
# A blend of two datasets by weight for training, and sets of their own for validation and test.
#   nxdata build conf/text/devil.txt --lines -o build/data/lines --force
#   nxdata build conf/text/questions.jsonl --field output -o build/data/answers --force
#   nxcfg plan conf/megatron/blend.sh -o run.plan && mpiexec -n 2 nxrun run.plan
export CUDA_DEVICE_MAX_CONNECTIONS=1
RANKS=2
CHECKPOINTS=runs/blend-megatron
DATA=build/data

MODEL_ARGS="
    --num-layers 4 --hidden-size 192 --ffn-hidden-size 512
    --num-attention-heads 6 --group-query-attention --num-query-groups 2
    --seq-length 128 --max-position-embeddings 128
    --position-embedding-type rope --normalization RMSNorm --swiglu
    --disable-bias-linear --untie-embeddings-and-output-weights
    --attention-dropout 0 --hidden-dropout 0
    --tokenizer-type NullTokenizer --vocab-size 255 --make-vocab-size-divisible-by 8
"
TRAINING_ARGS="
    --micro-batch-size 4 --global-batch-size 16
    --train-iters 150 --lr-decay-iters 150 --lr-warmup-iters 15
    --lr 3e-3 --min-lr 3e-4 --lr-decay-style cosine
    --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --clip-grad 1.0
    --bf16 --seed 1234
"
BLEND_ARGS="
    --train-data-path 0.7 $DATA/lines 0.3 $DATA/answers
    --valid-data-path $DATA/lines --test-data-path $DATA/answers
    --eval-interval 50 --eval-iters 4
"
DATA_ARGS=""

torchrun --nproc_per_node $RANKS --nnodes 1 pretrain_gpt.py $MODEL_ARGS $TRAINING_ARGS $BLEND_ARGS $DATA_ARGS \
    --save $CHECKPOINTS --load $CHECKPOINTS --save-interval 100 --log-interval 10
