#!/bin/sh
# What stays bit for bit under which change: each row of the table in docs/reproducibility.md. TAP.
# usage: reproducible.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

small_training 'mesh: {world: 1}' 'batch: {micro: 1, global: 8}' 'optimizer: {name: adamw, zero_stage: 0, lr: 3e-3}' \
  'schedule: {name: constant, max_steps: 4}'
train() { # NAME RANKS DIR [OPTION]...
  name=$1 ranks=$2 dir=$3
  shift 3
  timeout 60 "$mpiexec" $hosts -n "$ranks" "$nxrun" "$name.bin" --dir "$dir" "$@" >out 2>&1 </dev/null
}
hosts=
outcome() { # the metrics without times, weights and moments
  cut -d, -f1-4 "$1/metrics.jsonl" && cd "$1/checkpoints/step-000004" && sha256sum ./*.safetensors && cd "$folder"
}
same() { # NAME RUN OTHER
  outcome "$2" >expected 2>out && outcome "$3" >got 2>>out && diff expected got >>out && [ "$(wc -l <got)" -ge 7 ]
  report "$1" $?
}
elastic() { # NAME [SETTING]...
  plan "$@" run.reproducible=elastic model.hidden_dropout=0.1
}

# ---- whatever run.reproducible is ----
plan two mesh.world=2 optimizer.zero_stage=1
train two 2 base || report 'a run' 1
train two 2 stopped --stop-after 1 && train two 2 stopped --resume
same 'a restart' base stopped
plan saves mesh.world=2 optimizer.zero_stage=1 checkpoint.every_steps=1 checkpoint.async=true
train saves 2 saves
same 'checkpoints: how often, and while the training goes on' base saves
plan hosts mesh.world=2 mesh.nodes=2 optimizer.zero_stage=1
hosts='-launcher fork -hosts here:1,there:1'
train hosts 2 hosts
same 'hosts, and messages in place of shared memory' base hosts
hosts=
NXRUN_DELAY=7 train two 2 late
same 'when ranks come' base late
plan overlap mesh.world=2 optimizer.zero_stage=0 reduce.overlap=true
plan plain mesh.world=2
train overlap 2 overlap && train plain 2 plain
same 'reductions beside the backward pass' plain overlap
plan one
plan stages mesh.world=2 mesh.pipeline=2
train one 1 one && train stages 2 stages
same 'pipeline stages' one stages

# ---- run.reproducible: elastic ----
elastic one
train one 1 elastic
for ranks in 2 4 8; do
  elastic "zero$ranks" "mesh.world=$ranks" optimizer.zero_stage=1
  train "zero$ranks" "$ranks" "zero$ranks"
  same "data-parallel size 1 and $ranks, ZeRO 0 and 1" elastic "zero$ranks"
done
for stage in 2 3; do
  elastic "stage$stage" mesh.world=4 "optimizer.zero_stage=$stage"
  train "stage$stage" 4 "stage$stage"
  same "data-parallel size 1 and 4, ZeRO $stage" elastic "stage$stage"
done
elastic early mesh.world=2 optimizer.zero_stage=3 reduce.overlap=true gather.overlap=true
train early 2 early
same 'ZeRO 3 that gathers and reduces beside kernels' elastic early
train one 1 moves --stop-after 1 && train zero4 4 moves --resume --stop-after 2 && train zero2 2 moves --resume
same 'a size that changes in mid-run' elastic moves
elastic nodes mesh.world=4 mesh.nodes=2
hosts='-launcher fork -hosts here:2,there:2'
train nodes 4 two-hosts
same 'and hosts' elastic two-hosts
hosts=
elastic of-three batch.global=12
train of-three 1 of-three
for ranks in 3 6; do
  elastic "by$ranks" "mesh.world=$ranks" batch.global=12
  train "by$ranks" "$ranks" "by$ranks"
  same "size 1 and $ranks, no power of two" of-three "by$ranks"
done
# Of each: what a data-parallel rank is made of, and other settings.
while read -r rest what settings; do
  elastic "$what-1" "mesh.world=$rest" $settings
  elastic "$what-2" "mesh.world=$((2 * rest))" $settings
  train "$what-1" "$rest" "$what-1" && train "$what-2" $((2 * rest)) "$what-2"
  same "with $what" "$what-1" "$what-2"
done <<'END'
2 tensor optimizer.zero_stage=1 mesh.tensor=2 sequence_parallel=true
2 context optimizer.zero_stage=3 mesh.context=2 attention.ring=true
2 pipeline optimizer.zero_stage=1 mesh.pipeline=2
1 mixture optimizer.zero_stage=3 moe.experts=4 moe.top_k=2 moe.aux_loss_coef=0.1
1 bf16 optimizer.zero_stage=2 precision.preset=mixed_precision reduce.overlap=true
1 fp16 precision.preset=fp16
1 tied model.tied_embeddings=true
1 muon optimizer.name=muon
END

# ---- where elastic cannot be kept ----
while read -r setting pattern; do
  expect "elastic and $setting" 1 "NX3050.*$pattern" "$nxcfg" plan base.yaml -o bad.bin --set run.reproducible=elastic \
    --set mesh.world=2 --set "$setting"
done <<'END'
batch.global=12 a power of two of micro-batches
precision.grad_accumulation=bf16 gradients are fp32
END
expect 'elastic and experts of several ranks' 1 'NX3050.*experts see the tokens of one rank' "$nxcfg" plan base.yaml -o bad.bin \
  --set run.reproducible=elastic --set mesh.world=2 --set moe.experts=4 --set moe.top_k=2 --set mesh.expert=2
expect 'elastic and whole tensors that are dealt' 1 'NX3050.*not dealt to ranks' "$nxcfg" plan base.yaml -o bad.bin \
  --set run.reproducible=elastic --set mesh.world=2 --set optimizer.name=muon --set optimizer.zero_stage=1
finish
