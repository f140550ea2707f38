#!/bin/bash
# Another script reads this one and starts the training: what is not given here is unknown.
MODEL_ARGS=" \
    --num-layers 4 \
    --hidden-size 64 \
    --num-attention-heads 4 --group-query-attention --num-query-groups 3 \
    --tokenizer-type HuggingFaceTokenizer \
"
