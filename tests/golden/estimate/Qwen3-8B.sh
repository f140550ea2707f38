#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Arguments alone, which another script completes: the name of the file says whose vocabulary it is.
MODEL_ARGS="
    --num-layers 36 --hidden-size 4096 --ffn-hidden-size 12288 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --kv-channels 128 --normalization RMSNorm --swiglu
    --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights
    --seq-length 4096 --max-position-embeddings 40960 --tokenizer-type HuggingFaceTokenizer
    --micro-batch-size 1 --bf16 $OTHER_ARGS
"
