#!/bin/sh
# Trainings on a device of OpenCL: the losses of ref, checkpoints that either goes on from, and what is said where
# there is no such device. TAP.
# usage: opencl.sh NXCFG NXRUN NXDATA MPIEXEC TEXT LOST_DEVICE CLBLAST    (yes, or no)
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 text=$(realpath "$5")
lost_device=$(realpath "$6") clblast=$7
. "$(dirname "$0")/lib.sh"

cat >small.yaml <<YAML
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 88, heads: 4, kv_heads: 2, sequence: 16, vocab: 256,
  vocab_divisor: 16, normalization: rmsnorm, position_embedding: rope, activation: swiglu,
  hidden_dropout: 0.1, attention_dropout: 0.1}
optimizer: {name: adamw, lr: 1e-3, betas: [0.9, 0.95], weight_decay: 0.1, clip_norm: 1.0}
schedule: {name: cosine, warmup_steps: 3, min_lr: 1e-4, max_steps: 4}
data: {path: [data]}
checkpoint: {every_steps: 2}
run: {seed: 7}
YAML
"$nxdata" build "$text" -o data >out 2>&1 || exit 99

train() { # BACKEND FOLDER ARGUMENT...
  backend=$1 folder_of_run=$2
  shift 2
  timeout 300 "$mpiexec" -n "$ranks" "$nxrun" plan.bin --backend "$backend" --dir "$folder_of_run" "$@" >out 2>&1
}
# Losses of the same steps differ by no more than a part of them; fp32: 1e-6.
same_losses() { # A B PART
  for run in "$1" "$2"; do sed 's/.*"step":\([0-9]*\),.*"loss":\([^,]*\),.*/\1 \2/' "$run/metrics.jsonl" >"$run.losses"; done
  paste "$1.losses" "$2.losses" | awk -v part="$3" '
    { away = ($2 - $4) / $2; if ($1 != $3 || away > part || -away > part) { print "step", $0; bad = 1 } }
    END { exit bad || NR != 4 }' >>out 2>&1
}
plan() { # SETTING=VALUE...
  for set in "$@"; do set -- "$@" --set "nx:$set"; shift; done
  "$nxcfg" plan small.yaml --set nx:mesh.world="$ranks" "$@" -o plan.bin >out 2>&1
}
as_ref() { # NAME RANKS PART SETTING=VALUE...
  name=$1 ranks=$2 part=$3
  shift 3
  rm -rf ref opencl
  plan "$@" && train ref ref && train opencl opencl --stop-after 2 && train opencl opencl --resume &&
    same_losses ref opencl "$part"
  report "$name" $?
}

# What is said comes first: it needs no device.
ranks=1
plan || exit 99
OCL_ICD_VENDORS=/nonexistent expect 'without a driver' 1 'there is no OpenCL device: install' \
  "$nxrun" plan.bin --backend opencl --dir none
mkdir vendors && echo libnone.so.1 >vendors/none.icd
OCL_ICD_VENDORS=$PWD/vendors expect 'a driver whose library is not in the image' 1 'there is no OpenCL device: install' \
  "$nxrun" plan.bin --backend opencl --dir none
expect 'a device for the host' 1 '^nxrun: .*--device belongs to a backend of which nxrun --devices lists numbers' \
  "$nxrun" plan.bin --backend ref --device 0 --dir none
if ! "$nxrun" --devices | grep -q '^opencl 0'; then
  echo '# no OpenCL device: nothing is trained'
  finish
fi
expect 'devices are listed' 0 '^opencl 0  .*MiB$' "$nxrun" --devices
expect 'an unknown device' 1 'no device is called abacus: nxrun --devices lists' \
  "$nxrun" plan.bin --backend opencl --device abacus --dir none
NXRUN_CACHE=$PWD/empty NXRUN_OPENCL_OPTIONS='-Dkernel=broken' \
  expect 'a program that is not built' 1 'does not build .*NXRUN_OPENCL_OPTIONS' \
  "$nxrun" plan.bin --backend opencl --dir none
grep -q 'error: ' out
report 'the words of its compiler stand above' $?
tail -n 1 out | grep -q '^  and others$'
report 'what else is missing ends with a whole line' $?

# Programs are built but once, and without the compiler's search for speed; those of CLBlast by every process.
export NXRUN_OPENCL_OPTIONS=-cl-opt-disable NXRUN_CLBLAST=0
as_ref 'one rank' 1 1e-6
as_ref 'tensor and sequence parallel, ZeRO-1' 4 1e-6 mesh.tensor=2 sequence_parallel=true optimizer.zero_stage=1
as_ref 'a pipeline' 2 1e-6 mesh.pipeline=2
as_ref 'LayerNorm, learned positions, biases, GELU' 1 1e-6 model.normalization=layernorm model.position_embedding=learned \
  model.activation=gelu
