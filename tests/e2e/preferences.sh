#!/bin/sh
# Answers, pairs of them or single ones, from records to a trained model: what nxdata makes of them, the reference and its
# file, resuming, and what is refused. TAP.
# usage: preferences.sh NXCFG NXRUN NXDATA PARITY MPIEXEC
# SPDX-License-Identifier: Apache-2.0
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") nxdata=$(realpath "$3") parity=$(realpath "$4") mpiexec=$5
. "$(dirname "$0")/lib.sh"

mkdir tokenizer
cp "$parity/recorded/tokenizers/llama3/tokenizer.json" "$parity/recorded/answers/tokenizer_config.json" tokenizer
awk 'BEGIN { for (i = 0; i < 12; i++)
  printf "{\"prompt\": \"the question %d is \", \"chosen\": \"%d and so on\", \"rejected\": \"not %d\"}\n", i, i, 7 * i }' >pairs.jsonl

config() { # FILE STRATEGY MORE...
  cat >"$1" <<YAML
batch: {micro: 1, global: 4}
mesh: {world: $world}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 32, vocab: 424, vocab_divisor: 8,
        activation: swiglu, normalization: rmsnorm, position_embedding: rope}
optimizer: {name: adamw, lr: 1e-3}
schedule: {name: constant, max_steps: 6}
precision: {preset: fp32}
alignment: {strategy: $2, beta: 0.3}
data: {path: [pairs.jsonl], kind: pairs, tokenizer: tokenizer, document_tokens: [32]}
checkpoint: {every_steps: 3}
run: {name: pairs, log_every: 1}
YAML
}

# ---- records ----
numbers() { # FILE FORMAT
  od -An -v -w1048576 -t "$2" "$1" | awk '{ $1 = $1; print }'
}

echo '{"prompt": "a b c d e f", "chosen": " g", "rejected": " h i j k"}' >long.jsonl
for keeps in start end; do
  "$nxdata" build long.jsonl --tokenizer tokenizer --chosen chosen --max-tokens 8 --max-prompt-tokens 3 --prompt-keeps $keeps \
    -o long-$keeps >out 2>&1
  report "a prompt is cut, and keeps its $keeps" $?
  numbers long-$keeps.weights f4 >weights
  awk '{ n = 0; for (i = 1; i <= NF; i++) { if ($i == 0) n++ } exit !(n == 6 && NF <= 16) }' weights
  report "so much of it stays ($keeps)" $?
done
! cmp -s long-start.bin long-end.bin
report "beginning and end are not the same" $?

mkdir ends && cp tokenizer/tokenizer.json ends && echo '{"eos_token": "</s>"}' >ends/tokenizer_config.json
printf '%s\n' '{"prompt": "", "chosen": "", "rejected": "a b"}' '{"prompt": "", "chosen": "a", "rejected": "b"}' >none.jsonl
expect 'an answer of one token that nothing stands before' 0 'documents  *2$' \
  "$nxdata" build none.jsonl --tokenizer ends --chosen chosen -o told

# What TRL makes of such pairs (tests/parity/record_truncation.py).
recorded=$parity/recorded/preferences/truncation weights=none
while read -r keeps most most_prompt tokens && read -r weights; do
  "$nxdata" build "$recorded.jsonl" --tokenizer tokenizer --chosen chosen --max-tokens "$most" \
    --max-prompt-tokens "$most_prompt" --prompt-keeps "$keeps" -o cut --force >out 2>&1 &&
    [ "$(numbers cut.bin u2)" = "$tokens" ] && [ "$(numbers cut.weights f4)" = "$weights" ] || break
  weights=
done <"$recorded.txt"
[ -z "$weights" ]
report "pairs are cut to the tokens of TRL" $?

