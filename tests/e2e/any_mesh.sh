#!/bin/sh
# A checkpoint of any layout is gone on with in any other: weights, what optimizers keep, scales, and step. TAP.
# The trainings of as many ranks are one job: MPI takes longer to start than they do.
# usage: any_mesh.sh NXRUN NXCFG NXDATA MPIEXEC TRAIN_PLANS
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 train_plans=$(realpath "$5")
. "$(dirname "$0")/lib.sh"

small_training 'mesh: {world: 1}' 'batch: {micro: 1, global: 4}' 'optimizer: {name: adamw, zero_stage: 0, lr: 3e-3}' \
  'schedule: {name: constant, max_steps: 4}'
# Name, ranks, settings of each layout; those of one kind of model can follow each other.
layout() { # KIND NAME RANKS [SETTING]...
  kind=$1 name=$1-$2 ranks=$3
  shift 3
  case $kind in
    experts) set -- "$@" moe.experts=4 moe.top_k=2 moe.aux_loss_coef=0.1 ;;
    quantiles) set -- "$@" moe.experts=4 moe.top_k=2 moe.routing=quantiles moe.quantile_memory=0.5 ;;
    lora) set -- "$@" lora.rank=4 lora.alpha=8 run.init_from=weights/checkpoints/step-000001 ;;
    fp16) set -- "$@" precision.preset=fp16 precision.loss_scale_initial=65536 precision.loss_scale_window=2 ;;
    fp8) set -- "$@" precision.products=fp8 precision.fp8_history=3 precision.fp8_amax=max ;;
    soap) set -- "$@" optimizer.name=soap optimizer.clip_norm=null batch.global=2 ;;
    dense | four | tied) ;;
    *) set -- "$@" optimizer.name="${kind%-*}" ;;
  esac
  case $kind in
    four) set -- "$@" model.layers=4 ;;
    tied) set -- "$@" model.layers=4 model.tied_embeddings=true ;;
  esac
  case $kind in
    *-momentum) set -- "$@" optimizer.momentum=0.9 ;;
    *-parts) set -- "$@" optimizer.matrix_parts=2 optimizer.rounded_momentum=all precision.optimizer_state=bf16 ;;
    *-amsgrad | *-centered | *-eight_bits | *-late_decay) set -- "$@" "optimizer.${kind##*-}=true" ;;
  esac
  plan "$name" "mesh.world=$ranks" "$@"
  echo "$kind $name $ranks" >>layouts
}
# A folder for a training that begins with the plan of NAME, and perhaps with what another has reached.
prepare() { # FOLDER NAME RANKS [FROM]
  mkdir "$1" && ln "$2.bin" "$1/plan.bin" || exit 99
  [ $# -lt 4 ] || cp -r "$4/run" "$1/run" || exit 99
  echo "$3 $1" >>prepared
}
train_prepared() { # [WORD]...
  for ranks in 1 2 4; do
    timeout 280 "$mpiexec" -n $ranks "$train_plans" "$@" $(awk -v ranks=$ranks '$1 == ranks { print $2 }' prepared) \
      >out.$ranks 2>&1 </dev/null || { cat out.$ranks >&2; report "the trainings on $ranks ranks" 1; }
  done
  rm prepared
}
losses() { sed -n 's/.*"step":[34],"loss":\([0-9.]*\),.*"grad_norm":\([0-9.]*\).*/\1 \2/p' "$1/metrics.jsonl"; }

# The losses and norms of the steps behind are those of the run that stayed where it was. What works by signs takes
# another step where meshes round a gradient near 0 otherwise.
follow() { # KIND FROM TO
  tolerance=1e-4
  case $1 in lion | signsgd | distsignsgd | rprop | fp8) tolerance=5e-3 ;; esac
  losses "$2-$3" >got &&
    paste "expected-$1" got | awk -v t=$tolerance 'function off(a, b) { return (a - b) * (a - b) > t * t * a * a }
      off($1, $3) || off($2, $4) { bad = 1; print "# " $0 } END { exit bad || NR != 2 }' >out
  report "$2, then $3" $?
}

