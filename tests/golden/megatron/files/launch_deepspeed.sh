#!/bin/bash
# A code that grew out of Megatron-LM, with options that neither has.
deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 \
  --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 4 --global-batch-size 64 --lr 1e-4 \
  --train-iters 5 --tokenizer-type HFTokenizer --tokenizer-model gpt2 --data-impl mmap --data-path data --vocab-size 50257 \
  --tensor-model-parallel-size 1 --checkpoint-activations --zero-stage 1 --deepspeed \
  --deepspeed_config ds.json --of-nobody 3 --bf16
