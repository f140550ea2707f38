#!/bin/sh
# Real plans through the loop: no allocation, the same bits whatever moves them, and a training that ends
# anywhere goes on as if it had not. TAP.
# usage: loop.sh NXCFG NXRUN NXDATA EXEC_CHECK MPIEXEC TEXT
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") exec_check=$(realpath "$4") mpiexec=$5
text=$(realpath "$6")
. "$(dirname "$0")/lib.sh"

cat >small.yaml <<YAML
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 88, heads: 4, kv_heads: 2, sequence: 16, vocab: 256,
  vocab_divisor: 16, normalization: rmsnorm, position_embedding: rope, activation: swiglu,
  hidden_dropout: 0.1}
optimizer: {name: adamw, lr: 1e-3, betas: [0.9, 0.95], weight_decay: 0.1, clip_norm: 1.0}
schedule: {name: cosine, warmup_steps: 3, min_lr: 1e-4, max_steps: 8}
data: {path: [data]}
run: {seed: 7}
YAML
"$nxdata" build "$text" -o data >out 2>&1 || exit 99
plan() { # OUT SETTING=VALUE…
  out=$1
  shift
  for set in "$@"; do set -- "$@" --set "nx:$set"; shift; done
  "$nxcfg" plan small.yaml "$@" -o "$out" >out 2>&1 || { cat out; exit 99; }
}
plan one.bin mesh.world=1
plan two.bin mesh.world=2 mesh.tensor=2 sequence_parallel=true
plan four.bin mesh.world=4 mesh.tensor=2 sequence_parallel=true optimizer.zero_stage=1
plan half.bin mesh.world=2 optimizer.zero_stage=1 precision.preset=mixed_precision

passes 'one rank, ref' "$exec_check" one.bin ref 4
passes 'one rank, cpu' "$exec_check" one.bin cpu 4
passes 'two ranks, ref' "$mpiexec" -n 2 "$exec_check" two.bin ref 4
passes 'two ranks, cpu' "$mpiexec" -n 2 "$exec_check" two.bin cpu 4
passes 'two ranks, ref, messages' "$mpiexec" -n 2 "$exec_check" two.bin ref 4 p2p
passes 'two ranks, cpu, bf16' "$mpiexec" -n 2 "$exec_check" half.bin cpu 4
passes 'four ranks, ref' "$mpiexec" -n 4 "$exec_check" four.bin ref 3

train() { # FOLDER RANKS PLAN ARGUMENT…
  run=$1 n_ranks=$2 file=$3
  shift 3
  timeout 120 "$mpiexec" -n "$n_ranks" "$nxrun" "$file" --backend ref --dir "$run" "$@" >out 2>&1
}
# What must be the same in two runs: all but the time and the memory.
numbers() { sed 's/,"tokens_per_s".*//' "$1/metrics.jsonl"; }
same_run() { # A B: numbers of every step, and the last weights and moments
  numbers "$1" >a && numbers "$2" >b && [ -s a ] && cmp a b >>out 2>&1 || return 1
  for file in "$1"/checkpoints/step-000008/*.safetensors; do
    cmp "$file" "$2/checkpoints/step-000008/${file##*/}" >>out 2>&1 || return 1
  done
}

train whole 4 four.bin && train again 4 four.bin && same_run whole again
report 'four ranks: the same plan gives the same bits' $?
plan fast.bin mesh.world=2 mesh.tensor=2 run.threads=2 precision.preset=mixed_precision
train fast 2 fast.bin --backend cpu && train fast-again 2 fast.bin --backend cpu && same_run fast fast-again
report 'and with the fast kernels, bf16 and two threads' $?
train messages 4 four.bin --comm p2p && same_run whole messages
report 'by messages as through the window' $?
train parts 4 four.bin --stop-after 3 && train parts 4 four.bin --resume && same_run whole parts
report 'stopped after step 3 and resumed' $?
train bf16 2 half.bin && train bf16-parts 2 half.bin --stop-after 5 &&
  train bf16-parts 2 half.bin --resume --comm p2p && same_run bf16 bf16-parts
report 'the same with bf16 weights and master copies' $?

# Killed with no warning, after a checkpoint and a few more steps: their lines are dropped, and the rest is
# the same.
plan often.bin mesh.world=2 optimizer.zero_stage=1 checkpoint.every_steps=3
train often 2 often.bin --stop-after 5 && rm -r often/checkpoints/step-000005 &&
  train often 2 often.bin --resume && train straight 2 often.bin && same_run straight often
report 'the newest checkpoint is behind the metrics' $?

train whole 4 four.bin
[ $? -eq 1 ] && grep -q 'has a run already' out
report 'a folder with a run is not overwritten' $?
plan wider.bin mesh.world=2 model.ffn_hidden=96 && train whole 2 wider.bin --resume
[ $? -eq 1 ] && grep -q 'model.ffn_hidden' out
report "another model's checkpoint is refused" $?

# The bytes mapped are those that nxcfg announced.
"$nxcfg" plan small.yaml --set nx:mesh.world=4 --set nx:mesh.tensor=2 --set nx:sequence_parallel=true \
  --set nx:optimizer.zero_stage=1 --format json >announced 2>out
train none 4 four.bin --dry-run --log json
n_right=0
for arena in param master grad state slot scratch input scalar comm; do
  want=$(tr -d ' \n' <announced | grep -o "\"memory\":{[^}]*" | grep -o "\"$arena\":[0-9]*" | cut -d: -f2)
  got=$(grep -o "\"$arena\":{\"planned_bytes\":[0-9]*,\"mapped_bytes\":[0-9]*" out | grep -o '[0-9]*$')
  if [ -n "$want" ] && [ "$want" = "$got" ]; then n_right=$((n_right + 1)); fi
  echo "$arena: announced $want, mapped $got" >>out
done
[ $n_right -eq 9 ]
report 'the arenas mapped are those that nxcfg announced' $?
[ ! -e none ]
report 'a dry run leaves no folder' $?

if command -v script >/dev/null; then
  script -qec "$nxrun one.bin --dir tty" /dev/null >out 2>&1
  [ "$(grep -c 'step 8/8' out)" -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] &&
    tr '\r' '\n' <out | grep -q 'step 3/8.*left'
  report 'on a terminal the line is rewritten' $?
  script -qec "stty cols 60; $nxrun one.bin --dir narrow" /dev/null >out 2>&1
  tr '\r' '\n' <out | sed 's/^.\[K//' >lines
  grep -q 'step 3/8  loss .* tokens/s .* left' lines && ! grep -q 'grad norm' lines && ! grep -q '.\{61\}' lines
  report 'and is no longer than the terminal is wide' $?
fi
finish
