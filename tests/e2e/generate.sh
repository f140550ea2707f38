#!/bin/sh
# Texts that nxrun continues: the same on every mesh, greedy and drawn, of dense models and mixtures, without what
# only training does; and what it refuses. TAP. usage: generate.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

# A text that is soon learned: each letter says which one follows.
awk 'BEGIN { for (i = 0; i < 400; i++) printf "abcdefghijklmnopqrstuvwxyz "; print "" }' >text
"$nxdata" build text -o data >out || exit 99
plan() { # NAME [SETTING...]
  name=$1
  shift
  cat >"$name.yaml" <<END
mesh: {world: 1}
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 32, vocab: 128, vocab_divisor: 8}
optimizer: {name: adamw, lr: 1e-2}
schedule: {max_steps: 30}
precision: {preset: fp32}
data: {path: [data]}
run: {name: run, log_every: 30}
END
  sets=
  for set in "$@"; do sets="$sets --set $set"; done
  "$nxcfg" plan "$name.yaml" $sets -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
# text_of PLAN RANKS OPTION...: what is printed, in the file `text`
text_of() {
  given=$1 ranks=$2
  shift 2
  timeout 100 "$mpiexec" -n "$ranks" "$nxrun" "$given.bin" "$@" >text 2>out
}
# same NAME PLAN RANKS: both texts are those of one rank.
same() {
  text_of "$2" "$3" --checkpoint "$checkpoint" --generate 'hijk' --tokens 40 --temperature 0 && cmp text greedy >>out &&
    text_of "$2" "$3" --checkpoint "$checkpoint" --generate 'hijk' --tokens 40 --temperature 2 --seed 7 &&
    cmp text drawn >>out
  report "$1" $?
}
# train NAME RUN [SETTING...]: on one rank, with the two texts that the others must print.
train() {
  what=$1 run=$2
  shift 2
  plan one "$@"
  checkpoint=$run/checkpoints/step-000030
  "$nxrun" one.bin --dir "$run" >out 2>&1 && text_of one 1 --dir "$run" --generate 'hijk' --tokens 40 --temperature 0 &&
    mv text greedy && text_of one 1 --dir "$run" --generate 'hijk' --tokens 40 --temperature 2 --seed 7 && mv text drawn
  report "$what" $?
}

