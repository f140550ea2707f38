#!/bin/sh
# tools/slurm/nxrun.sbatch under Slurm's own daemons: a controller and two nodes, all on this host. TAP.
# usage: slurm.sh NXRUN NXCFG NXDATA SBATCH_SCRIPT
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") script=$(realpath "$4")
. "$(dirname "$0")/lib.sh"
here=$(realpath .)
for program in slurmctld slurmd munged sbatch; do
  if ! command -v $program >/dev/null; then
    skip 'runs under Slurm' "$program is not installed (Debian: slurm-wlm, munge)"
    finish
  fi
done
if [ "$(id -u)" -ne 0 ]; then
  skip 'runs under Slurm' "Slurm's daemons want root here"
  finish
fi

# ---- a cluster ----
stop_all() {
  scancel --full --state=RUNNING --user=root
  for pid in slurmd-n1.pid slurmd-n2.pid ctld.pid munge/pid; do [ -s $pid ] && kill "$(cat $pid)"; done
  cd / && rm -rf "$folder"
}
trap 'stop_all >/dev/null 2>&1' EXIT
trap 'exit 1' INT TERM
port=$((20000 + $$ % 20000)) node=$(hostname)
mkdir -p state munge
chmod 755 . && chmod 700 munge
dd if=/dev/urandom of=munge/key bs=1 count=128 2>/dev/null && chmod 400 munge/key
munged --force -S "$here/munge/socket" --key-file "$here/munge/key" --log-file "$here/munge/log" \
  --pid-file "$here/munge/pid" --seed-file "$here/munge/seed" >out 2>&1
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$here/munge/socket
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool-%n
SlurmctldPidFile=$here/ctld.pid
SlurmdPidFile=$here/slurmd-%n.pid
SlurmctldLogFile=$here/ctld.log
SlurmdLogFile=$here/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MpiDefault=none
KillWait=20
ReturnToService=2
NodeName=n[1-2] NodeHostname=$node NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 2))] CPUs=2 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
END
export SLURM_CONF="$here/slurm.conf" NXRUN="$nxrun" NXCFG="$nxcfg"
slurmctld -c >out 2>&1 && slurmd -N n1 >out 2>&1 && slurmd -N n2 >out 2>&1
for _ in $(seq 100); do
  sinfo -h -o %T 2>/dev/null | grep -qx idle && break
  sleep 0.2
done
if ! srun -N 2 -n 2 true >out 2>&1; then
  skip 'runs under Slurm' "no cluster could be started here: $(tail -n 1 out)"
  finish
fi

# ---- what is run on it ----
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
cat >base.yaml <<END
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: adamw, lr: 3e-3}
schedule: {max_steps: 400}
data: {path: [$here/data]}
checkpoint: {every_steps: 100}
run: {name: run}
END
for ranks in 4 2; do
  "$nxcfg" plan base.yaml --set nx:mesh.world=$ranks --set nx:mesh.nodes=$((ranks / 2)) -o $ranks.bin >out 2>&1 || exit 99
done
# one that outlasts every time limit, however fast the machine is
"$nxcfg" plan base.yaml --set nx:mesh.world=4 --set nx:mesh.nodes=2 --set nx:schedule.max_steps=100000000 \
  --set nx:checkpoint.every_steps=100000000 -o endless.bin >out 2>&1 || exit 99
mpiexec -launcher fork -hosts one:2,two:2 -n 4 "$nxrun" 4.bin --dir plain >out 2>&1 || exit 99

