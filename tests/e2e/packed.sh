#!/bin/sh
# Documents with labels, packed into samples and one a sample: the loss of a token is the same, and so is the gradient,
# on one rank and on meshes; a model that reads other documents gives another. TAP.
# usage: packed.sh NXCFG NXRUN NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

# Ten documents of these lengths fill four samples of 32 tokens, if the longest come first. Half of each has labels.
for length in 20 8 16 30 7 12 16 2 9 8; do
  awk -v n="$length" 'BEGIN {
    for (i = 0; i < n; i++) {
      token = (n * 7 + i * i * 3 + 5 * i) % 90
      ids = ids (i ? ", " : "") token
      labels = labels (i ? ", " : "") (i < n / 2 ? -100 : token)
    }
    printf "{\"input_ids\": [%s], \"labels\": [%s]}\n", ids, labels
  }'
done >set.jsonl
"$nxdata" build set.jsonl --field input_ids --labels labels -o set >out 2>&1 || exit 99

cat >model.yaml <<'E2'
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 32, vocab: 100}
batch: {micro: 1}
optimizer: {lr: 1e-2}
schedule: {max_steps: 3}
loss: {mean: step}
precision: {preset: fp32}
data:
  path: [set]
  shuffle: false
  reset_attention_mask: true
  reset_position_ids: true
  eod_mask_loss: true
E2

train() { # NAME RANKS SETTING...: three steps; losses and norms go to the file NAME
  name=$1 ranks=$2
  shift 2
  sets=
  for setting; do sets="$sets --set nx:$setting"; done
  # shellcheck disable=SC2086
  "$nxcfg" plan --dialect nx model.yaml --set nx:mesh.world="$ranks" $sets -o "$name.plan" >out 2>&1 &&
    timeout 100 "$mpiexec" -n "$ranks" "$nxrun" "$name.plan" --dir "$name.run" >out 2>&1 &&
    grep -o '"\(loss\|grad_norm\)":[^,]*' "$name.run/metrics.jsonl" | sed 's/.*://' >"$name"
}

same() { # NAME RANKS SETTING...: as one document a sample
  train "$@" && paste "$1" alone | awk '
    { d = ($1 - $2) / $2; if (d > 1e-6 || d < -1e-6) { wrong = 1; print } }
    END { exit wrong || NR != 6 }' >>out
  report "$1" $?
}

train alone 1 data.sampler=document batch.global=10
report "one document a sample" $?
packed="data.sampler=packed batch.global=4"
# shellcheck disable=SC2086
{
  same packed 1 $packed
  same "packed, two micro-batches of two" 1 $packed batch.micro=2
  same "packed, two data-parallel ranks" 2 $packed
  same "packed, four data-parallel ranks" 4 $packed optimizer.zero_stage=3
  same "packed, tensor parallel" 2 $packed mesh.tensor=2
  same "packed, two stages" 2 $packed mesh.pipeline=2
  same "packed, sequences over two ranks" 2 $packed mesh.context=2 attention.ring=true
  same "packed in order needs more samples" 1 data.sampler=packed data.packing=in_order batch.global=6
}
# shellcheck disable=SC2086
train mixed 1 $packed data.reset_attention_mask=false && ! cmp -s mixed packed
report "documents that read one another differ" $?

refused() { # NAME WHY SETTING...: nothing is trained
  why=$2
  ! train "$1" 1 $3 && grep -q "$why" out
  report "$1" $?
}

refused "a document that is too long" "has room for 16: prepare it with data.document_tokens" \
  "data.sampler=packed model.sequence=16 batch.global=2"
refused "weights that a plan does not count" "has weights of its tokens, which the plan does not read" \
  "batch.global=2 data.eod_mask_loss=false data.reset_attention_mask=false data.reset_position_ids=false"

# Steps follow from epochs where the dataset is here: nxcfg counts the rows that nxrun makes.
sed -e 's/^schedule:.*/schedule: {epochs: 2}/' model.yaml >epochs.yaml
counted() { # NAME STEPS SETTING...: so many are planned, and trained to their end
  name=$1 steps=$2
  shift 2
  # shellcheck disable=SC2046
  "$nxcfg" plan --dialect nx epochs.yaml --set nx:mesh.world=1 $(printf ' --set nx:%s' "$@") -o epochs.plan >out 2>&1 &&
    timeout 100 "$nxrun" epochs.plan --dir "$(mktemp -d -p .)/run" >out 2>&1 && grep -q "step $steps/$steps " out &&
    ! grep -q 'epochs of' out
  report "$name" $?
}
counted 'two epochs of four rows' 4 data.sampler=packed batch.global=2
counted 'of six rows, in order' 6 data.sampler=packed data.packing=in_order batch.global=2
counted 'of six rows in groups of two documents' 12 data.sampler=packed data.packing_group=2 batch.global=1
counted 'of ten documents' 6 data.sampler=document batch.global=3
! "$nxcfg" plan --dialect nx epochs.yaml --set nx:mesh.world=1 --set nx:batch.global=2 --set nx:data.path=[none] \
  --set nx:data.sampler=packed -o epochs.plan >out 2>&1 && grep -q 'where the dataset is here' out
report 'a dataset that is not here is asked for' $?
finish
