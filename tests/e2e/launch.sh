#!/bin/sh
# How nxrun starts, refuses and ends: one clear message, the same status on every rank, and never a hang. TAP.
# usage: launch.sh NXRUN NXDATA SMALL_PLAN COMM_CHECK MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxdata=$(realpath "$2") small=$(realpath "$3") comm_check=$(realpath "$4") mpiexec=$5
. "$(dirname "$0")/lib.sh"
unset NXRUN_CORES # as users start it

printf '%2000s' 'A text to train on. ' >text
"$nxdata" build text -o data >out 2>&1 || exit 99
plan() { "$small" "$@" data=data || exit 99; }
plan one.bin 1
plan two.bin 2
plan other.bin 2 steps=5
plan hosts.bin 2 hosts=2
plan long.bin 2 steps=2000000000 deadline=2
head -c 4000 two.bin >cut.bin
"$small" nodata.bin 2 data=nowhere

expect 'help' 0 'usage: nxrun PLAN' "$nxrun" --help
! "$nxrun" --help | sed 's/…/./g' | grep '.\{81\}' >out 2>&1
report 'help has lines of 80 columns' $?
expect 'help on many ranks is said once' 0 'usage: nxrun PLAN' "$mpiexec" -n 3 "$nxrun" --help
expect 'version' 0 '^nxrun [0-9]' "$nxrun" --version
expect 'no plan is named' 2 'no plan' "$nxrun"
expect 'an unknown option' 2 'no such option.*--fast' "$mpiexec" -n 2 "$nxrun" two.bin --fast
expect 'a bad value' 2 "--stop-after cannot be 'many'" "$nxrun" one.bin --stop-after many
expect 'one rank' 0 '^step 4/4 ' "$nxrun" one.bin --dir run1
expect 'two ranks' 0 '^step 4/4 ' "$mpiexec" -n 2 "$nxrun" two.bin --dir run2
expect 'two ranks by messages' 0 '^step 4/4 ' "$mpiexec" -n 2 "$nxrun" two.bin --dir run3 --comm p2p
expect 'too many ranks: the command to use' 1 '^  mpiexec -n 2 nxrun two.bin' "$mpiexec" -n 3 "$nxrun" two.bin
expect 'too few ranks: how to plan again' 1 '^  nxcfg plan FILE --world-size 1 -o two.bin' "$nxrun" two.bin
expect 'ranks with different plans' 1 'the plan that rank 1 reads .* is not that of rank 0' \
  "$mpiexec" -n 1 "$nxrun" two.bin : -n 1 "$nxrun" other.bin
expect 'a plan that is not there' 1 'nothing.bin: No such file' "$mpiexec" -n 2 "$nxrun" nothing.bin
expect 'a plan that is not there on one rank' 1 'nothing.bin: No such file' \
  "$mpiexec" -n 1 "$nxrun" two.bin : -n 1 "$nxrun" nothing.bin
expect 'a plan that was cut' 1 'cut.bin.* it was cut or appended to' "$mpiexec" -n 2 "$nxrun" cut.bin
expect 'a folder for a plan' 1 'is not a plan' "$nxrun" .
expect 'ranks laid out otherwise' 1 'lays 1 ranks on each of 2 hosts' "$mpiexec" -n 2 "$nxrun" hosts.bin
plan four.bin 4 hosts=2
expect 'two hosts' 0 '^step 4/4 ' "$mpiexec" -launcher fork -hosts one:2,two:2 -n 4 \
  "$nxrun" four.bin --dir run6
expect 'a folder that cannot be made: where to say another' 1 'proc.*choose another folder .*--dir' \
  "$mpiexec" -n 2 "$nxrun" two.bin --dir /proc/none
expect 'missing data' 1 'nowhere' "$mpiexec" -n 2 "$nxrun" nodata.bin --dir run4
mv data.bin away
expect 'the half of a dataset' 1 'cannot open data.bin.*nxdata build makes a dataset of two files' "$nxrun" one.bin --dir run4
mv away data.bin
expect 'srun that started single ranks' 1 'srun started 2 separate runs' \
  env SLURM_NTASKS=2 SLURM_PROCID=0 "$nxrun" two.bin
