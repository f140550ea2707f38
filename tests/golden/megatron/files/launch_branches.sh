#!/bin/bash
# Branches whose tests can be told are taken or not; of the others the first is.
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-"1"}
NNODES=${NX_TEST_NODES:-"1"}
DTYPE="bf16"
DATA=${1:-MOCK}
PROGRAM="examples/pretrain_gpt.py"
ARGS=(
    --num-layers 24 --hidden-size 1024 --num-attention-heads 16
    --seq-length 1024 --max-position-embeddings 1024
    --micro-batch-size 4 --global-batch-size 64 --train-iters 500 --lr 1e-4
)
if [[ "$DTYPE" == "fp8" ]] || [[ "$DTYPE" == "fp16" ]]; then
    ARGS+=("--fp8-format hybrid" --fp16)
elif [ "$DTYPE" = bf16 ]; then ARGS+=(--bf16)
else
    ARGS+=(--fp16)
fi
if [ -n "${NX_TEST_WANDB}" ]; then
    ARGS+=(--wandb-project ${NX_TEST_PROJECT:-"none"})
fi
if [[ "$DATA" == "MOCK" ]]; then
    ARGS+=("--mock-data" "--tokenizer-type NullTokenizer" "--vocab-size 128255" "--split '99,1,0'")
else
    ARGS+=("--data-path $DATA" "--tokenizer-type HuggingFaceTokenizer" "--vocab-size 128256" --mock-data)
fi
if [ -f "$PROGRAM" ]; then
    ARGS+=(--log-interval 1)
else
    ARGS+=(--log-interval 2)
fi
torchrun --nproc_per_node 8 --nnodes $NNODES "$PROGRAM" ${ARGS[@]}
