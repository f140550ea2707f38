#!/bin/sh
# A checkpoint of any layout is gone on with in any other: weights, what optimizers keep, scales, and step. TAP.
# usage: any_mesh.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

small_training 'mesh: {world: 1}' 'batch: {micro: 1, global: 4}' 'optimizer: {name: adamw, zero_stage: 0, lr: 3e-3}' \
  'schedule: {name: constant, max_steps: 4}'
# Name, ranks, settings of each layout; those of one kind of model can follow each other.
layout() { # KIND NAME RANKS [SETTING]...
  kind=$1 name=$1-$2 ranks=$3
  shift 3
  case $kind in
    experts) set -- "$@" moe.experts=4 moe.top_k=2 moe.aux_loss_coef=0.1 ;;
    lora) set -- "$@" lora.rank=4 lora.alpha=8 run.init_from=weights/checkpoints/step-000001 ;;
    fp16) set -- "$@" precision.preset=fp16 precision.loss_scale_initial=65536 precision.loss_scale_window=2 ;;
    fp8) set -- "$@" precision.products=fp8 precision.fp8_history=3 precision.fp8_amax=max ;;
    dense | four) ;;
    *) set -- "$@" optimizer.name="${kind%-*}" ;;
  esac
  [ "$kind" != four ] || set -- "$@" model.layers=4
  [ "$kind" != "${kind%-momentum}" ] && set -- "$@" optimizer.momentum=0.9
  plan "$name" "mesh.world=$ranks" "$@"
  echo "$kind $name $ranks" >>layouts
}
train() { # NAME RANKS DIR [OPTION]...
  name=$1 ranks=$2 dir=$3
  shift 3
  timeout 60 "$mpiexec" -n "$ranks" "$nxrun" "$name.bin" --dir "$dir" "$@" >out 2>&1 </dev/null
}
losses() { sed -n 's/.*"step":[34],"loss":\([0-9.]*\),.*"grad_norm":\([0-9.]*\).*/\1 \2/p' "$1/metrics.jsonl"; }

# The losses and norms of the steps behind are those of the run that stayed where it was. What works by signs takes
# another step where meshes round a gradient near 0 otherwise.
follow() { # KIND FROM TO RANKS
  tolerance=1e-4
  case $1 in lion | signsgd | rprop | fp8) tolerance=5e-3 ;; esac
  cp -r "from-$2" moved && train "$3" "$4" moved --resume && losses moved >got &&
    paste "expected-$1" got | awk -v t=$tolerance 'function off(a, b) { return (a - b) * (a - b) > t * t * a * a }
      off($1, $3) || off($2, $4) { bad = 1; print "# " $0 } END { exit bad || NR != 2 }' >>out
  report "$2, then $3" $?
  rm -rf moved
}

# Every layout's checkpoint, and what a run becomes that stays on one rank.
begin() {
  while read -r kind name ranks; do
    train "$name" "$ranks" "from-$name" --stop-after 2 || report "$name trains" 1
  done <layouts
  for kind in $(cut -d' ' -f1 layouts | uniq); do
    cp -r "from-$kind-one" "whole-$kind" && train "$kind-one" 1 "whole-$kind" --resume
    losses "whole-$kind" >"expected-$kind"
  done
}
every_pair() {
  while read -r kind from _; do
    while read -r other to ranks; do
      [ "$kind" != "$other" ] || [ "$from" = "$to" ] || follow "$kind" "$from" "$to" "$ranks"
    done <layouts
  done <layouts
}
# From each layout of a kind to the one below it, and from the last to the first.
in_turn() {
  while read -r kind from _; do
    set -- $(awk -v from="$from" -v kind="$kind" '$1 == kind { if (!first) first = $2 " " $3; if (found) { print $2, $3; done = 1; exit }
      found = $2 == from } END { if (!done) print first }' layouts)
    [ "$1" = "$from" ] || follow "$kind" "$from" "$1" "$2"
  done <layouts
}

: >layouts
layout dense one 1
train dense-one 1 weights --stop-after 1 || exit 99
layout dense tensor 2 mesh.tensor=2
layout dense pipeline 2 mesh.pipeline=2
layout dense context 2 mesh.context=2 attention.ring=true
layout dense zero1 2 optimizer.zero_stage=1
layout dense zero3 2 optimizer.zero_stage=3
layout dense both 4 mesh.tensor=2 mesh.pipeline=2
layout experts one 1
layout experts expert 2 mesh.expert=2
layout experts zero1 2 optimizer.zero_stage=1
layout lora one 1
layout lora tensor 2 mesh.tensor=2
layout lora zero3 2 optimizer.zero_stage=3
layout four one 1
layout four interleaved 2 mesh.pipeline=2 mesh.virtual_pipeline=2
layout four zero2 4 mesh.pipeline=2 optimizer.zero_stage=2
layout fp16 one 1
layout fp16 tensor 2 mesh.tensor=2
layout fp16 zero1 2 optimizer.zero_stage=1
layout fp8 one 1
layout fp8 tensor 2 mesh.tensor=2
layout fp8 zero1 2 optimizer.zero_stage=1
begin
every_pair

: >layouts
whole_tensors='muon adaptive_muon novograd sm3 sm3-momentum adafactor'
elements='adam adamax adadelta adagrad rmsprop rmsprop-momentum rprop lion madgrad_wd anyprecision_adamw kahan_adamw sgd
  sgd-momentum signsgd ademamix'
for kind in $elements $whole_tensors; do
  layout "$kind" one 1
  layout "$kind" tensor 2 mesh.tensor=2 optimizer.zero_stage=1
  layout "$kind" zero1 2 optimizer.zero_stage=1
  layout "$kind" pipeline 2 mesh.pipeline=2
done
begin
in_turn
finish
