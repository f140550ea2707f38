#!/bin/sh
# nxrun --calibrate writes a description that nxcfg reads and forecasts with; alone, on two ranks, on two
# hosts. TAP.
# usage: calibrate.sh NXCFG NXRUN MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") mpiexec=$3
. "$(dirname "$0")/lib.sh"
export NXRUN_SAMPLE_MS=0.5 # what is measured, and not how well, is looked at here

cat >small.yaml <<YAML
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 88, heads: 4, kv_heads: 2, sequence: 16, vocab: 256}
optimizer: {lr: 1e-3, clip_norm: 1.0}
schedule: {max_steps: 8}
data: {path: [data]}
YAML
plan() { # MACHINE SETTING=VALUE…: the forecast in `out`
  machine=$1
  shift
  for set in "$@"; do set -- "$@" --set "nx:$set"; shift; done
  "$nxcfg" plan small.yaml --machine "$machine" "$@" >out 2>&1
}
forecast() { # NAME STATUS: a positive number of tokens per second was forecast
  grep -qE '^  in all .* [1-9][0-9]* tokens/s, ' out
  report "$1" $((($2) + $?))
}

passes 'one rank' "$nxrun" --calibrate --threads 1 -o one.yaml
plan one.yaml mesh.world=1 run.threads=1 precision.preset=mixed_precision
forecast 'one rank: forecast' $?
plan one.yaml mesh.world=2
grep -q NX3111 out && ! grep -q 'tokens/s' out
report 'one rank has measured no link' $?

passes 'two ranks' "$mpiexec" -n 2 "$nxrun" --calibrate --threads 1 -o two.yaml
plan two.yaml mesh.world=2 mesh.tensor=2
forecast 'two ranks: forecast' $?
grep -q '^ranks_per_host: 2$' two.yaml && grep -q '^threads: 1$' two.yaml && grep -q '^inside:$' two.yaml &&
  ! grep -q '^between:$' two.yaml
report 'two ranks: what was measured' $?
of_two_sizes() { # what has no speeds of two sizes in both types
  for op in rms_norm gated_grad split_qkv ce_stats norm_sq attention_grad; do
    [ "$(grep -cE "^    $op: \[\[[1-9].*\], \[[1-9]" two.yaml)" -eq 2 ] || echo "$op"
  done >out
  [ ! -s out ]
}
# Beside much other work the first size may be so slow that the next is left out.
of_two_sizes || "$mpiexec" -n 2 "$nxrun" --calibrate --threads 1 -o two.yaml >/dev/null 2>&1
of_two_sizes || "$mpiexec" -n 2 "$nxrun" --calibrate --threads 1 -o two.yaml >/dev/null 2>&1
of_two_sizes
report 'two ranks: operators with speeds of their own, in fp32 and bf16' $?

passes 'two hosts' "$mpiexec" -launcher fork -hosts one:1,two:1 -n 2 \
  "$nxrun" --calibrate --threads 1 -o hosts.yaml
plan hosts.yaml mesh.world=2 mesh.nodes=2 optimizer.zero_stage=1
forecast 'two hosts: forecast' $?
grep -q '^between:$' hosts.yaml && ! grep -q '^inside:$' hosts.yaml && grep -q '^  taken: [01]' hosts.yaml
report 'two hosts: what was measured' $?

"$nxrun" --calibrate --backend ref --threads 1 >ref.yaml 2>out
report 'to standard output, ref' $?
plan ref.yaml mesh.world=1
forecast 'ref: forecast' $?

refuse() { # NAME STATUS COMMAND…
  name=$1 wanted=$2
  shift 2
  timeout 60 "$@" >out 2>&1
  [ $? -eq "$wanted" ] && [ -s out ]
  report "$name" $?
}
refuse 'a plan beside --calibrate' 2 "$nxrun" --calibrate small.plan
refuse 'options of a training' 2 "$nxrun" --calibrate --resume
refuse '-o without --calibrate' 2 "$nxrun" small.plan -o out.yaml
refuse 'no thread' 2 "$nxrun" --calibrate --threads 0
refuse 'a folder that is not there' 1 "$nxrun" --calibrate -o nowhere/machine.yaml
cp two.yaml mine.yaml && sed -i 1d mine.yaml && cp mine.yaml kept
refuse 'a file of another kind is not replaced' 1 "$nxrun" --calibrate --threads 1 -o mine.yaml
cmp -s mine.yaml kept
report 'and stays as it was' $?
mkfifo pipe && cat pipe >through &
timeout 60 "$nxrun" --calibrate --threads 1 --backend ref -o pipe >out 2>&1
wait $! && [ -p pipe ] && grep -q '^memory_bandwidth' through
report 'a pipe stays one' $?
[ -z "$(ls ./*.tmp 2>/dev/null)" ]
report 'nothing is left over' $?
finish
