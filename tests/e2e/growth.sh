#!/bin/sh
# A batch that grows: what its steps read, what they come to, what they say, and a run that is resumed within it. TAP.
# usage: growth.sh NXRUN NXCFG NXDATA
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3")
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 101 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
plan() { # NAME MICRO LR STEPS GLOBAL GROWTH [CLOCK [PRECISION]]
  cat >"$1.yaml" <<END
mesh: {world: 1}
batch: {micro: $2, global: $5, growth: [$6]}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 120, vocab_divisor: 8}
optimizer: {name: adamw, lr: $3, clip_norm: 1}
schedule: {name: linear, warmup_steps: 2, clock: ${7:-steps}, max_steps: $4}
precision: {preset: manual, ${8:-param: fp32}}
data: {path: [data]}
checkpoint: {every_steps: 4}
run: {name: run, seed: 1}
END
  "$nxcfg" plan "$1.yaml" -o "$1.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
numbers() { # FOLDER FIRST LAST: loss and gradient norm of steps
  sed -n "$2,$3s/.*\"loss\":\([^,]*\).*\"grad_norm\":\([^,}]*\).*/\1 \2/p" "$1/metrics.jsonl"
}
near() { # SHARE OF-LOSSES OF-NORMS: of the files `one` and `other`, 8 steps each
  paste one other | awk -v loss="$1" -v norm="$2" '{ d = ($1 - $3) / $1; e = ($2 - $4) / $2
      if (d > loss || -d > loss || e > norm || -e > norm) bad = 1 } END { exit bad || NR != 8 }' >out
}

# Weights that stay, and the first two batches again and again.
plan ahead 1 0 4 4 ''
plan repeats 1 0 5 4 ''
"$nxcfg" plan repeats.yaml --set data.repeat_batches=2 --set schedule.epochs=2 -o repeats.bin >out 2>&1
expect 'a run that reads on' 0 'step 4/4' "$nxrun" ahead.bin --dir ahead
expect 'one that reads two batches, twice' 0 'step 4/4' "$nxrun" repeats.bin --dir repeats
numbers ahead 1 2 >one && cat one one >other && numbers repeats 1 4 | cmp - other >out
report 'it reads the first two' $?
expect 'and goes on with them' 0 'step 3/4' "$nxrun" repeats.bin --dir part --stop-after 3
expect 'where it was' 0 'step 4/4' "$nxrun" repeats.bin --dir part --resume
numbers part 1 4 | cmp - other >out
report 'with the batch whose turn it is' $?

# Weights that stay: a step is worth what a step with the same sequences is in a run of another size.
plan grows 1 0 6 8 '2@0, 4@6, 8@12'
plan even 1 0 4 4 '2@0, 4@4'
plan twos 1 0 3 2 ''
plan fours 1 0 3 4 ''
expect 'a batch that grows' 0 'step 6/6' "$nxrun" grows.bin --dir grows
expect 'one of 2 sequences' 0 'step 3/3' "$nxrun" twos.bin --dir twos
numbers grows 1 3 >one && numbers twos 1 3 >other && cmp one other >out
report 'its first steps are those of the small batch' $?
expect 'one that grows once' 0 'step 4/4' "$nxrun" even.bin --dir even
expect 'one of 4 sequences' 0 'step 3/3' "$nxrun" fours.bin --dir fours
numbers even 3 4 >one && numbers fours 2 3 >other && cmp one other >out
report 'its later steps are those of the large batch that have the same sequences' $?

# A learning rate that comes a step late, while the batch grows too.
rates() { sed 's/.*"lr":\([^,}]*\).*/\1/' "$1/metrics.jsonl"; }
for clock in samples steps; do
  plan late-$clock 1 3e-3 8 8 '2@0, 4@6, 8@12' $clock
  "$nxcfg" plan late-$clock.yaml --set schedule.late_steps=1 -o late.bin >out 2>&1
  expect "$clock" 0 'step 8/8' "$nxrun" late-$clock.bin --dir own-$clock
  expect "$clock, late" 0 'step 5/8' "$nxrun" late.bin --dir late-$clock --stop-after 5
  expect "$clock, late and resumed" 0 'step 8/8' "$nxrun" late.bin --dir late-$clock --resume
  rates own-$clock | sed '8d; 1{p}' >one && rates late-$clock >other && cmp one other >out && [ "$(sort -u one | wc -l)" -gt 4 ]
  report 'each step has the rate of the one before' $?
  "$nxcfg" plan late-$clock.yaml --set schedule.late_steps=1 --lr | awk 'NR > 1 {printf "%.4g\n", $2}' >one
  awk '{printf "%.4g\n", $1}' other | cmp one - >out
  report 'as it was told' $? "$(cat one other)"
done

plan learns 1 3e-3 8 8 '2@0, 4@6, 8@12'
plan wide 2 3e-3 8 8 '2@0, 4@6, 8@12'
expect 'it learns' 0 'step 8/8' "$nxrun" learns.bin --dir learns
expect 'in larger micro-batches' 0 'step 8/8' "$nxrun" wide.bin --dir wide
numbers learns 1 8 >one && numbers wide 1 8 >other && near 1e-6 1e-5
report 'with the same losses and norms' $?
"$nxcfg" show learns.bin >out && grep -q '8 steps, 608 tokens' out && grep -q 'from step 4 on 4 sequences' out &&
  grep -q 'from step 6 on 8 sequences' out
