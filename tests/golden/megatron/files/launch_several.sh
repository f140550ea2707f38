#!/bin/bash
# Two programs: both are judged; the second trains with a batch that does not divide, and a tool is none.
GPUS_PER_NODE=8
python tools/preprocess_data.py --input a.json --output-prefix b
ARGS="--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --mock-data
  --vocab-size 100 --tokenizer-type NullTokenizer --train-iters 10 --lr 1e-3 --micro-batch-size 1"
torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py $ARGS --global-batch-size 8
torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py $ARGS --global-batch-size 9
