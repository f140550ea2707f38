#!/bin/bash
# One training, started in two ways.
ARGS=(--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128
  --micro-batch-size 1 --global-batch-size 8 --train-iters 10 --lr 1.0e-4 --tokenizer-type NullTokenizer
  --vocab-size 999 --mock-data --split 1,0,0 --bf16 --use-mcore-models)
if [ "$DEBUG" = 1 ]; then
  python -m debugpy --listen 5678 -m torch.distributed.run --nproc_per_node 2 pretrain_gpt.py "${ARGS[@]}"
elif [ -n "$(nvidia-smi 2>/dev/null)" ]; then
  torchrun --nproc_per_node 2 pretrain_gpt.py "${ARGS[@]}"
else
  torchrun --nproc_per_node 2 pretrain_gpt.py "${ARGS[@]}"
fi
