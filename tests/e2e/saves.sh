#!/bin/sh
# When checkpoints are written, what stays of them, and that writing them changes nothing. TAP.
# usage: saves.sh NXRUN NXCFG NXDATA MPIEXEC [KILLS]
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 kills=${5:-6}
. "$(dirname "$0")/lib.sh"
trap 'umount full 2>/dev/null; rm -rf "$folder"' EXIT

small_training 'mesh: {world: 2}' 'batch: {micro: 2, global: 8}' 'optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}' \
  'schedule: {name: cosine, warmup_steps: 2, min_lr: 3e-4, max_steps: 24}' 'checkpoint: {async: true}'
run="$mpiexec -n 2 $nxrun"
outcome() { # the metrics without times, and the last checkpoint
  cut -d, -f1-4 "$1/metrics.jsonl" && (cd "$1/checkpoints/step-000024" && sha256sum ./*.safetensors)
}
same() { # NAME RUN OTHER
  outcome "$2" >one 2>out && outcome "$3" >other 2>>out && diff one other >>out && [ "$(wc -l <one)" -ge 25 ]
  report "$1" $?
}
steps() { # FOLDER: the steps of its checkpoints
  (cd "$1/checkpoints" && ls -d step-* | sed 's/step-0*//' | tr '\n' ' ')
}
has() { # NAME FOLDER STEPS
  steps "$2" >out && [ "$(cat out)" = "$3 " ]
  report "$1" $?
}

plan plain checkpoint.async=false
plan aside checkpoint.every_steps=1 checkpoint.keep=2
plan skip checkpoint.every_steps=1 checkpoint.when_busy=skip
expect 'a run that is saved at its end' 0 'step 24/24' $run plain.bin --dir plain
expect 'one that is saved after each step, while it goes on' 0 'step 24/24' $run aside.bin --dir aside
same 'computes the same' plain aside
has 'and keeps the newest' aside '23 24'
expect 'one that leaves out what comes too soon' 0 'step 24/24' $run skip.bin --dir skip
same 'computes the same' plain skip
test -z "$(find . -name '*.tmp*')"
report 'nothing is left behind' $?

# Each of two ranks copies about a half.
$run aside.bin --dry-run --log json >out 2>&1
copy=$(sed -n 's/.*"copy_bytes":\([0-9]*\).*/\1/p' out) whole=$(cat plain/checkpoints/step-000024/*.safetensors | wc -c)
[ "$copy" -gt $((whole * 4 / 10)) ] && [ "$copy" -lt $((whole * 6 / 10)) ]
report 'the memory of the copy is told' $?
$run plain.bin --dry-run >out 2>&1 && ! grep -q 'copy ' out
report 'where there is one' $?

plan samples checkpoint.every_samples=60
expect 'by sequences' 0 'step 24/24' $run samples.bin --dir samples
has 'the step that reaches them' samples '8 15 23 24'
plan epochs checkpoint.every_epochs=0.1
expect 'by epochs' 0 'step 24/24' $run epochs.bin --dir epochs
has 'in whole steps' epochs '11 22 24'
plan growth checkpoint.growth=2.5
expect 'by powers' 0 'step 24/24' $run growth.bin --dir growth
has 'rounded down' growth '1 2 6 15 24'
plan minutes checkpoint.every_minutes=0.0001
expect 'by the clock' 0 'step 24/24' $run minutes.bin --dir minutes
[ "$(steps minutes | wc -w)" -ge 2 ]
report 'more often than at the end' $?

plan retain checkpoint.every_steps=2 checkpoint.keep=1 checkpoint.retain_every=8 checkpoint.temporary_every=3 \
  'checkpoint.link_name="r-{step:04}-n{samples:.1}-l{loss:.1f}"' checkpoint.best_metric=train checkpoint.best=1
expect 'some stay for good' 0 'step 21/24' $run retain.bin --dir retain --stop-after 21
has 'beside the best and the newest' retain '8 16 21'
(cd retain/temporary/checkpoints && ls) >out && [ "$(cat out)" = step-000021 ] || [ "$(cat out)" = step-000015 ]
report 'of temporary ones the newest' $?
(cd retain/checkpoints && ls -d r-*) >out &&
  grep -q '^r-0016-n128.0-l[0-9]\.[0-9]$' out && [ "$(wc -l <out)" -eq 3 ] && [ -e "retain/checkpoints/$(head -1 out)/manifest.json" ]
report 'links have names for people, and go with their checkpoints' $?
plan named model.sequence=128 checkpoint.every_steps=8 'checkpoint.link_name="epoch-{epoch:02}-{step}"'
expect 'names with epochs' 0 'step 24/24' $run named.bin --dir named
(cd named/checkpoints && ls -d epoch-*) >out
[ "$(tr '\n' ' ' <out)" = 'epoch-00-8 epoch-01-16 epoch-01-24 ' ] # of 114 samples an epoch
report 'epochs are counted from 0' $? "$(cat out)"
plan oldest checkpoint.every_steps=4 checkpoint.keep=1 checkpoint.best=2 checkpoint.best_metric=oldest checkpoint.best_mode=max
expect 'the oldest' 0 'step 24/24' $run oldest.bin --dir oldest
has 'and the newest' oldest '4 8 24'
plan only checkpoint.every_steps=4 checkpoint.keep=0 checkpoint.best=2 checkpoint.best_metric=oldest checkpoint.best_mode=max
expect 'the best alone' 0 'step 24/24' $run only.bin --dir only
has 'without the newest' only '4 8'
for metric in lr grad_norm; do
  plan by-$metric checkpoint.every_steps=4 checkpoint.keep=1 checkpoint.best=2 checkpoint.best_metric=$metric checkpoint.best_mode=max
  expect "the best by $metric" 0 'step 24/24' $run by-$metric.bin --dir by-$metric
  best=$(sed 's/.*"step":\([0-9]*\).*"'$metric'":\([^,}]*\).*/\1 \2/' by-$metric/metrics.jsonl | awk '$1 % 4 == 0' | sort -rgk2,2 | head -2 |
    cut -d' ' -f1)
  has "as the metrics tell by $metric" by-$metric "$(printf '%s\n24\n' "$best" | sort -nu | tr '\n' ' ' | sed 's/ $//')"
done
plan below checkpoint.every_steps=8 checkpoint.keep=1 'checkpoint.link_name="epoch-{epoch}/step/{step}"' model.sequence=128
mkdir -p below/checkpoints/mine
expect 'links in folders' 0 'step 24/24' $run below.bin --dir below
(cd below/checkpoints && find . -type l -o -name 'epoch*' -o -name mine | sort) >out
[ "$(tr '\n' ' ' <out)" = './epoch-1 ./epoch-1/step/24 ./mine ' ] && [ -e below/checkpoints/epoch-1/step/24/manifest.json ]
report 'folders go with the last link in them' $? "$(cat out)"
plan above 'checkpoint.link_name="a/../../b"'
expect 'a name beside the folder' 1 'checkpoint.link_name makes no name' $run above.bin --dir above
plan bad 'checkpoint.link_name="{nothing}"'
expect 'a name that is none' 1 'checkpoint.link_name makes no name' $run bad.bin --dir bad

plan states checkpoint.every_steps=6 checkpoint.keep_optimizer=1 checkpoint.directory="$PWD/apart"
expect 'checkpoints in a folder of their own' 0 'step 24/24' $run states.bin --dir states
has 'to which the run has a link' states '6 12 18 24'
(cd apart && ls step-*/moment1.safetensors step-*/model.safetensors | tr '\n' ' ') >out
[ "$(cat out)" = "step-000006/model.safetensors step-000012/model.safetensors step-000018/model.safetensors step-000024/model.safetensors step-000024/moment1.safetensors " ]
report 'the newest alone has states of the optimizer' $?
same 'and is the same' plain states
mkdir stripped && cp -r apart stripped/checkpoints && rm -r stripped/checkpoints/step-000024
expect 'an older one has weights alone' 1 'step-000018 has no state of the optimizer' $run plain.bin --dir stripped --resume
plan weights checkpoint.load=stripped checkpoint.weights_only=true schedule.max_steps=1
expect 'with which a run can begin' 0 'begins with the weights of stripped/checkpoints/step-000018' $run weights.bin --dir weights
mv stripped/checkpoints/step-000018 stripped/checkpoints/step-000019
expect 'one that was renamed' 1 'step-000019 is passed over: its manifest.json is of another step' $run plain.bin \
  --dir stripped --resume
expect 'a folder that has checkpoints is refused' 1 'states2 has a run already' $run states.bin --dir states2
mkdir -p states3/checkpoints/step-000001
expect 'and one whose own are elsewhere' 1 'states3/checkpoints is not .*/apart (checkpoint.directory)' $run states.bin --dir states3

plan temporary checkpoint.temporary_every=5 checkpoint.temporary_directory="$PWD/elsewhere"
cat >end_at <<'END'
#!/bin/sh
# usage: end_at STEP COMMAND...: rank 1 is killed when the metrics have the step.
step=$1
shift
[ "${PMI_RANK:-0}" -eq 1 ] || exec "$@"
"$@" &
until grep -q "\"step\":$step," temporary/metrics.jsonl 2>/dev/null; do sleep 0.01; done
kill -KILL $!
wait $!
exit 9
END
chmod +x end_at
# That of step 10 may still be written; that of step 5 was finished before it.
$mpiexec -n 2 ./end_at 12 env NXRUN_DELAY=3 "$nxrun" temporary.bin --dir temporary >out 2>&1
[ $? -ne 0 ] && [ ! -e temporary/checkpoints/step-000024 ]
report 'a run that is killed' $?
expect 'goes on from its temporary checkpoint' 0 'resumes from .*elsewhere.*/step-0000\(05\|[12][05]\)' $run temporary.bin --dir temporary \
  --resume
same 'and computes the same' plain temporary
expect 'a run that begins forgets older ones' 0 'step 3/24' $run temporary.bin --dir temporary2 --stop-after 3
test -z "$(ls elsewhere/checkpoints)"
report 'of whatever run' $?

# A checkpoint when one is asked for.
plan long schedule.max_steps=3000 run.log_every=3000
$mpiexec -n 2 sh -c 'echo $$ >pid-$PMI_RANK; exec "$@"' sh "$nxrun" long.bin --dir long >out 2>&1 &
job=$!
# waits until the shell finds it true, 9 s at most
await() {
  for wait in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    sleep 0.3
    eval "$1" && return
  done
}
await "grep -q '\"step\":5,' long/metrics.jsonl 2>/dev/null"
kill -USR1 "$(cat pid-1)"
await 'ls long/checkpoints/step-*/manifest.json >/dev/null 2>&1'
steps long >out
[ "$(wc -w <out)" -eq 1 ] && kill -0 $job
report 'SIGUSR1 asks for a checkpoint, and the run goes on' $?
kill -TERM "$(cat pid-0)"
wait $job

# One that cannot be written.
mkdir full
if mount -t tmpfs -o size=1000k tmpfs full 2>/dev/null; then
  plan fails checkpoint.every_steps=5
  plan goes_on checkpoint.every_steps=5 checkpoint.on_failure=continue
  expect 'a checkpoint that cannot be written ends the run' 1 'cannot write.*No space' $run fails.bin --dir full/fails
  has 'those before it are whole' full/fails '5 10'
  rm -r full/fails
  expect 'or not, as the plan says' 1 'step 24/24' $run goes_on.bin --dir full/goes_on
  grep -q 'cannot write .*; the training goes on (checkpoint.on_failure)' out
  report 'which is said' $?
  test -z "$(find full -name '*.tmp*')"
  report 'nothing of it is left' $?
else
  for name in 'a checkpoint that cannot be written ends the run' 'those before it are whole' 'or not' 'which is said' \
    'nothing of it is left'; do
    skip "$name" 'mounts no tmpfs here'
  done
fi

# Weights that are not quite the model's.
plan three model.layers=3 schedule.max_steps=1
expect 'a deeper model' 0 'step 1/1' $run three.bin --dir three
for case in 'raise 1 too.much' 'log_unexpected 0 are.not.the.plan.s' 'ignore_all 0 begins.with.the.weights'; do
  set -- $case
  plan two checkpoint.load=three checkpoint.weights_only=true checkpoint.strictness="$1" schedule.max_steps=1
  expect "more than the model has: $1" "$2" "$3" $run two.bin --dir "two-$1"
done
plan flat model.layers=2 schedule.max_steps=1
expect 'a flatter model' 0 'step 1/1' $run flat.bin --dir flat
for case in 'log_unexpected 1 missing' 'log_all 0 stay.as.they.were.drawn'; do
  set -- $case
  plan deeper model.layers=3 checkpoint.load=flat checkpoint.weights_only=true checkpoint.strictness="$1" schedule.max_steps=1
  expect "less than the model has: $1" "$2" "$3" $run deeper.bin --dir "deeper-$1"
done

# Killed at any moment, also while a checkpoint is written.
plan killed checkpoint.every_steps=1 checkpoint.keep=3
for kill in $(seq "$kills"); do
  setsid timeout -s KILL "0.$((kill * 37 % 90 + 25))" "$mpiexec" -n 2 "$nxrun" killed.bin --dir killed --resume >/dev/null 2>&1
  for lock in 1 2 3 4 5 6 7 8 9; do
    [ -e killed/lock ] && ! flock -n killed/lock true 2>/dev/null || break
    sleep 0.2
  done
done 2>/dev/null
expect 'a run that is killed again and again' 0 '^step 24/24 \|24 of 24 steps are done' $run killed.bin --dir killed --resume
same 'computes the same' plain killed
test -z "$(find killed -name '*.tmp*' -o -name '*.damaged*')"
report 'and nothing was damaged' $?
finish
