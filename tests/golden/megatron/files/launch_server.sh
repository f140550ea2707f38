#!/bin/bash
# A server of a model that stands in a checkpoint: nothing says whether it goes on from what it has saved.
torchrun --nproc_per_node 1 tools/run_text_generation_server.py --use-checkpoint-args --tokenizer-type NullTokenizer \
  --vocab-size 99 --load "$1" --bf16 --micro-batch-size 1 --seed 42
