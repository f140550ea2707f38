#!/bin/sh
# Evaluations while a run goes on, when it is over and before it begins; in runs that stop, are killed and go on; of
# sets that are no whole number of batches, or empty. TAP. usage: evaluate.sh NXRUN NXCFG NXDATA MPIEXEC NXRUN_FAR
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 nxrun_far=$(realpath "$5")
. "$(dirname "$0")/lib.sh"

# What was found: steps and losses of training and evaluations, without times.
found() {
  sed 's/,"tokens_per_s.*//' "$1/metrics.jsonl"
}

# same NAME RUN OTHER: both have found the same bits.
same() {
  found "$2" >one 2>out && found "$3" >other 2>>out && diff one other >>out && [ "$(wc -l <one)" -ge 4 ]
  report "$1" $?
}

# losses RUN SET: step and loss of each evaluation of the set.
losses() {
  sed -n "s/.*\"step\":\([0-9]*\),\"set\":\"$2\",\"loss\":\([0-9.]*\).*/\1 \2/p" "$1/metrics.jsonl"
}

# 100 documents of 40 tokens.
awk 'BEGIN {
  for (d = 0; d < 100; d++) { for (i = 0; i < 40; i++) printf "%c", 65 + (d * 41 + i * i * 7919) % 50; print "" }
}' >text
"$nxdata" build text --lines -o data >/dev/null || exit 99
plan() { # NAME [SETTING...]: beside the others'
  name=$1
  shift
  cat >"$name.yaml" <<END
mesh: {world: 2}
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8,
  hidden_dropout: 0.1, attention_dropout: 0.1}
optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}
schedule: {max_steps: 8}
data: {path: [data], split: [70, 20, 10]}
evaluate: {every_steps: 2, batches: 2}
checkpoint: {every_steps: ${every:-3}}
run: {name: run}
END
  sets=
  for set in "$@"; do sets="$sets --set $set"; done
  "$nxcfg" plan "$name.yaml" $sets -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
run="$mpiexec -n 2 $nxrun"

every=2
plan over evaluate.at_end=true evaluate.test_batches=1 evaluate.sanity_batches=1
expect 'a run with evaluations' 0 'step 8/8  test  loss .*  perplexity ' $run over.bin --dir over
losses over validation | cut -d' ' -f1 | tr '\n' ' ' >out
[ "$(cat out)" = '0 2 4 6 8 ' ]
report 'before the first step and after every second; not twice at the end' $?
[ "$(losses over test | cut -d' ' -f1)" = 8 ]
report 'the test set when it is over' $?
# Each byte is a token here; of two bytes a token half as much is said.
bits() { # RUN FACTOR
  sed -n 's/.*"set":.*"loss":\([0-9.]*\).*"bits_per_byte":\([0-9.]*\).*/\1 \2/p' "$1/metrics.jsonl" |
    awk -v f="$2" '{ n++; d = $1 / log(2) * f - $2; if (d * d > 1e-12) bad++ } END { exit n < 2 || bad }'
}
bits over 1
report 'bits of each byte of the text' $?
sed 's/"bytes": \([0-9]*\)/"bytes": \10/' data.tokenizer/text.json >other && mv data.tokenizer/text.json one && mv other data.tokenizer/text.json
$run over.bin --dir tenth >out 2>&1 && bits tenth 0.1
report 'which are fewer where a token has more of them' $?
rm data.tokenizer/text.json
$run over.bin --dir unknown >out 2>&1 && ! grep -q bits_per_byte unknown/metrics.jsonl
report 'and not told where nothing says how many those are' $?
mv one data.tokenizer/text.json
every=3
plan without evaluate.batches=0
passes 'the same run without evaluations' $run without.bin --dir without
found over | grep -v '"set"' >one; found without >other; diff one other >out && [ "$(wc -l <one)" -eq 8 ]
report 'trains the same bits' $?
(cd over/checkpoints/step-000008 && sha256sum ./*.safetensors) >one
(cd without/checkpoints/step-000008 && sha256sum ./*.safetensors) >other
diff one other >out
report 'to the same weights' $?


# evaluated NAME RUN STEP ARGUMENT...: an evaluation alone finds what the run found after the step.
evaluated() {
  name=$1 of=$2 step=$3
  shift 3
  timeout 100 $run over.bin --dir "$of" --evaluate --log json "$@" >out 2>&1
  losses "$of" validation | grep "^$step " >one
  sed -n 's/.*"step":\([0-9]*\),"set":"validation","loss":\([0-9.]*\).*/\1 \2/p' out >other
  diff one other >>out && [ -s one ]
  report "$name" $?
}
cp over/metrics.jsonl metrics
evaluated 'the newest checkpoint is evaluated alone' over 8
evaluated 'or another one' over 6 --checkpoint over/checkpoints/step-000006
diff over/metrics.jsonl metrics >out
report 'and the metrics of the run stay as they are' $?
expect 'into a file where that is asked for' 0 'step 8/8  test' $run over.bin --dir over --evaluate --metrics alone.jsonl
[ "$(wc -l <alone.jsonl)" -eq 2 ]
report 'which has what was found' $?
plan only evaluate.only=true
expect 'a plan that only evaluates' 0 'step 0/8  validation' $run only.bin --dir only
expect 'evaluates what the run would begin with' 0 'only has no checkpoint: the weights that the run begins with' \
  $run only.bin --dir only
