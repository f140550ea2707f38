#!/bin/sh
# A checkpoint of any layout is gone on with in any other: weights, moments and step. TAP.
# usage: any_mesh.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
cat >base.yaml <<'END'
mesh: {world: 1}
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: adamw, zero_stage: 0, lr: 3e-3}
schedule: {name: constant, max_steps: 4}
data: {path: [data]}
run: {name: run}
END
# Name, ranks, settings of each layout; those of one kind of model can follow each other.
layout() { # KIND NAME RANKS [SETTING]...
  kind=$1 name=$1-$2 ranks=$3
  shift 3
  case $kind in
    experts) set -- "$@" moe.experts=4 moe.top_k=2 moe.aux_loss_coef=0.1 ;;
    lora) set -- "$@" lora.rank=4 lora.alpha=8 run.init_from=weights/checkpoints/step-000001 ;;
  esac
  for setting; do set -- "$@" --set "$setting"; shift; done
  "$nxcfg" plan base.yaml --set "mesh.world=$ranks" "$@" -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
  echo "$kind $name $ranks" >>layouts
}
train() { # NAME RANKS DIR [OPTION]...
  name=$1 ranks=$2 dir=$3
  shift 3
  timeout 60 "$mpiexec" -n "$ranks" "$nxrun" "$name.bin" --dir "$dir" "$@" >out 2>&1 </dev/null
}
losses() { sed -n 's/.*"step":[34],"loss":\([0-9.]*\),.*"grad_norm":\([0-9.]*\).*/\1 \2/p' "$1/metrics.jsonl"; }

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

while read -r kind name ranks; do
  train "$name" "$ranks" "from-$name" --stop-after 2 || { report "$name trains" 1; continue; }
done <layouts
for kind in dense experts lora; do
  cp -r "from-$kind-one" "whole-$kind" && train "$kind-one" 1 "whole-$kind" --resume
  losses "whole-$kind" >"expected-$kind"
done
# The losses and norms of the steps behind are those of the run that stayed where it was.
while read -r kind from _; do
  while read -r other to ranks; do
    [ "$kind" = "$other" ] && [ "$from" != "$to" ] || continue
    cp -r "from-$from" moved && train "$to" "$ranks" moved --resume && losses moved >got &&
      paste "expected-$kind" got | awk 'function off(a, b) { return (a - b) * (a - b) > 1e-8 * a * a }
        off($1, $3) || off($2, $4) { bad = 1 } END { exit bad || NR != 2 }'
    report "$from, then $to" $?
    rm -rf moved
  done <layouts
done <layouts
finish
