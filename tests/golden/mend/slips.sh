#!/bin/bash
# Words that argparse takes for something else; the last is on a line that the one above does not reach.
torchrun --nproc_per_node 8 pretrain_gpt.py \
  num-layers 24 \
  --hidden-size:1024 \
  --num-attention-heads16 \
  --seq-length = 1024 \
  --max-position-embeddings 1024 1024 \
  --micro-batch-size 4 , \
  --global-batch-size "64 sequences" \
  --train-iters 1000 \
  --lr 0.00015 \
  --lr-decay-style \
  --eval-iters never \
  --overlap-grad-reduce true \
  --use-flash-attn False \
  --tensor-model-parallel-size 3 \
  --fp16 --bf16 \
  --tp-comm-overlap \
  --mock-data  # nothing else
  --tokenizer-type NullTokenizer \
  --vocab-size 1000
