#!/bin/bash
# bash launch_called.sh SIZE RANKS TP
# bash launch_called.sh <size> <ranks> <tp>
# bash launch_called.sh 7B 8 2   # as it is called
case $1 in
  7B) SHAPE="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008" ;;
  1B) SHAPE="--num-layers 16 --hidden-size 2048 --num-attention-heads 32" ;;
esac
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc_per_node ${2:-8} pretrain_gpt.py $SHAPE --tensor-model-parallel-size ${3:-1} --seq-length 2048 --max-position-embeddings 2048 \
  --micro-batch-size 1 --global-batch-size 16 --train-iters 10 --lr 1e-3 --mock-data --vocab-size 32000 --tokenizer-type NullTokenizer --bf16