# Every layout's checkpoint; then the runs that go on from it in another, each line of `pairs`, and one that stays in
# its first layout.
compare() {
  while read -r kind name ranks; do prepare "from-$name" "$name" "$ranks"; done <layouts
  train_prepared stop=2
  for kind in $(cut -d' ' -f1 layouts | uniq); do
    prepare "whole-$kind" "$kind-one" "$(awk -v name="$kind-one" '$2 == name { print $3 }' layouts)" "from-$kind-one"
  done
  while read -r _ from to ranks; do prepare "$from-$to" "$to" "$ranks" "from-$from"; done <pairs
  train_prepared from=checkpoint
  for kind in $(cut -d' ' -f1 layouts | uniq); do losses "whole-$kind" >"expected-$kind"; done
  while read -r kind from to _; do follow "$kind" "$from" "$to"; done <pairs
}
every_pair() {
  awk 'BEGIN { n = 0 }
    { for (i = 0; i < n; i++) if (kind[i] == $1) { print $1, name[i], $2, $3; print $1, $2, name[i], ranks[i] }
      kind[n] = $1; name[n] = $2; ranks[n++] = $3 }' layouts >pairs
}
# From each layout of a kind to the one below it, and from the last to the first.
in_turn() {
  awk 'function turn() { if (kind) print kind, last, first }
    $1 != kind { turn(); kind = $1; first = $2 " " $3; last = "" }
    { if (last) print kind, last, $2, $3; last = $2 }
    END { turn() }' layouts >pairs
}

: >layouts
layout dense one 1
"$nxrun" dense-one.bin --dir weights --stop-after 1 >out 2>&1 || exit 99
layout dense tensor 2 mesh.tensor=2
layout dense pipeline 2 mesh.pipeline=2
layout dense context 2 mesh.context=2 attention.ring=true
layout dense zero1 2 optimizer.zero_stage=1
layout dense zero3 2 optimizer.zero_stage=3
layout dense both 4 mesh.tensor=2 mesh.pipeline=2
layout experts one 1
layout experts expert 2 mesh.expert=2
layout experts zero1 2 optimizer.zero_stage=1
layout quantiles one 1
layout quantiles expert 2 mesh.expert=2
layout quantiles pipeline 2 mesh.pipeline=2
layout lora one 1
layout lora tensor 2 mesh.tensor=2
layout lora zero3 2 optimizer.zero_stage=3
layout four one 1
layout four interleaved 2 mesh.pipeline=2 mesh.virtual_pipeline=2
layout four mirrored 2 mesh.pipeline=2 mesh.virtual_pipeline=2 pipeline.schedule=zbv
layout four zero2 4 mesh.pipeline=2 optimizer.zero_stage=2
layout tied one 1
layout tied mirrored 2 mesh.pipeline=2 mesh.virtual_pipeline=2 pipeline.schedule=dualpipev
layout tied interleaved 4 mesh.pipeline=2 mesh.virtual_pipeline=2 pipeline.schedule=zero_bubble optimizer.zero_stage=1
layout tied zero1 4 mesh.pipeline=2 mesh.virtual_pipeline=2 pipeline.schedule=zbv optimizer.zero_stage=1
layout fp16 one 1
layout fp16 tensor 2 mesh.tensor=2
layout fp16 zero1 2 optimizer.zero_stage=1
layout fp8 one 1
layout fp8 tensor 2 mesh.tensor=2
layout fp8 zero1 2 optimizer.zero_stage=1
every_pair
compare

: >layouts
whole_tensors='muon adaptive_muon novograd sm3 sm3-momentum adafactor adafactor-momentum adamw-eight_bits'
elements='adam adamax adadelta adagrad rmsprop rmsprop-momentum rprop lion madgrad_wd anyprecision_adamw kahan_adamw sgd
  sgd-momentum signsgd distsignsgd ademamix adan adamw-amsgrad adamw-late_decay rmsprop-centered madgrad_wd-momentum'
for kind in $elements $whole_tensors; do
  layout "$kind" one 1
  layout "$kind" tensor 2 mesh.tensor=2 optimizer.zero_stage=1
  layout "$kind" zero1 2 optimizer.zero_stage=1
  layout "$kind" pipeline 2 mesh.pipeline=2
done
# Each rank cuts the rows that it has: layouts without tensor parallelism.
layout muon-parts one 1
layout muon-parts zero1 2 optimizer.zero_stage=1
layout muon-parts zero3 2 optimizer.zero_stage=3
layout muon-parts pipeline 2 mesh.pipeline=2
# Its bases of what no gradient has said anything of are what roundings make of them: layouts that sum alike.
layout soap one 2
layout soap zero1 2 optimizer.zero_stage=1
layout soap zero3 2 optimizer.zero_stage=3
layout soap pipeline 4 mesh.pipeline=2 optimizer.zero_stage=2
in_turn
compare
finish
