COMMON_ARGS="--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 \
  --micro-batch-size 1 --global-batch-size 64 --train-iters 10 --lr 1.0e-4 --lr-decay-style constant \
  --tokenizer-type NullTokenizer --vocab-size 999 --mock-data --split 1,0,0 --misspelt-option 1"
