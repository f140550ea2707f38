#!/bin/sh
# An NxDT configuration with pipeline stages, compiled and trained for three steps: with derived and with given cuts,
# interleaved and not, and on one stage, the losses are the same to the last digit. TAP.
# usage: pipeline.sh NXCFG NXRUN NXDATA MPIEXEC SOURCE_ROOT
# SPDX-License-Identifier: Apache-2.0
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 source=$5
folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99
mkdir -p build/data
"$nxdata" build "$source/conf/text/devil.txt" -o build/data/devil >out 2>&1 || exit 99
n=0

train() { # NAME RANKS ARGUMENTS...: three steps; losses and norms go to the file NAME
  name=$1 ranks=$2
  shift 2
  n=$((n + 1))
  "$nxcfg" plan "$source/conf/nxdt/pipeline.yaml" "$@" -o "$name.plan" >out 2>&1 &&
    timeout 100 "$mpiexec" -n "$ranks" "$nxrun" "$name.plan" --dir "$name.run" --stop-after 3 >out 2>&1 &&
    grep -o '"\(loss\|grad_norm\)":[^,]*' "$name.run/metrics.jsonl" >"$name"
  if [ $? -eq 0 ] && [ "$(wc -l <"$name")" -eq 6 ] && cmp -s "$name" stages; then echo "ok $n - $name"; else
    echo "not ok $n - $name"
    sed 's/^/# /' out
    diff "$name" stages | sed 's/^/# /'
  fi
}

virtual=distributed_strategy.virtual_pipeline_model_parallel_size
stages=distributed_strategy.pipeline_model_parallel_size
echo 1..6
train stages 2
train cuts 2 --set 'model.pipeline_cuts=[model.layers.0,model.layers.1,model.layers.2]'
train uneven 2 --set $virtual=1 --set 'model.pipeline_cuts=[model.layers.0]'
train gpipe 2 --set $virtual=1 --set nx:pipeline.schedule=gpipe
train one 1 --set $stages=1 --set $virtual=1 --set trainer.devices=1
n=$((n + 1))
if "$nxcfg" show --schedule stages.plan | grep -q '^stage 1  *\.*F0a'; then echo "ok $n - the schedule is drawn"; else
  echo "not ok $n - the schedule is drawn"
fi
