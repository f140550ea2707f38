#!/bin/bash
# --use-te is an option of this program, and no beginning of another.
python examples/multimodal/train.py --use-te --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 \
  --max-position-embeddings 64 --micro-batch-size 1 --train-iters 10 --lr 1e-4