cat >same.jsonl <<'JSON'
{"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b"}], "rejected": [{"role": "assistant", "content": "c"}]}
JSON
cat >whole.jsonl <<'JSON'
{"chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "c"}]}
JSON
for kind in same whole; do
  "$nxdata" build $kind.jsonl --tokenizer tokenizer --chosen chosen --template "$parity/templates/chatml.jinja" -o $kind >out 2>&1
done
cmp same.bin whole.bin >>out 2>&1 && cmp same.weights whole.weights >>out 2>&1
report "messages with their prompt before them, or within them" $?
expect "messages need a template" 1 'same.jsonl:1: its answers are messages, and the tokenizer has no chat template' \
  "$nxdata" build same.jsonl --tokenizer tokenizer --chosen chosen -o none
echo '{"prompt": "a", "chosen": "b"}' >half.jsonl
expect "an answer is missing" 1 'half.jsonl:1: it has no field rejected' \
  "$nxdata" build half.jsonl --tokenizer tokenizer --chosen chosen -o none

# ---- training ----
world=1
config dpo.yaml dpo
passes "a plan of DPO" "$nxcfg" plan dpo.yaml -o dpo.plan
passes "its pairs are prepared" "$nxdata" prepare dpo.plan
passes "it trains" "$nxrun" dpo.plan --dir whole
head -n 1 whole/metrics.jsonl | grep -q '"loss":0.6931471805599453,.*"rewards_chosen":0,"rewards_rejected":0,"rewards_accuracy":0'
report "the first step compares the model with itself" $?
expect "the reference is found out once" 0 'reference: the log-probabilities of 24 answers' "$nxrun" dpo.plan --dir parts --stop-after 4
"$nxrun" dpo.plan --dir parts --resume >out 2>&1 && ! grep -q 'log-probabilities' out
report "a run that resumes finds it again" $?
cmp whole/checkpoints/step-000006/model.safetensors parts/checkpoints/step-000006/model.safetensors >out 2>&1
report "and ends with the same bits" $?
"$nxrun" dpo.plan --dir lost --stop-after 4 >out 2>&1
printf x | dd of=lost/reference.bin bs=1 seek=100 conv=notrunc 2>/dev/null
expect "a damaged reference is computed again" 0 'reference: the log-probabilities of 24 answers' "$nxrun" dpo.plan --dir lost --resume
cmp whole/checkpoints/step-000006/model.safetensors lost/checkpoints/step-000006/model.safetensors >out 2>&1
report "and is the same" $?

sed 's/^run:/lora: {rank: 2, alpha: 4}\nrun:/' dpo.yaml >adapters.yaml
"$nxcfg" plan adapters.yaml -o adapters.plan >out 2>&1 && "$nxrun" adapters.plan --dir adapters >>out 2>&1 &&
  head -n 1 adapters/metrics.jsonl | grep -q '"loss":0.6931471805599453'
report "the reference of adapters is the model without them" $?
config orpo.yaml orpo
"$nxcfg" plan orpo.yaml -o orpo.plan >out 2>&1 && "$nxrun" orpo.plan --dir orpo >>out 2>&1 &&
  grep -q '"nll":.*"log_odds":' orpo/metrics.jsonl
report "ORPO" $?

# ---- KTO: answers with rewards ----
awk 'BEGIN { for (i = 0; i < 24; i++)
  printf "{\"prompt\": \"the question %d is \", \"completion\": \"%s %d\", \"label\": %s}\n", i, i % 2 ? "not" : "is", i, i % 2 ? "false" : "true" }' >answers.jsonl
kto() { # FILE
  config "$1" kto
  sed -i 's/batch: {micro: 1/batch: {micro: 4/; s/kind: pairs/kind: completions/; s/pairs.jsonl/answers.jsonl/; s/global: 4/global: 8/' "$1"
}
kto kto.yaml
passes "a plan of KTO" "$nxcfg" plan kto.yaml -o kto.plan
passes "its answers are prepared" "$nxdata" prepare kto.plan
answers=$(ls prepared/answers-*.idx) && answers=${answers%.idx}
[ "$(numbers "$answers.rewards" f4)" = "$(awk 'BEGIN { for (i = 0; i < 24; i++) printf "%s%d", i ? " " : "", i % 2 ? -1 : 1 }')" ]
report "each has a reward" $?
expect "those that are wanted are counted" 0 'rewards *12 of 24 documents are wanted answers' "$nxdata" check "$answers"
expect "KTO asks what the model says before" 0 'reference: the log-probabilities of 24 answers' "$nxrun" kto.plan --dir kto
head -n 1 kto/metrics.jsonl | grep -q '"loss":0.5,.*"kl":0,"rewards":0,"rewards_accuracy":0'
report "the first step compares the model with itself" $?
awk -F'"loss":' '{ split($2, l, ","); if (NR == 1) first = l[1]; last = l[1] } END { exit !(last < first) }' kto/metrics.jsonl
report "and it learns what is wanted" $?
"$nxrun" kto.plan --dir kto-parts --stop-after 4 >out 2>&1 && "$nxrun" kto.plan --dir kto-parts --resume >>out 2>&1 &&
  cmp kto/checkpoints/step-000006/model.safetensors kto-parts/checkpoints/step-000006/model.safetensors >>out 2>&1
report "a run that resumes ends with the same bits" $?
"$nxdata" split "$answers" 1,1,0 -o halves >out 2>&1 && "$nxdata" merge halves-train halves-valid -o whole-again >>out 2>&1 &&
  cmp "$answers.rewards" whole-again.rewards >>out 2>&1
