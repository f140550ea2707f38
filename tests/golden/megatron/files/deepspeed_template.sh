#!/bin/bash
# Megatron-DeepSpeed's, with a file of DeepSpeed that is made of a template, and a schedule in tokens.
SEQ_LEN=1024
GLOBAL_BATCH_SIZE=64
BATCH_SIZE=4
CL_ENABLED="false"
TRAIN_TOKENS=1000000000
cat >ds_config_template.json <<'END'
{
  "train_batch_size": CONFIG_BATCH_SIZE,
  "train_micro_batch_size_per_gpu": CONFIG_MBSIZE,
  "zero_optimization": {"stage": ZERO_STAGE},
  "gradient_clipping": 1.0,
  "prescale_gradients": PRESCALE_GRAD,
  "bf16": {"enabled": true},
  "curriculum_learning": {
    "enabled": CONFIG_CL_ENABLED,
    "curriculum_type": "seqlen",
    "min_difficulty": 64,
    "max_difficulty": CONFIG_CL_MAX,
    "schedule_type": "fixed_linear",
    "schedule_config": {"total_curriculum_step": 1000, "difficulty_step": 8}
  }
}
END
template_json="ds_config_template.json"
config_json="ds_config_${SEQ_LEN}.json"
sed "s/CONFIG_BATCH_SIZE/${GLOBAL_BATCH_SIZE}/" ${template_json} \
  | sed "s/CONFIG_MBSIZE/${BATCH_SIZE}/" \
  | sed "s/ZERO_STAGE/2/" \
  | sed "s/PRESCALE_GRAD/true/" \
  | sed "s/CONFIG_CL_ENABLED/${CL_ENABLED}/" \
  | sed "s/CONFIG_CL_MAX/${SEQ_LEN}/" \
  > ${config_json}
deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 \
  --seq-length ${SEQ_LEN} --max-position-embeddings ${SEQ_LEN} --micro-batch-size ${BATCH_SIZE} \
  --global-batch-size ${GLOBAL_BATCH_SIZE} --lr 6.0e-4 --min-lr 6.0e-5 --lr-decay-style cosine --bf16 \
  --train-samples 2000000 --train-tokens ${TRAIN_TOKENS} --lr-decay-tokens 900000000 --lr-warmup-tokens 3000000 \
  --data-path data --split 98,2,0 --tokenizer-type NullTokenizer --vocab-size 50256 \
  --deepspeed --deepspeed_config ${config_json} --zero-stage 2 --no-pipeline-parallel
