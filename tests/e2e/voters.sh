#!/bin/sh
# Votes of distsignsgd: a micro-batch without a label that counts has none, and the mean is over the others. TAP.
# usage: voters.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(dirname "$(realpath "$0")")
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

# Of mixed.jsonl three records of four have no label but that of their first token, which nothing predicts.
awk 'BEGIN { for (i = 0; i < 64; i++) { ids = labels = i % 200
    for (k = 1; k < 16; k++) { id = (i * 31 + k * k * 7) % 199; ids = ids ", " id; labels = labels ", " (i % 4 ? -100 : id) }
    line = sprintf("{\"input_ids\": [%s], \"labels\": [%s]}", ids, labels)
    print line >"mixed.jsonl"
    if (i % 4 == 0) print line >"few.jsonl" } }'
train() { # NAME WORLD DATA BATCH SETTING=VALUE...
  name=$1 world=$2 data=$3 batch=$4 sets=
  shift 4
  for setting; do sets="$sets --set $setting"; done
  cat >"$name.yaml" <<END
mesh: {world: $world}
batch: {micro: 1, global: $batch}
model: {layers: 1, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: distsignsgd, lr: 1e-3}
loss: {mean: step}
schedule: {name: constant, max_steps: 4}
precision: {preset: fp32}
data: {path: [$data], kind: tokenized, labels: labels, sampler: document, shuffle: false, prepared: $name.data}
END
  # shellcheck disable=SC2086 # a list of words
  { "$nxcfg" plan "$name.yaml" $sets -o "$name.bin" && "$nxdata" prepare "$name.bin" &&
      "$mpiexec" -n "$world" "$nxrun" "$name.bin" --dir "$name"; } >out 2>&1 || sed 's/^/# /' out
  cut -d, -f1,2 "$name/metrics.jsonl" >"$name.losses"
}

train few 1 few.jsonl 2
train mixed 1 mixed.jsonl 8
[ -s few.losses ] && diff few.losses mixed.losses >out
report 'those without a label change nothing' $?
train two 2 mixed.jsonl 8 optimizer.zero_stage=2
diff few.losses two.losses >out
report 'nor on two ranks' $?
train all 1 few.jsonl 8
! cmp -s few.losses all.losses
report 'where all vote the mean is over all' $?
finish
