#!/bin/bash
# T5: a training like that of a decoder, of another model. All that it shares is judged, and it has no option of its own.
torchrun --nproc_per_node 8 pretrain_t5.py --encoder-num-layers 2 --decoder-num-layers 2 --hidden-size 65 \
  --num-attention-heads 4 --vocab-extra-ids 100 --an-option-of-nobody 3 --micro-batch-size 1 --lr 1e-4 \
  --encoder-seq-length 512 --decoder-seq-length 128 --max-position-embeddings 512 --train-iters 10 --mock-data
