#!/bin/sh
# From data as teams have it to a run: nxcfg plan, nxdata prepare, nxrun. TAP.
# usage: prepare.sh NXCFG NXRUN NXDATA MPIEXEC RECORDED
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 recorded=$(realpath "$5")
. "$(dirname "$0")/lib.sh"

plan() { # NAME DATA
  cat >"$1.yaml" <<END
mesh: {world: 1}
batch: {micro: 2, global: 4}
model: {layers: 1, hidden: 16, ffn_hidden: 32, heads: 2, kv_heads: 2, sequence: 8, vocab: 120}
optimizer: {name: adamw, lr: 1e-2}
schedule: {max_steps: 3}
data: {prepared: made, shuffle: false, $2}
run: {name: run, seed: 1}
END
  "$nxcfg" plan "$1.yaml" -o "$1.plan" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
losses() { # NAME: the losses of its run
  rm -rf run
  timeout 100 "$mpiexec" -n 1 "$nxrun" "$1.plan" --dir run >"$1.out" 2>&1 || { cp "$1.out" out; return 1; }
  grep -o '"loss":[^,]*' run/metrics.jsonl >"$1.losses"
}

# Token ids; labels that are all there; labels of every other token; and the same data as texts.
awk 'BEGIN {
  for (i = 0; i < 40; i++) {
    ids = all = half = text = ""
    for (k = 0; k < 9; k++) {
      id = 97 + (i * i + 7 * k) % 20
      ids = ids (k ? ", " : "") id
      half = half (k ? ", " : "") (k % 2 ? id : -100)
      text = text sprintf("%c", id)
    }
    printf "{\"input_ids\": [%s], \"labels\": [%s], \"half\": [%s], \"text\": \"%s\"}\n", ids, ids, half, text
  }
}' >ids.jsonl
plan ids 'kind: tokenized, path: [ids.jsonl]'
plan labels 'kind: tokenized, path: [ids.jsonl], labels: labels'
plan half 'kind: tokenized, path: [ids.jsonl], labels: half'
plan texts 'kind: text, path: [ids.jsonl]'

losses ids
grep -q 'made/ids-.*idx is not there: nxdata prepare' ids.out
report 'what is not prepared is named, with the command' $?
expect 'prepared' 0 'documents  *40$' "$nxdata" prepare ids.plan
expect 'once' 0 '^dataset  *made/ids-[0-9a-f]* is there$' "$nxdata" prepare ids.plan
touch ids.jsonl
expect 'anew where an input changed' 0 'documents  *40$' "$nxdata" prepare ids.plan
for each in labels half texts; do "$nxdata" prepare $each.plan >out 2>&1 || report "prepare $each" 1; done
[ "$(ls made/*.idx | wc -l)" -eq 4 ] && [ "$(ls made/*.weights | wc -l)" -eq 2 ]
report 'each recipe has a dataset of its own' $?

for each in ids labels half texts; do losses $each || report "train $each" 1; done
cmp ids.losses labels.losses >out 2>&1
report 'labels of every token are as none' $?
cmp ids.losses texts.losses >out 2>&1
report 'bytes of texts are their ids' $?
cat ids.losses half.losses >out
! cmp -s ids.losses half.losses && [ "$(wc -l <half.losses)" -eq 3 ]
report 'tokens without a label weigh nothing' $?
expect 'labels that are other tokens' 1 'ids.jsonl:1: label 1 is' \
  sh -c "cp ids.jsonl keep && sed 's/\"half\": \[-100, [0-9]*/\"half\": [-100, 7/' keep >ids.jsonl && '$nxdata' prepare half.plan"
cp keep ids.jsonl

