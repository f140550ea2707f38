#!/bin/bash
# An option of the program itself is misspelt, one has a value of the wrong type, and one belongs to nothing.
torchrun --nproc_per_node 1 examples/multimodal/train.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 \
  --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --train-iters 10 --lr 1e-4 \
  --freeze-ViTs --max-num-tiles six --use-tiling --special-tokens "<image>" "<box>" --export-te-mcore-model
