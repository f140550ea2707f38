#!/bin/sh
# A loss that is no number ends the run, and --check-numbers says which operator made the first; where all is well it
# changes nothing. TAP.
# usage: finite.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 101 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
plan() { # NAME LR MORE...
  cat >"$1.yaml" <<END
mesh: {world: 2, tensor: 2}
batch: {micro: 2, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 120, vocab_divisor: 8}
optimizer: {name: sgd, lr: $2, clip_norm: null}
schedule: {name: constant, max_steps: 6}
data: {path: [data]}
checkpoint: {every_steps: 1}
run: {name: run, seed: 1}
END
  made=$1
  shift 2
  "$nxcfg" plan "$made.yaml" "$@" -o "$made.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
losses() {
  sed 's/,"tokens_per_s.*//' "$1/metrics.jsonl"
}

plan over 1e30
expect 'the weights overflow: the run ends, and says how to find where' 1 'check-numbers says where it begins' \
  "$mpiexec" -n 2 "$nxrun" over.bin --dir over
grep -q 'loss nan .*grad norm nan' out && ! grep -q -e '-nan' out
report 'without a sign, which says nothing' $?
expect 'nor is it a loss of 0 to who looks' 0 '^loss        no number$' "$nxrun" status over
plan on 1e30 --set run.stop_at_nan=false
expect 'or it goes on, where that is asked for' 0 'step 6/6' "$mpiexec" -n 2 "$nxrun" on.bin --dir on
grep -q '"step":6,"loss":null' on/metrics.jsonl
report 'with losses that are none' $?
nan=$(grep -o '"step":[0-9]*,"loss":null' on/metrics.jsonl | head -1 | tr -dc 0-9)
before=$(printf 'on/checkpoints/step-%06d' $((nan - 1))) after=$(printf 'on/checkpoints/step-%06d' "$nan")
! cmp -s "$before"/model.safetensors "$after"/model.safetensors
report 'and weights that such gradients update' $?
expect 'which it then does' 1 \
  'step [0-9]*, rank [01]: operator [0-9]*, [a-z_]* of .*, is the first to make what is no number: element [0-9]* of ' \
  "$mpiexec" -n 2 "$nxrun" over.bin --dir over --resume --check-numbers
# Of two stages the experts of the last one's layer overflow alone, and what they make spreads to the first.
plan stage 0.1 --set mesh.tensor=1 --set mesh.pipeline=2 --set moe.experts=2 --set moe.top_k=1 --set "moe.pattern='[0,1]'" \
  --set "optimizer.groups=['*experts* lr_factor=1e30']"
expect 'of a pipeline the rank is named that has them, with layer, tensor and step' 1 \
  'step 2, rank 1: operator [0-9]*, [a-z_]* of layers.1[.a-z_]*, is the first to make what is no number: element [0-9]* of ' \
  "$mpiexec" -n 2 "$nxrun" stage.bin --dir stage --check-numbers
! grep -q 'rank 0: operator' out
report 'and no other' $?
for kind in 'dense' 'half --set precision.preset=mixed_precision --set model.hidden_dropout=0.1' \
  'windows --set model.sliding_window=4 --set data.eod_mask_loss=true --set data.reset_attention_mask=true --set data.end_of_document=10' \
  'experts --set moe.experts=4 --set moe.top_k=2 --set moe.aux_loss_coef=0.1 --set mesh.tensor=1 --set mesh.expert=2'; do
  run=${kind%% *}
  # shellcheck disable=SC2086
  plan "$run" 0.1 $(echo "$kind " | cut -d ' ' -f 2-)
  expect "$run: all is well" 0 'step 6/6' "$mpiexec" -n 2 "$nxrun" "$run.bin" --dir "$run"
  losses "$run" >wanted
  rm -r "$run"
  expect "$run: looked at" 0 'step 6/6' "$mpiexec" -n 2 "$nxrun" "$run.bin" --dir "$run" --check-numbers
  losses "$run" | diff wanted - >out
  report "$run: the same numbers" $?
done
# Copies of weights that differ in one bit.
for kind in 'zero1 --set optimizer.zero_stage=1' 'zero0' 'experts4 --set moe.experts=4 --set moe.top_k=2 --set mesh.expert=2'; do
  run=copies-${kind%% *} ranks=2
  [ "${kind%% *}" = experts4 ] && ranks=4
  # shellcheck disable=SC2086
  plan "$run" 0.1 --set mesh.tensor=1 --set mesh.world=$ranks --set run.compare_copies_every=2 --set batch.micro=1 \
    $(echo "$kind " | cut -d ' ' -f 2-)
  expect "$run: copies that are the same pass" 0 'step 6/6' "$mpiexec" -n $ranks "$nxrun" "$run.bin" --dir "$run"
  NXRUN_FLIP=$((ranks - 1)):4 expect "$run: a bit that is another is found, with step, tensor and ranks" 1 \
    "step 4: [a-z_.0-9]*weight of rank $((ranks - 1)) ([^)]*) has other bits than that of rank [0-9]" \
    "$mpiexec" -n $ranks "$nxrun" "$run.bin" --dir "$run-flipped"
  [ ! -e "$run-flipped/checkpoints/step-000004" ] && [ -e "$run-flipped/checkpoints/step-000003" ]
  report "$run: and is in no checkpoint" $?
  expect "$run: from which the run goes on" 0 'step 6/6' "$mpiexec" -n $ranks "$nxrun" "$run.bin" --dir "$run-flipped" --resume
  losses "$run" >wanted
  losses "$run-flipped" | diff wanted - >out
  report "$run: as if nothing had been" $?
done
echo "1..$n"
