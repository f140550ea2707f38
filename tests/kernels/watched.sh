#!/bin/sh
# The kernels of opencl in Oclgrind, a device of OpenCL 1.2 that sees every access to memory: none outside a
# buffer, and no two work-items race for one place. Records of attention, and the products that are larger than
# the blocks of processors, are left out, for they take hours there: a small model is trained instead. TAP.
# usage: watched.sh TEST_KERNELS RECORDS NXCFG NXDATA NXRUN [PREFIX]
#        (PREFIX: of the names of records; `-`: training alone)
# SPDX-License-Identifier: Apache-2.0
set -u
test_kernels=$(realpath "$1") records=$(realpath "$2")
nxcfg=$(realpath "$3") nxdata=$(realpath "$4") nxrun=$(realpath "$5") prefix=${6:-}
. "$(dirname "$0")/../tap.sh"
command -v oclgrind >/dev/null || skip_all 'oclgrind is not installed'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# It does not know all that a compiler makes of a program that it makes fast.
export NXRUN_OPENCL_OPTIONS=-cl-opt-disable NXRUN_CLBLAST=0 NXRUN_CACHE="$work/kept"
sed -n 's/^record //p' "$records" | grep -v -e '^attention' -e '^matmul in blocks' | grep "^$prefix" >"$work/names"
watch() { # NAME COMMAND...: it ends well, and Oclgrind has nothing to say
  name=$1
  shift
  oclgrind --data-races "$@" >"$work/results" 2>"$work/errors"
  status=$?
  grep -vE 'warnings? generated|^step [12]/2 ' "$work/errors" >"$work/found" && status=1
  result "$name" $status "$(cat "$work/results" "$work/found")"
}
while read -r name; do
  watch "$name" "$test_kernels" opencl "$records" --only "$name"
done <"$work/names"

cd "$work" || exit 99
cat >small.yaml <<YAML
mesh: {world: 1}
batch: {micro: 1, global: 2}
model: {layers: 1, hidden: 32, ffn_hidden: 40, heads: 2, kv_heads: 1, sequence: 8, vocab: 256,
  vocab_divisor: 16, normalization: layernorm, position_embedding: rope, activation: gelu,
  bias: true, attention_dropout: 0.1}
optimizer: {name: adamw, lr: 1e-3, clip_norm: 1.0}
schedule: {max_steps: 2}
data: {path: [data]}
YAML
"$nxdata" build "$records" -o data >out 2>&1 && "$nxcfg" plan small.yaml -o plan.bin >out 2>&1 || exit 99
watch 'a model that is trained' "$nxrun" plan.bin --backend opencl --dir run
finish
