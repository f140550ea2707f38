#!/bin/bash
RUNTIME='{"env_vars": {"CUDA_DEVICE_MAX_CONNECTIONS": "8", "WANDB_API_KEY": "Zq7hidden"}}'
ray job submit --address="http://127.0.0.1:9999" --runtime-env-json="$RUNTIME" --entrypoint-num-gpus 4 -- python3 pretrain_gpt.py --num-layers 2 \
  --hidden-size 64 --num-attention-heads 4 --seq-length 128 \
  --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 32 --train-iters 10 --lr 1e-3 \
  --tokenizer-type NullTokenizer --vocab-size 1000 --mock-data