submit() { # NAME [OPTION OF sbatch]... -- [ARGUMENT]...: $job is its number
  name=$1
  shift
  options=
  while [ "$1" != -- ]; do options="$options $1"; shift; done
  shift
  # shellcheck disable=SC2086
  job=$(sbatch --parsable -o "$name.log" --export=ALL $options "$script" --dir "$name" "$@")
}
await() { # CONDITION [SECONDS]
  for _ in $(seq $((5 * ${2:-60}))); do
    eval "$1" && return 0
    sleep 0.2
  done
  { scontrol show job "$job" | grep -e JobState -e Restarts -e Time=; sinfo -h -N; tail -n 12 "$name.log"; tail -n 6 ctld.log; tail -n 6 slurmd-n1.log; } >out 2>&1
  return 1
}
state() { scontrol show job "$job" | sed -n "s/.*$1=\([^ ]*\).*/\1/p"; }
leaves_queue() { # Slurm itself would wait two minutes, and hears nothing of this before the job is all over.
  sleep 2 # a node refuses a job in the second in which it ended it
  await 'scontrol update JobId="$job" StartTime=now; [ "$(state JobState)" = RUNNING ]' 2>/dev/null
}
goes_on() { # NAME: from the queue to the end, with the weights of the run that nothing stopped
  leaves_queue
  await '[ "$(state JobState)" = COMPLETED ]' 150
  report "$1: goes on from the queue to the end" $?
  cmp plain/checkpoints/step-000400/model.safetensors "$name"/checkpoints/step-000400/model.safetensors >out 2>&1
  report "$1: with the same weights" $?
}
trains='grep -q "\"step\":20," $name/metrics.jsonl 2>/dev/null'
export NXRUN_DELAY=3 # a step takes long enough to be met

submit all -N 2 --ntasks-per-node=2 -- 4.bin 2.bin
await "$trains"
scancel --signal=TERM --batch "$job"
await '[ "$(state JobState)" = PENDING ]'
report 'a job that is told to end goes back into the queue' $?
grep -q 'nxrun.sbatch: stopped with a checkpoint: back into the queue' all.log
report 'and says so' $?
goes_on 'told to end'
grep -q 'start 2 on ' all.log && grep -q 'resumes from all/checkpoints/step-' all.log
report 'told to end: resumes' $?

submit low -N 2 --ntasks-per-node=2 -- 4.bin
await "$trains"
sbatch --parsable -p high -N 2 --ntasks-per-node=2 -o high.log --wrap 'sleep 1' >high
await '[ "$(state JobState)" = PENDING ]'
report 'a job that is preempted waits again' $?
await '[ "$(job=$(cat high); state JobState)" = COMPLETED ]'
goes_on 'preempted'
grep -q 'stopped by a signal after step' low.log
report 'preempted: after a checkpoint' $?

submit limited -N 2 --ntasks-per-node=2 --time=1 --signal=B:TERM@50 -- endless.bin
await '[ "$(state JobState)" = PENDING ] && [ "$(state Restarts)" = 1 ]' 100 &&
  grep -q 'back into the queue' limited.log
report 'a job whose time is nearly over goes back into the queue' $?
leaves_queue && await 'grep -q "resumes from limited/checkpoints/step-" limited.log'
report 'time limit: resumes' $?
scancel "$job"
await '[ "$(state JobState)" = CANCELLED ]'

submit killed -N 2 --ntasks-per-node=2 -- 4.bin
await "$trains"
pgrep -f "^$nxrun 4.bin --dir killed" | tail -n 1 | xargs kill -KILL
await '[ "$(state JobState)" = COMPLETED ]' 90
report 'a rank is killed: the job starts it again' $?
grep -q 'restart 1 of 3' killed.log && [ "$(state Restarts)" = 0 ]
report 'without the queue' $?

submit small -N 1 --ntasks-per-node=2 -- 4.bin 2.bin
await '[ "$(state JobState)" = COMPLETED ]'
report 'a job with fewer tasks takes the plan for them' $?
grep -q '4.bin is for 4 ranks, and the job has 2 tasks' small.log
report 'and says why' $?
submit none -N 1 --ntasks-per-node=1 -- 4.bin 2.bin
await '[ "$(state ExitCode)" = 2:0 ]'
report 'one with too few has a mistake' $?
unset NXRUN_DELAY
submit done -N 2 --ntasks-per-node=2 -- 4.bin
await '[ "$(state JobState)" = COMPLETED ]'
report 'a job that nothing stops is done' $?
finish