expect 'a plan without a set is refused' 1 'the plan evaluates no set' $run without.bin --dir without --evaluate
expect '--checkpoint alone is a mistake' 2 '^nxrun: --checkpoint belongs to --evaluate' "$nxrun" over.bin --checkpoint x

plan dry model.hidden_dropout=0 model.attention_dropout=0 evaluate.sanity_batches=1 schedule.max_steps=1
passes 'a model without dropout' $run dry.bin --dir dry
losses over validation | head -n 1 >one
losses dry validation >other
diff one other >out && [ -s one ]
report 'has the loss that one with dropout has' $?

# Evaluations that go on through the set, which is begun again where it ends.
plan through evaluate.at_end=true evaluate.batches=1 evaluate.continues=true evaluate.repeats=true
passes 'evaluations that go on through the set' $run through.bin --dir through
for dir in over through; do
  if [ $dir = over ]; then args=over.bin; else args=through.bin; fi
  expect "$dir: stops between evaluations" 0 'step 5/8' $run $args --dir $dir-stopped --stop-after 5
  expect "$dir: and goes on" 0 'resumes from .*step-000005' $run $args --dir $dir-stopped --resume
  same "$dir: with the evaluations of a run that did not" $dir $dir-stopped
done
[ "$(losses through validation | wc -l)" -eq 5 ] && [ "$(losses through validation | tail -n 2 | cut -d' ' -f1 | tr '\n' ' ')" = '8 8 ' ]
report 'and once more at the end, with the next batches' $?
expect 'in memory that the host cannot reach' 0 'step 8/8  validation  .*' "$mpiexec" -n 2 "$nxrun_far" over.bin --dir far \
  --backend far
passes 'by plain C' $run over.bin --dir ref --backend ref
same 'the same bits as in memory that the host cannot reach' far ref

# A learning rate that follows the validation set's loss, which is never good enough; two steps are left out, of which
# the sixth would have been followed by an evaluation.
plan follows schedule.name=plateau schedule.factor=0.5 schedule.plateau_patience=0 schedule.plateau_threshold=1 \
  schedule.skip_steps=[6,3] evaluate.batch=4
passes 'a learning rate that follows a loss' $run follows.bin --dir follows
sed -n 's/.*"step":\([0-9]*\),"loss".*"lr":\([0-9.]*\).*/\1 \2/p' follows/metrics.jsonl | tr '\n' ' ' >out
[ "$(cat out)" = '1 0.003 2 0.003 4 0.003 5 0.0015 7 0.0015 8 0.0015 ' ]
report 'is halved behind the second evaluation, and no step is trained that is left out' $?
losses follows validation | cut -d' ' -f1 | tr '\n' ' ' >out
[ "$(cat out)" = '2 4 8 ' ]
report 'nor followed by an evaluation' $?
expect 'stops at a step that is left out' 0 'step 5/8' $run follows.bin --dir follows-stopped --stop-after 6
expect 'and goes on' 0 'resumes from .*step-000006' $run follows.bin --dir follows-stopped --resume
same 'with the bits of a run that did not' follows follows-stopped
plan unseen schedule.name=plateau data.split=[999,1,0]
expect 'a loss that no set gives' 1 'the learning rate follows the loss of the set validation, which has not one sample' \
  $run unseen.bin --dir unseen

