#!/bin/sh
# Mixtures of experts in NxDT's and Megatron's words, compiled and trained for three steps: experts divided over ranks
# give one rank's losses; a buffer without room ends the run and is named; a checkpoint has a tensor per expert. TAP.
# usage: experts.sh NXCFG NXRUN NXDATA MPIEXEC SOURCE_ROOT
# SPDX-License-Identifier: Apache-2.0
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 source=$5
. "$(dirname "$0")/lib.sh"
mkdir -p build/data
"$nxdata" build "$source/conf/text/devil.txt" -o build/data/devil >out 2>&1 || exit 99

run() { # PLAN RANKS
  timeout 100 "$mpiexec" -n "$2" "$nxrun" "$1.plan" --dir "$1.run" --stop-after 3 >>out 2>&1
}

train() { # NAME RANKS CONFIGURATION ARGUMENTS...: three steps; losses and norms go to the file NAME
  name=$1 ranks=$2 file=$3
  shift 3
  "$nxcfg" plan "$source/conf/$file" "$@" -o "$name.plan" >out 2>&1 && run "$name" "$ranks" &&
    grep -o '"\(loss\|grad_norm\)":[^,]*' "$name.run/metrics.jsonl" | cut -d: -f2 >"$name"
  report "$name" $?
}

alike() { # NAME NAME TOLERANCE: six numbers each
  paste "$1" "$2" | awk -v allowed="$3" '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > allowed) bad = 1 }
    END { exit bad || NR != 6 }' >out 2>&1
  report "$2 trains as $1" $?
}

train nxdt 2 nxdt/experts.yaml
train nxdt-one 1 nxdt/experts.yaml --set trainer.devices=1 --set distributed_strategy.expert_model_parallel_size=1
alike nxdt-one nxdt 1e-5
train megatron 4 megatron/experts.sh
train megatron-two 2 megatron/experts.sh --set nx:mesh.world=2 --set nx:mesh.expert=1
alike megatron-two megatron 1e-2 # in bf16

"$nxcfg" plan "$source/conf/nxdt/experts.yaml" --set nx:moe.buffer_factor=1 -o full.plan >out 2>&1
run full 2
[ $? -ne 0 ] && grep -q 'moe_index of layers.0.ffn: .* moe.buffer_factor' out
report 'a buffer without room is named' $?

grep -raq model.layers.3.block_sparse_moe.experts.7.w2.weight nxdt.run
report 'a tensor for each expert' $?
finish
