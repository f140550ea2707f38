#!/bin/sh
# The other compiler's nxrun, with ThreadSanitizer, on a device of OpenCL: two ranks whose copies run beside the kernels.
# No race, and the losses of the usual nxrun: what differs is the host's part. TAP.
# usage: threads_device.sh NXCFG NXRUN NXDATA MPIEXEC TEXT SOURCE_ROOT
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 text=$(realpath "$5") source=$(realpath "$6")
. "$(dirname "$0")/lib.sh"
"$nxrun" --devices | grep -q '^opencl 0' || skip_all 'no OpenCL device (Debian: pocl-opencl-icd)'
command -v clang >/dev/null || skip_all 'clang is not installed'
export TSAN_OPTIONS=exitcode=66 NXRUN_OPENCL_OPTIONS=-cl-opt-disable NXRUN_CLBLAST=0

CC=clang meson setup build "$source" --buildtype=plain -Doptimization=1 -Ddebug=true -Dwerror=false -Druntime=enabled \
  -Dopencl=enabled -Dclblast=disabled -Db_sanitize=thread -Db_lundef=false >out 2>&1 && ninja -C build nxrun >out 2>&1 &&
  grep -q __tsan_init build/nxrun
report 'a build by clang with ThreadSanitizer' $?

"$nxdata" build "$text" -o data >out 2>&1 || exit 99
cat >small.yaml <<'YAML'
mesh: {world: 2}
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 88, heads: 4, kv_heads: 2, sequence: 16, vocab: 256, vocab_divisor: 16}
optimizer: {name: adamw, lr: 1e-3, zero_stage: 1}
reduce: {overlap: true}
schedule: {max_steps: 3}
data: {path: [data]}
run: {threads: 1}
YAML
"$nxcfg" plan small.yaml -o plan.bin >out 2>&1 || { cat out; exit 99; }
train() { # NXRUN FOLDER
  timeout 300 "$mpiexec" -n 2 "$1" plan.bin --backend opencl --dir "$2" --profile 2-3 >out 2>&1
}
train build/nxrun other && ! grep -q 'ThreadSanitizer' out
report 'two ranks on a device: no race' $?
train "$nxrun" usual
for run in usual other; do sed 's/,"tokens_per_s.*//' $run/metrics.jsonl >$run.losses; done
diff usual.losses other.losses >>out && [ "$(wc -l <usual.losses)" -eq 3 ]
report 'the losses of the usual nxrun, to the last bit' $?
finish