# All of it, 8 documents: 320 tokens are 19 samples, so the last of 3 batches has 3 of 8.
whole='data.split=[70,8,22] evaluate.batches=0 evaluate.share=1 evaluate.sanity_batches=-1 schedule.max_steps=2'
plan whole $whole
plan ones $whole mesh.world=1 batch.micro=1 batch.global=1
passes 'a set that is no whole number of batches' $run whole.bin --dir whole
grep -q '"step":0,"set":"validation".*"batches":3' whole/metrics.jsonl
report 'is read to its end' $?
passes 'sample by sample' "$nxrun" ones.bin --dir ones
grep -q '"step":0,"set":"validation".*"batches":19' ones/metrics.jsonl
report 'all of it' $?
echo "$(losses whole validation | head -n 1) $(losses ones validation | head -n 1)" >out
awk '{ d = $2 - $4; exit !($1 == 0 && $3 == 0 && d < 1e-6 && d > -1e-6) }' out
report 'gives the same loss' $?

# The same tokens give the same loss, to the last bit: the validation set is the training's from its second batch on, so
# an evaluation after step k reads what step k + 1 is trained on.
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007; print "" }' >stream
{ cat stream && tail -c +$((8 * 16 + 1)) stream; } >both
"$nxdata" build both --lines -o twice >/dev/null || exit 99
alike() { # NAME RANKS SETTING...: a layout, in which they are alike
  layout=$1 ranks=$2
  shift 2
  plan "$layout" model.hidden_dropout=0 model.attention_dropout=0 data.path=[twice] data.split=[1,1] data.shuffle=false \
    evaluate.every_steps=1 evaluate.batches=1 evaluate.continues=true \
    optimizer.zero_stage=0 mesh.world="$ranks" schedule.max_steps=5 model.layers=4 "$@"
  passes "$layout: a run" "$mpiexec" -n "$ranks" "$nxrun" "$layout.bin" --dir "$layout"
  losses "$layout" validation | awk '{ print $1 + 1, $2 }' | head -n 4 >one
  sed -n 's/.*"step":\([2-5]\),"loss":\([0-9.]*\).*/\1 \2/p' "$layout/metrics.jsonl" >other
  diff one other >out && [ "$(wc -l <one)" -eq 4 ]
  report "$layout: evaluated as it is trained" $?
}
shared='model.hidden_dropout=0 model.attention_dropout=0 data.path=[twice] data.split=[1,1] data.shuffle=false
  evaluate.every_steps=1 evaluate.continues=true schedule.max_steps=5 model.layers=4'
halved() { # NAME SETTING...: on two ranks, with evaluations whose batches are half as large, and twice as many
  plan "$@" $shared evaluate.batch=4 evaluate.batches=2
  passes "$1: a run" $run "$1.bin" --dir "$1"
  near "$1"
}
near() { # NAME: the losses of its run are those of one rank, but for rounding
  losses one-rank validation >one
  losses "$1" validation | paste -d' ' one - >out
  awk '{ d = ($2 - $4) / $2; if ($1 != $3 || d > 1e-6 || d < -1e-6) exit 1 } END { exit NR != 5 }' out
  report "$1: as on one rank" $?
}
alike one-rank 1
alike tensor 2 mesh.tensor=2 sequence_parallel=true recompute.granularity=full
alike stages 2 mesh.pipeline=2 mesh.virtual_pipeline=2 batch.micro=1
alike zero3 2 optimizer.zero_stage=3 gather.overlap=true
alike zero1 2 optimizer.zero_stage=1 gather.overlap=true reduce.overlap=true
alike ring 2 mesh.context=2 attention.ring=true
alike ulysses 2 mesh.context=2 attention.ulysses=true mesh.ulysses=2
alike tied 4 mesh.pipeline=2 mesh.tensor=2 model.tied_embeddings=true
alike experts 2 mesh.expert=2 moe.experts=4 moe.top_k=2 moe.aux_loss_coef=0.1 moe.z_loss_coef=0.01
alike master 2 precision.preset=mixed_precision optimizer.zero_stage=1
alike half 1 precision.param=fp16 precision.compute=fp16 precision.master_weights=true
alike window 1 model.sliding_window=4
for layout in tensor stages zero3 zero1 ring ulysses; do near $layout; done
halved half-stages mesh.pipeline=2 mesh.virtual_pipeline=2 batch.micro=1 optimizer.zero_stage=0
halved half-zero1 optimizer.zero_stage=1
halved half-gpipe mesh.pipeline=2 pipeline.schedule=gpipe batch.micro=2 optimizer.zero_stage=0

