#!/bin/sh
# Training in fp16: close to fp32, with steps that overflow skipped, counted and gone on from. TAP.
# usage: half.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 101 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
plan() { # NAME MESH RANKS PRECISION
  cat >"$1.yaml" <<END
mesh: {world: $3, $2}
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 120, vocab_divisor: 8}
optimizer: {name: adamw, lr: 3e-3, zero_stage: ${5:-1}, clip_norm: 1}
schedule: {name: cosine, warmup_steps: 2, min_lr: 3e-4, max_steps: 12}
precision: {preset: manual, $4}
data: {path: [data]}
checkpoint: {every_steps: 4}
run: {name: run, seed: 1}
END
  "$nxcfg" plan "$1.yaml" -o "$1.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
half='param: fp16, compute: fp16, reduce: fp16, master_weights: true'
plan full 'tensor: 1' 1 'param: fp32'
plan one 'tensor: 1' 1 "$half"
plan two 'tensor: 2' 2 "$half"
plan zero3 'tensor: 1' 2 "$half" 3
plan stages 'tensor: 1, pipeline: 2' 4 "$half"
plan both 'tensor: 2, pipeline: 2' 4 "$half"
plan sums 'tensor: 1' 2 "$half, grad_accumulation: fp16"
# 2^24 overflows fp16 wherever a probability is near 1: it halves with every second step, then doubles with every third.
plan falls 'tensor: 1' 2 "$half, loss_scale_initial: 268435456, loss_scale_window: 3, loss_scale_hysteresis: 2"
plan ends 'tensor: 1' 2 "$half, loss_scale_initial: 268435456, loss_scale_min: 134217728, loss_scale_ends: true"
plan stays 'tensor: 1' 2 "$half, loss_scale: 268435456"
plan stops 'tensor: 1' 2 "$half, loss_scale: 268435456, loss_scale_ends: true"
# As DeepSpeed without ZeRO: each overflow halves, and four good steps behind one double.
plan plain 'tensor: 1' 1 "$half, loss_scale_initial: 2097152, loss_scale_window: 3, loss_scale_hysteresis: 2, loss_scale_plain: true" 0
plan fixed 'tensor: 1' 1 "$half, loss_scale: 1024"

# field FOLDER STEP NAME
field() {
  sed -n "$2s/.*\"$3\":\([^,}]*\).*/\1/p" "$1/metrics.jsonl"
}

# near NAME RUN OTHER SHARE: the losses of all steps differ by less than this share.
near() {
  awk -v share="$4" 'match($0, /"loss":[0-9.e+-]*/) { x = substr($0, RSTART + 7, RLENGTH - 7) + 0
      if (NR == FNR) one[FNR] = x
      else { n++; d = one[FNR] - x; if (d < 0) d = -d; if (!(d <= share * x)) { print "step", FNR, one[FNR], x; bad = 1 } } }
    END { exit bad || n != 12 }' "$2/metrics.jsonl" "$3/metrics.jsonl" >out
  report "$1" $?
}

expect 'fp32' 0 'step 12/12' "$nxrun" full.bin --dir full
expect 'fp16 on one rank' 0 'step 12/12 .*loss scale 65536  0 skipped' "$nxrun" one.bin --dir one
near 'has the losses of fp32' one full 2e-3
expect 'on ref' 0 'step 12/12' "$nxrun" one.bin --dir one-ref --backend ref
near 'has them too' one-ref one 1e-3
expect 'a fixed scale' 0 'step 12/12 .*loss scale 1024  0 skipped' "$nxrun" fixed.bin --dir fixed
near 'has the losses of one that adapts' fixed one 1e-3
for kind in two zero3 sums; do
  expect "$kind: fp16 on 2 ranks" 0 'step 12/12' "$mpiexec" -n 2 "$nxrun" $kind.bin --dir $kind
  near "$kind: has the losses of one rank" $kind one 2e-3
done
for kind in stages both; do
  expect "$kind: fp16 on 4 ranks" 0 'step 12/12' "$mpiexec" -n 4 "$nxrun" $kind.bin --dir $kind
  near "$kind: has the losses of one rank" $kind one 2e-3
done

expect 'overflows are skipped' 0 'step 12/12' "$mpiexec" -n 2 "$nxrun" falls.bin --dir falls
timeout 100 "$mpiexec" -n 2 "$nxrun" falls.bin --dir looked --check-numbers >out 2>&1 &&
  grep -q 'step 1, rank [01]: operator .* is the first to make what is no number: .*, so that the step is skipped' out &&
  cut -d, -f1-4 falls/metrics.jsonl >wanted && cut -d, -f1-4 looked/metrics.jsonl | cmp -s wanted -
report 'and told of, where they are looked for: the run goes on alike' $?
skipped=$(field falls 12 skipped)
[ "$skipped" -ge 2 ] && [ "$skipped" -lt 12 ] && [ "$(field falls 1 loss_scale)" = 268435456 ] &&
  [ "$(field falls 1 skipped)" = 1 ]
report 'and counted' $?
before=$(field falls 11 skipped)
[ "$(field falls 12 lr)" = "$(field full $((12 - before)) lr)" ]
report 'the learning rate waits for them' $?
expect 'a run that stops' 0 'step 3/12' "$mpiexec" -n 2 "$nxrun" falls.bin --dir again --stop-after 3
expect 'and goes on' 0 'resumes from .*step-000003' "$mpiexec" -n 2 "$nxrun" falls.bin --dir again --resume
for run in falls again; do
  (sed 's/,"tokens_per_s.*//' $run/metrics.jsonl && cd $run/checkpoints/step-000012 && sha256sum ./*.safetensors) >$run.bits
done
diff falls.bits again.bits >out
report 'has the bits and the scales of the run that did not' $?
expect 'at its least the run ends' 1 'loss scale of 1.34218e+08 is at its least' "$mpiexec" -n 2 "$nxrun" ends.bin \
  --dir ends
expect 'a fixed one too large skips each step' 0 'step 12/12 .*12 skipped' "$mpiexec" -n 2 "$nxrun" stays.bin --dir stays
expect 'or ends the run at the first' 1 'step 1: .*loss scale of 2.68435e+08 is fixed; the run ends' "$mpiexec" -n 2 \
  "$nxrun" stops.bin --dir stops
expect 'a scale without hysteresis' 0 'step 12/12' "$nxrun" plain.bin --dir plain
awk 'match($0, /"loss_scale":[0-9.e+]*/) { scale = substr($0, RSTART + 13, RLENGTH - 13) + 0
    match($0, /"skipped":[0-9]*/); skipped = substr($0, RSTART + 10, RLENGTH - 10) + 0
    if (NR > 1 && scale != wanted) { print NR, scale, wanted; bad = 1 }
    over = skipped > before; falls += over; before = skipped; good = over ? 0 : good + 1
    wanted = over ? scale / 2 : good == 4 ? scale * 2 : scale; rises += wanted > scale; if (good == 4) good = 1 }
  END { exit bad || NR != 12 || falls < 2 || rises < 1 }' plain/metrics.jsonl >out
report 'halves with each overflow, and doubles one step later than the window' $?
echo "1..$n"
