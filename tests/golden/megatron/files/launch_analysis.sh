#!/bin/bash
# Metrics of a dataset's samples, for curricula: no training, though it has options of one.
python ../analyze_data.py --analyzing-task map --data-path a --seq-length 512 --micro-batch-size 4 \
  --num-layers 1 --hidden-size 1 --num-attention-heads 1 --train-data-exact-num-epochs 1 --return-data-index
