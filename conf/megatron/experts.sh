#!/bin/sh
# A small mixture of experts: of four ranks two are tensor- and sequence-parallel, and each such pair has half of the
# experts. A token goes to two of eight; an expert takes 1.25 times its share and drops what has the least weight.
#   nxcfg plan conf/megatron/experts.sh -o run.plan
#   mpiexec -n 4 nxrun run.plan
export CUDA_DEVICE_MAX_CONNECTIONS=1
RANKS=4
CHECKPOINTS=runs/experts-megatron
DATA=build/data/devil

LAUNCH_ARGS="--nproc_per_node $RANKS --nnodes 1"

MODEL_ARGS="
    --num-layers 4 --hidden-size 192 --ffn-hidden-size 256
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
MOE_ARGS="
    --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall
    --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 1e-2 --moe-z-loss-coeff 1e-3
    --moe-expert-capacity-factor 1.25 --moe-token-drop-policy probs --expert-model-parallel-size 2
"
PARALLEL_ARGS="--tensor-model-parallel-size 2 --sequence-parallel"

torchrun $LAUNCH_ARGS pretrain_gpt.py $MODEL_ARGS $MOE_ARGS $TRAINING_ARGS $PARALLEL_ARGS \
    --data-path $DATA --split 1,0,0 \
    --save $CHECKPOINTS --load $CHECKPOINTS --save-interval 100 --log-interval 10
