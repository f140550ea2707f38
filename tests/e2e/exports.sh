#!/bin/sh
# What the files of a checkpoint's weights may be: several with an index, or in the type in which the model computes with
# the master weights beside them. Runs go on from each as from one file, on other meshes too. And the tokenizer beside
# them, of which the plan may say what no file of it does. TAP.
# usage: exports.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%c", 65 + (i * i * 7919) % 50 }' >text
"$nxdata" build text -o data >out || exit 99
plan() { # NAME RANKS [SETTING...]
  name=$1 ranks=$2
  shift 2
  cat >"$name.yaml" <<END
mesh: {world: $ranks}
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}
schedule: {max_steps: 6}
precision: {preset: mixed_precision}
data: {path: [data]}
checkpoint: {every_steps: 3}
run: {name: run}
END
  sets=
  for set in "$@"; do sets="$sets --set $set"; done
  "$nxcfg" plan "$name.yaml" $sets -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
losses() { # RUN FIRST
  sed -n 's/.*"step":\([0-9]*\),"loss":\([0-9.]*\).*/\1 \2/p' "$1/metrics.jsonl" | awk -v f="$2" '$1 >= f'
}
same() { # NAME RUN OTHER FIRST
  losses "$2" "$4" >one && losses "$3" "$4" >other && diff one other >out && [ -s one ]
  report "$1" $?
}
files() { # RUN
  (cd "$1/checkpoints/step-000003" && ls | grep -e model -e master | tr '\n' ' ')
}
# again NAME PLAN RANKS RUN: goes on from step 3 of RUN, with the numbers of the run that was not stopped.
again() {
  rm -rf resumed && mkdir -p resumed/checkpoints && cp -r "$4/checkpoints/step-000003" resumed/checkpoints/
  expect "$1" 0 'resumes from resumed/checkpoints/step-000003' "$mpiexec" -n "$3" "$nxrun" "$2.bin" --dir resumed --resume
}

plan whole 2
passes 'one file' "$mpiexec" -n 2 "$nxrun" whole.bin --dir whole
[ "$(files whole)" = 'model.safetensors ' ]
report 'which is all there is' $?

plan several 2 checkpoint.file_bytes=20000
passes 'several files' "$mpiexec" -n 2 "$nxrun" several.bin --dir several
[ "$(files several)" = 'model-00001-of-00007.safetensors model-00002-of-00007.safetensors '\
'model-00003-of-00007.safetensors model-00004-of-00007.safetensors model-00005-of-00007.safetensors '\
'model-00006-of-00007.safetensors model-00007-of-00007.safetensors model.safetensors.index.json ' ]
report 'and an index' $?
for file in several/checkpoints/step-000003/model-*.safetensors; do
  [ "$(stat -c %s "$file")" -le 33000 ] || echo "$file"
done >out
[ ! -s out ]
report 'each holds what it may, or one tensor' $?
again 'a run goes on from them' several 2 several
same 'with the same numbers' whole resumed 4
again 'one that writes a single file too' whole 2 several
same 'with these' whole resumed 4
plan zero3 2 optimizer.zero_stage=3 checkpoint.file_bytes=20000
again 'and on another mesh' zero3 2 whole
diff -r whole/checkpoints/step-000003/config.json several/checkpoints/step-000003/config.json >out
report 'what stands beside them is the same' $?
plan begins 1 run.init_from=several/checkpoints/step-000003
plan begun 1 run.init_from=whole/checkpoints/step-000003
"$nxrun" begins.bin --dir begins >out 2>&1 && "$nxrun" begun.bin --dir begun >out 2>&1
same 'a new run begins with their weights' begins begun 1

plan model 2 checkpoint.weights=model
passes 'weights as the model computes' "$mpiexec" -n 2 "$nxrun" model.bin --dir model
[ "$(files model)" = 'master.safetensors model.safetensors ' ]
report 'with the master weights beside them' $?
size() { stat -c %s "$1"; }
[ "$(size model/checkpoints/step-000003/model.safetensors)" -lt "$(size whole/checkpoints/step-000003/model.safetensors)" ] &&
  cmp model/checkpoints/step-000003/master.safetensors whole/checkpoints/step-000003/model.safetensors >out