report "rewards go with their documents, apart and together" $?
"$nxdata" build same.jsonl --tokenizer tokenizer --chosen chosen --template "$parity/templates/chatml.jinja" -o bare --force >out 2>&1
expect "a part without rewards" 1 'bare has no rewards of its answers, and others have' "$nxdata" merge "$answers" bare -o none
for reward in 0 '"yes"' null; do
  echo "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": $reward}" >odd.jsonl
  case $reward in
  0) why='odd.jsonl:1: its label is 0: an answer is wanted above 0' ;;
  *) why='odd.jsonl:1: its label is neither true nor false, and no number' ;;
  esac
  expect "an answer that is rewarded by $reward" 1 "$why" \
    "$nxdata" build odd.jsonl --tokenizer tokenizer --completion completion --reward label -o none
done
expect "rewards of pairs" 2 '[-]-reward is of single answers' "$nxdata" build pairs.jsonl --tokenizer tokenizer --chosen chosen --reward label -o none
indexed() { # NAME REWARDS...: a dataset of one number for each document
  name=$1
  shift
  for reward; do echo "{\"tokens\": [$reward]}"; done >"$name.jsonl"
  "$nxdata" build "$name.jsonl" --field tokens -o "$name" --force >/dev/null 2>&1
}
rewarded() { # LABEL PATTERN PREFIX
  sed "s#kind: completions, tokenizer: tokenizer, document_tokens: \[32\]#kind: indexed, reward_path: [$3]#; s#answers.jsonl#$answers#" kto.yaml >beside.yaml
  "$nxcfg" plan beside.yaml -o beside.plan >out 2>&1
  expect "$1" 1 "$2" "$nxrun" beside.plan --dir beside
}
indexed few 1 2 3
rewarded "rewards of fewer answers" 'has 24 documents, and few has rewards of 3' few
# shellcheck disable=SC2046
indexed none $(awk 'BEGIN { for (i = 0; i < 24; i++) print i % 2 }')
rewarded "a reward that is neither" 'the reward of document 0 of dataset none is 0: an answer is wanted above 0' none
mv "$answers.rewards" kept && sed "s#kind: completions, tokenizer: tokenizer, document_tokens: \[32\]#kind: indexed#; s#answers.jsonl#$answers#" kto.yaml >bare.yaml &&
  "$nxcfg" plan bare.yaml -o bare.plan >out 2>&1
expect "answers without rewards" 1 'does not say which of its answers are wanted' "$nxrun" bare.plan --dir bare-run
mv kept "$answers.rewards"

# ---- a reward model ----
config reward.yaml reward
passes "a plan of a reward model" "$nxcfg" plan reward.yaml -o reward.plan
passes "its pairs are prepared (values)" "$nxdata" prepare reward.plan
values=$(ls -t prepared/pairs-*.weights | head -n 1)
numbers "$values" f4 | awk '{ for (i = 1; i <= NF; i++) n += $i; exit n != 24 }'
report "one token of each answer counts" $?
passes "it trains (values)" "$nxrun" reward.plan --dir reward
tail -n 1 reward/metrics.jsonl | grep -q '"values_chosen":.*"rewards_accuracy":.*"rewards_margin":'
report "values, margin and accuracy are logged" $?
grep -q '"score.weight"' reward/checkpoints/step-000006/model.safetensors && ! grep -q 'lm_head' reward/checkpoints/step-000006/model.safetensors
report "the checkpoint has a head, and no output layer" $?
grep -q 'ForSequenceClassification' reward/checkpoints/step-000006/config.json && grep -q '"id2label"' reward/checkpoints/step-000006/config.json
report "transformers finds a model with one label in it" $?
"$nxcfg" plan reward.yaml --set nx:run.init_from=whole/checkpoints/step-000006 -o begun.plan >out 2>&1 &&
  "$nxrun" begun.plan --dir begun >>out 2>&1 && grep -q 'score.weight' out
report "it begins with the weights of a language model, and says which it has not" $?
expect "a reward model says no words" 1 'a reward model has a head of values' "$nxrun" reward.plan --dir reward --generate a
"$nxdata" build pairs.jsonl --tokenizer tokenizer --chosen chosen -o whole-answers >out 2>&1
sed "s#kind: pairs, tokenizer: tokenizer, document_tokens: \[32\]#kind: indexed#; s#pairs.jsonl#whole-answers#" reward.yaml >many-count.yaml
"$nxcfg" plan many-count.yaml -o many-count.plan >out 2>&1
expect "answers of which many tokens count" 1 'document 0 of dataset whole-answers has several tokens that count' "$nxrun" many-count.plan --dir many-count

