#!/bin/sh
# Stochastic rounding to bf16: the same bits on every mesh that makes the same sums, on one that goes on, and closer to
# fp32 than rounding to nearest, which loses small updates. TAP.
# usage: rounding.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 101 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
plan() { # NAME MESH RANKS PRECISION [ZERO]
  cat >"$1.yaml" <<END
mesh: {world: $3, $2}
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 120, vocab_divisor: 8}
optimizer: {name: adamw, lr: 3e-4, zero_stage: ${5:-1}, weight_decay: 0}
schedule: {name: constant, max_steps: 12}
precision: {preset: manual, $4}
data: {path: [data]}
checkpoint: {every_steps: 4}
run: {name: run, seed: 1}
END
  "$nxcfg" plan "$1.yaml" -o "$1.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
bf16='param: bf16, compute: bf16, reduce: bf16'
bare="$bf16, optimizer_state: bf16"
plan full 'tensor: 1' 2 'param: fp32'
plan nearest 'tensor: 1' 2 "$bare"
for kind in bare master; do
  types="$bare, stochastic_rounding: true"
  [ $kind = master ] && types="$bf16, master_weights: true, stochastic_rounding: true"
  for zero in 0 1 2 3; do plan $kind$zero 'tensor: 1' 2 "$types" $zero; done
done

bits() { # RUN: losses, and the sums of the last checkpoint's files
  sed 's/,"lr".*//' "$1/metrics.jsonl"
  (cd "$1/checkpoints/step-000012" && sha256sum ./*.safetensors)
}
train() { # NAME ARGUMENT...
  name=$1
  shift
  expect "$name" 0 'step 12/12' "$mpiexec" -n 2 "$nxrun" "$name.bin" --dir "$name" "$@"
}
train full
train nearest
for kind in bare master; do
  for zero in 0 1 2 3; do train $kind$zero; done
  for zero in 0 2; do # which sum gradients in another order
    bits $kind$zero >wanted
    bits $kind$((zero + 1)) | diff wanted - >out
    report "$kind: ZeRO $((zero + 1)) has the bits of ZeRO $zero" $?
  done
  bits ${kind}1 >wanted
  expect "$kind: a run that stops" 0 'step 5/12' "$mpiexec" -n 2 "$nxrun" ${kind}1.bin --dir again-$kind --stop-after 5
  expect "$kind: and goes on" 0 'resumes from .*step-000005' "$mpiexec" -n 2 "$nxrun" ${kind}1.bin --dir again-$kind \
    --resume
  bits again-$kind | diff wanted - >out
  report "$kind: has the bits of the run that did not" $?
done
expect 'on ref' 0 'step 12/12' "$mpiexec" -n 2 "$nxrun" bare1.bin --dir on-ref --backend ref

# Weights of norms begin as 1, and a step of signsgd is of one length: each is rounded by a draw of its own. Of 160 a
# quarter of those that fall come to the next number of bf16, 0x3f7f.
"$nxcfg" plan bare1.yaml --set optimizer.name=signsgd --set optimizer.lr=1e-3 --set checkpoint.every_steps=1 \
  -o signs.bin >out 2>&1 || sed 's/^/# /' out
expect 'signs' 0 'step 1/12' "$mpiexec" -n 2 "$nxrun" signs.bin --dir signs --stop-after 1
weights=signs/checkpoints/step-000001/model.safetensors
header=$(od -An -tu8 -N 8 "$weights" | tr -d ' ')
fallen=0
for offset in $(head -c $((header + 8)) "$weights" | tail -c +9 | tr '}' '\n' |
  sed -n 's/.*norm.weight".*"data_offsets":\[\([0-9]*\),.*/\1/p'); do
  n_here=$(od -An -v -tx2 -w2 -j $((8 + header + offset)) -N 64 "$weights" | grep -c 3f7f)
  fallen=$((fallen + n_here))
done
[ "$fallen" -ge 5 ] && [ "$fallen" -le 45 ]
report "equal numbers have draws of their own: $fallen of 160 have fallen" $?

# How far each loss of the last steps is from that of fp32.
apart() {
  awk 'match($0, /"loss":[0-9.e+-]*/) { x = substr($0, RSTART + 7, RLENGTH - 7) + 0
      if (NR == FNR) one[FNR] = x
      else if (FNR > 6) { d = one[FNR] - x; sum += d < 0 ? -d : d } }
    END { printf "%.6f\n", sum }' full/metrics.jsonl "$1/metrics.jsonl"
}
for run in bare0 on-ref; do
  awk "BEGIN { exit !($(apart $run) < 0.5 * $(apart nearest)) }"
  report "$run: at most half as far from fp32 ($(apart $run)) as rounding to nearest ($(apart nearest))" $?
done
echo "1..$n"