if unshare -m mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
  timeout 60 unshare -m sh -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm; exec "$@"' sh "$mpiexec" -n 2 "$nxrun" two.bin \
    --dir small >out 2>&1
  [ $? -ne 0 ] && grep -q '^nxrun: /dev/shm has room for 64 KiB.*: enlarge it' out
  report 'too little shared memory for MPI' $?
else
  skip 'too little shared memory for MPI' 'mounts nothing here'
fi
expect 'ranks that share cores are told' 0 'share .* cores* of a host' \
  "$mpiexec" -n 2 taskset -c 0 "$nxrun" two.bin --dir run5
plan old.bin 1 format=8
expect 'a plan of an older format' 1 'old.bin.*has format 8.0 and this program reads [1-9][0-9]*.[0-9]*: compile it again' \
  "$nxrun" old.bin --dir run5
plan new.bin 1 target=99
expect 'a plan for a target of another version' 1 'new.bin.*target 99 of the run is not known here, .* opencl; nxcfg plan FILE -o new.bin' \
  "$nxrun" new.bin --dir run5
if grep -q amx_bf16 /proc/cpuinfo; then
  skip 'a processor without the features of the target' 'this one has AMX'
else
  plan amx.bin 2 target=3
  expect 'a processor without the features of the target' 1 \
    'rank 0, backend cpu: .*this CPU lacks.* amx_tile' "$mpiexec" -n 2 "$nxrun" amx.bin
fi

mkdir gradients && : >gradients/gradients.safetensors
expect 'gradients are not overwritten: no step is made' 1 'gradients.safetensors exists: remove it' \
  "$mpiexec" -n 2 "$nxrun" two.bin --dir run7 --dump-gradients gradients
[ ! -s run7/metrics.jsonl ]
report 'and none was made' $?

for way in window messages; do
  expect "a rank that does not come to a collective: $way" 1 \
    'rank 0 (.*) waits in step 7 .* bytes: rank 1 (.*) does not come' "$mpiexec" -n 2 "$comm_check" late $way
done

passes 'tags for three groups' "$mpiexec" -n 2 "$comm_check" tags 23
expect 'an MPI with fewer' 1 'the plan has 3 groups .* tell 2 apart' sh -c "'$mpiexec' -n 2 '$comm_check' tags 22 2>&1 |
  sort -u; exit 1"

mkfifo pipe
expect 'a pipe for metrics' 1 'pipe is no regular file' "$nxrun" one.bin --dir piped --metrics pipe
: >run1/checkpoints/step-000004/manifest.json
expect 'an empty manifest' 1 "manifest.json is damaged: '\[' or '{' expected near end of file" "$nxrun" one.bin --dir run1 --resume
rm run1/checkpoints/step-000004/manifest.json && mkfifo run1/checkpoints/step-000004/manifest.json
expect 'a pipe for a manifest' 1 'manifest.json: it is no file' "$nxrun" one.bin --dir run1 --resume

mkfifo run1/status.pipe && mv run1/status.pipe run1/status.json
expect 'a pipe for the status' 1 'run1 has no status.json that can be read' "$nxrun" status run1

# Ranks that were told different things say so, whatever it is.
differ() { # NAME STATUS PATTERN OPTION...: the second rank has the options
  name=$1 status=$2 pattern=$3
  shift 3
  expect "$name" "$status" "$pattern" \
    "$mpiexec" -n 1 "$nxrun" two.bin --dir differ : -n 1 "$nxrun" two.bin --dir differ "$@"
}
differ 'one rank resumes' 1 'rank 1 (.*) was started as' --resume
differ 'one rank stops early' 1 '^  nxrun .*--stop-after 3' --stop-after 3
differ 'one rank has another backend' 1 '^  nxrun .*--backend ref' --backend ref
differ 'one rank sends messages' 1 '^  nxrun .*--comm p2p' --comm p2p
differ 'one rank makes no step' 1 '^  nxrun .*--dry-run' --dry-run
differ 'one rank is asked for help' 1 '^  nxrun .*--help' --help
differ 'one rank has an option that is none' 2 'no such option.*--fast' --fast
[ ! -e differ ]
report 'and nothing was made' $?
expect 'a number beyond all steps' 2 "--stop-after cannot be '18446744073709551617'" \
  "$nxrun" one.bin --stop-after 18446744073709551617
expect 'full standard output' 1 'cannot write to standard output' sh -c "'$nxrun' --help >/dev/full"
expect 'full standard output, dry run' 1 'cannot write to standard output' \
  sh -c "'$nxrun' one.bin --dry-run >/dev/full"
