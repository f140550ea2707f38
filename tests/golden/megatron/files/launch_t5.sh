#!/bin/bash
# T5: no training of a decoder. What it shares is judged; its own options are no misspellings.
torchrun --nproc_per_node 8 pretrain_t5.py --encoder-num-layers 2 --decoder-num-layers 2 --hidden-size 65 \
  --num-attention-heads 4 --vocab-extra-ids 100 --an-option-of-its-own 3 --micro-batch-size 1
