#!/bin/bash
# The file for DeepSpeed and the command are made in branches that an argument chooses.
CONFIG_JSON=ds_$1.json

if [ "$1" = zero2 ]; then
cat <<EOT > $CONFIG_JSON
{
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 8,
  "zero_optimization": { "stage": 2 },
  "fp16": { "enabled": true },
  "gradient_clipping": 1.0
}
EOT
else
cat <<EOT > $CONFIG_JSON
{
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 8,
  "zero_optimization": { "stage": 1 },
  "fp16": { "enabled": true },
  "gradient_clipping": 1.0
}
EOT
fi
CMD="deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 \
  --seq-length 128 --max-position-embeddings 128 --micro-batch-size 2 --global-batch-size 16 --train-iters 10 \
  --lr 1e-3 --vocab-file v --merge-file m --data-path d --fp16 \
  --deepspeed --deepspeed_config $CONFIG_JSON --zero-stage 1"

eval $CMD
