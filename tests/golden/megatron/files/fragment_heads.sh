# Options that another script takes: heads have the width that is given, not the width / heads.
MODEL_ARGS="--num-layers 24 --hidden-size 2880 --num-attention-heads 64 --kv-channels 64 --seq-length 4096
  --max-position-embeddings 4096 --micro-batch-size 1"