expect 'nobody reads what is printed' 1 '^[1-9] read:.*standard output: Broken pipe' sh -c "
  { '$nxrun' one.bin --dir unread 2>unread.err; echo \$? >unread.status; } | true
  echo \"\$(ls unread/checkpoints | wc -l) read: \$(cat unread.err)\"; exit \$(cat unread.status)"
expect 'no stream is open' 0 '^0 bytes of the lock' sh -c "
  '$nxrun' one.bin --dir unheard <&- >&- 2>&-; echo \"\$(wc -c <unheard/lock) bytes of the lock\""
expect 'one rank needs little of anything' 0 '^step 4/4 ' sh -c "ulimit -n 24; ulimit -f 1000; '$nxrun' one.bin --dir poor"
expect 'few files may be open, but more are allowed' 0 '^step 4/4 ' sh -c "ulimit -S -n 12; '$nxrun' one.bin --dir unlimited"

# No wait is for ever, wherever the rank that is waited for stands still.
expect 'a rank that does not come to MPI' 1 'rank 0 (.*) waits for MPI to start' \
  "$mpiexec" -n 1 "$nxrun" long.bin : -n 1 sleep 50
expect 'a rank that does not come to a meeting' 1 'rank 0 (.*) waits for a test: rank 2 (.*) gave no sign' \
  "$mpiexec" -n 3 "$comm_check" meet last silent
expect 'the first rank does not' 1 'rank [12] (.*) waits for a test: rank 0 (.*) gave no sign' \
  "$mpiexec" -n 2 "$comm_check" meet first silent
passes 'a rank that works long' "$mpiexec" -n 3 "$comm_check" meet last alive
passes 'the first rank works long' "$mpiexec" -n 3 "$comm_check" meet first alive
passes 'a device that works longer than the deadline' "$mpiexec" -n 1 "$comm_check" device alive
expect 'a device that stands still' 1 'rank 0 (.*) waits for its device, which has done nothing for run.deadline_s' \
  "$mpiexec" -n 1 "$comm_check" device silent

# The clock of a run that is ended from outside: start, wait until it steps, send the signal (or, with CUT,
# cut the dataset), see how it ends. One line says the pattern.
# Where mpiexec itself gets the signal, it may end with 0 before it knows the status of its ranks; where a rank
# ends by itself, mpiexec kills the others and may end with their 9.
end_by() { # NAME SIGNAL WHOM STATUS PATTERN
  rm -rf long steps
  setsid "$mpiexec" -n 2 "$nxrun" long.bin --dir long --log json >steps 2>out &
  job=$!
  for _ in $(seq 100); do [ -s steps ] && break; sleep 0.1; done
  whom=$job
  [ "$3" = rank ] && whom=$(grep -lzx "PMI_RANK=1" /proc/[0-9]*/environ 2>/dev/null |
    while read -r at; do
      process=${at#/proc/} process=${process%/environ}
      [ "$(readlink "/proc/$process/exe")" = "$nxrun" ] &&
        [ "$(readlink "/proc/$process/cwd")" = "$folder" ] && echo "$process"
    done | head -n 1)
  if [ "$2" = CUT ]; then : >data.bin; else kill -s "$2" "$whom"; fi
  for _ in $(seq 200); do
    case $(cut -d ' ' -f 3 "/proc/$job/stat" 2>/dev/null) in '' | Z) break ;; esac
    sleep 0.1
  done
  kill -s KILL "$job" 2>/dev/null
  wait "$job"
  got=$?
  [ "$2" = STOP ] && kill -s KILL "$whom" 2>/dev/null
  cat steps >>out
  case $2:$3:$got in *:job:0 | CUT:*:9) got=$4 ;; esac
  [ $got -eq "$4" ] && [ "$(grep -c -e "$5" out)" -eq 1 ]
  good=$?
  [ $good -eq 0 ] || echo "# status $got, not $4, or not one line with: $5"
  report "$1" $good
}
end_by 'SIGTERM: a checkpoint, then the end' TERM job 3 'stopped by a signal after step'
at=$(tail -n 1 long/metrics.jsonl | sed 's/[^0-9]*\([0-9]*\).*/\1/')
expect 'and the run goes on from there' 0 'step.:' "$mpiexec" -n 2 "$nxrun" long.bin --dir long --resume \
  --log json --stop-after $((at + 1))