# ---- several ranks: experts, a batch that grows, and runs that resume ----
experts='moe.experts=4 moe.top_k=2 moe.buffer_factor=4 moe.aux_loss_coef=0.01'
several() { # NAME STRATEGY WORLD SETTINGS...
  name=$1 strategy=$2 world=$3
  shift 3
  config "$name.yaml" "$strategy"
  settings=
  for setting; do settings="$settings --set nx:$setting"; done
  # shellcheck disable=SC2086
  "$nxcfg" plan "$name.yaml" --set "nx:batch.growth=[2@0,4@8]" $settings -o "$name.plan" >out 2>&1 &&
    "$mpiexec" -n "$world" "$nxrun" "$name.plan" --dir "$name" >>out 2>&1
}
in_parts() { # NAME WORLD
  "$mpiexec" -n "$2" "$nxrun" "$1.plan" --dir "$1-parts" --stop-after 3 >out 2>&1 &&
    "$mpiexec" -n "$2" "$nxrun" "$1.plan" --dir "$1-parts" --resume >>out 2>&1 &&
    cmp "$1/checkpoints/step-000006/model.safetensors" "$1-parts/checkpoints/step-000006/model.safetensors" >>out 2>&1
}
losses() {
  sed 's/.*"loss":\([^,]*\).*/\1/' "$1/metrics.jsonl"
}
# More answers than go in one message.
awk 'BEGIN { for (i = 0; i < 5000; i++)
  printf "{\"prompt\": \"%d\", \"chosen\": \" %d\", \"rejected\": \" %d\"}\n", i, i, 7 * i }' >many.jsonl
config many.yaml dpo
"$nxcfg" plan many.yaml --set 'nx:data.path=[many.jsonl]' --set 'nx:data.document_tokens=[12]' \
  --set nx:model.sequence=12 --set nx:batch.micro=25 --set nx:batch.global=100 --set nx:mesh.world=2 -o many.plan >out 2>&1 &&
  "$nxdata" prepare many.plan >>out 2>&1 &&
  "$mpiexec" -n 2 "$nxrun" many.plan --dir many --stop-after 1 >>out 2>&1 &&
  "$mpiexec" -n 2 "$nxrun" many.plan --dir many --resume --stop-after 2 >out 2>&1 && ! grep -q 'log-probabilities' out
report "ten thousand answers, on two ranks, and again from the file" $?
for strategy in dpo orpo; do
  # shellcheck disable=SC2086
  several one-$strategy $strategy 1 $experts
  [ $strategy = orpo ] || head -n 1 one-dpo/metrics.jsonl | grep -q '"loss":0.6931471805599453'
  report "$strategy with experts and a batch that grows" $?
  for mesh in ep2 pp2; do
    case $mesh in
    ep2) set -- mesh.expert=2 optimizer.zero_stage=1 ;;
    pp2) set -- mesh.pipeline=2 ;;
    esac
    # shellcheck disable=SC2086
    several $mesh-$strategy $strategy 2 $experts "$@" && losses one-$strategy >one && losses $mesh-$strategy >other &&
      paste one other | awk '{ d = ($1 - $2) / $1; if (d > 1e-6 || -d > 1e-6) bad = 1 } END { exit bad || NR != 6 }' >>out
    report "$mesh trains as one rank does ($strategy)" $?
  done
  in_parts ep2-$strategy 2
  report "a run of two ranks that resumes ends with the same bits ($strategy)" $?
done

# ---- what is refused ----
prepared=$(ls prepared/*.idx | head -n 1)
sed "s#kind: pairs, tokenizer: tokenizer, document_tokens: \[32\]#kind: indexed#; s#pairs.jsonl#${prepared%.idx}#" dpo.yaml >indexed.yaml
"$nxcfg" plan indexed.yaml -o indexed.plan >out 2>&1 && "$nxrun" indexed.plan --dir indexed >>out 2>&1
report "pairs that were made before" $?
sed "s/strategy: dpo, beta: 0.3/strategy: none/" indexed.yaml >plain.yaml
"$nxcfg" plan plain.yaml -o plain.plan >out 2>&1
expect "pairs are no text to train on" 1 'has weights of its tokens, which the plan does not read.*alignment.strategy' "$nxrun" plain.plan --dir plain
"$nxdata" build pairs.jsonl --field chosen --tokenizer tokenizer -o text >out 2>&1
sed "s#${prepared%.idx}#text#" indexed.yaml >text.yaml
"$nxcfg" plan text.yaml -o text.plan >out 2>&1
expect "text is no pairs" 1 'does not say which of its tokens are answers' "$nxrun" text.plan --dir text-run
expect "kinds of data that are no pairs" 1 'NX2926' "$nxcfg" validate dpo.yaml --set nx:data.kind=completions
finish
