#!/bin/sh
# Runs over several datasets: the same samples on every mesh and after a stop, and what is held out is never read. TAP.
# usage: blends.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

# Documents of digits; of b letters. The last of each are of bytes that are no words of the model.
document() { awk -v first="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%c", first + i * i % 10 }' >"$3"; }
for i in 1 2 3 4 5 6 7 8; do
  document 48 $((60 + i * 13)) a$i
  document 65 $((40 + i * 7)) b$i
done
for i in 7 8; do
  document 115 100 a$i
  document 115 100 b$i
done
"$nxdata" build a1 a2 a3 a4 a5 a6 a7 a8 -o a >out 2>&1 && "$nxdata" build b1 b2 b3 b4 b5 b6 b7 b8 -o b >>out 2>&1 ||
  { sed 's/^/# /' out; exit 99; }

plan() { # NAME MESH DATA
  cat >"$1.yaml" <<END
mesh: {$2}
batch: {micro: 1, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 96, vocab_divisor: 8}
optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}
schedule: {name: constant, max_steps: 24}
precision: {preset: fp32}
data: {$3}
checkpoint: {every_steps: 6}
run: {name: run, seed: 3}
END
  "$nxcfg" plan "$1.yaml" -o "$1.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
losses() { sed 's/.*"loss":\([-0-9.e+]*\).*/\1/' "$1/metrics.jsonl"; }
outcome() { cut -d, -f1-4 "$1/metrics.jsonl" && (cd "$1/checkpoints/step-000024" && sha256sum ./*.safetensors); }

held_out='path: [a, b], weights: [1, 3], split: [3, 1]'
plan one 'world: 1' "$held_out"
plan two 'world: 2' "$held_out"
plan four 'world: 4, tensor: 2, pipeline: 2' "$held_out"
# 192 samples are several epochs of the 30 and 17 that are trained on.
expect 'one rank trains on a blend, and on nothing that is held out' 0 'step 24/24' "$nxrun" one.bin --dir one
expect 'two ranks' 0 'step 24/24' "$mpiexec" -n 2 "$nxrun" two.bin --dir two
expect 'four ranks' 0 'step 24/24' "$mpiexec" -n 4 "$nxrun" four.bin --dir four
for mesh in two four; do
  losses one >first && losses $mesh >other && paste first other |
    awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= 1e-5 * $1)) bad = 1 } END { exit bad || NR != 24 }' >out
  report "with the losses of one rank: $mesh" $?
done
expect 'a run stops in the middle' 0 'step 11/24' "$mpiexec" -n 2 "$nxrun" two.bin --dir stopped --stop-after 11
expect 'and goes on' 0 'resumes from .*step-000011' "$mpiexec" -n 2 "$nxrun" two.bin --dir stopped --resume
outcome two >whole 2>out && outcome stopped >resumed 2>>out && diff whole resumed >>out
report 'with the bits of the whole run' $?

plan all 'world: 1' 'path: [a, b], weights: [1, 3]'
expect 'without a split the same documents are read' 1 'has token 1[12][0-9] in sample .*vocabulary has 96' "$nxrun" all.bin \
  --dir all
plan weights 'world: 1' 'path: [a, b], weights: [3, 1], split: [3, 1]'
expect 'other weights' 0 'step 24/24' "$nxrun" weights.bin --dir weights
losses one >first && losses weights >other && ! cmp -s first other
report 'are another training' $?
for blend in equal samples documents; do
  plan $blend 'world: 1' "path: [a, b], blend: $blend, split: [3, 1], split_rounding: each"
  expect "a blend without weights: $blend" 0 'step 24/24' "$nxrun" $blend.bin --dir $blend
done
! cmp -s equal/metrics.jsonl samples/metrics.jsonl && ! cmp -s equal/metrics.jsonl documents/metrics.jsonl
report 'which differ' $?
plan made_up 'world: 2' 'synthetic: true'
expect 'made-up tokens need no dataset' 0 'step 24/24' "$mpiexec" -n 2 "$nxrun" made_up.bin --dir made_up

# The second file is a part of what is resumed, and of what all ranks read.
cp a.bin kept.bin && cp a.idx kept.idx && "$nxdata" build a1 a2 a3 a4 a5 b6 a7 a8 -o b --force >/dev/null 2>&1
rm -r stopped/checkpoints/step-000024
expect 'another second dataset is refused' 1 'of another dataset: .* give --new-dataset' "$mpiexec" -n 2 "$nxrun" two.bin \
  --dir stopped --resume
rm b.idx
expect 'and a missing one' 1 'cannot open b.idx' "$nxrun" one.bin --dir missing
finish
