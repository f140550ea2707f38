#!/bin/sh
# Samples in the order of PyTorch's and Megatron's samplers, over several epochs: on one rank and two, and resumed. TAP.
# usage: walks.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(dirname "$(realpath "$0")")
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

# 36 samples: epochs of both samplers end at the same places whether one rank reads or two.
awk 'BEGIN { for (i = 0; i < 200; i++) printf "%d ", i * i * 7919 % 10007 }' | head -c 577 >text
"$nxdata" build text -o data >/dev/null || exit 99
plan() { # NAME WORLD SETTING=VALUE...
  name=$1 world=$2 sets=
  shift 2
  for setting; do sets="$sets --set $setting"; done
  cat >plan.yaml <<END
mesh: {world: $world}
batch: {micro: 2, global: 8}
model: {layers: 1, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: adamw, lr: 3e-3}
schedule: {name: constant, max_steps: 12}
precision: {preset: fp32}
run: {reproducible: elastic}
data: {path: [data]}
checkpoint: {every_steps: 5}
END
  # shellcheck disable=SC2086 # a list of words
  "$nxcfg" plan plan.yaml $sets -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
losses() { # RUN
  cut -d, -f1-4 "$1/metrics.jsonl"
}
differ() { # NAME RUN OTHER
  losses "$2" >one && losses "$3" >other && ! cmp -s one other && [ -s one ]
  report "$1" $?
}
train() { # NAME WORLD
  "$mpiexec" -n "$2" "$nxrun" "$1.bin" --dir "$1" >out 2>&1 || sed 's/^/# /' out
}

plan straight 1 data.shuffle=false
train straight 1
for order in data.order=torch data.order=torch_dealt 'data.walk=cyclic data.shuffle=false' 'data.walk=cyclic_shards data.order=megatron'; do
  how=$(printf %s "$order" | cut -d ' ' -f 1)
  # shellcheck disable=SC2086
  plan "$how" 2 optimizer.zero_stage=2 $order
  train "$how" 2
  differ "$how: an order of its own" "$how" straight
  "$mpiexec" -n 2 "$nxrun" "$how.bin" --dir again --stop-after 7 >out 2>&1
  expect "$how: resumed within an epoch" 0 'step 12/12' "$mpiexec" -n 2 "$nxrun" "$how.bin" --dir again --resume
  losses "$how" >one && losses again | diff - one >out
  report "$how: to the last bit" $?
  rm -r again
  # These give each rank others of a step's samples.
  case $how in data.walk=cyclic_shards | data.order=torch_dealt) continue ;; esac
  # shellcheck disable=SC2086
  plan one-rank 1 $order
  train one-rank 1
  losses "$how" >one && losses one-rank | diff - one >out
  report "$how: on one rank as on two" $?
  rm -r one-rank
done
# Of GPT-NeoX's 35 samples 17 micro-batches make an epoch, and 68 the 17 steps of four.
plan again 1 data.order=neox schedule.epochs=4 schedule.max_steps=20
expect 'an epoch again and again' 0 '4 epochs of 36 samples are over after 17 of' "$nxrun" again.bin --dir again
expect 'which a run goes on within' 0 'step 9/17' "$nxrun" again.bin --dir parts --stop-after 9
expect 'to its end' 0 'step 17/17' "$nxrun" again.bin --dir parts --resume
losses again >one && losses parts | diff - one >out
report 'as one that did not stop' $?
# 36 samples are four batches of 8: steps 5 to 8 read what 1 to 4 did.
plan whole 1 data.walk=again data.shuffle=false optimizer.lr=1e-30
train whole 1
for step in 1 2 3 4; do
  for later in 0 4 8; do
    sed -n "$((step + later))s/.*\"loss\":\([^,]*\).*/\1/p" whole/metrics.jsonl
  done | uniq | wc -l
done | sort -u >out
[ "$(tr -d ' ' <out)" = 1 ]
report 'whole batches again and again' $?
plan few 1 data.order=torch batch.global=64
expect 'a dataset without a batch' 1 'dataset train has .* samples, and an epoch has none of 64' \
  "$nxrun" few.bin --dir few
finish
