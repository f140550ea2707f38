#!/bin/sh
# 1-bit Adam: reductions become signs at freeze_step, what is lost stays on the ranks and in checkpoints. TAP.
# usage: onebit.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
cat >base.yaml <<'END'
mesh: {world: 1}
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: onebitadam, zero_stage: 0, lr: 2e-3, freeze_step: 6}
schedule: {name: constant, max_steps: 14}
data: {path: [data]}
run: {name: run}
END
plan() { # NAME RANKS [SETTING]...
  name=$1 ranks=$2
  shift 2
  for setting; do set -- "$@" --set "$setting"; shift; done
  "$nxcfg" plan base.yaml --set "mesh.world=$ranks" "$@" -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
train() { # NAME RANKS DIR [OPTION]...
  name=$1 ranks=$2 dir=$3
  shift 3
  timeout 60 "$mpiexec" -n "$ranks" "$nxrun" "$name.bin" --dir "$dir" "$@" >out 2>&1 </dev/null
}
field() { # DIR FIELD: of each step
  sed -n "s/.*\"step\":\([0-9]*\),.*\"$2\":\([0-9.]*\).*/\1 \2/p" "$1/metrics.jsonl"
}

plan one 1
plan adam 1 optimizer.name=adamw
plan two 2
plan four 4
plan pipeline 4 mesh.pipeline=2 batch.global=8
plan tensor 4 mesh.tensor=2
for layout in one:1 adam:1 two:2 four:4 pipeline:4 tensor:4; do
  train "${layout%:*}" "${layout#*:}" "${layout%:*}"
  report "trains on ${layout%:*}" $?
done
field one loss | head -n 5 >expected
for layout in two four tensor; do
  field $layout loss | head -n 5 | paste expected - |
    awk '{ d = $2 - $4; bad = bad || d * d > 1e-10 * $2 * $2 } END { exit bad || NR != 5 }'
  report "before freeze_step $layout is Adam" $?
done
for layout in one two four pipeline tensor; do
  { field adam loss | tail -n 1; field $layout loss | tail -n 1; } | paste - - |
    awk '{ exit !($4 < $2 + 0.35) }'
  report "$layout learns on" $?
done
# From 32 bits of a sum, which is scattered and gathered, to 1 bit.
field four received_bytes | awk '$1 == 5 { before = $2 } $1 == 6 { after = $2 } END { print before, after; exit !(before > 25 * after) }' >out
report "reductions take a 25th of the bytes" $?
# The momentum is one size a server and range, or 0.
"$nxcfg" show two.bin >out 2>&1
grep -q 'from step 6 on 4 sequences.*compressed' out
report "the plan says when it compresses" $?
train two 2 parts --stop-after 9 && train two 2 parts --resume &&
  cmp two/checkpoints/step-000014/model.safetensors parts/checkpoints/step-000014/model.safetensors >out 2>&1 &&
  cmp two/checkpoints/step-000014/memory.safetensors parts/checkpoints/step-000014/memory.safetensors >out 2>&1
report "a run that goes on has the same errors" $?
cp -r parts other && rm -rf other/checkpoints/step-000014 && train four 4 other --resume
[ $? -eq 0 ] && grep -q 'missing.*worker_error_of_4' out
report "on other ranks errors begin anew, and it says so" $?
finish