end_by 'SIGHUP of a rank is the same' HUP rank 3 'stopped by a signal after step'
end_by 'SIGINT is the same' INT job 3 'stopped by a signal after step'
end_by 'a rank is killed: the job ends' KILL rank 9 'EXIT CODE: 9'
end_by 'SIGQUIT of a rank is not taken for a run that was stopped and saved' QUIT rank 6 'EXIT CODE: 6'
end_by 'a rank stands still: the others end by the deadline' STOP rank 1 \
  'rank 0 (.*) waits in step .* bytes: rank 1 (.*) does not come'
own_ranks() { # process ids of this test's
  for at in /proc/[0-9]*; do
    [ "$(readlink "$at/exe")" = "$nxrun" ] && [ "$(readlink "$at/cwd")" = "$folder" ] && echo "${at#/proc/}"
  done
}
rm -rf long steps
setsid "$mpiexec" -n 2 "$nxrun" long.bin --dir long --log json >steps 2>out &
job=$!
for _ in $(seq 100); do [ -s steps ] && break; sleep 0.1; done
kill -KILL $(ps -o pid= --ppid $job)
for _ in $(seq 200); do [ -z "$(own_ranks)" ] && break; sleep 0.1; done
[ -z "$(own_ranks)" ] && ls long/checkpoints/step-*/manifest.json >>out
report 'what has started the ranks of a host is killed: a checkpoint, then their end' $?
kill -KILL $job $(own_ranks) 2>/dev/null
wait $job
plan long.bin 2 steps=2000000000 deadline=60
# One rank stands still, so the step does not end: the first SIGINT alone would wait for it.
rm -rf long
setsid "$mpiexec" -n 2 "$nxrun" long.bin --dir long --log json >steps 2>out &
job=$!
for _ in $(seq 100); do [ -s steps ] && break; sleep 0.1; done
for _ in $(seq 100); do [ -s long/status.json ] && break; sleep 0.1; done
first=$(sed -n 's/.*"process": \([0-9]*\).*/\1/p' long/status.json)
set -- $(own_ranks | grep -vx "$first") "$first"
kill -STOP "$1"
for _ in $(seq 200); do
  "$nxrun" status long >out
  grep -q '^waits' out && break
  sleep 0.1
done
awk 'length($0) > 80 { long = 1 } /^waits +in step [0-9]+ / { waits = 1 } { all = all $0 }
  END { gsub(/ +/, " ", all); exit !(waits && !long && all ~ /: rank 1 \(.*\) has shown no sign of life for [0-9]+ s; rank 1 was last seen/) }' out
report 'status says what a run waits for' $?
kill -INT "$2"
sleep 2.2
kill -0 "$2"
report 'after one SIGINT the step goes on' $?
kill -INT "$2"
for _ in $(seq 50); do kill -0 "$2" 2>/dev/null || break; sleep 0.1; done
! kill -0 "$2" 2>/dev/null
report 'a second one ends the run at once' $?
kill -KILL $(own_ranks) 2>/dev/null
wait $job
plan long.bin 2 steps=2000000000 deadline=4 save=1
end_by 'a rank stands still, probably in a checkpoint' STOP rank 1 'rank 0 .*waits .*: rank 1 '
# What is written to a dataset that is read is told when there is something to lose; another file of its name is none.
written() { # NAME COUNT COMMAND: so often is data.bin named by a run that the command goes beside
  rm -rf long steps
  setsid "$mpiexec" -n 2 "$nxrun" long.bin --dir long --log json >steps 2>out &
  job=$!
  for _ in $(seq 100); do [ -s steps ] && break; sleep 0.1; done
  sh -c "$3"
  kill -s TERM "$job"
  wait "$job"
  grep -q 'stopped by a signal' out && [ "$(grep -c '^nxrun: data.bin was written to by step [0-9]*, while' out)" -eq "$2" ]
  report "$1" $?
}
cp data.bin kept.bin
written 'the dataset is written to while it is read' 1 'dd if=kept.bin of=data.bin conv=notrunc 2>/dev/null'
written 'it is replaced' 0 'mv kept.bin data.bin'
end_by 'the dataset is cut while it is read' CUT job 1 '^nxrun: data.bin was cut short'
finish
