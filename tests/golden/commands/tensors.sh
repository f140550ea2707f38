#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Weights that a run begins from: what their files' beginnings say is compared with the plan before any launch. TAP.
# Usage: tensors.sh NXCFG FOLDER-OF-WEIGHTS
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1") recorded=$(realpath "$2")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

model='layers: 3, hidden: 64, ffn_hidden: 136, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8'
expect() { # NAME STATUS TEXT WEIGHTS [SETTING=VALUE]
  cat >config.yaml <<END
mesh: {world: 2, tensor: 2}
model: {$model}
batch: {micro: 2, global: 8}
optimizer: {name: adamw, lr: 1e-3}
schedule: {name: constant, max_steps: 8}
data: {path: [tokens]}
run: {init_from: $4}
END
  out=$("$nxcfg" plan config.yaml ${5:+--set "model.$5"} -o plan.bin 2>&1)
  code=$?
  if [ -z "$3" ]; then ! printf '%s' "$out" | grep -q NX1322; else printf '%s' "$out" | tr '\n' ' ' | grep -qF "$3"; fi
  found=$?
  [ $code -eq "$2" ] && [ $found -eq 0 ]
  result "$1" $? "exit status $code
$out"
}

cp "$recorded/llama/model.safetensors" whole.safetensors
expect "weights of the model" 0 '' whole.safetensors
expect "fewer layers than the file" 1 'error[NX1322]: the tensors of whole.safetensors are not those of the model: 9 too much: model.layers.2.input_layernorm.weight, model.layers.2.mlp.down_proj.weight, model.layers.2.mlp.gate_proj.weight, ...' \
  whole.safetensors layers=2
expect "more layers than the file" 1 '9 missing: model.layers.3.input_layernorm.weight' whole.safetensors layers=4
expect "another width" 1 '9 of another shape: model.layers.0.mlp.down_proj.weight is [64, 136], not [64, 128]' \
  whole.safetensors ffn_hidden=128
expect "tied embeddings may stand there twice" 0 '' whole.safetensors tied_embeddings=true
sed 's/layers.1.mlp.up_proj.weight/layers.1.mlp.up_prof.weight/' whole.safetensors >misnamed.safetensors
expect "a name that is nearly right" 1 '1 missing: model.layers.1.mlp.up_proj.weight (is model.layers.1.mlp.up_prof.weight it?)' \
  misnamed.safetensors
cp "$recorded/gpt2/model.safetensors" gpt2.safetensors
expect "names of another family" 1 'missing: lm_head.weight' gpt2.safetensors

mkdir indexed
ln -s "$work/whole.safetensors" indexed/one.safetensors
index() { # FILE-OF-EACH-TENSOR
  grep -ao '"[a-z_.0-9]*weight":' whole.safetensors | sed "s|\$|\"$1\",|" |
    { printf '{"weight_map": {' && tr -d '\n' | sed 's/,$//' && printf '}}'; } >indexed/model.safetensors.index.json
}
index one.safetensors
expect "an index" 0 '' indexed
expect "an index, and another width" 1 'is [64, 136], not [64, 128]' indexed ffn_hidden=128
index away.safetensors
expect "an index alone: its names" 0 '' indexed ffn_hidden=128
expect "an index alone: a name too much" 1 '9 too much' indexed layers=2

head -c 3000 whole.safetensors >cut.safetensors
expect "a file that is cut short" 1 'error[NX1322]: cut.safetensors' cut.safetensors
echo nothing >text.safetensors
expect "a file that is none" 1 'text.safetensors is not a safetensors file' text.safetensors
expect "weights that are not here" 0 '' elsewhere

"$nxcfg" plan config.yaml --set run.init_from=whole.safetensors --set model.layers=2 >out 2>&1 && grep -q 'warning\[NX1322\]' out
result "without a plan it is a warning" $? "$(cat out)"
finish
