#!/bin/bash
# One underscore among hyphens is a slip.
torchrun --nproc_per_node 8 pretrain_gpt.py --num_layers 4 --hidden_size 64 --num_attention_heads 8 --seq_length 64 --micro_batch_size 1 \
  --max-position-embeddings 64 --train-iters 10 --lr 1e-3 --mock-data --vocab-size 100 --tokenizer-type NullTokenizer
