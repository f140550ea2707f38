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
finish
