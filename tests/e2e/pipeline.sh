#!/bin/sh
# An NxDT configuration with pipeline stages, compiled and trained for three steps: with derived and with given cuts,
# interleaved and not, and on one stage, the losses are the same to the last digit. TAP.
# usage: pipeline.sh NXCFG NXRUN NXDATA MPIEXEC SOURCE_ROOT
# SPDX-License-Identifier: Apache-2.0
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 source=$5
. "$(dirname "$0")/lib.sh"
mkdir -p build/data
"$nxdata" build "$source/conf/text/devil.txt" -o build/data/devil >out 2>&1 || exit 99

train() { # NAME RANKS ARGUMENTS...: three steps; losses and norms go to the file NAME
  name=$1 ranks=$2
  shift 2
  "$nxcfg" plan "$source/conf/nxdt/pipeline.yaml" "$@" -o "$name.plan" >out 2>&1 &&
    timeout 100 "$mpiexec" -n "$ranks" "$nxrun" "$name.plan" --dir "$name.run" --stop-after 3 >out 2>&1 &&
    grep -o '"\(loss\|grad_norm\)":[^,]*' "$name.run/metrics.jsonl" >"$name"
  [ $? -eq 0 ] && [ "$(wc -l <"$name")" -eq 6 ] && diff "$name" stages >>out
  report "$name" $?
}

virtual=distributed_strategy.virtual_pipeline_model_parallel_size
stages=distributed_strategy.pipeline_model_parallel_size
train stages 2
train cuts 2 --set 'model.pipeline_cuts=[model.layers.0,model.layers.1,model.layers.2]'
train uneven 2 --set $virtual=1 --set 'model.pipeline_cuts=[model.layers.0]'
train gpipe 2 --set $virtual=1 --set nx:pipeline.schedule=gpipe
train one 1 --set $stages=1 --set $virtual=1 --set trainer.devices=1
"$nxcfg" show --schedule stages.plan >out 2>&1 && grep -q '^stage 1  *\.*F0a' out
report 'the schedule is drawn' $?
finish