# A dataset with weights, read by a plan that has none.
prefix=$(ls made/*.weights | head -n 1)
plan indexed "kind: indexed, path: [${prefix%.weights}]"
losses indexed
expect 'weights that the plan does not read' 0 'has weights of its tokens' cat indexed.out
head -c 8 "$prefix" >short && mv short "$prefix"
plan weighed "kind: indexed, labels: labels, path: [${prefix%.weights}]"
losses weighed
expect 'weights that are another dataset'"'"'s' 0 'has 8 bytes' cat weighed.out

# Made-up data, and what is not there.
plan counting 'kind: counting, path: [made-up], document_tokens: [9], documents: [30]'
expect 'made-up data' 0 'tokens  *270$' "$nxdata" prepare counting.plan
losses counting
report 'is trained on' $?
plan missing 'kind: text, path: [team/corpus]'
expect 'a name that is no file' 1 "cannot read team/corpus: .*load_dataset('team/corpus')" "$nxdata" prepare missing.plan
plan plain 'kind: indexed, path: [x]'
expect 'nothing to prepare' 0 'nothing to prepare' "$nxdata" prepare plain.plan
expect 'no plan' 1 'is no plan' "$nxdata" prepare ids.jsonl

# What the plan says of a tokenizer that is ranks alone.
for byte in $(seq 0 255); do
  echo "$(printf "\\$(printf %03o "$byte")" | base64) $byte"
done >small.tiktoken
printf 'MTI= 256\n' >>small.tiktoken
printf '{"text": "12a"}\n{"text": "a12a"}\n' >digits.jsonl
plan ranks 'kind: text, path: [digits.jsonl], tokenizer: small.tiktoken'
expect 'a tokenizer that is ranks alone' 1 'its pattern and special tokens stand in no file' "$nxdata" prepare ranks.plan
for pattern in v1 '[0-9]+|a'; do
  sed "s/seed: 1}/seed: 1, tokenizer: small.tiktoken, tokenizer_pattern: '$pattern'}/" ranks.yaml >of.yaml
  "$nxcfg" plan of.yaml --set model.vocab=300 -o of.plan >out 2>&1 && "$nxdata" prepare of.plan >>out 2>&1 &&
    "$nxdata" show "$(ls -t made/*.idx | head -n 1)" 2>>out | grep -v '^---' | tr -s '\n ' ' '
done >shown
[ "$(ls made/digits-*.idx | wc -l)" -eq 2 ] && [ "$(cat shown)" = '49 50 97 97 49 50 97 256 97 97 256 97 ' ]
report 'is prepared with the pattern that the plan says, and with another under another name' $?

# A piece of a dataset that was shuffled, as xorl cuts it: of 23 records those that datasets takes with seed 42, and
# one that has none.
awk 'BEGIN { for (i = 0; i < 23; i++) printf "{\"input_ids\": [%d, 1, 2], \"labels\": [%d, 1, 2]}\n", i, i }' >rows.jsonl
piece() { # NAME SHARDS INDEX
  cat >"$1.yaml" <<END
model: {model_path: $recorded/families/llama, attn_implementation: native}
data: {datasets: [{path: rows.jsonl, type: tokenized, shards: $2, shards_idx: $3}], sample_packing_sequence_len: 33}
train: {output_dir: $1, init_device: meta, micro_batch_size: 1, gradient_accumulation_steps: 1, max_steps: 3, lr: 1e-3, seed: 42}
END
  "$nxcfg" plan "$1.yaml" --world-size 1 -o "$1.plan" >out 2>&1
}
piece last 4 3 && expect 'a piece of records is prepared' 0 'documents  *5$' "$nxdata" prepare last.plan
last=$(ls -t last_prepared_dataset/rows-*.idx | head -n 1)
[ "$("$nxdata" show "$last" | grep -v '^---' | cut -d ' ' -f 1 | tr '\n' ' ')" = '8 1 13 20 4 ' ]
report 'those that datasets takes, in its order' $?
piece none 30 25 && expect 'a piece without records is told' 1 'piece 25 of 30 of .*rows-.* has no record' "$nxdata" prepare none.plan
! piece beyond 4 4 && grep -q 'NX2991' out
report 'one that is not there, too' $?

# Datasets that are merged as xorl merges them, in the order of datasets' own shuffles and shards (datasets 5.2, numpy
# 2): of the records 3, 103, ... too long, and of 7, 17, ... no token counts.
merged() { # NAME DATASETS OPTIONS EXPECTED
  cat >"$1.yaml" <<END
model: {model_path: $recorded/families/llama, attn_implementation: native}
data: {datasets: [$2], sample_packing_sequence_len: 33, dataset_prepared_path: $1$3}
train: {output_dir: $1, init_device: meta, micro_batch_size: 1, gradient_accumulation_steps: 1, max_steps: 2, lr: 1e-3, seed: ${5:-42}}
END
  "$nxcfg" plan "$1.yaml" --world-size 1 -o "$1.plan" >out 2>&1 && "$nxdata" prepare "$1.plan" >>out 2>&1
  all=$(sed -n 's/^dataset  *//p' out | tail -n 1)
  [ "$("$nxdata" show "$all" --count 99 | grep -v '^---' | cut -d ' ' -f 1 | tr '\n' ' ')" = "$4 " ]
  report "$1: merged in the order of datasets" $?
}
rows() { # FIRST N
  awk -v first="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) { id = first + i; long = id % 10 == 3 ? ", 5" : ""
    printf "{\"input_ids\": [%d, 1, 2%s], \"labels\": [%s]}\n", id, long,
      id % 10 == 7 ? "-100, -100, -100" : id ", 1, 2" long } }'
}
rows 0 12 >one.jsonl
awk 'BEGIN { for (i = 0; i < 12; i++) printf "{\"input_ids\": [%d, 1, 2], \"labels\": [%d, 1, 2]}\n", i, i }' >plain.jsonl
rows 50 8 >two.jsonl
one='path: one.jsonl, type: tokenized, max_seq_len: 3' two='path: two.jsonl, type: tokenized, max_seq_len: 3'
merged both "{$one}, {$two}" '' '56 50 52 2 9 1 5 11 55 6 54 0 4 51 8 10'
merged each "{$one}, {$two}" ', shuffle_merged_datasets: false, dataset_shard_num: 3, dataset_shard_idx: 1' '5 10 1 9 54'
merged shards "{$one, shards: 2, shards_idx: 1}, {$two, shards: 1}" ', shuffle_before_merging_datasets: false' \
  '50 8 56 9 54 5 51 2 11 52 55' 7