as_ref 'bf16 with master weights' 2 1e-3 optimizer.zero_stage=1 precision.preset=mixed_precision
as_ref 'ZeRO-2' 2 1e-6 optimizer.zero_stage=2
as_ref 'ZeRO-3' 2 1e-6 optimizer.zero_stage=3
as_ref 'interleaved stages' 2 1e-6 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4
as_ref 'ring attention' 2 1e-6 mesh.context=2 attention.ring=true
as_ref 'Ulysses' 2 1e-6 mesh.context=2 attention.ulysses=true
as_ref 'experts' 2 1e-6 moe.experts=4 moe.top_k=2 mesh.expert=2
as_ref 'adapters' 2 1e-6 lora.rank=4
as_ref 'adapters beside quantized weights' 2 1e-6 lora.rank=4 lora.base_type=nf4 model.hidden=64 model.ffn_hidden=128 \
  optimizer.zero_stage=3
export NX_SAYS_GPU=1 LD_PRELOAD="$lost_device"
as_ref 'groups of 256, as on accelerators' 2 1e-6 mesh.tensor=2 sequence_parallel=true
"$nxrun" --devices | grep -q '^opencl 0 .*accelerator'
report 'a device that is no processor' $?
unset NX_SAYS_GPU LD_PRELOAD

# What has no fp64 has fp32 in its place. Nothing was kept of its programs, so all are built, and seen: clang, where it is,
# knows none of fp64 in them.
kept=$NXRUN_CACHE
mkdir programs
export LD_PRELOAD="$lost_device" NX_LACKS=fp64 NX_PROGRAMS="$PWD/programs" NXRUN_CACHE="$PWD/without"
as_ref 'a device without fp64' 1 1e-6
ranks=2
plan optimizer.name=onebitadam optimizer.freeze_step=2
expect 'what fp32 does not serve is named' 1 'onebit_pack of decayed.data: needs arithmetic in fp64 (cl_khr_fp64), which .* lacks' \
  "$mpiexec" -n 2 "$nxrun" plan.bin --backend opencl --dir none --dry-run
