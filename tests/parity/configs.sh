#!/bin/sh
# The config.json beside a checkpoint says what the one said that the run began with: both make the same operators of a model.
# What a class of transformers takes for a key that is not there is not looked at. TAP.
# usage: configs.sh NXCFG NXRUN RECORDED
# SPDX-License-Identifier: Apache-2.0
set -u
. "$(dirname "$0")/../tap.sh"
nxcfg=$1 nxrun=$2 recorded=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/base.yaml" <<EOF
mesh: {world: 1}
batch: {micro: 1, global: 1}
model: {sequence: 32}
optimizer: {name: sgd, lr: 0.01, momentum: 0, weight_decay: 0, clip_norm: null}
schedule: {name: constant, warmup_steps: 0, max_steps: 1}
data: {synthetic: true}
checkpoint: {every_steps: 1}
run: {directory: $work/run}
EOF

# plan CONFIG PLAN
plan() {
  "$nxcfg" plan "$work/base.yaml" --dialect nx --model-config "$1" -o "$2" >"$work/log" 2>&1
}

# operators PLAN: without what an operator does not read
operators() {
  "$nxcfg" show "$1" --ops | sed 's/scaling=none factor=.* amplitude/scaling=none amplitude/'
}

comes_back() { # NAME CONFIG
  rm -rf "$work/run" "$work/first" "$work/second"
  if plan "$2" "$work/first" && "$nxrun" "$work/first" >"$work/log" 2>&1 &&
    plan "$work/run/checkpoints/step-000001/config.json" "$work/second"; then
    operators "$work/first" >"$work/operators" && operators "$work/second" | diff "$work/operators" - >"$work/log" 2>&1
    result "$1 comes back" $? "$(cat "$work/log" "$work"/run/checkpoints/*/config.json)"
  else
    result "$1 is trained" 1 "$(cat "$work/log")"
  fi
}

for folder in "$recorded"/families/*; do
  comes_back "${folder##*/}" "$folder/config.json"
done

small='"hidden_size": 24, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 20, "vocab_size": 90'
rope='"rope_theta": 700.0, "original_max_position_embeddings": 12'
experts='"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12'
latent='"qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "kv_lora_rank": 10, "n_routed_experts": 4, "n_shared_experts": 1,
  "moe_intermediate_size": 12, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1'
while IFS='|' read -r name type keys; do
  eval "keys=\"$(printf '%s' "$keys" | sed 's/"/\\"/g')\""
  echo "{\"model_type\": \"$type\", $small, $keys}" >"$work/config.json"
  comes_back "$type with $name" "$work/config.json"
done <<'END'
yarn|llama|"max_position_embeddings": 48, "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 20, "beta_slow": 2, $rope}
yarn of another size|qwen2|"max_position_embeddings": 48, "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 1.0, "truncate": false, $rope}
longrope|gemma|"head_dim": 6, "max_position_embeddings": 48, "rope_parameters": {"rope_type": "longrope", "short_factor": [1, 1.5, 2], "long_factor": [2, 3, 4.5], $rope}
longrope and its factor|olmo2|"max_position_embeddings": 48, "rope_parameters": {"rope_type": "longrope", "factor": 3.0, "short_factor": [1, 1.5, 2], "long_factor": [2, 3, 4.5], $rope}
llama3|mistral|"sliding_window": 9, "max_position_embeddings": 48, "rope_parameters": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 0.5, "high_freq_factor": 3.0, $rope}
biases of the network alone|llama|"mlp_bias": true
biases of all but attention's output|seed_oss|"attention_bias": true, "attention_out_bias": false, "mlp_bias": true
biases of the network alone|gpt_neox|"attention_bias": false, "hidden_act": "gelu", "rotary_pct": 1.0
scaled positions of a part|gpt_neox|"hidden_act": "relu2", "max_position_embeddings": 48, "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "partial_rotary_factor": 0.7, $rope}
quick gelu|llama|"hidden_act": "quick_gelu"
no activation in a gate|qwen2|"hidden_act": "linear"
silu by another name|gpt_neox|"hidden_act": "swish", "rotary_pct": 1.0
windows|phi3|"sliding_window": 9, "pad_token_id": 0
windows of all layers|qwen3|"use_sliding_window": true, "sliding_window": 9, "max_window_layers": 0
windows of the last layers|qwen3|"use_sliding_window": true, "sliding_window": 9, "max_window_layers": 3
no layer left for a window|qwen2|"use_sliding_window": true, "sliding_window": 9, "max_window_layers": 7
windows layer by layer|qwen2|"use_sliding_window": true, "sliding_window": 9, "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
windows in another turn|gemma2|"sliding_window": 9, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]
windows in turns|qwen2_moe|"use_sliding_window": true, "sliding_window": 9, "max_window_layers": 3, "shared_expert_intermediate_size": 10, $experts
no biases|qwen2_moe|"qkv_bias": false, "shared_expert_intermediate_size": 10, $experts
windows|qwen3_moe|"use_sliding_window": true, "sliding_window": 9, $experts
every second layer a mixture|qwen3_moe|"decoder_sparse_step": 2, $experts
dense layers|qwen3_moe|"mlp_only_layers": [1], $experts
dense layers among every second|qwen2_moe|"decoder_sparse_step": 2, "mlp_only_layers": [3], "shared_expert_intermediate_size": 10, $experts
scales of yarn|deepseek_v3|"max_position_embeddings": 48, "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0, $rope}, $latent
other scales of yarn|deepseek_v2|"max_position_embeddings": 48, "rope_parameters": {"rope_type": "yarn", "factor": 16.0, "mscale": 0.707, "mscale_all_dim": 0.5, $rope}, $latent
scores as they are|gpt2|"n_head": 4, "scale_attn_weights": false
END

# Keys that a class does not read, as they stand in files that were made of another's.
window='"sliding_window": 9, "use_sliding_window": true' part='"partial_rotary_factor": 0.5' scale='"routed_scaling_factor": 3.0'
while IFS='|' read -r type keys stray; do
  eval "keys=\"$(printf '%s' "$keys" | sed 's/"/\\"/g')\" stray=\"$(printf '%s' "$stray" | sed 's/"/\\"/g')\""
  echo "{\"model_type\": \"$type\", $small, $keys}" >"$work/config.json"
  echo "{\"model_type\": \"$type\", $small, $keys, $stray}" >"$work/stray.json"
  plan "$work/config.json" "$work/first" && plan "$work/stray.json" "$work/second" &&
    operators "$work/first" >"$work/operators" && operators "$work/second" | diff "$work/operators" - >"$work/log" 2>&1
  result "$type reads none of $stray" $? "$(cat "$work/log")"
done <<'END'
llama|"head_dim": 6|$window, $part, $scale
gemma|"head_dim": 6|$window, $part, "hidden_activation": "gelu_pytorch_tanh", "hidden_act": "gelu"
gemma2|"sliding_window": 9|$part, "use_sliding_window": false, "hidden_act": "relu"
mistral|"sliding_window": 9|$part, "use_sliding_window": false
gpt2|"n_head": 4|$window, $part
gpt_neox|"rotary_pct": 1.0|$window
olmo|"head_dim": 6|$window, $part
seed_oss|"head_dim": 6|$window, $part
glm4|"partial_rotary_factor": 0.5|$window
qwen3_moe|$experts|$part, $scale
mixtral|"num_local_experts": 4, "num_experts_per_tok": 2|$part, $scale
olmoe|$experts|$part, $scale
deepseek_v3|$latent, "first_k_dense_replace": 1|$window, $part, "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"}
END
finish
