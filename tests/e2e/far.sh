#!/bin/sh
# Trainings whose arenas the host cannot touch: the bits of ref, over every kind of mesh. TAP.
# usage: far.sh NXCFG NXRUN NXRUN_FAR NXDATA MPIEXEC TEXT [all]
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxrun_far=$(realpath "$3") nxdata=$(realpath "$4") mpiexec=$5
text=$(realpath "$6") all=${7:-}
. "$(dirname "$0")/lib.sh"

cat >small.yaml <<YAML
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 88, heads: 4, kv_heads: 2, sequence: 16, vocab: 256,
  vocab_divisor: 16, normalization: rmsnorm, position_embedding: rope, activation: swiglu,
  hidden_dropout: 0.1}
optimizer: {name: adamw, lr: 1e-3, betas: [0.9, 0.95], weight_decay: 0.1, clip_norm: 1.0}
schedule: {name: cosine, warmup_steps: 3, min_lr: 1e-4, max_steps: 4}
data: {path: [data]}
checkpoint: {every_steps: 2}
run: {seed: 7}
YAML
"$nxdata" build "$text" -o data >out 2>&1 || exit 99

numbers() { sed 's/,"tokens_per_s".*//' "$1/metrics.jsonl"; }
same_run() { # A B: numbers of every step, and the last weights and moments
  numbers "$1" >a && numbers "$2" >b && [ "$(wc -l <a)" -eq 4 ] && cmp a b >>out 2>&1 || return 1
  for file in "$1"/checkpoints/step-000004/*.safetensors; do
    cmp "$file" "$2/checkpoints/step-000004/${file##*/}" >>out 2>&1 || return 1
  done
}
train() { # PROGRAM BACKEND FOLDER ARGUMENT...
  program=$1 backend=$2 folder_of_run=$3
  shift 3
  timeout 120 "$mpiexec" -n "$ranks" "$program" plan.bin --backend "$backend" --dir "$folder_of_run" "$@" >out 2>&1
}
far_as_ref() { # NAME RANKS SETTING=VALUE...
  name=$1 ranks=$2
  shift 2
  for set in "$@"; do set -- "$@" --set "nx:$set"; shift; done
  if ! "$nxcfg" plan small.yaml --set nx:mesh.world="$ranks" "$@" -o plan.bin >out 2>&1; then
    report "$name" 1
    return
  fi
  rm -rf ref far
  train "$nxrun" ref ref && train "$nxrun_far" far far --stop-after 2 && train "$nxrun_far" far far --resume &&
    same_run ref far
  report "$name" $?
}

far_as_ref 'one rank' 1
far_as_ref 'tensor and sequence parallel, ZeRO-1' 4 mesh.tensor=2 sequence_parallel=true optimizer.zero_stage=1
far_as_ref 'a pipeline' 2 mesh.pipeline=2
if [ "$all" ]; then
  far_as_ref 'data parallel' 2
  far_as_ref 'bf16 with master weights' 2 optimizer.zero_stage=1 precision.preset=mixed_precision
  far_as_ref 'ZeRO-2' 2 optimizer.zero_stage=2
  far_as_ref 'ZeRO-3' 2 optimizer.zero_stage=3
  far_as_ref 'reductions in buckets' 2 optimizer.zero_stage=2 reduce.overlap=true reduce.bucket_elements=4000
  far_as_ref 'gathers ahead' 2 optimizer.zero_stage=3 gather.overlap=true
  far_as_ref 'interleaved stages' 2 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4
  far_as_ref 'stages in a V' 2 mesh.pipeline=2 mesh.virtual_pipeline=2 pipeline.schedule=zbv model.layers=4 \
    model.tied_embeddings=true
  far_as_ref 'tied embeddings over stages' 2 mesh.pipeline=2 model.tied_embeddings=true
  far_as_ref 'ring attention' 2 mesh.context=2 attention.ring=true
  far_as_ref 'Ulysses' 2 mesh.context=2 attention.ulysses=true
  far_as_ref 'experts' 2 moe.experts=4 moe.top_k=2 mesh.expert=2
fi

# What must never be: the host's hand on an arena, or its address on the device.
ranks=1
train "$nxrun" far nothing
[ $? -eq 2 ] && grep -q "backend cannot be 'far'" out
report 'the product has no such backend' $?
finish
