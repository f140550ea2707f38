#!/bin/sh
# File systems that fail under a run: read-only, too small, over a quota of files, slow, gone. The checkpoint before stays
# whole, and the run says what happened. TAP.
# usage: disks.sh NXRUN NXCFG NXDATA MPIEXEC SLOW_DISK
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 slow=$(realpath "$5")
. "$(dirname "$0")/lib.sh"
mkdir disk
trap 'umount -l "$folder"/disk/run/checkpoints "$folder"/disk 2>/dev/null; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
if ! mount -t tmpfs -o size=64m tmpfs disk 2>/dev/null; then
  skip 'file systems that fail' 'mounts no tmpfs here'
  finish
fi

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
cat >base.yaml <<'END'
mesh: {world: 2}
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}
schedule: {max_steps: 100000}
data: {path: [data]}
checkpoint: {every_steps: 20}
run: {name: run, log_every: 1000}
END
for way in end continue; do
  "$nxcfg" plan base.yaml --set nx:checkpoint.on_failure=$way -o $way.bin >out 2>&1 || exit 99
done
export NXRUN_DELAY=1

# Breaks the disk when a checkpoint is there; the run then has 60 s to end.
breaks() { # NAME PLAN STATUS PATTERN COMMAND...
  name=$1 plan=$2 status=$3 pattern=$4
  shift 4
  mountpoint -q disk || mount -t tmpfs -o size=64m tmpfs disk
  mount -o remount,rw,size=64m,nr_inodes=1000000 disk
  rm -rf disk/run disk/other
  timeout 60 "$mpiexec" -n 2 "$nxrun" $plan.bin --dir disk/run --metrics numbers.$plan >out 2>&1 &
  job=$!
  for _ in $(seq 100); do
    [ -e disk/run/checkpoints/step-000020/manifest.json ] && break
    sleep 0.1
  done
  "$@" || echo "# $* failed"
  [ "$status" = goes_on ] && sleep 3 && kill -TERM $job
  wait $job
  got=$?
  [ "$status" = goes_on ] && { [ $got -ne 124 ] && [ $got -ne 137 ]; } && got=goes_on
  grep -q -e "$pattern" out && [ "$got" = "$status" ]
  report "$name" $?
}
# The lock is open to be written, so the folder of checkpoints alone can become so; between two of them.
read_only() {
  mount --bind disk/run/checkpoints disk/run/checkpoints || return
  for _ in $(seq 100); do
    mount -o remount,bind,ro disk/run/checkpoints 2>/dev/null && return
    sleep 0.05
  done
  return 1
}
goes_on_from() { # NAME: a run resumes from the disk once it is whole
  mountpoint -q disk/run/checkpoints && umount disk/run/checkpoints
  mount -o remount,rw,size=64m,nr_inodes=1000000 disk
  rm -f disk/other
  newest=$(ls disk/run/checkpoints | grep -x 'step-[0-9]*' | tail -n 1)
  at=${newest#step-}
  expect "$1: the checkpoints before are whole, and the run goes on from the newest" 0 "resumes from .*/$newest\$" \
    "$mpiexec" -n 2 "$nxrun" end.bin --dir disk/run --metrics numbers.end --resume --stop-after $((${at#"${at%%[1-9]*}"} + 1))
}
breaks 'a disk that becomes read-only' end 1 'Read-only file system' read_only
goes_on_from 'read-only'
breaks 'or not, as the plan says' continue goes_on 'Read-only file system.*; the training goes on' read_only
goes_on_from 'read-only, and on'
breaks 'a disk that others fill' end 1 'No space left' sh -c '! cat /dev/zero >disk/other 2>/dev/null'
goes_on_from 'filled'
breaks 'a quota of files' end 1 'No space left\|quota' mount -o remount,nr_inodes=20 disk
goes_on_from 'a quota of files'

# A disk that stands still, for longer than the deadline where nobody makes it go on.
mount -o remount,rw,size=64m,nr_inodes=1000000 disk
on_slow_disk() { # PLAN ASYNC RANKS PART: of what these ranks write what has PART in its name; `out` has what they say
  "$nxcfg" plan base.yaml --set nx:run.deadline_s=10 --set nx:run.log_every=1 --set nx:checkpoint.async=$2 -o $1.bin >out 2>&1 || exit 99
  rm -rf disk/run go_on
  timeout -s KILL 150 "$mpiexec" -genv LD_PRELOAD "$slow" -genv NX_SLOW_UNTIL "$PWD/go_on" -genv NX_SLOW_RANKS "$3" \
    -genv NX_SLOW_PART "$4" -n 2 "$nxrun" $1.bin --dir disk/run --stop-after 30 >out 2>&1
}
says_rank() { # RANK STEP FILE
  grep -q "^nxrun: rank $1 (.*) writes the checkpoint of step $2: nothing of .*/$3 was written for 10 s (run.deadline_s)" out
}
on_slow_disk beside true 0 .safetensors &
job=$!
for _ in $(seq 600); do
  grep -q '"step":30,' disk/run/metrics.jsonl 2>/dev/null && break
  sleep 0.1
done
grep -q '"step":30,' disk/run/metrics.jsonl && [ ! -e disk/run/checkpoints/step-000020 ]
report 'a disk that stands still: the training beside it goes on' $?
touch go_on
wait $job
grep -q '^step 30/' out && [ -e disk/run/checkpoints/step-000020/manifest.json ] && [ -e disk/run/checkpoints/step-000030/manifest.json ]
report 'and waits for it in the end' $?
on_slow_disk beside true 0 .safetensors
[ $? -eq 1 ] && grep -q '"step":30,' disk/run/metrics.jsonl && says_rank 0 20 model.safetensors
report 'not longer than the deadline' $?
on_slow_disk within false 1 step-000030
[ $? -eq 1 ] && says_rank 1 30 model.safetensors && ! grep -q 'gave no sign of life' out
report 'a training that waits for its checkpoint ends at the deadline, and says whose disk stands still' $?
on_slow_disk within false 01 step-000030
[ $? -eq 1 ] && { says_rank 0 30 model.safetensors || says_rank 1 30 model.safetensors; } && [ ! -e disk/run/checkpoints/step-000030 ]
report 'the disk of every rank at once' $?
expect 'and the checkpoint before is whole' 0 'resumes from .*/step-000020$' \
  "$mpiexec" -n 2 "$nxrun" within.bin --dir disk/run --resume --stop-after 21
# Of what is read.
reads_stuck() { # NAME RANKS RANK FILE [OPTION]...
  name=$1 ranks=$2 rank=$3 file=$4
  shift 4
  timeout -s KILL 150 "$mpiexec" -genv LD_PRELOAD "$slow" -genv NX_SLOW_UNTIL "$PWD/never" -genv NX_SLOW_RANKS "$ranks" \
    -genv NX_STUCK_PART "$file" -n 2 "$nxrun" within.bin --dir disk/run --stop-after 40 "$@" >out 2>&1
  [ $? -eq 1 ] && grep -q "^nxrun: rank $rank (.*) reads .*$file: nothing has come for 7.5 s (of run.deadline_s 10)" out
  report "$name" $?
}
reads_stuck 'a disk that stands still while a checkpoint is read' 1 1 model.safetensors --resume
reads_stuck 'or the data, of every rank' 01 '[01]' data.bin --resume
# A writer beside it, which has page faults on the same disk, is no sign that something comes.
rm -rf disk/run
timeout -s KILL 150 "$mpiexec" -genv LD_PRELOAD "$slow" -genv NX_SLOW_UNTIL "$PWD/never" -genv NX_SLOW_RANKS 0 \
  -genv NX_SLOW_PART .safetensors -genv NX_STUCK_PART data.bin -genv NX_STUCK_WHEN "$PWD/disk/run/checkpoints/step-000020.tmp" \
  -n 2 "$nxrun" beside.bin --dir disk/run >out 2>&1
[ $? -eq 1 ] && grep -q "^nxrun: rank 0 (.*) reads .*data.bin: nothing has come for 7.5 s (of run.deadline_s 10)" out
report 'or the data, while a checkpoint is written beside the training' $?
on_slow_disk within false 0 manifest.json
[ $? -eq 1 ] && says_rank 0 20 manifest.json
report 'the manifest' $?


# A quota of bytes: the kernels of tests seldom have any.
has_quota() { # CALL PLAN STATUS PATTERN
  "$nxcfg" plan base.yaml --set nx:checkpoint.on_failure=$2 --set nx:run.log_every=10 -o $2.bin >out 2>&1 || exit 99
  rm -rf disk/run
  timeout -s KILL 60 "$mpiexec" -genv LD_PRELOAD "$slow" -genv NX_QUOTA_AT "$1" -genv NX_SLOW_RANKS 1 -genv NX_SLOW_PART step-000040 \
    -n 2 "$nxrun" $2.bin --dir disk/run --stop-after 50 >out 2>&1
  [ $? -eq "$3" ] && grep -q "$4" out && [ -e disk/run/checkpoints/step-000020/manifest.json ] &&
    ! ls disk/run/checkpoints | grep -q step-000040
  report "a quota that $1 tells, $2" $?
}
for call in pwrite fsync; do
  has_quota $call end 1 'cannot write .*step-000040.*Disk quota exceeded'
  has_quota $call continue 0 'Disk quota exceeded.*; the training goes on'
  grep -q '^step 50/' out && [ -e disk/run/checkpoints/step-000050/manifest.json ]
  report 'to its end, which is saved' $?
done

breaks 'a disk that is gone' end 1 'No such file or directory' umount -l disk
finish
