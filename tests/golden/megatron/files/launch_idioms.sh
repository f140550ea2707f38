#!/bin/bash
# What launch scripts often have: a folder of their own, a date, arguments of their own.
SCRIPT_DIR="$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"
source "${SCRIPT_DIR}/env.sh"
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=${TP:-2}; PP=${PP:-1}
WORLD_SIZE=$(($SLURM_NNODES*8))
options=()
EMPTY=()
[ -n "$USE_FLASH" ] && options+=(--use-flash-attn)
if [ "$TP" -gt 1 ] && [ "$SP" != 0 ]; then options+=(--sequence-parallel); fi
CKPT=/ckpt/$(date +%Y%m%d)
DATA_ARGS="--data-path 0.5 /d/a 0.5 /d/b"
torchrun --nproc_per_node=8 --nnodes=${SLURM_NNODES:-1} \
   pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 \
   --micro-batch-size 1 --global-batch-size 8 --train-iters 10 --lr 1e-3 --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
   ${options[@]} $DATA_ARGS --vocab-size 100 --tokenizer-type NullTokenizer \
   --save $CKPT --save-interval 5 "${EMPTY[@]}" "${@:2}" "$@" > log.txt 2>&1 &
wait
