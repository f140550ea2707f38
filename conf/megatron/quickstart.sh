#!/bin/sh
# A small GPT with Llama's parts on two tensor- and sequence-parallel ranks. nxcfg reads the script without running it.
#   nxcfg plan conf/megatron/quickstart.sh -o run.plan && mpiexec -n 2 nxrun run.plan
export CUDA_DEVICE_MAX_CONNECTIONS=1
RANKS=2
CHECKPOINTS=runs/quickstart-megatron
DATA=build/data/devil

LAUNCH_ARGS="--nproc_per_node $RANKS --nnodes 1"

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
    --micro-batch-size 8 --global-batch-size 16
    --train-iters 150 --eval-iters 0
    --lr 3e-3 --min-lr 3e-4 --lr-decay-style cosine --lr-warmup-iters 15 --lr-decay-iters 150
    --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --clip-grad 1.0
    --bf16 --use-distributed-optimizer --seed 1234
"
PARALLEL_ARGS="--tensor-model-parallel-size 2 --sequence-parallel"

torchrun $LAUNCH_ARGS pretrain_gpt.py $MODEL_ARGS $TRAINING_ARGS $PARALLEL_ARGS \
    --data-path $DATA --split 1,0,0 \
    --save $CHECKPOINTS --load $CHECKPOINTS --save-interval 100 --log-interval 10
