#!/bin/bash
# A command in a text, which a second shell runs.
#SBATCH --nodes=4 --gres=gpu:8
export CUDA_DEVICE_MAX_CONNECTIONS=1
OPTIONS=" \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 32 \
  --train-iters 10 --lr 3e-4 --mock-data --vocab-size 100 --tokenizer-type NullTokenizer --split '99,1,0'"
run_cmd="cd /x && python -u pretrain_gpt.py ${OPTIONS}"
srun -l --container-image x sh -c "${run_cmd}"
