#!/bin/sh
# Dialogues to a fine-tuned model: a plan names them, nxdata prepare makes the dataset, nxrun trains 20 steps, one
# dialogue a sample or packed, on one rank and on meshes. Losses and norms are those of transformers and PyTorch. TAP.
# usage: fine_tuning.sh NXCFG NXRUN NXDATA MPIEXEC PARITY
# SPDX-License-Identifier: Apache-2.0
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 parity=$(realpath "$5")
. "$(dirname "$0")/lib.sh"
answers=$parity/recorded/answers
mkdir tokenizer
cp "$parity/recorded/tokenizers/llama3/tokenizer.json" "$answers/tokenizer_config.json" tokenizer
cp "$answers/dialogues.jsonl" .

cat >model.yaml <<YAML
run: {init_from: $answers/model/model.safetensors}
model: {sequence: 256}
batch: {micro: 1, global: 4}
optimizer: {lr: 2e-3, betas: [0.9, 0.95], epsilon: 1e-8, weight_decay: 0.0, clip_norm: 1.0}
schedule: {name: constant, max_steps: 20}
loss: {mean: step}
precision: {preset: fp32}
data:
  path: [dialogues.jsonl]
  kind: dialogues
  tokenizer: tokenizer
  template: $parity/templates/chatml.jinja
  sampler: document
  shuffle: false
  reset_attention_mask: true
  reset_position_ids: true
  eod_mask_loss: true
YAML

train() { # NAME RECORD RANKS SETTING...: as was recorded
  name=$1 record=$2 ranks=$3
  shift 3
  sets=
  for setting; do sets="$sets --set nx:$setting"; done
  # shellcheck disable=SC2086
  "$nxcfg" plan --dialect nx model.yaml --model-config "$answers/model/config.json" --set nx:mesh.world="$ranks" $sets \
    -o "$name.plan" >out 2>&1 && "$nxdata" prepare "$name.plan" >>out 2>&1 &&
    timeout 100 "$mpiexec" -n "$ranks" "$nxrun" "$name.plan" --dir "$name.run" >>out 2>&1 &&
    grep -o '"\(loss\|grad_norm\)":[^,]*' "$name.run/metrics.jsonl" | sed 's/.*://' | paste -d ' ' - - >got &&
    paste -d ' ' got "$answers/trained_$record.txt" | awk '
      { for (i = 1; i <= 2; i++) { d = $i / $(i + 2) - 1; if (d < 0) d = -d; if (d > worst[i]) worst[i] = d } }
      END { print "# worst", worst[1], worst[2]; exit !(NR == 20 && worst[1] < 1e-6 && worst[2] < 1e-5) }' >>out
  report "$name" $?
}

train "one dialogue a sample" step 1
packed="data.sampler=packed batch.global=2"
# shellcheck disable=SC2086
{
  train "packed" step 1 $packed
  train "packed, two ranks" step 2 $packed optimizer.zero_stage=1
  train "packed, tensor parallel" step 2 $packed mesh.tensor=2
}
train "four ranks" step 4 optimizer.zero_stage=3
train "four ranks, two stages" step 4 mesh.pipeline=2
train "means of micro-batches" micro 1 loss.mean=micro_batch batch.micro=2
train "means of micro-batches, two ranks" micro 2 loss.mean=micro_batch batch.micro=2

"$nxcfg" plan --dialect nx model.yaml --model-config "$answers/model/config.json" --set nx:mesh.world=1 \
  --set nx:data.prepared=elsewhere -o missing.plan >out 2>&1
expect "what is not prepared is named with the command" 1 "nxdata prepare" \
  "$mpiexec" -n 1 "$nxrun" missing.plan --dir missing.run
finish
