#!/bin/bash
# A vision encoder stands in front of the decoder.
torchrun --nproc_per_node 8 finetune_megatron_llava.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
  --max-position-embeddings 2048 --micro-batch-size 1 --train-iters 10 --lr 1e-3 --mock-data --vocab-size 32000 --tokenizer-type NullTokenizer