unset LD_PRELOAD NX_LACKS NX_PROGRAMS
NXRUN_CACHE=$kept
if command -v clang >/dev/null; then
  (for program in programs/*.cl; do
    clang -x cl -cl-std=CL1.2 -target spir64 -Xclang -cl-ext=-cl_khr_fp64 -Xclang -finclude-default-header \
      -Xclang -fdeclare-opencl-builtins -cl-single-precision-constant -fsyntax-only "$program" || exit 1
  done) >out 2>&1
  report 'programs for it have no fp64' $?
fi
if [ "$clblast" = yes ]; then
  export NXRUN_CLBLAST=1
  as_ref 'products by CLBlast' 2 1e-6 mesh.tensor=2 sequence_parallel=true model.bias=true
  as_ref 'products by CLBlast, bf16' 2 1e-3 mesh.pipeline=2 precision.preset=mixed_precision
  plan run.target=opencl run.workspace_bytes=120000 model.vocab=4096 precision.preset=mixed_precision
  expect 'no room for what CLBlast needs' 1 'matmul of output: NXRUN_CLBLAST=1, and CLBlast' \
    "$mpiexec" -n 2 "$nxrun" plan.bin --backend opencl --dir none --dry-run
  export NXRUN_CLBLAST=0
fi

# What else drivers say. Of two ranks one is told: both end, and it is named, wherever a device is lost.
ranks=1
plan || exit 99
for lacks in 'groups groups of 64 work-items' 'parameters kernels with parameters of 1024 bytes'; do
  expect "a device without ${lacks%% *}" 1 "lacks ${lacks#* }.*: give --device another" \
    env LD_PRELOAD="$lost_device" NX_LACKS="${lacks%% *}" "$nxrun" plan.bin --backend opencl --dir none
done
expect 'a driver without a device' 1 'there is no OpenCL device: install' \
  env LD_PRELOAD="$lost_device" NX_LACKS=devices "$nxrun" plan.bin --backend opencl --dir none
ranks=2
plan || exit 99
fails() { # NAME CALL AFTER ERROR PATTERN
  expect "$1" 1 "$5" env LD_PRELOAD="$lost_device" NX_LOST_RANK=1 NX_LOST_CALL="$2" NX_LOST_AFTER="$3" NX_LOST_ERROR="$4" \
    NXRUN_CACHE="$NXRUN_CACHE" "$mpiexec" -n 2 "$nxrun" plan.bin --backend opencl --dir lost
}
fails 'a device is lost at a kernel' clEnqueueNDRangeKernel 300 -5 \
  'rank 1, step [12], .*the device is out of resources, or was lost'
fails 'at a copy' clEnqueueReadBuffer 9 -5 'rank 1, step [0-9]*, .*copy from the device: the device is out of resources'
fails 'behind what was enqueued' clGetEventInfo 4 -14 'rank 1, step [0-9]*, .*what ran before it failed'
fails 'before the first step' clFinish 4 -5 'rank 1 has no 1 MiB for the arena .*the device is out of resources'
fails 'no memory for a kernel' clEnqueueNDRangeKernel 300 -4 'rank 1, step [12], .*the device has no memory left: .*batch.micro'
fails 'a driver without a compiler' clBuildProgram 3 -3 'the driver has no compiler: install the whole OpenCL package'
expect 'a driver on one rank alone' 1 'rank 1, backend opencl: there is no OpenCL device' "$mpiexec" \
  -n 1 "$nxrun" plan.bin --backend opencl --dir lost : \
  -n 1 env OCL_ICD_VENDORS=/nonexistent "$nxrun" plan.bin --backend opencl --dir lost
export NX_SAYS_GPU=1 LD_PRELOAD="$lost_device"
expect 'ranks that share a device are told' 0 '^nxrun: 2 ranks of this host share 1 device: ' "$mpiexec" -n 2 \
  "$nxrun" plan.bin --backend opencl --dir none --dry-run
POCL_DEVICES='pthread pthread' "$mpiexec" -n 2 "$nxrun" plan.bin --backend opencl --dir none --dry-run >out 2>&1 &&
  ! grep -q 'share' out
report 'those with one each are not' $?
unset NX_SAYS_GPU LD_PRELOAD
ranks=1
plan model.vocab=200000 model.hidden=1024 || exit 99
POCL_MEMORY_LIMIT=1 expect 'a device without the memory' 1 'rank 0 has no [0-9]* MiB for the arena .* has [0-9]* MiB' \
  "$nxrun" plan.bin --backend opencl --dir none

# Copies of a reduction run beside the kernels of the backward passes; the device's own times say how much. What else
# runs on the processors may part them: of three runs the best counts.
ranks=2 best=0
plan reduce.overlap=true reduce.bucket_elements=400000 schedule.max_steps=3 batch.global=2 model.layers=4 \
  model.hidden=256 model.ffn_hidden=1024 model.sequence=32 || exit 99
for run in 1 2 3; do
  rm -rf overlapped
  train opencl overlapped --profile 2-3
  part=$(awk '/beneath kernels$/ { sub(/%/, "", $(NF - 2)); print int($(NF - 2)) }' out)
  [ "${part:-0}" -gt "$best" ] && best=$part
done
echo "# $best% of copying lies beneath kernels"
[ "$best" -ge 50 ] && grep -q '"tid":2,.*"in":"all_reduce' overlapped/profile/*.json
report 'copies lie beneath kernels' $?
grep -q ', by the device.s clock:$' out && awk '$1 == "matmul" && NF == 6 { good = $5 > 0 && $6 > 0 } END { exit !good }' out
report 'FLOP/s and bytes/s of an operator, by the clock of the device' $?

# A plan may be made for such a device: no option names it then, and the host's processors are not taken for it.
ranks=1
plan run.target=opencl
grep -q 'all of it on the device' out
report 'a plan tells what lies on the device, and what on its host' $?
rm -rf ref opencl
expect 'the target names the backend' 0 'backend opencl: .* 0 of them by ref' "$nxrun" plan.bin --dry-run
expect 'processors are no such target' 1 'the plan is for opencl: give --backend opencl' "$nxrun" plan.bin --backend cpu

# What calibration measures of a device is a machine to plan for.
"$nxrun" --devices >devices
NXRUN_SAMPLE_MS=0.5 "$nxrun" --calibrate --backend opencl --threads 1 -o device.yaml >out 2>&1 &&
  "$nxcfg" plan small.yaml --machine device.yaml --set nx:mesh.world=1 \
    --set nx:run.target=opencl --set nx:run.threads=1 -o plan.bin >out 2>&1 &&
  grep -qF "$(sed -n 's/^name: "\(.*\)"$/\1/p' device.yaml)" devices && grep -qE '^  in all .* [1-9][0-9]* tokens/s, ' out
report 'a calibrated device' $?

# A checkpoint of either backend goes on on the other: with the losses of a run that stays.
goes_on() { # FROM TO
  rm -rf "$1" moved
  train "$1" "$1" && train "$1" moved --stop-after 2 && train "$2" moved --resume && same_losses "$1" moved 1e-6
  report "$2 goes on from a checkpoint of $1" $?
}
ranks=2
plan optimizer.zero_stage=1 || exit 99
for other in ref cpu; do
  if [ $other = cpu ] && "$nxrun" plan.bin --backend cpu --dir none --dry-run 2>&1 | grep -q 'built without'; then
    skip 'checkpoints of cpu' 'this nxrun has no such backend'
    continue
  fi
  goes_on opencl $other
  goes_on $other opencl
done
finish
