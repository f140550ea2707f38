#!/bin/sh
# What a run records of its steps: every rank, every operator, in order, and nothing of the training changes. TAP.
# usage: profile.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
cat >plan.yaml <<END
mesh: {world: 4, pipeline: 2}
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}
schedule: {name: cosine, max_steps: 6}
precision: {preset: fp32}
data: {path: [data]}
END
"$nxcfg" plan plan.yaml -o plan.bin >out 2>&1 || { sed 's/^/# /' out; exit 99; }
"$nxcfg" plan plan.yaml --set run.profile_first=2 --set run.profile_last=2 --set 'run.profile_ranks=[1, 3]' \
  -o some.bin >out 2>&1 || { sed 's/^/# /' out; exit 99; }
run="$mpiexec -n 4 $nxrun"

expect 'a run without' 0 'step 6/6' $run plan.bin --dir without
expect 'a run that records' 0 'ui.perfetto.dev opens it' $run plan.bin --dir with --profile 3-4
cut -d, -f1-4 without/metrics.jsonl >one && cut -d, -f1-4 with/metrics.jsonl >other && diff one other >out
report 'computes the same' $?

# Lines of events, whole and closed; of each rank, not before the one ahead of it.
trace=with/profile/steps-3-4.json
head -1 $trace | grep -q '^{"displayTimeUnit":"ms","traceEvents":\[$' && tail -1 $trace | grep -q '^\]}$' &&
  sed '1d;$d' $trace | grep -vE '^\{"ph":"[MX]",.*\}\}?,?$' >out
[ ! -s out ]
report 'every line is an event' $?
awk -F'"pid":|,"tid":0,"ts":|,"dur":' '/"ph":"X"/ { split($4, end, ","); rank = $2; sub(/,.*/, "", rank); n[rank]++
  if ($3 + 0 < last[rank] - 0.002 || end[1] < 0) bad = 1
  last[rank] = $3 + end[1] } END { exit bad || n[0] < 50 || n[1] < 50 || n[2] < 50 || n[3] < 50 }' $trace 2>out
report 'all ranks, in the order of time' $?
for kind in matmul attention_grad adamw send wait reduce_scatter; do
  grep -q "\"name\":\"$kind\"" $trace 2>out
  report "$kind is there" $?
done

expect 'the plan may ask for it' 0 'ui.perfetto.dev opens it' $run some.bin --dir some
[ "$(grep -o '"ph":"X".*"pid":[0-9]*' some/profile/steps-2-2.json | grep -o '"pid":.*' | sort -u | tr '\n' ' ')" = \
  '"pid":1 "pid":3 ' ]
report 'of some ranks' $?
expect 'a run that ends before' 0 'profile/steps-5-6.json; ui.perfetto.dev opens it' \
  $run plan.bin --dir early --profile 5-9
expect 'no steps are a mistake' 2 "profile cannot be '4-3'" $run plan.bin --dir none --profile 4-3
finish