report 'the plan shows its phases, and counts their tokens' $?

expect 'a run that stops while it grows' 0 'step 4/8' "$nxrun" learns.bin --dir again --stop-after 4
expect 'and goes on' 0 'resumes from .*step-000004' "$nxrun" learns.bin --dir again --resume
for run in learns again; do
  (sed 's/,"tokens_per_s.*//' $run/metrics.jsonl && cd $run/checkpoints/step-000008 && sha256sum ./*.safetensors) >$run.bits
done
diff learns.bits again.bits >out
report 'has the bits of the run that did not' $?

# Sequences before each step: 0 2 4 6 10 14 22 30. The warm-up has 16 of them, the decay ends behind 64.
plan sampled 1 1 8 8 '2@0, 4@6, 8@12' samples
expect 'a learning rate by samples' 0 'step 8/8' "$nxrun" sampled.bin --dir sampled
sed 's/.*"lr":\([^,}]*\).*/\1/' sampled/metrics.jsonl | awk '{ printf "%.5g\n", $1 }' >one
printf '%s\n' 0 0.125 0.25 0.375 0.625 0.875 0.875 0.70833 | diff - one >out
report 'follows them' $?
"$nxcfg" plan sampled.yaml --lr 2>&1 | awk '/^ *[0-9]+ +[0-9.]+/ { printf "%.5g\n", $2 }' | diff one - >out
report 'and is what plan --lr shows' $?

# The third step is left out, and so are its 2 sequences: of those trained on there are 0 2 4 8 12 20 28.
sed 's/max_steps: 8/max_steps: 8, skip_steps: [3]/' sampled.yaml >passed.yaml
"$nxcfg" plan passed.yaml -o passed.bin >out 2>&1 || exit 99
expect 'one that passes over a step' 0 'step 8/8' "$nxrun" passed.bin --dir passed
sed 's/.*"lr":\([^,}]*\).*/\1/' passed/metrics.jsonl | awk '{ printf "%.5g\n", $1 }' >one
printf '%s\n' 0 0.125 0.25 0.5 0.75 0.91667 0.75 | diff - one >out
report 'does not count its sequences' $?
"$nxcfg" plan passed.yaml --lr 2>&1 | awk '/^ *[0-9]+ +[0-9.]+/ && $1 != 3 { printf "%.5g\n", $2 }' | diff one - >out
report 'nor does plan --lr' $?

plan half 1 3e-3 8 8 '2@0, 4@6, 8@12' steps 'param: fp16, compute: fp16, reduce: fp16, master_weights: true'
expect 'in fp16' 0 'step 8/8' "$nxrun" half.bin --dir half
numbers learns 1 8 >one && numbers half 1 8 >other && near 2e-3 2e-2
report 'it has the losses and norms of fp32' $?

# Steps that overflow while the batch grows: their sequences are not counted, as many as they are. The decay ends behind 96.
plan skips 1 1e-3 12 8 '2@0, 4@6, 8@12' samples 'param: fp16, compute: fp16, reduce: fp16, master_weights: true,
  loss_scale_initial: 268435456, loss_scale_hysteresis: 1'
expect 'one that skips steps' 0 'step 12/12' "$nxrun" skips.bin --dir skips
sed 's/.*"lr":\([^,}]*\).*"skipped":\([0-9]*\).*/\1 \2/' skips/metrics.jsonl | awk '{
    lr = 1e-3 * (seen < 16 ? seen / 16 : (96 - seen) / 80); d = lr - $1; if (d > 1e-9 || d < -1e-9) { print NR, $0, lr; bad = 1 }
    if ($2 == before) seen += NR <= 3 ? 2 : NR <= 5 ? 4 : 8; before = $2 }
  END { exit bad || NR != 12 || before < 4 || before == 12 }' >out
report 'counts the sequences of the others' $?
# 1500 bytes are as many tokens: 93 samples of 16, which are 11 batches of 8.
head -c 1500 text >short && "$nxdata" build short -o short >/dev/null || exit 99
plan epochs 4 1e-3 60 8 ''
sed 's/max_steps: 60/max_steps: 60, epochs: 2/; s/path: \[data\]/path: [short]/' epochs.yaml >two.yaml
"$nxcfg" plan two.yaml -o two.bin >out 2>&1 || exit 99
expect 'two epochs' 0 '2 epochs of 93 samples are over after 22 of' "$nxrun" two.bin --dir two
[ "$(wc -l <two/metrics.jsonl)" = 22 ] && [ -d two/checkpoints/step-000022 ]
report 'are as many whole batches, and end with a checkpoint' $?
sed 's/max_steps: 60/max_steps: 5, epochs: 2/' epochs.yaml >few.yaml
"$nxcfg" plan few.yaml -o few.bin >out 2>&1 || exit 99
expect 'unless the steps are over before' 0 'step 5/5' "$nxrun" few.bin --dir few
finish