plan none data.split=[999,1,0] evaluate.every_steps=1 schedule.max_steps=2
expect 'a set without a sample is left out' 0 'the set validation has not one sample, and is not evaluated' \
  $run none.bin --dir none

# A long one: killed within it, or told to end.
plan long evaluate.every_steps=4 evaluate.batches=100000 evaluate.repeats=true
$run long.bin --dir long >out 2>&1 &
for _ in $(seq 200); do grep -q '^{"step":4,' long/metrics.jsonl 2>/dev/null && break; sleep 0.1; done
sleep 0.5
kill -TERM $!
wait $!
status=$? # mpiexec, which gets the signal too, may end with 0 before it knows the status of its ranks
grep -q 'stopped by a signal after step 4' out && [ $status -eq 3 -o $status -eq 0 ] && [ -d long/checkpoints/step-000004 ]
report 'a signal ends an evaluation, with a checkpoint' $?
plan short evaluate.every_steps=4 evaluate.repeats=true
cp -r long killed
cat >kill_within <<'END'
#!/bin/sh
[ "${PMI_RANK:-0}" -eq 1 ] || exec "$@"
"$@" & p=$!
tries=0
while [ ! -d gone/checkpoints/step-000003 ] && [ $((tries += 1)) -lt 900 ]; do sleep 0.1; done
sleep 1
kill -KILL $p
wait $p
exit 9
END
chmod +x kill_within
$mpiexec -n 2 ./kill_within "$nxrun" long.bin --dir gone >out 2>&1
[ $? -ne 0 ] && [ -d gone/checkpoints/step-000003 ] && [ ! -e gone/checkpoints/step-000004 ]
report 'a rank that is killed within one ends the run' $?
passes 'which goes on' $run short.bin --dir gone --resume
passes 'as one that was not killed' $run short.bin --dir short
same 'with the same bits' short gone

passes 'a run that was told to end within one' $run short.bin --dir long --resume
same 'makes up for it' short long

# Of 8 checkpoints the newest stays, and the two with the best loss.
best='evaluate.every_steps=1 checkpoint.every_steps=1 checkpoint.keep=1 checkpoint.best=2 optimizer.lr=0.1'
plan best $best
plan worst $best checkpoint.best_mode=max
plan trained $best checkpoint.best_metric=train evaluate.batches=0
# keeps RUN SORT: steps of the two first losses of the lines on standard input, and of the newest.
keeps() {
  { sort -k2,2"$2" -k1,1n | head -n 2 | cut -d' ' -f1; echo 8; } | sort -nu | sed 's/^/step-00000/' >one
  ls "$1/checkpoints" >other
  diff one other >out
}
passes 'best checkpoints' $run best.bin --dir best --stop-after 5
passes 'over a stop' $run best.bin --dir best --resume
losses best validation | keeps best g
report 'stay' $?
passes 'where high is better' $run worst.bin --dir worst
losses worst validation | keeps worst gr
report 'the highest stay' $?
passes 'by the loss of the step' $run trained.bin --dir trained
sed 's/.*"step":\([0-9]*\),"loss":\([0-9.]*\).*/\1 \2/' trained/metrics.jsonl | keeps trained g
report 'too' $?

plan saves checkpoint.every_steps=null checkpoint.extra_steps=[5,0,1] evaluate.batches=0
passes 'checkpoints after named steps' $run saves.bin --dir saves
[ "$(ls saves/checkpoints | tr '\n' ' ')" = 'step-000000 step-000001 step-000005 step-000008 ' ]
report 'and the untrained model' $?
finish
