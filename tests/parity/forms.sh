#!/bin/sh
# Forms of decoders against PyTorch in float64 (record_forms.py): the loss and the gradient's norm of each step, within 1e-6,
# on one rank, and in every layout of two. TAP.
# usage: forms.sh NXCFG TRAIN_PLANS MPIEXEC RECORDED
# SPDX-License-Identifier: Apache-2.0
set -u
. "$(dirname "$0")/../tap.sh"
nxcfg=$1 train_plans=$2 mpiexec=$3 recorded=$4
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

# plan FORM NAME RANKS SETTING...: into a folder of its own, which is trained with all others of as many ranks.
plan() {
  form=$1 name=$2 ranks=$3 run=$work/$1-$2
  shift 3
  mkdir "$run"
  # shellcheck disable=SC2046
  set -- $(cat "$recorded/forms/$form/settings") "$@" run.init_from="$recorded/forms/$form" run.log_every=1
  if "$nxcfg" plan "$work/base.yaml" -o "$run/plan.bin" $(printf ' --set nx:%s' "$@") >"$run/log" 2>&1; then
    echo "$run" >>"$work/of_$ranks"
  fi
  echo "$form $name" >>"$work/all"
}

# as_recorded FORM NAME: loss and norm of its steps.
as_recorded() {
  run=$work/$1-$2
  sed -n 's/.*"loss":\([^,}]*\).*"grad_norm":\([^,}]*\).*/\1 \2/p' "$run/metrics.jsonl" 2>/dev/null |
    paste -d' ' - "$recorded/forms/$1/steps" |
    awk '{for (i = 1; i <= 2; i++) {d = $i / $(i + 2) - 1; if (d < 0) d = -d; if (!(d < 1e-6)) bad = 1}; n++}
         END {exit n != 3 || bad}'
  result "$1, $2" $? "$(cat "$run/log" "$work"/trained_*)"
}

for folder in "$recorded"/forms/*; do
  form=${folder##*/}
  plan "$form" one 1 mesh.world=1
  plan "$form" tensor 2 mesh.world=2 mesh.tensor=2 sequence_parallel=true
  plan "$form" stages 2 mesh.world=2 mesh.pipeline=2
  plan "$form" ring 2 mesh.world=2 mesh.context=2 attention.ring=true
  plan "$form" ulysses 2 mesh.world=2 mesh.context=2 attention.ulysses=true
  case $form in
    balanced | balanced_quantiles | residual | one_bias) plan "$form" experts 2 mesh.world=2 mesh.expert=2 ;;
  esac
  [ "$form" = balanced_steps ] && continue # the step's load is that of more ranks at once
  plan "$form" zero3 2 mesh.world=2 optimizer.zero_stage=3
  [ "$form" = votes ] || continue
  plan "$form" zero0 2 mesh.world=2
  plan "$form" zero1 2 mesh.world=2 optimizer.zero_stage=1 reduce.overlap=true
  plan "$form" elastic 2 mesh.world=2 run.reproducible=elastic
done
for ranks in 1 2; do
  # shellcheck disable=SC2046
  "$mpiexec" -n $ranks "$train_plans" $(cat "$work/of_$ranks") >"$work/trained_$ranks" 2>&1
done
while read -r form name; do as_recorded "$form" "$name"; done <"$work/all"
finish
