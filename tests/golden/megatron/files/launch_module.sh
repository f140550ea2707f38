#!/bin/bash
# Behind -m stands a module, and behind a path that is not known a program that is.
SCRIPT_DIR="$(dirname "$(readlink -f "$0")")"
python -m torch.distributed.run --nproc_per_node 1 -m examples.inference.advanced.gpt_dynamic_inference \
  --num-layers 4 --hidden-size 64 --num-attention-heads 4 --temperature 1.0 --top_k 1 --incoming-requests-per-sec 3
source "${SCRIPT_DIR}/conf/arguments.sh"
${LAUNCH_SCRIPT} ${SCRIPT_DIR}/quantize.py ${MODEL_ARGS} --prompts "Hello!" --save /models/a --pretrained-model-path /models/b
