#!/bin/sh
# Runs that stop, are killed, or find their checkpoints damaged, go on with the bits of one that did not. TAP.
# usage: resume.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"
trap 'umount full 2>/dev/null; rm -rf "$folder"' EXIT

# What a run computed: its metrics without times, and its weights and moments.
outcome() {
  cut -d, -f1-4 "$1/metrics.jsonl" && (cd "$1/checkpoints/step-000008" && sha256sum ./*.safetensors)
}

# same NAME RUN OTHER: both have computed the same bits.
same() {
  outcome "$2" >one 2>out && outcome "$3" >other 2>>out && diff one other >>out && [ "$(wc -l <one)" -ge 9 ]
  report "$1" $?
}

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
model='model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250,
  vocab_divisor: 8, hidden_dropout: 0.1}'
plan() { # NAME MESH PRECISION OPTIMIZER [LAST]
  cat >"$1.yaml" <<END
mesh: {world: 2, $2}
batch: {micro: 2, global: 8}
$model
optimizer: {$4, lr: 3e-3}
schedule: {name: cosine, warmup_steps: 2, min_lr: 3e-4, max_steps: 8}
precision: {preset: $3}
data: {path: [data]}
checkpoint: {every_steps: 2, keep: 3}
run: {name: run, ${5:-seed: 1}}
END
  "$nxcfg" plan "$1.yaml" -o "$1.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
plan zero 'tensor: 1' fp32 'name: adamw, zero_stage: 1'
plan tensor 'tensor: 2' mixed_precision 'name: adamw, zero_stage: 1'
plan sgd 'tensor: 1' fp32 'name: sgd, zero_stage: 0'
plan fp8 'tensor: 2' 'fp32, products: fp8, fp8_history: 3, fp8_amax: max' 'name: adamw, zero_stage: 1'
plan seed 'tensor: 1' fp32 'name: adamw, zero_stage: 1' 'seed: 2'
usual=$model
model=$(printf %s "$usual" | sed 's/kv_heads: 2/kv_heads: 4, checkpoint_names: phi3/') # q, k and v are one tensor
plan soap 'tensor: 1' fp32 'name: soap, zero_stage: 1'
model=$usual
run="$mpiexec -n 2 $nxrun"

for kind in zero tensor sgd fp8 soap; do
  expect "$kind: a run from start to end" 0 'step 8/8' $run $kind.bin --dir $kind-whole
  expect "$kind: a run that stops" 0 'step 3/8' $run $kind.bin --dir $kind --stop-after 3
  expect "$kind: and goes on" 0 'resumes from .*step-000003' $run $kind.bin --dir $kind --resume
  same "$kind: computes the same" $kind-whole $kind
done
strings fp8/checkpoints/step-000008/memory.safetensors | grep -q q_proj.gradient_amax 2>out
report 'what scales of fp8 follow is in checkpoints' $?
test ! -e zero/checkpoints/step-000003 -a -e zero/checkpoints/step-000004 2>out
report 'three checkpoints are kept' $?

expect 'a run that is done says so' 0 '8 of 8 steps are done already' $run zero.bin --dir zero --resume
same 'and as it was' zero-whole zero
expect 'nothing is overwritten unasked' 1 'has a run already, of 8 steps' $run zero.bin --dir zero
expect 'another plan is refused' 1 'run.seed: 1 there, 2 here' $run seed.bin --dir zero --resume
expect 'with its plan_id' 1 "is of another plan: $(sed -n 's/.*"plan_id": "\(.\{12\}\).*/\1/p' \
  zero/checkpoints/step-000008/manifest.json)" $run seed.bin --dir zero --resume
same 'and the run is as it was' zero-whole zero

# As an nxcfg left it that had a setting less.
older() { # NAME SETTING: without it, and with another plan_id
  cp -r zero "$1" && rm -r "$1"/checkpoints/step-00000[48] &&
    sed -i "s/\"plan_id\": \"......../\"plan_id\": \"00000000/; /\"$2\":/d; s/\"manifest_sum\"/\"none\"/" \
      "$1"/checkpoints/step-000006/manifest.json
}
older upgraded optimizer.amsgrad
expect 'a default that was not there before does not bind' 0 'another version of nxcfg made the plan' $run zero.bin \
  --dir upgraded --resume
same 'and the run goes on' zero-whole upgraded
older unlike model.layers
expect 'a value that was given does' 1 'model.layers: not set there, 2 here' $run zero.bin --dir unlike --resume

# The dataset is a part of the run: another one is refused, on any rank, unless it was asked for.
cp -r zero other_data && rm -r other_data/checkpoints/step-00000[68] && cp data.bin kept.bin && cp data.idx kept.idx
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10009 }' >text2
"$nxdata" build text2 -o data --force >/dev/null
expect 'another dataset is refused' 1 'of another dataset: .* give --new-dataset' $run zero.bin --dir other_data --resume
expect 'unless it was asked for' 0 'resumes from .*step-000004' $run zero.bin --dir other_data --resume --new-dataset \
  --stop-after 5
mkdir -p elsewhere && cp data.bin data.idx elsewhere && mv kept.bin data.bin && mv kept.idx data.idx
cat >second_elsewhere <<'END'
#!/bin/sh
plan=$(realpath "$2") dir=$(realpath -m "$4")
[ "${PMI_RANK:-0}" -eq 0 ] || cd elsewhere
exec "$1" "$plan" --dir "$dir"
END
chmod +x second_elsewhere
expect 'and another on one rank too' 1 'that rank 1 reads .* is not that of rank 0' \
  "$mpiexec" -n 2 ./second_elsewhere "$nxrun" zero.bin --dir elsewhere_run

# A run goes on with other ranks and other stages of ZeRO, back and forth, with the losses of the run that did not
# change; with the same bits where sums are made in the same order.
cp -r zero-whole moved && rm -r moved/checkpoints/step-00000[68] && head -4 zero-whole/metrics.jsonl >moved/metrics.jsonl
plan wide 'tensor: 1' fp32 'name: adamw, zero_stage: 3'
sed -i 's/world: 2/world: 4/; s/zero_stage: 3/zero_stage: 3, reshard_after_forward: false/' wide.yaml
"$nxcfg" plan wide.yaml --set gather.overlap=true -o wide.bin >out 2>&1
plan hybrid 'replicate: 2' fp32 'name: adamw, zero_stage: 2'
sed -i 's/world: 2/world: 4/' hybrid.yaml
"$nxcfg" plan hybrid.yaml -o hybrid.bin >>out 2>&1
expect 'zero: goes on with four ranks and ZeRO 3' 0 'resumes from .*step-000004' "$mpiexec" -n 4 "$nxrun" wide.bin \
  --dir moved --resume --stop-after 6
grep -q 'mesh.world: 2 there, 4 here' out
report 'which is said' $?
expect 'then in two copies of two shards' 0 'resumes from .*step-000006' "$mpiexec" -n 4 "$nxrun" hybrid.bin \
  --dir moved --resume --stop-after 7
expect 'and with ZeRO 1 on two ranks again' 0 'resumes from .*step-000007' $run zero.bin --dir moved --resume
losses() { sed 's/.*"loss":\([0-9.]*\).*/\1/' "$1/metrics.jsonl"; }
losses zero-whole >one && losses moved >other &&
  paste one other | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $1) bad = 1 } END { exit bad || NR != 8 }'
