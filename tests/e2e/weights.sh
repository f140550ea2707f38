#!/bin/sh
# Weights that another program wrote come back from every mesh, byte for byte: imported, cut up, kept through
# a step at rate 0, and saved. TAP.
# usage: weights.sh NXRUN NXCFG MPIEXEC RECORDED
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") mpiexec=$3 recorded=$(realpath "$4")
. "$(dirname "$0")/lib.sh"

llama='layers: 3, hidden: 64, ffn_hidden: 136, heads: 4, kv_heads: 2, normalization: rmsnorm,
  position_embedding: rope, activation: swiglu'
gpt2='layers: 2, hidden: 64, ffn_hidden: 256, heads: 4, bias: true, normalization: layernorm,
  position_embedding: learned, activation: gelu_tanh, tied_embeddings: true'

returns() { # NAME MODEL OPTIONS WORLD MESH ZERO PRECISION
  cat >config.yaml <<END
mesh: {world: $4, $5}
model: {$3, sequence: 16, max_positions: 32, vocab: 250, vocab_divisor: 8}
batch: {micro: 2, global: 8}
optimizer: {name: adamw, lr: 1e-3, zero_stage: $6}
schedule: {name: linear, warmup_steps: 4, max_steps: 8}
precision: {preset: $7}
data: {path: [$recorded/tokens]}
run: {name: run, init_from: $recorded/$2/model.safetensors}
END
  "$nxcfg" plan config.yaml -o plan.bin >out 2>&1 &&
    timeout 100 "$mpiexec" -n "$4" "$nxrun" plan.bin --dir "run$n" --stop-after 1 >out 2>&1 &&
    cmp "run$n/checkpoints/step-000001/model.safetensors" "$recorded/$2/model.safetensors" >>out 2>&1
  report "$1" $?
}

returns 'llama, one rank' llama "$llama" 1 'tensor: 1' 0 fp32
returns 'llama, data parallel' llama "$llama" 2 'tensor: 1' 0 fp32
returns 'llama, ZeRO' llama "$llama" 4 'tensor: 1' 1 fp32
returns 'llama, tensor parallel' llama "$llama" 2 'tensor: 2' 0 fp32
returns 'llama, tensor parallel and ZeRO, bf16 parameters' llama "$llama" 4 'tensor: 2' 1 mixed_precision
returns 'llama, key and value heads on two ranks each' llama "$llama" 4 'tensor: 4, kv_replicator: 2' 0 fp32
returns 'gpt2, one rank' gpt2 "$gpt2" 1 'tensor: 1' 0 fp32
returns 'gpt2, ZeRO' gpt2 "$gpt2" 2 'tensor: 1' 1 fp32
returns 'gpt2, tensor parallel' gpt2 "$gpt2" 4 'tensor: 4' 0 fp32
returns 'gpt2, tensor parallel and ZeRO, bf16 parameters' gpt2 "$gpt2" 4 'tensor: 2' 1 mixed_precision

# Adam's state of a checkpoint of Megatron-LM: what is refused.
goes_on() { # NAME PATTERN FOLDER [SETTING]...
  name=$1 pattern=$2 folder_of=$3
  shift 3
  "$nxcfg" plan --model-config "$recorded/families/llama/config.json" adam.yaml --set "nx:checkpoint.load=$folder_of" "$@" \
    -o adam.bin >out 2>&1 || { sed "s|^|# |" out; exit 99; }
  expect "$name" 1 "$pattern" "$nxrun" adam.bin --dir refused
}
printf '%s\n' 'mesh: {world: 1}' 'batch: {micro: 2, global: 8}' 'model: {sequence: 32}' 'optimizer: {lr: 1e-3}' \
  'schedule: {max_steps: 6}' "data: {path: [$recorded/tokens]}" >adam.yaml
goes_on 'of another rule' 'has the state of Adam, and the optimizer of this plan keeps another' "$recorded/foreign/adam" \
  --set nx:optimizer.name=lion
goes_on 'where there is none' 'of another system, of which nxrun reads the weights alone' "$recorded/foreign/chunks"
cp -r "$recorded/foreign/adam" cut && truncate -s 500 cut/iter_0000005/common.pt
goes_on 'of a damaged file' 'common.pt is damaged' cut
truncate -s 3000 cut/iter_0000005/__1_0.distcp
goes_on 'of a file that was cut' '__1_0.distcp is damaged: it is shorter' cut
finish
