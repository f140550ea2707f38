#!/bin/sh
# An NxDT configuration whose sequences are divided over two ranks (ring attention), compiled and trained for three
# steps: losses and gradient norms are those of one rank to 1e-5, through shared memory and through messages, with
# pipeline stages beside it, and with heads exchanged for sequence instead. TAP.
# usage: context.sh NXCFG NXRUN NXDATA MPIEXEC SOURCE_ROOT
# SPDX-License-Identifier: Apache-2.0
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 source=$5
. "$(dirname "$0")/lib.sh"
mkdir -p build/data
"$nxdata" build "$source/conf/text/devil.txt" -o build/data/devil >out 2>&1 || exit 99
comm=auto

train() { # NAME RANKS ARGUMENTS...: three steps; losses and norms go to the file NAME
  name=$1 ranks=$2
  shift 2
  "$nxcfg" plan "$source/conf/nxdt/ring.yaml" "$@" -o "$name.plan" >out 2>&1 &&
    timeout 100 "$mpiexec" -n "$ranks" "$nxrun" "$name.plan" --dir "$name.run" --stop-after 3 --comm $comm >out 2>&1 &&
    grep -o '"\(loss\|grad_norm\)":[^,]*' "$name.run/metrics.jsonl" | sed 's/.*://' >"$name"
  [ $? -eq 0 ] && paste "$name" one | awk '
    { d = ($1 - $2) / $2; if (d > 1e-5 || d < -1e-5) { wrong = 1; print } }
    END { exit wrong || NR != 6 }' >>out
  report "$name" $?
}

context=distributed_strategy.context_parallel_size
ring=model.fusions.ring_attention
train one 1 --set $context=1 --set $ring=False --set trainer.devices=1
train ring 2
train stages 4 --set distributed_strategy.pipeline_model_parallel_size=2 --set trainer.devices=4
train ulysses 2 --set $ring=False --set nx:attention.ulysses=true
comm=p2p
train messages 2
finish
