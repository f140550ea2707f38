#!/bin/sh
# What a run says of itself, to people and to queues; and how it is started again. TAP.
# usage: operate.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

small_training 'mesh: {world: 2}' 'batch: {micro: 2, global: 8}' 'optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}' \
  'schedule: {name: cosine, warmup_steps: 2, min_lr: 3e-4, max_steps: 12}' 'checkpoint: {every_steps: 3}'
run="$mpiexec -n 2 $nxrun"

# ---- what it says ----
plan timed run.timers=1 run.stragglers=1 run.log_every=4 run.progress_file=true run.tensorboard=events run.tensorboard_timers=true \
  run.wandb=timed run.wandb_project=nx
expect 'a run that is timed' 0 'step 12/12' $run timed.bin --dir timed
[ "$(grep -c '^  ms a step:  data [0-9.]*\.\.[0-9.]*  passes .*  update .*  wait .*  save ' out)" -eq 3 ] &&
  [ "$(grep -c '^  slowest:  rank [01] (.*) [0-9.]* ms$' out)" -eq 3 ] && ! grep -q '.\{120\}' out
report 'says where the time went, and who is slow, with each line of progress' $?
[ "$(grep -c '^  rank [01] is slow at [a-z_0-9]*: [0-9.]* ms a step, the others [0-9.]*$' out)" -gt 0 ]
report 'and at which operator' $?
grep -q 'timers/wait' events/*
report 'also to TensorBoard' $?
id=$(sed -n 's/.*"run_id": "\(.*\)".*/\1/p' timed/wandb-resume.json)
[ "$(head -c 4 timed/wandb/offline-run-*-"$id/run-$id.wandb")" = ':W&B' ] && grep -q train/loss timed/wandb/*/*.wandb
report 'and to Weights & Biases' $?
grep -q '"tflops":[0-9.e-]*,' timed/metrics.jsonl
report 'and operations a second' $?
NXRUN_SAMPLE_MS=0.5 $run --calibrate --threads 1 -o here.yaml 2>/dev/null || exit 99
grep -q mfu timed/metrics.jsonl
report 'without a machine no share of what it could do' $(($? - 1))
plan known --machine here.yaml schedule.max_steps=2
grep -q '^  run.deadline_s 30: a silent rank is given up after 20 steps, at least 30 s$' out
report 'a plan for a machine says how long a rank waits' $?
expect 'a run of it says its share' 0 'step 2/2 .* MFU [0-9.]* %' $run known.bin --dir known
[ "$(grep -c '"mfu":[0-9.e-]*[,}]' known/metrics.jsonl)" -eq 2 ]
report 'also in its metrics' $?
plan lines run.log_form=json run.log_every=1 schedule.max_steps=2
$run lines.bin --dir lines >told 2>/dev/null; cmp -s told lines/metrics.jsonl
report 'lines of progress are those of the metrics where the plan says so' $?
$run lines.bin --dir lines-for-people --log text | grep -q '^step 2/2  loss'
report 'unless the command line says otherwise' $?
awk -F '\t' '$3 == "begins" && $4 == "step 0" { b = 1 } $3 == "saved" && $4 == "step 12" && $5 == "tokens 1536" { s = 1 }
  $3 == "ends" && $4 == "step 12" { e = 1 } END { exit !(b && s && e) }' timed/progress.txt
report 'progress.txt has its events' $?
plan each run.timers=2 run.timers_over=all run.log_every=12 run.log_flops=false
expect 'times of each rank' 0 'ms a step:  data [0-9.]*,[0-9.]*  passes' $run each.bin --dir each
grep -q 'ms a step of rank 0:  .*\bmatmul [0-9.]*' out && ! grep -q tflops each/metrics.jsonl
report 'and of each kind of operator' $?

expect 'what the folder of a run says' 0 '^step        12 of 12$' "$nxrun" status timed
grep -q '^phase       done$' out && grep -q '^checkpoint  step-000012$' out
report 'that it is done' $?
expect 'a folder that is none of a run' 1 'no status.json that can be read' "$nxrun" status events
expect 'status of nothing' 2 'usage: nxrun status' "$nxrun" status
printf '{"phase":"\\u001b[2J","host":"\\u202eh","waits":"w\\u0007","step":5,"steps":9}' >each/status.json
expect 'a status that a terminal would obey' 0 '^phase       ?\[2J$' "$nxrun" status each
grep -q 'on ?h$' out && grep -q '^waits       w?$' out
report 'in none of its texts' $?
printf '{"phase":"training","step":5,"steps":9000000000,"time":9e9,"seconds_per_step":1e300}' >each/status.json
expect 'a time that no number tells' 0 '^left        277777777777:46:40$' "$nxrun" status each
printf '{"phase":"training","host":"%s","step":5,"steps":9,"time":%s}' "$(hostname)" "$(date +%s)" >each/status.json
expect 'a run whose program was killed' 0 'gone        it ended while it was training' "$nxrun" status each
flock each/lock "$nxrun" status each >out && grep -q 'training, and its program runs$' out && ! grep -q gone out
report 'is not gone while it holds the folder' $?
printf '{"phase":"training","step":5,"steps":9,"time":1000,"seconds_per_step":0.5}' >each/status.json
expect 'a run that says nothing any more' 0 'no news     for [0-9]* s, while it was training' "$nxrun" status each

# ---- curves ----
expect 'curves of two runs' 0 '^</svg>$' "$nxrun" plot timed each
[ "$(grep -c '<polyline' out)" -eq 2 ] && [ "$(grep -c 'timed (\|each (' out)" -eq 2 ]
report 'one for each' $?
passes 'a file of curves, named behind the run' "$nxrun" plot timed -o behind.svg --metric loss
grep -q '^</svg>$' behind.svg
report 'is written' $?
passes 'another number, to a file' "$nxrun" plot -o lr.svg --metric lr timed
grep -q '>lr<' lr.svg
report 'with its name' $?
passes 'and again' "$nxrun" plot -o lr.svg timed
expect 'not over a file of another kind' 1 'was not made by this command' "$nxrun" plot -o timed/metrics.jsonl timed
cp lr.svg kept && (ulimit -f 0; "$nxrun" plot -o lr.svg timed) >says 2>&1
[ $? -eq 1 ] && cmp -s lr.svg kept && [ -z "$(ls ./*.tmp 2>/dev/null)" ]
report 'a picture that cannot be written leaves the one before' $?
expect 'which is left' 0 '^</svg>$' "$nxrun" plot timed
mkdir empty
expect 'a folder without metrics' 1 'cannot read empty/metrics.jsonl: No such file' "$nxrun" plot empty
expect 'a number that is not there' 1 'has no speed' "$nxrun" plot --metric speed timed
expect 'plot of nothing' 2 'usage: nxrun plot' "$nxrun" plot

# ---- how it ends ----
plan stops run.stop_every=5
expect 'a run that ends before its end' 3 'stopped by run.stop_every after step 5' $run stops.bin --dir stops
expect 'and once more' 3 'after step 10' $run stops.bin --dir stops --resume
expect 'and is done' 0 'step 12/12' $run stops.bin --dir stops --resume
expect 'what is done already' 0 '12 of 12 steps are done' $run stops.bin --dir stops --resume
expect 'has its checkpoint still' 0 '^checkpoint  step-000012$' "$nxrun" status stops
! grep -q '^loss' out
report 'and no loss, since no step was made' $?
expect 'nothing to resume is said' 3 'runs-none has no checkpoint: nothing is resumed' $run stops.bin --dir runs-none --resume
expect 'usage' 2 'no such option: --no-such-thing$' $run stops.bin --no-such-thing
expect 'a misspelt option' 2 'no such option: --resme; did you mean --resume?' $run stops.bin --resme
expect 'an option without its value' 2 'a value is missing behind --stop-after' $run stops.bin --stop-after
expect 'restarts behind the plan' 2 'stands before all else: nxrun --restarts N PLAN' $run stops.bin --restarts 3

# ---- how it is started again ----
cat >fails_at <<'END'
#!/bin/sh
# usage: fails_at FILE COMMAND...: rank 1 is killed when the step is saved that is the first line of FILE, if any is.
file=$1
shift
[ "${PMI_RANK:-0}" -eq 1 ] && [ -s "$file" ] || exec "$@"
step=$(head -1 "$file")
sed -i 1d "$file"
"$@" &
until [ -e "again/checkpoints/step-00000$step/manifest.json" ]; do sleep 0.01; done
kill -KILL $!
wait $!
exit 9
END
chmod +x fails_at
plan again
printf '3\n6\n' >twice
export NXRUN_DELAY=5
expect 'a run that fails twice' 0 'restart 2 of 3' "$nxrun" --restarts 3 --backoff 0.1 --launcher \
  "$mpiexec -n {ranks} ./fails_at twice" again.bin --dir again
unset NXRUN_DELAY
grep -q 'restart 1 of 3 in 0.1 s' out && grep -q 'resumes from again/checkpoints/step-' out && grep -q 'step 12/12' out
report 'goes on from its checkpoints' $?
expect 'one that is wrong is not started again' 2 'no such option' "$nxrun" --restarts 3 again.bin --no-such-thing
expect 'one that stops is not either' 3 'stopped by run.stop_every after step 5' "$nxrun" --restarts 3 stops.bin --dir stops2
expect 'one that never works' 1 'restart 2 of 2' "$nxrun" --restarts 2 --backoff 0.05 --launcher false again.bin --dir never
sed -i 's/world: 2/world: 1/' base.yaml
plan lone
printf '#!/bin/sh\n[ "$1" = 1 ] && shift && exec "$@"\nexit 7\n' >only_one
chmod +x only_one
expect 'a plan for fewer ranks takes over' 0 'restart 2 of 4 in .* s, with lone.bin' "$nxrun" --restarts 4 --backoff 0.05 \
  --launcher './only_one {ranks}' --fallback lone.bin again.bin --dir fallen
grep -q 'step 12/12' out
report 'to the end' $?
printf '#!/bin/sh\nkill -TERM $PPID\nsleep 20 & wait\n' >starting
chmod +x starting
expect 'one that is told to end while it starts may be resumed' 3 'told to end outside of the steps' \
  "$nxrun" --restarts 2 --launcher ./starting again.bin --dir started
expect 'restarts of nothing' 2 'usage: nxrun --restarts' "$nxrun" --restarts 3
finish
