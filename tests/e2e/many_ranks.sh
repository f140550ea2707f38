#!/bin/sh
# Eight ranks, on a machine that may have cores for fewer: no hang, the training of one rank, and time for
# work and not for spinning. TAP.
# usage: many_ranks.sh NXCFG NXRUN NXDATA MPIEXEC TEXT
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 text=$(realpath "$5")
. "$(dirname "$0")/lib.sh"

cat >tiny.yaml <<YAML
batch: {micro: 1, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 88, heads: 4, kv_heads: 2, sequence: 32, vocab: 256}
optimizer: {name: adamw, lr: 1e-3, clip_norm: 1.0}
schedule: {max_steps: 20}
data: {path: [data]}
run: {seed: 7, threads: 1}
YAML
"$nxdata" build "$text" -o data >out 2>&1 || exit 99
plan() { # NAME SETTING=VALUE...
  name=$1
  shift
  for set in "$@"; do set -- "$@" --set "nx:$set"; shift; done
  "$nxcfg" plan tiny.yaml "$@" -o "$name.bin" >out 2>&1 || { cat out; exit 99; }
}
plan one mesh.world=1
plan eight mesh.world=8 mesh.tensor=2 sequence_parallel=true optimizer.zero_stage=1

numbers() { # RUN: step, loss and gradient norm of every step
  sed 's/{"step":\([0-9]*\),"loss":\([^,]*\).*"grad_norm":\([^,]*\).*/\1 \2 \3/' "$1/metrics.jsonl"
}
same_training() { # RUN OTHER: losses and gradient norms of every step to 1e-5
  numbers "$1" >a && numbers "$2" >b && paste -d ' ' a b | awk '
    function far(x, y) { return x - y > 1e-5 * x || y - x > 1e-5 * x }
    { n++ } $1 != $4 || far($2, $5) || far($3, $6) { print; bad = 1 } END { exit bad || n != 20 }' >>out
}
seconds() { awk -F '"tokens_per_s":' '{ s += 256 / $2 } END { printf "%.3f", s }' "$1/metrics.jsonl"; }

expect 'one rank' 0 '^step 20/20 ' "$nxrun" one.bin --dir one
expect 'eight ranks' 0 '^step 20/20 ' "$mpiexec" -n 8 "$nxrun" eight.bin --dir eight
same_training one eight
report 'train as one does' $?
expect 'eight ranks by messages' 0 '^step 20/20 ' "$mpiexec" -n 8 "$nxrun" eight.bin --dir messages --comm p2p
same_training one messages
report 'train as one does' $?
for run in one eight messages; do echo "# $run: $(seconds $run) s in 20 steps"; done
awk "BEGIN { exit !($(seconds eight) < 40 && $(seconds messages) < 40) }"
report 'a step takes less than two seconds' $?
finish
