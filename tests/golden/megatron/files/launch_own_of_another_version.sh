#!/bin/bash
# What a program has of its own tells of no version that gave the same name to all.
python tasks/main.py --task RETRIEVER-FINETUNE-NQ --eval-micro-batch-size 16 --retriever-seq-length 256 --num-layers 12 --hidden-size 768 \
  --num-attention-heads 12 --seq-length 512 --max-position-embeddings 512 --micro-batch-size 8 --lr 1e-5
