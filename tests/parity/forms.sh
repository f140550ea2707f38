#!/bin/sh
# Forms of decoders against PyTorch in float64 (record_forms.py): the loss and the gradient's norm of each step, within 1e-6,
# on one rank, and in every layout of two. TAP.
# usage: forms.sh NXCFG NXRUN MPIEXEC RECORDED
# SPDX-License-Identifier: Apache-2.0
set -u
. "$(dirname "$0")/../tap.sh"
nxcfg=$1 nxrun=$2 mpiexec=$3 recorded=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/base.yaml" <<EOF
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 48, heads: 4, kv_heads: 4, sequence: 32, vocab: 250, vocab_divisor: 2,
  normalization: rmsnorm, norm_epsilon: 1e-5, position_embedding: rope, activation: swiglu}
optimizer: {name: sgd, lr: 0.01, momentum: 0, weight_decay: 0, clip_norm: null}
schedule: {name: constant, warmup_steps: 0, max_steps: 3}
data: {path: [$recorded/tokens], shuffle: false}
EOF

# train FORM NAME RANKS SETTING...
train() {
  form=$1 name=$2 ranks=$3
  shift 3
  # shellcheck disable=SC2046
  run=$work/$form-$name
  set -- $(cat "$recorded/forms/$form/settings") "$@" run.init_from="$recorded/forms/$form" run.directory="$run" run.log_every=1
  "$nxcfg" plan "$work/base.yaml" -o "$run.bin" $(printf ' --set nx:%s' "$@") >"$work/log" 2>&1 &&
    "$mpiexec" -n "$ranks" "$nxrun" "$run.bin" --metrics "$run.jsonl" >"$work/log" 2>&1
  good=$?
  sed -n 's/.*"loss":\([^,}]*\).*"grad_norm":\([^,}]*\).*/\1 \2/p' "$run.jsonl" 2>/dev/null | paste -d' ' - "$recorded/forms/$form/steps" |
    awk '{for (i = 1; i <= 2; i++) {d = $i / $(i + 2) - 1; if (d < 0) d = -d; if (!(d < 1e-6)) bad = 1}; n++}
         END {exit n != 3 || bad}' || good=1
  result "$form, $name" $good "$(cat "$work/log")"
}

for folder in "$recorded"/forms/*; do
  form=${folder##*/}
  train "$form" one 1 mesh.world=1
  train "$form" tensor 2 mesh.world=2 mesh.tensor=2 sequence_parallel=true
  train "$form" stages 2 mesh.world=2 mesh.pipeline=2
  train "$form" ring 2 mesh.world=2 mesh.context=2 attention.ring=true
  train "$form" ulysses 2 mesh.world=2 mesh.context=2 attention.ulysses=true
  [ "$form" = balanced ] && train "$form" experts 2 mesh.world=2 mesh.expert=2
  [ "$form" = balanced_steps ] && continue # the step's load is that of more ranks at once
  train "$form" zero3 2 mesh.world=2 optimizer.zero_stage=3
done
finish