report 'with the losses of the run that stayed' $?

printf x | dd of=zero/checkpoints/step-000008/moment2.safetensors bs=1 seek=5000 conv=notrunc 2>/dev/null
rm zero/checkpoints/step-000006/model.safetensors
cp -r zero/checkpoints/step-000006 zero/checkpoints/step-000007.tmp
expect 'damaged checkpoints are passed over' 0 'resumes from .*step-000004' $run zero.bin --dir zero --resume
grep -q 'step-000008 is passed over: the checksum of moment2' out &&
  grep -q 'step-000006 is passed over: model.saf' out
report 'and said' $?
same 'the run computes the same once more' zero-whole zero
test -e zero/checkpoints/step-000008.damaged -a ! -e zero/checkpoints/step-000007.tmp
report 'what was damaged is kept, what was half written is not' $?

# Killed at any moment, by surprise: the next goes on from the newest that was complete.
for delay in 0.3 0.5 0.7 0.9 1.1; do
  setsid timeout -s KILL $delay "$mpiexec" -n 2 "$nxrun" zero.bin --dir killed --resume >/dev/null 2>&1
  for lock in 1 2 3 4 5 6 7 8 9; do
    flock -n killed/lock true 2>/dev/null && break
    [ -e killed/lock ] || break
    sleep 0.2
  done
done 2>/dev/null
expect 'a run that is killed again and again' 0 '^step 8/8 \|8 of 8 steps are done' \
  $run zero.bin --dir killed --resume
same 'computes the same' zero-whole killed

mkdir full
if mount -t tmpfs -o size=1000k tmpfs full 2>/dev/null; then
  expect 'a disk that is full' 1 'cannot write .*No space left' $run zero.bin --dir full
  grep -q '^nxrun: the run ends at step 6, which is not saved .*--resume goes on from step 4$' out
  report 'which step is lost, and which is kept' $?
  test -z "$(find full -name '*.tmp')" -a -e full/checkpoints/step-000002/manifest.json
  report 'leaves no half checkpoint' $?
  mount -o remount,size=8m full
  expect 'and the run goes on when there is room' 0 'step 8/8' $run zero.bin --dir full --resume
  same 'to compute the same' zero-whole full
  mkdir -p full/bound/checkpoints && mount --bind full/bound/checkpoints full/bound/checkpoints &&
    mount -o remount,bind,ro full/bound/checkpoints
  expect 'a folder that takes no checkpoint' 1 'no checkpoint can be written in full/bound/checkpoints: Read-only' \
    $run zero.bin --dir full/bound
  [ ! -s full/bound/metrics.jsonl ]
  report 'is refused before a step is made' $?
  umount full/bound/checkpoints
else
  for name in 'a disk that is full' 'which step is lost' 'leaves no half checkpoint' 'the run goes on' 'to compute the same' \
    'a folder that takes no checkpoint' 'is refused'; do
    skip "$name" 'mounts no tmpfs here'
  done
fi
finish