train 'a dense model continues a text' dense
[ "$(cat greedy)" = 'hijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwx' ]
report 'what it has learned goes on, behind the end of the sequence too' $?
! cmp -s greedy drawn
report 'a drawn text is another one' $?
text_of one 1 --dir dense --generate 'hijk' --tokens 40 --temperature 2 --seed 8 && ! cmp -s text drawn
report 'another seed draws another text' $?
text_of one 1 --dir dense --generate 'hijk' --tokens 40 --temperature 2 --top-p 0 && cmp text greedy >>out
report 'from no share but the likeliest token the greedy text is drawn' $?
text_of one 1 --dir dense --generate 'hijk' --tokens 3 --temperature 0 && [ "$(cat text)" = hijklmn ]
report 'as many tokens as are asked for' $?
timeout 50 "$nxrun" one.bin --dir dense --generate 'hi jk' --tokens 1000000 2>out | head -c 2 >text
[ "$(cat text)" = hi ]
report 'words are printed as they come, and it ends where nobody reads' $?
plan dropped model.hidden_dropout=0.5 model.attention_dropout=0.5
same 'dropout is of the training alone' dropped 1
plan evaluated 'data.split=[90,10,0]' evaluate.batches=1
rm -rf away && mkdir away && mv data.bin data.idx away
same 'a plan with evaluations, whose data is not there' evaluated 1
mv away/* .
plan tp2 mesh.world=2 mesh.tensor=2 sequence_parallel=true
same 'tensor and sequence parallelism' tp2 2
plan cp2 mesh.world=2 mesh.context=2 attention.ring=true
same 'context parallelism in a ring' cp2 2
plan cp4 mesh.world=4 mesh.context=4 attention.ring=true attention.ulysses=true mesh.ulysses=2
same 'context parallelism in a ring of pairs' cp4 4
plan dp2 mesh.world=2 optimizer.zero_stage=3
same 'data parallelism with ZeRO 3' dp2 2
plan all mesh.world=4 mesh.tensor=2 optimizer.zero_stage=1
same 'tensor and data parallelism' all 4

mixture='moe.experts=4 moe.top_k=2'
train 'a large vocabulary' large model.vocab=20000
plan wide model.vocab=20000 mesh.world=2 mesh.tensor=2
same 'a large vocabulary on two ranks' wide 2

train 'a mixture continues a text' sparse $mixture
plan ep2 mesh.world=2 mesh.expert=2 $mixture
same 'expert parallelism' ep2 2
plan ep2tp2 mesh.world=2 mesh.expert=2 mesh.expert_tensor=1 mesh.tensor=2 sequence_parallel=true $mixture
same 'experts over tensor ranks' ep2tp2 2

expect 'no checkpoint' 1 'empty has no checkpoint: train first' "$nxrun" one.bin --dir empty --generate a
long=$(awk 'BEGIN { for (i = 0; i < 33; i++) printf "a" }')
plan one
expect 'a text that is longer than the sequence' 1 'the text has 33 tokens, and the plan.s sequences have 32' \
  "$nxrun" one.bin --dir dense --generate "$long"
expect 'no text' 1 'there is nothing to continue' "$nxrun" one.bin --dir dense --generate ''
expect 'a token that the model has not' 1 'gives the token 195, and the model.s are below 128' \
  "$nxrun" one.bin --dir dense --generate 'é'
plan pp2 mesh.world=2 mesh.pipeline=2
expect 'a pipeline' 1 'needs a plan without a pipeline: .*mesh.pipeline=1' "$mpiexec" -n 2 "$nxrun" pp2.bin --generate a
expect 'with --resume' 2 'nothing is trained: leave --resume' "$nxrun" one.bin --generate a --resume
expect 'its options without it' 2 'belong to --generate' "$nxrun" one.bin --tokens 3
expect 'a temperature below 0' 2 'temperature cannot be' "$nxrun" one.bin --generate a --temperature -1

ls dense/checkpoints/step-000030 | tr '\n' ' ' >out
[ "$(cat out)" = 'config.json generation_config.json manifest.json model.safetensors moment1.safetensors '\
'moment2.safetensors tokenizer.json tokenizer_config.json ' ]
report 'a checkpoint has what transformers loads its folder with' $?
plan wide model.vocab=257
"$nxrun" wide.bin --dir wide --stop-after 1 >out 2>&1 &&
  grep -q '"eos_token_id": 256' wide/checkpoints/step-000001/generation_config.json &&
  grep -q '"eos_token_id": 256' wide/checkpoints/step-000001/config.json
report 'the token that ends texts stands in its settings' $?
! grep -q eos_token_id dense/checkpoints/step-000030/config.json dense/checkpoints/step-000030/generation_config.json
report 'unless the model lacks it' $?
plan bare checkpoint.hugging_face=false checkpoint.every_steps=10 checkpoint.keep=1
"$nxrun" bare.bin --dir bare >out 2>&1 && ls bare/checkpoints/* | tr '\n' ' ' >out
[ "$(cat out)" = 'manifest.json model.safetensors moment1.safetensors moment2.safetensors ' ]
report 'checkpoint.hugging_face=false leaves that out' $?
plan kept checkpoint.every_steps=10 checkpoint.keep=1
"$nxrun" kept.bin --dir kept >out 2>&1 && ls kept/checkpoints | tr '\n' ' ' >out
[ "$(cat out)" = 'step-000030 ' ]
report 'checkpoints with a tokenizer are removed whole' $?
mv data.tokenizer away
text_of one 1 --dir dense --generate 'hijk' --tokens 3 --temperature 0 && [ "$(cat text)" = hijklmn ]
report 'the tokenizer beside the checkpoint is enough' $?
expect 'no tokenizer' 1 'no tokenizer stands beside' "$nxrun" bare.bin --dir bare --generate a
finish
