#!/bin/bash
# Arrays, as launch scripts of Megatron keep their arguments.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=16
CHECKPOINTS=$1
DATA=${DATA_PREFIX:-corpus/text_document}

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes=$NUM_NODES
    --master_addr ${MASTER_ADDR:-localhost}
)
MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048   # tokens
    --max-position-embeddings 2048
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 1536
    --rampup-batch-size 16 16 5859375
    --train-iters 500000
    --lr 6.0e-5 --min-lr 6.0e-6
    --lr-decay-style cosine
    --lr-warmup-fraction .001
    --lr-decay-iters 430000
    --fp16
)
PARALLEL_ARGS=(--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --sequence-parallel)
if [ -n "$CHECKPOINTS" ]; then
  PARALLEL_ARGS+=(--save $CHECKPOINTS --save-interval 1000)
fi

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} \
    "${TRAINING_ARGS[@]}" \
    ${PARALLEL_ARGS[@]} \
    --data-path $DATA --split 949,50,1 2>&1 | tee log.txt
