#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The script writes the file of --deepspeed_config itself; what only a job tells is unknown.
config=./ds_config.$SLURM_JOB_ID.json
MICRO=1
cat <<EOT > $config
{
  "train_micro_batch_size_per_gpu": $MICRO,
  "train_batch_size": $BATCH_OF_THE_JOB,
  "gradient_clipping": 0.7,
  "zero_optimization": {"stage": 2, "overlap_com": true, "reduce_bucket_size": 5e8},
  "fp16": {"enabled": true, "initial_scale_power": 12, "hysteresis": "two"},
  "gradient_clippin": 1.0,
  "steps_per_print": 10
}
EOT
deepspeed --num_gpus 4 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 \
  --max-position-embeddings 32 --micro-batch-size 1 --global-batch-size 4 --lr 1e-3 --train-iters 10 --mock-data \
  --tokenizer-type NullTokenizer --vocab-size 99 --deepspeed --deepspeed_config=$config --zero-stage 1