awk 'BEGIN { for (i = 20; i < 32; i++) printf "{\"input_ids\": [%d, 1, 2], \"labels\": [%d, 1, 2]}\n", i, i }' >more.jsonl
merged files '{path: ., data_files: [two.jsonl, one.jsonl], ds_type: json, type: tokenized, max_seq_len: 3},
  {path: more.jsonl, type: tokenized, max_seq_len: 3}' ', shuffle_before_merging_datasets: false' '31 10 0 27 26 24 56 23 28 4 21 22 2 20 54 50 9 11 25 6 5 8 30 52 55 29 51 1'
merged parts '{path: plain.jsonl, type: tokenized, preprocess_shards: 3}' '' '9 11 3 1 4 0 5 7 2 10 6 8'
merged last '{path: plain.jsonl, type: tokenized}' ', shuffle_merged_datasets: false, dataset_shard_num: 5, dataset_shard_idx: 4' '10 11'
"$nxdata" prepare both.plan >out 2>&1 && [ "$(grep -c 'is there' out)" -eq 3 ]
report 'a merged dataset that is there stays' $?
rows 50 6 >two.jsonl
expect 'and is made again where one of its parts was' 0 'documents  *15$' "$nxdata" prepare both.plan
expect 'and is trained on' 0 'step 2/2' "$nxrun" both.plan --dir both

# A file of xorl as it is: experts as the config.json beside its weights says, over two ranks, from those weights.
cat >xorl.yaml <<END
model: {model_path: $recorded/families/qwen3_moe, attn_implementation: native}
data: {datasets: [{path: dummy, type: tokenized}], sample_packing_sequence_len: 33}
train: {output_dir: xorl, data_parallel_mode: fsdp2, init_device: meta, expert_parallel_size: 2, micro_batch_size: 1,
  gradient_accumulation_steps: 2, max_steps: 3, optimizer: adamw, lr: 1e-3, enable_mixed_precision: true}
END
"$nxcfg" plan xorl.yaml --world-size 2 -o xorl.plan >out 2>&1
report "a file of xorl's is compiled" $?
"$nxdata" prepare xorl.plan >out 2>&1
report 'its data is made' $?
expect 'and its experts are trained on two ranks' 0 'step 3/3' "$mpiexec" -n 2 "$nxrun" xorl.plan --dir xorl
awk -F'[:,]' '{ loss[NR] = $4 } END { exit !(NR == 3 && loss[3] < loss[1]) }' xorl/metrics.jsonl
report 'from the weights that it names' $?
finish