report 'which are those that others have' $?
again 'a run goes on from the master weights' model 2 model
same 'with the same numbers as ever' whole resumed 4
again 'and so does one that keeps no other' whole 2 model
same 'with those' whole resumed 4
plan both 2 checkpoint.weights=model checkpoint.file_bytes=20000 checkpoint.async=false
passes 'several of these' "$mpiexec" -n 2 "$nxrun" both.bin --dir both
again 'from which a run goes on' both 2 both
same 'with them' whole resumed 4
plan light 2 checkpoint.weights=model checkpoint.save_optimizer=false
passes 'without the optimizer' "$mpiexec" -n 2 "$nxrun" light.bin --dir light
[ "$(files light)" = 'model.safetensors ' ]
report 'there is no master either' $?
plan loaded 1 checkpoint.load=light checkpoint.weights_only=true
expect 'and their weights begin a run' 0 'begins with the weights of light/checkpoints/step-000006' \
  "$nxrun" loaded.bin --dir loaded

# A vocabulary and its merges under names of their own, as Megatron-LM's options have them.
mkdir words pairs
{ echo '{'; sed -n '/"vocab": {/,/}/{s/^ *"vocab": {//; /[:]/p}' data.tokenizer/tokenizer.json | sed '$s/,*$/,/'
  echo '"AB": 256, "<|endoftext|>": 257 }'; } >words/gpt2-vocab.json
printf '#version: 0.2\nA B\n' >pairs/gpt2-merges.txt
megatron() { # NAME OPTION...
  name=$1
  shift
  echo "torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 16 \
    --max-position-embeddings 16 --micro-batch-size 1 --global-batch-size 4 --train-iters 2 --eval-iters 0 --lr 1e-3 \
    --lr-decay-style constant --bf16 --data-path data --split 1,0,0 --save $name --save-interval 2 $*" >"$name.sh"
  "$nxcfg" plan "$name.sh" -o "$name.bin" --set nx:model.vocab=270 >out 2>&1 && "$nxrun" "$name.bin" --dir "$name" >out 2>&1
}
megatron pairs_run --tokenizer-type GPT2BPETokenizer --vocab-file words/gpt2-vocab.json --merge-file pairs/gpt2-merges.txt &&
  cmp words/gpt2-vocab.json pairs_run/checkpoints/step-000002/vocab.json >out &&
  cmp pairs/gpt2-merges.txt pairs_run/checkpoints/step-000002/merges.txt >out
report 'a vocabulary and merges that stand elsewhere are beside the weights' $?
"$nxrun" pairs_run.bin --dir pairs_run --generate ABAB --tokens 1 >said 2>out && grep -q '^ABAB' said
report 'and text is read with them' $?
rm -r pairs_run/checkpoints/step-000002/vocab.json pairs/gpt2-merges.txt
expect 'without them it is said which file is missing' 1 'words/gpt2-merges.txt: No such file' \
  "$nxrun" pairs_run.bin --dir pairs_run --generate ABAB --tokens 1

# Ranks alone, of which only the command says how words are found and what the special tokens are.
{ echo '['; for byte in $(seq 0 255); do
  printf '{"rank": %d, "token_bytes": "%s"}%s\n' "$byte" "$(printf "\\$(printf %03o "$byte")" | base64)" \
    "$([ "$byte" = 255 ] || echo ,)"
done; echo ']'; } >ranks.json
megatron ranks_run --tokenizer-type TikTokenizer --tokenizer-model ranks.json --tiktoken-pattern v1 \
  --tiktoken-num-special-tokens 10 --tiktoken-special-tokens '\<unk\>' '\<s\>' '\</s\>'
report 'ranks of tokens, and what else Megatron-LM says of them' $?
grep -q '"eos_token_id": 2' ranks_run/checkpoints/step-000002/generation_config.json
report 'special tokens have the ids that they have there' $?
"$nxrun" ranks_run.bin --dir ranks_run --generate 'AB 12' --tokens 1 >said 2>out && grep -q '^AB 12' said
report 'and text is read with them' $?
finish
